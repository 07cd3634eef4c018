//! What is found in a document, and what is not.

use super::*;

fn named(text: &str) -> Vec<(AssetKind, String)> {
    let found = scan(text.as_bytes()).found.into_iter();
    found.map(|one| (one.kind, one.reference)).collect()
}

fn pairs(all: &[(AssetKind, &str)]) -> Vec<(AssetKind, String)> {
    let all = all.iter();
    all.map(|(kind, text)| (*kind, (*text).to_owned()))
        .collect()
}

#[test]
fn assets_are_found_in_the_order_of_the_document() {
    let text = r##"<!doctype html><html><head><title><img src=no></title>
        <link rel="icon" href="16.png"><link rel=icon type="image/svg+xml" href=i.svg><link rel=icon href=32.png>
        <LINK REL="Preload StyleSheet" HREF='a.css?x=1&amp;y=2'><link rel=preload as=font href=f.woff2 crossorigin>
        <link rel=preload as=image href=no.png imagesrcset="p.png 1x, q.png 2x"><link rel=modulepreload href=m.js>
        <script src=b.js></script><script type=module src="c.js" nomodule></script>
        <script>document.write("<img src=no>")</script><style>@import "d.css"; x{background:url(e.png)}</style>
        </head><body background=f.gif><!-- <img src=no> --><img alt=">" src=g.png/>
        <img srcset=" h.png 1x,i.png 2x" src=no><video src=no poster=j.png></video>
        <div style="background:url(&quot;k.png&quot;)"></div><input type=IMAGE src=l.png>
        <iframe src="/frame">no</iframe><svg><image xlink:href=m.png /><use href="n.svg#x"/><use href="#y"/></svg>"##;
    let wanted = [
        (AssetKind::Style, "a.css?x=1&y=2"),
        (AssetKind::Font, "f.woff2"),
        (AssetKind::Image, "p.png"),
        (AssetKind::Script, "m.js"),
        (AssetKind::Script, "b.js"),
        (AssetKind::Script, "c.js"),
        (AssetKind::Style, "d.css"),
        (AssetKind::Image, "e.png"),
        (AssetKind::Image, "f.gif"),
        (AssetKind::Image, "g.png/"),
        (AssetKind::Image, "h.png"),
        (AssetKind::Image, "j.png"),
        (AssetKind::Image, "k.png"),
        (AssetKind::Image, "l.png"),
        (AssetKind::Frame, "/frame"),
        (AssetKind::Image, "m.png"),
        (AssetKind::Other, "n.svg#x"),
        (AssetKind::Icon, "i.svg"),
    ];
    assert_eq!(named(text), pairs(&wanted));
}

#[test]
fn what_browsers_do_not_load_is_not_found() {
    let text = r#"<script type="application/json" src=no></script><script nomodule src=no></script>
        <noscript><img src=no></noscript>
        <template><img src=no><template></template><img src=no></template>
        <link rel=stylesheet disabled href=no><link rel=stylesheet type=text/less href=no>
        <link rel=next href=no><link rel=canonical href=no><a href=no>x</a><img><img src="">
        <img src="data:image/png;base64,AA==">
        <img src="DATA:,x"><audio src=no></audio><source srcset=no><link rel=apple-touch-icon href=no>"#;
    assert_eq!(named(text), []);
}

#[test]
fn source_of_a_picture_takes_the_place_of_its_image() {
    let text = "<picture><source media='(x)' srcset=no><source type=image/tiff srcset=no>\
                <source type=image/webp srcset='a.webp, b.webp 2x'><source srcset=no><img src=no>\
                </picture><picture><source media=print srcset=no><img src=c.png></picture>\
                <img src=d.png>";
    let wanted = [
        (AssetKind::Image, "a.webp"),
        (AssetKind::Image, "c.png"),
        (AssetKind::Image, "d.png"),
    ];
    assert_eq!(named(text), pairs(&wanted));
}

#[test]
fn base_is_the_first_one() {
    let text = b"<base target=x><base href='/a/'><base href='/b/'>";
    // One without a reference says nothing of it.
    assert_eq!(scan(text).base.as_deref(), Some("/a/"));
}

#[test]
fn what_is_malformed_is_passed_over() {
    for text in [
        "<",
        "</",
        "<!",
        "<!--",
        "<!-->",
        "<img",
        "<img src",
        "<img src=",
        "<img src='",
        "<img =",
        "<script>",
        "<style>@import '",
        "<img src=\"&#",
        "<a <b",
        "</style",
        "<?",
        "<textarea><img src=x>",
        "& < >",
    ] {
        assert_eq!(named(text), [], "{text}");
    }
    assert_eq!(
        named("<!--><img src=a><img src=&#x62;&#99;&#xffffffffff;&no;><img src=x"),
        pairs(&[
            (AssetKind::Image, "a"),
            (AssetKind::Image, "bc&#xffffffffff;&no;")
        ])
    );
}

#[test]
fn more_than_the_limit_is_counted_and_left_out() {
    let text = "<img src=x>".repeat(crate::limits::ASSET_COUNT_MAX + 7);
    let all = scan(text.as_bytes());
    assert_eq!(all.found.len(), crate::limits::ASSET_COUNT_MAX);
    assert_eq!(all.left_out, 7);
}
