//! A real browser, headless Chromium, shows the welcome page over HTTP/2 and HTTP/3, clicks through
//! a shop whose pages remember it, and asks for what `hob bench --page` asks for.
//!
//! The certificate is the one hob makes for itself, which Chromium is told to take by its key's
//! hash. Every name but localhost is unknown to it: it asks nobody outside.
#![allow(clippy::unwrap_used)]

mod harness;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use harness::{Hob, Place, is_root, text_of};

const WELCOME: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/welcome/site/index.html"
);

/// Chromium's seconds for a page; only a failure reaches them.
const SECONDS_MAX: &str = "180";

/// Chromium lets a connection over TCP race with the first over QUIC, which on a busy machine may
/// lose: then the page is loaded anew.
const RACES_MAX: usize = 5;

/// A page that asks for another twice, the second time without credentials: for that a browser has
/// a connection of its own, and by then it knows what `Alt-Svc` said.
const CARRIERS: &str = r#"<!doctype html><title>Carriers</title><p id="carriers"></p><script>
const ask = async (name, credentials) => {
  const answer = await fetch("/carriers.html?" + name, { cache: "no-store", credentials });
  await answer.text();
  return performance.getEntriesByName(answer.url)[0].nextHopProtocol;
};
(async () => {
  const seen = [performance.getEntriesByType("navigation")[0].nextHopProtocol];
  for (const credentials of ["include", "omit"]) seen.push(await ask(credentials, credentials));
  document.getElementById("carriers").textContent = seen.join(" then ");
})();
</script>"#;

/// A hob that serves the welcome page and [`CARRIERS`] over TLS; none, with a line that says why,
/// where there is no Chromium.
fn served() -> Option<(Place, Hob)> {
    if !has_browser() {
        return None;
    }
    let place = Place::new();
    place.write("site/carriers.html", CARRIERS);
    place.write(
        "site/index.html",
        &std::fs::read_to_string(WELCOME).unwrap(),
    );
    let hob = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n",
    );
    Some((place, hob))
}

/// Is there a Chromium? Else a line says so.
fn has_browser() -> bool {
    let found = Command::new("chromium").arg("--version").output();
    let is_there = found.is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: there is no chromium");
    }
    is_there
}

