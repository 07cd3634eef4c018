//! Templates: what they fill in, and that nobody can lead them elsewhere.

use super::*;

const HARD: &str = "/u/a&b=c?d#e%f g\u{e4}/x/y";

/// What a client may have sent for it.
const RAW: &str = "//u/a&b=c%3fd%23e%25f%20g%C3%A4/./x/y";

fn pattern() -> Pattern {
    Pattern::parse("/u/{name}/{rest*}").unwrap()
}

fn with_facts<T>(path: &str, query: Option<&str>, run: impl FnOnce(&TemplateValues<'_>) -> T) -> T {
    let captures = pattern().matches(path.as_bytes()).unwrap();
    run(&TemplateValues {
        path: path.as_bytes(),
        raw_path: RAW.as_bytes(),
        query: query.map(str::as_bytes),
        host: b"Example.org:8080",
        captures: &captures,
    })
}

fn location(text: &str, path: &str, query: Option<&str>) -> String {
    let location = Location::parse(text, &pattern()).unwrap();
    let mut out = Vec::new();
    with_facts(path, query, |facts| location.expand(facts, &mut out)).unwrap();
    String::from_utf8(out).unwrap()
}

fn rewritten(text: &str, path: &str, query: Option<&str>) -> (String, Option<String>) {
    let rewrite = Rewrite::parse(text, &pattern()).unwrap();
    let mut new_path = vec![1];
    let new_query = with_facts(path, query, |facts| {
        rewrite.expand_path(facts, &mut new_path).unwrap();
        rewrite.expand_query(facts)
    });
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(new_path), new_query.map(text))
}

#[test]
fn locations() {
    let cases = [
        ("/new", "/new"),
        ("https://b.example/x?y#z", "https://b.example/x?y#z"),
        ("//cdn.example/{rest}", "//cdn.example/x/y"),
        ("/users/{name}", "/users/a&b=c%3Fd%23e%25f%20g%C3%A4"),
        ("/s?q={name}", "/s?q=a%26b%3Dc%3Fd%23e%25f%20g%C3%A4"),
        ("/s#{rest}", "/s#x%2Fy"),
        ("{path}", "/u/a&b=c%3Fd%23e%25f%20g%C3%A4/x/y"),
        (
            "https://{host}{path}?{query}",
            "https://Example.org/u/a&b=c%3Fd%23e%25f%20g%C3%A4/x/y?k=v%20w",
        ),
        ("https://{host}:8443/{rest}", "https://Example.org:8443/x/y"),
        ("https://www.{host}/", "https://www.Example.org/"),
        (
            "https://b.example{path}/{name}",
            "https://b.example/u/a&b=c%3Fd%23e%25f%20g%C3%A4/x/y/a&b=c%3Fd%23e%25f%20g%C3%A4",
        ),
        ("/a b/\u{e4}%20", "/a%20b/%C3%A4%20"),
        ("/new?a=b&{query}", "/new?a=b&k=v%20w"),
        (
            "https://b.example{uri}",
            "https://b.example//u/a&b=c%3fd%23e%25f%20g%C3%A4/./x/y?k=v%20w",
        ),
        (
            "https://b.example/old{uri}",
            "https://b.example/old//u/a&b=c%3fd%23e%25f%20g%C3%A4/./x/y?k=v%20w",
        ),
        // Two slashes at its start would be another host.
        ("{uri}", "/u/a&b=c%3fd%23e%25f%20g%C3%A4/./x/y?k=v%20w"),
        (
            "/login?next={uri}&a=b",
            "/login?next=%2F%2Fu%2Fa%26b%3Dc%253fd%2523e%2525f%2520g%25C3%25A4%2F.%2Fx%2Fy%3Fk%3Dv\
             %2520w&a=b",
        ),
        ("/login?next=https://x/", "/login?next=https://x/"),
    ];
    for (text, expected) in cases {
        assert_eq!(location(text, HARD, Some("k=v%20w")), expected, "{text}");
    }
}

#[test]
fn a_missing_query_leaves_no_delimiter_behind() {
    assert_eq!(location("/new?{query}", "/u/a/", None), "/new");
    assert_eq!(location("/new?{query}", "/u/a/", Some("")), "/new");
    assert_eq!(location("/new?a=b&{query}", "/u/a/", None), "/new?a=b");
    assert_eq!(location("/new?{query}&a=b", "/u/a/", None), "/new?&a=b");
    assert_eq!(location("/to{uri}", "/u/a/", None), format!("/to{RAW}"));
}

#[test]
fn no_request_breaks_out_of_the_header_line() {
    assert_eq!(
        location("/x?{query}", "/u/a/", Some("a\r\nb: c\0\u{e4}\"")),
        "/x?a%0D%0Ab:%20c%00%C3%A4%22"
    );
    assert_eq!(location("/{rest}", "/u/a/\r\nb: c", None), "/%0D%0Ab:%20c");
}

#[test]
fn an_empty_capture_makes_no_other_host() {
    assert_eq!(
        location("/{rest}/evil.example", "/u/a/", None),
        "/evil.example"
    );
    assert_eq!(
        location("/{rest}", "/u/a/\\evil.example", None),
        "/%5Cevil.example"
    );
}