/// What a page is once its scripts have run. `quic_port` is a port of localhost where Chromium
/// begins with HTTP/3, and naming any allows it HTTP/3 there with a certificate of no authority.
fn page(hob: &Hob, path: &str, quic_port: u16) -> String {
    let profile = tempfile::tempdir().unwrap();
    let port = hob.tls_port();
    let mut browser = Command::new("timeout");
    browser.args([SECONDS_MAX, "chromium", "--headless", "--disable-gpu"]);
    browser.args([
        "--no-first-run",
        "--disable-dev-shm-usage",
        "--disable-breakpad",
    ]);
    browser.args([
        "--disable-background-networking",
        "--disable-component-update",
    ]);
    if is_root() {
        browser.arg("--no-sandbox");
    }
    let output = browser
        .arg(argument("--user-data-dir", profile.path()))
        .arg(format!(
            "--ignore-certificate-errors-spki-list={}",
            key_hash(port)
        ))
        .arg("--host-resolver-rules=MAP localhost 127.0.0.1, EXCLUDE 127.0.0.1, MAP * ~NOTFOUND")
        .arg(format!("--origin-to-force-quic-on=localhost:{quic_port}"))
        .args(["--virtual-time-budget=30000", "--dump-dom"])
        .arg(format!("https://localhost:{port}{path}"))
        .env("HOME", profile.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn argument(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// SHA-256 of the public key of the certificate that is shown for localhost, in base64.
fn key_hash(port: u16) -> String {
    let pipeline = format!(
        "openssl s_client -connect 127.0.0.1:{port} -servername localhost </dev/null 2>/dev/null \
         | openssl x509 -noout -pubkey | openssl pkey -pubin -outform der \
         | openssl dgst -sha256 -binary | base64"
    );
    let output = Command::new("sh").args(["-c", &pipeline]).output().unwrap();
    let hash = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(hash.len(), 44, "{}", text_of(&output));
    hash
}

#[test]
fn browser_shows_the_welcome_page_over_http_2() {
    let Some((_place, hob)) = served() else {
        return;
    };
    let page = page(&hob, "/", 1);
    assert!(page.contains("The kettle is warm."), "{page}");
    assert!(page.contains(">It came over HTTP/2.<"), "{page}");
    hob.stop();
}

#[test]
fn browser_shows_the_welcome_page_over_http_3() {
    let Some((_place, hob)) = served() else {
        return;
    };
    let page = page(&hob, "/", hob.tls_port());
    assert!(page.contains("The kettle is warm."), "{page}");
    assert!(page.contains(">It came over HTTP/3.<"), "{page}");
    hob.stop();
}

#[test]
fn browser_takes_http_3_from_alt_svc() {
    let Some((_place, hob)) = served() else {
        return;
    };
    let mut pages = (0..RACES_MAX).map(|_| page(&hob, "/carriers.html", 1));
    let is_h3 = |page: &String| page.contains(">h2 then h2 then h3<");
    assert!(pages.any(|page| is_h3(&page)), "{}", hob.printed());
    hob.stop();
}

/// Two visitors of the example's shop, each in a frame of its own, and what one of them clicks. It
/// says what the pages said.
const CLICKS: &str = r#"<!doctype html><title>Clicks</title><p id="said"></p>
<iframe id="one"></iframe><iframe id="other"></iframe><script>
const said = [];
const act = async (name, act) => {
  const frame = document.getElementById(name);
  const loaded = new Promise((done) => frame.addEventListener("load", done, { once: true }));
  act(frame.contentDocument, frame);
  await loaded;
  const lines = frame.contentDocument.body.innerText.split("\n").map((line) => line.trim());
  const told = lines.find((line) => /basket is empty|^Thank|^410/.test(line));
  const items = [...frame.contentDocument.querySelectorAll("li")].map((item) => item.innerText.trim());
  said.push(name + ": " + [told ?? "In the basket", ...items].join(", "));
};
const start = (page, frame) => { frame.src = "/stock/shop.d2w/start"; };
const put = (tea, grams) => (page) => {
  page.querySelector("select").value = tea;
  page.querySelector("input").value = grams;
  page.querySelector("form[action$=add] button").click();
};
const press = (name) => (page) => page.querySelector(`form[action$=${name}] button`).click();
(async () => {
  await act("one", start);
  await act("one", put("1", "40"));
  await act("other", start);
  await act("one", put("2", "20"));
  const frame = document.getElementById("one");
  const again = frame.contentDocument.querySelector("form[action$=add]").action;
  await act("one", press("buy"));
  await act("one", (page) => {
    const form = page.createElement("form");
    [form.method, form.action] = ["post", again];
    page.body.append(form);
    form.submit();
  });
  await act("other", put("1", "5"));
  await act("other", press("drop"));
  document.getElementById("said").textContent = said.join(" / ");
})();
</script>"#;

#[test]
fn browser_clicks_through_the_shop_of_the_example() {
    if !has_browser() {
        return;
    }
    let place = Place::new();
    place.write("site/clicks.html", CLICKS);
    for folder in ["stock", "data"] {
        place.folder(folder);
    }
    let open = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path("data"), open).unwrap();
    let shop = Path::new(WELCOME)
        .parent()
        .unwrap()
        .join("../stock/shop.d2w");
    std::fs::copy(shop, place.path("stock/shop.d2w")).unwrap();
    place.write("stock/shelf.page", include_str!("page/shelf.page"));
    let hob = place.serve_text(
        "[[database]]\nname = \"shelf\"\nurl = \"sqlite:data/shelf.db\"\ncreate = true\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/stock/*\"\n\
         page = { dir = \"stock\", database = \"shelf\", session = true }\n",
    );
    assert!(page(&hob, "/stock/shelf.page/make", 1).contains("made"));
    let clicks = page(&hob, "/clicks.html", 1);
    let said = [
        "one: The basket is empty.",
        "one: In the basket, oolong, 40 g",
        "other: The basket is empty.",
        "one: In the basket, oolong, 40 g, sencha, 20 g",
        "one: Thank you. This is order 1:, oolong, 40 g, sencha, 20 g",
        "one: 410",
        "other: In the basket, oolong, 5 g",
        "other: The basket is empty.",
    ];
    assert!(clicks.contains(&said.join(" / ")), "{clicks}");
    let sold = page(&hob, "/stock/shelf.page/sold", 1);
    assert!(sold.contains("<body>60 "), "{sold}");
    hob.stop();
}

/// A page with most of what browsers load, and most of what they do not.
const RICH: &str = r#"<!doctype html><meta charset=utf-8><title>x</title>
<link rel=icon type=image/svg+xml href=i.svg><link rel=stylesheet href="css/a.css?x=1&amp;y=2">
<link rel="alternate stylesheet" title=x href=css/b.css>
<link rel=stylesheet media=print href=css/c.css><link rel=preload as=image href=a.png>
<script src=a.js></script><script type=module src=b.js></script>
<script nomodule src=no.js></script><script type=application/json src=no.json></script>
<style>@import "css/d.css"; #x { background: url(b.png) }</style><div id=x>x</div><div id=y>y</div>
<p>x</p><img src=c.png><img src=c.png><img srcset="d.png 1x, no.png 2x" src=no.png>
<picture><source media="(min-width: 99999px)" srcset=no.png><source type=image/x-no srcset=no.png>
<source type=image/png srcset=e.png><img src=no.png></picture><noscript><img src=no.png></noscript>
<template><img src=no.png></template><!-- <img src=no.png> --><input type=image src=f.png>
<video poster=g.png></video><iframe src=frame.html></iframe>
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><svg><image href=h.png width=9 height=9 /></svg>
<object type=image/png data=l.png></object><embed type=image/png src=m.png>
<img src="folder/../caf&#233; x.png"><img src=/missing.png>"#;

/// A site with that page.
fn rich_site() -> Place {
    let place = Place::new();
    place.folder("logs");
    place.folder("site/css");
    let images = Path::new(WELCOME).parent().unwrap();
    for name in ["index.html", "picture.png", "kettle.svg"] {
        std::fs::copy(images.join(name), place.path(&format!("site/{name}"))).unwrap();
    }
    for name in [
        "a", "b", "c", "d", "e", "f", "g", "h", "j", "k", "l", "m", "café x", "css/a",
    ] {
        let file = place.path(&format!("site/{name}.png"));
        std::fs::copy(images.join("picture.png"), file).unwrap();
    }
    for (name, text) in [
        ("rich.html", RICH),
        (
            "frame.html",
            "<!doctype html><base href=/css/><img src=a.png>",
        ),
        (
            "css/a.css",
            "@import url(e.css); #y { background: url('../k.png') } @font-face { font-family: f; \
             src: url(no.eot) format('embedded-opentype'), url(../f.woff2) } p { font-family: f }",
        ),
        ("css/b.css", ""),
        ("css/c.css", ""),
        ("css/d.css", ""),
        (
            "css/e.css",
            "#x { list-style-image: url(../j.png); display: list-item }",
        ),
        ("a.js", ""),
        ("b.js", ""),
        ("f.woff2", ""),
        ("i.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
    ] {
        place.write(&format!("site/{name}"), text);
    }
    place
}

/// What somebody asks a hob of its own for, each target once.
fn asked(place: &Place, client: impl FnOnce(&Hob)) -> BTreeSet<String> {
    let hob = place.serve_text(
        "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"logs/access.log\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n",
    );
    client(&hob);
    hob.stop();
    let log = std::fs::read_to_string(place.path("logs/access.log")).unwrap();
    std::fs::remove_file(place.path("logs/access.log")).unwrap();
    let targets = log.lines().filter_map(|line| line.split(' ').nth(6));
    targets.map(str::to_owned).collect()
}

#[test]
fn page_of_a_load_test_takes_what_it_takes_in_a_browser() {
    if !has_browser() {
        return;
    }
    let place = rich_site();
    for (path, count) in [("/", 3), ("/rich.html", 26)] {
        let browser = asked(&place, |hob| {
            page(hob, path, 1);
        });
        let own = asked(&place, |hob| {
            let url = format!("https://127.0.0.1:{}{path}", hob.tls_port());
            let mut bench = Command::new(env!("CARGO_BIN_EXE_hob"));
            bench.args(["bench", &url, "--page", "--http", "2"]);
            let output = bench.args(["-n", "1", "-c", "1"]).output().unwrap();
            assert!(output.status.success(), "{}", text_of(&output));
        });
        assert_eq!(own, browser, "{path}");
        assert_eq!(own.len(), count, "{own:?}");
    }
}

/// A page that asks another origin, in ways that its browser lets it and does not. `ELSEWHERE` is
/// that origin.
const ELSEWHERE: &str = r#"<!doctype html><title>Elsewhere</title><p id="said"></p><script>
const ask = async (path, options) => {
  try {
    const answer = await fetch("ELSEWHERE" + path, options);
    return answer.status + " " + (await answer.text()) + " " + answer.headers.get("X-Total");
  } catch { return "refused"; }
};
(async () => {
  const said = [
    await ask("/open"),
    await ask("/open", { method: "PUT", headers: { "X-Test": "1" }, body: "x" }),
    await ask("/open", { method: "DELETE" }),
    await ask("/open", { method: "PUT", headers: { "X-Other": "1" } }),
    await ask("/shut"),
  ];
  document.getElementById("said").textContent = said.join(", ");
})();
</script>"#;

#[test]
fn browser_lets_pages_elsewhere_do_what_the_config_says() {
    if !has_browser() {
        return;
    }
    let place = Place::new();
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[[site]]\nroot = \"site\"\n\
                [[site.route]]\npath = \"/open\"\nrespond = { body = \"open\" }\n\
                headers = { X-Total = \"7\" }\n\
                cors = { origins = [\"ORIGIN\"], methods = [\"GET\", \"PUT\"], \
                headers = [\"X-Test\"], expose = [\"X-Total\"] }\n\
                [[site.route]]\npath = \"/shut\"\nrespond = { body = \"shut\" }\n";
    let hob = place.serve_text(&text.replace("ORIGIN", "https://nobody.test"));
    let port = hob.tls_port();
    let elsewhere = ELSEWHERE.replace("ELSEWHERE", &format!("https://127.0.0.1:{port}"));
    place.write("site/elsewhere.html", &elsewhere);
    let refused = page(&hob, "/elsewhere.html", 1);
    let expected = "refused, refused, refused, refused, refused";
    assert!(refused.contains(expected), "{refused}");
    let origin = format!("https://localhost:{port}");
    place.write("hob.toml", &text.replace("ORIGIN", &origin));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for("reloaded, generation 2");
    let allowed = page(&hob, "/elsewhere.html", 1);
    let expected = "200 open 7, 200 open 7, refused, refused, refused";
    assert!(allowed.contains(expected), "{allowed}");
    hob.stop();
}