#[test]
fn own_host_needs_a_host() {
    let location = Location::parse("https://{host}{path}", &pattern()).unwrap();
    let path = b"/u/a/b";
    let captures = pattern().matches(path).unwrap();
    for host in [&b""[..], b":80"] {
        let facts = TemplateValues {
            path,
            raw_path: path,
            query: None,
            host,
            captures: &captures,
        };
        assert_eq!(location.expand(&facts, &mut Vec::new()), Err(HostMissing));
    }
    let facts = TemplateValues {
        path,
        raw_path: path,
        query: None,
        host: b"a@b/c:80",
        captures: &captures,
    };
    let mut out = Vec::new();
    location.expand(&facts, &mut out).unwrap();
    assert_eq!(out, b"https://a%40b%2Fc/u/a/b");
}

#[test]
fn rewrites_give_decoded_paths_and_encoded_queries() {
    let query = Some("k=v");
    assert_eq!(
        rewritten("/x/{name}.html", HARD, query),
        ("/x/a&b=c?d#e%f g\u{e4}.html".into(), None)
    );
    assert_eq!(
        rewritten("/index.php?page={name}&{query}", "/u/a&b/", query),
        ("/index.php".into(), Some("page=a%26b&k=v".into()))
    );
    assert_eq!(
        rewritten("{path}?", "/u/a/b", query),
        ("/u/a/b".into(), Some(String::new()))
    );
    assert_eq!(
        rewritten("/a/{rest}/b", "/u/a/", query),
        ("/a/b".into(), None)
    );
}

#[test]
fn encoded_slash_stays_one() {
    let path = "/u/a\0%2F/";
    let to = |text: &str| {
        let location = Location::parse(text, &pattern()).unwrap();
        with_facts(path, None, |facts| {
            let mut out = Vec::new();
            location.expand(facts, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        })
    };
    assert_eq!(to("/x/{name}"), "/x/a%2F%252F");
    assert_eq!(
        to("/x?n={name}#{path}"),
        "/x?n=a%2F%252F#%2Fu%2Fa%2F%252F%2F"
    );
    assert_eq!(rewritten("/x/{name}/y%2fz", path, None).0, "/x/a\0%2F/y\0z");
    let rewrite = Rewrite::parse("/{name}..", &pattern()).unwrap();
    let refused = with_facts("/u/a\0/", None, |facts| {
        rewrite.expand_path(facts, &mut Vec::new())
    });
    assert_eq!(refused, Err(BadPath::Slash));
}

#[test]
fn rewrites_cannot_climb() {
    assert_eq!(rewritten("/a/.{rest}", "/u/a/", None).0, "/a/");
    let rewrite = Rewrite::parse("/..{rest}", &pattern()).unwrap();
    let refused = with_facts("/u/a/", None, |facts| {
        rewrite.expand_path(facts, &mut Vec::new())
    });
    assert_eq!(refused, Err(BadPath::AboveRoot));
}

#[test]
fn templates_that_cannot_work_are_refused() {
    let in_host = |name: &str| TemplateFault::InHost(name.to_owned());
    let cases = [
        ("", 0, TemplateFault::Start),
        ("new", 0, TemplateFault::Start),
        ("{rest}", 0, TemplateFault::Start),
        ("https:/{rest}", 0, TemplateFault::Start),
        ("1x://a/", 0, TemplateFault::Start),
        ("https://", 8, TemplateFault::NoHost),
        ("https:///{rest}", 8, TemplateFault::NoHost),
        ("//{rest}", 2, in_host("rest")),
        ("https://{path}", 8, in_host("path")),
        ("https://a.example{rest}", 17, in_host("rest")),
        ("https://{name}.example/", 8, in_host("name")),
        ("/a/{name", 3, TemplateFault::Brace),
        ("/a/name}", 7, TemplateFault::Brace),
        ("/{a{name}", 1, TemplateFault::Brace),
        ("/{query}", 1, TemplateFault::QueryInPath),
        ("/a\r\nb", 2, TemplateFault::Control),
        ("/\\b", 1, TemplateFault::Control),
        ("https://{uri}", 8, in_host("uri")),
        ("{uri}/x", 5, TemplateFault::BehindUri),
        ("/a{uri}?{query}", 7, TemplateFault::BehindUri),
    ];
    for (text, at, fault) in cases {
        let error = Location::parse(text, &pattern()).unwrap_err();
        assert_eq!(error, TemplateError { at, fault }, "{text}");
    }
    let error = Location::parse("/{nmae}", &pattern()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the route captures no `{nmae}`; known here: `{name}`, `{rest}`, `{path}`, `{query}`, `{host}`, `{uri}`"
    );
    let cases = [
        ("https://a/", 0, TemplateFault::RewriteStart),
        ("/a#b", 2, TemplateFault::Fragment),
        ("/a%20b", 2, TemplateFault::Encoded),
        ("/a{uri}", 2, TemplateFault::UriInRewrite),
    ];
    for (text, at, fault) in cases {
        let error = Rewrite::parse(text, &pattern()).unwrap_err();
        assert_eq!(error, TemplateError { at, fault }, "{text}");
    }
}
