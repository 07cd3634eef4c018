//! Patterns: what they match, what they cover, what is no pattern.

use super::*;
use crate::route::dice::Dice;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn captured(text: &str, path: &str) -> Option<(String, Vec<String>)> {
    let captures = pattern(text).matches(path.as_bytes())?;
    let texts = (0..)
        .map_while(|index| captures.text(index, path.as_bytes()))
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    Some((path[captures.below()..].to_owned(), texts))
}

#[test]
fn what_patterns_match_and_where_the_rest_begins() {
    let cases = [
        ("/", "/", Some("")),
        ("/", "/a", None),
        ("/a/b", "/a/b", Some("b")),
        ("/a/b", "/a/b/", None),
        ("/a/b", "/a", None),
        ("/a/", "/a/", Some("")),
        ("/a/", "/a", None),
        ("/*", "/", Some("")),
        ("/*", "/a/b", Some("a/b")),
        ("/a/*", "/a/", Some("")),
        ("/a/*", "/a/b/c", Some("b/c")),
        ("/a/*", "/a", None),
        ("/a/*", "/ab", None),
        ("*.php", "/x.php", Some("x.php")),
        ("*.php", "/a/b/x.php", Some("a/b/x.php")),
        ("*.php", "/.php", Some(".php")),
        ("*.php", "/x.php/", None),
        ("*.php", "/xphp", None),
        ("*.tar.gz", "/x.tar.gz", Some("x.tar.gz")),
        ("*.tar.gz", "/x.gz", None),
        ("/a/*.php", "/a/b/x.php", Some("b/x.php")),
        ("/a/*.php", "/x.php", None),
        ("/a/*.php", "/a.php", None),
        ("/a b/\u{e4}", "/a b/\u{e4}", Some("\u{e4}")),
        ("/100%", "/100%", Some("100%")),
    ];
    for (text, path, expected) in cases {
        let found = captured(text, path);
        assert_eq!(
            found.as_ref().map(|found| &*found.0),
            expected,
            "{text} on {path}"
        );
    }
}

#[test]
fn captures_are_whole_segments_or_the_rest() {
    let cases = [
        ("/u/{name}", "/u/ann", Some(vec!["ann"])),
        ("/u/{name}", "/u/", None),
        ("/u/{name}", "/u/ann/", None),
        ("/u/{name}/", "/u/ann/", Some(vec!["ann"])),
        ("/{a}/x/{b}", "/1/x/2", Some(vec!["1", "2"])),
        ("/{a}/x/{b}", "/1/y/2", None),
        ("/a/{rest*}", "/a/", Some(vec![""])),
        ("/a/{rest*}", "/a/b/c/", Some(vec!["b/c/"])),
        ("/a/{rest*}", "/a", None),
        ("/{user}/{rest*}", "/ann/x/y", Some(vec!["ann", "x/y"])),
        ("/{user}/*", "/ann/x", Some(vec!["ann"])),
        ("/{user}/*.php", "/ann/b/x.php", Some(vec!["ann"])),
    ];
    for (text, path, expected) in cases {
        let found = captured(text, path).map(|found| found.1);
        let expected = expected.map(|texts| texts.into_iter().map(String::from).collect());
        assert_eq!(found, expected, "{text} on {path}");
    }
    assert_eq!(
        pattern("/{user}/{rest*}").names().collect::<Vec<_>>(),
        ["user", "rest"]
    );
}

#[test]
fn captures_may_be_parts_of_segments() {
    let cases = [
        ("/j/{id}.html", "/j/12.html", Some(vec!["12"])),
        ("/j/{id}.html", "/j/.html", None),
        ("/j/{id}.html", "/j/12.htm", None),
        ("/j/{id}.html", "/j/12.html/", None),
        ("/j/{id}.html", "/j/a.html.html", Some(vec!["a.html"])),
        ("/~{user}/*", "/~ann/", Some(vec!["ann"])),
        ("/~{user}/*", "/~/x", None),
        ("/~{user}/*", "/ann/x", None),
        ("/~{user}/{rest*}", "/~ann/x/y", Some(vec!["ann", "x/y"])),
        ("/v{n}-api/x", "/v2-api/x", Some(vec!["2"])),
        ("/aba{x}aba", "/ababa", None),
        ("/aba{x}aba", "/abaaba", None),
        ("/aba{x}aba", "/abacaba", Some(vec!["c"])),
        ("/a%2F{x}", "/a\0b", Some(vec!["b"])),
    ];
    for (text, path, expected) in cases {
        let found = captured(text, path).map(|found| found.1);
        let expected = expected.map(|texts| texts.into_iter().map(String::from).collect());
        assert_eq!(found, expected, "{text} on {path}");
    }
}

#[test]
fn regular_expressions_are_found_anywhere_unless_they_say_where() {
    let cases = [
        (r"~ ^/user/(?<id>[0-9]+)$", "/user/12", Some(vec!["12"])),
        (r"~ ^/user/(?<id>[0-9]+)$", "/user/12/", None),
        (r"~ ^/user/(?<id>[0-9]+)$", "/user/x", None),
        (r"~/user/(\d+)", "/a/user/12b", Some(vec!["12"])),
        (r"~ ^/(de|en)/(.*)$", "/en/a/b", Some(vec!["en", "a/b"])),
        (r"~ ^/(de|en)(/x)?$", "/en", Some(vec!["en", ""])),
        (r"~* \.(png|jpg)$", "/a/B.PNG", Some(vec!["PNG"])),
        (r"~ \.(png|jpg)$", "/a/B.PNG", None),
        (r"~ ^/a.b$", "/a\0b", Some(vec![])),
        (r"~ ^/caf\xc3\xa9$", "/caf\u{e9}", Some(vec![])),
        ("~ ^/caf\u{e9}$", "/caf\u{e9}", Some(vec![])),
    ];
    for (text, path, expected) in cases {
        let found = captured(text, path).map(|found| found.1);
        let expected = expected.map(|texts| texts.into_iter().map(String::from).collect());
        assert_eq!(found, expected, "{text} on {path}");
    }
    let names = |text| pattern(text).names().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(names(r"~ ^/(?<year>\d+)-(\d+)$"), ["year", "2"]);
    // What is no path is none here either.
    assert!(pattern("~ a*").matches(b"b/a").is_none());
    // A path that is no UTF-8 passes by no expression that any text fits.
    assert!(pattern("~ ^/admin/.").matches(b"/admin/\xff").is_some());
    assert!(pattern("~ ^/[^/]+$").matches(b"/\xff\xfe").is_some());
}

#[test]
fn regular_expressions_that_cannot_be_used_are_refused() {
    for (text, told) in [
        ("~", None),
        ("~ ^/(a", Some("unclosed group")),
        (r"~ ^/(?=a)", Some("look-around")),
        (r"~ ^/(a)\1", Some("backreferences are not supported")),
        ("~ ^/[0-9]{1000}{1000}", Some("limit")),
        ("~ ^/(?<host>.*)", Some("cannot be called `host`")),
        ("~ ^/(?<a>.)(?<a>.)", Some("duplicate")),
        (&format!("~ {}", "(a)".repeat(CAPTURES_MAX)), None),
        (
            &format!("~ {}", "(a)".repeat(CAPTURES_MAX + 1)),
            Some("more than 16"),
        ),
    ] {
        let fault = Pattern::parse(text).err().map(|error| error.to_string());
        match told {
            None => assert_eq!(fault, None, "{text}"),
            Some(told) => assert!(
                fault.as_ref().is_some_and(|fault| fault.contains(told)),
                "{text}: {fault:?}"
            ),
        }
    }
    // Time linear in the path, whatever the expression.
    let path = format!("/{}", "a".repeat(5000));
    assert!(pattern("~ ^/(a*)*b$").matches(path.as_bytes()).is_none());
}

#[test]
fn patterns_that_cannot_mean_what_they_say_are_refused() {
    let named = |name: &str| name.to_owned();
    let cases = [
        ("", 0, PatternFault::Start),
        ("a/b", 0, PatternFault::Start),
        ("*", 0, PatternFault::Start),
        ("*.", 0, PatternFault::Star),
        ("*.a/b", 0, PatternFault::Star),
        ("*.*", 0, PatternFault::Star),
        ("/a*", 1, PatternFault::Star),
        ("/a/*/b", 3, PatternFault::Star),
        ("/a/**", 3, PatternFault::Star),
        ("/a/*b", 3, PatternFault::Star),
        ("/a/x}", 3, PatternFault::Brace),
        ("/a/}x{n}", 3, PatternFault::Brace),
        ("/a/{n{m}", 3, PatternFault::Brace),
        ("/{a}{b}", 1, PatternFault::TwoInSegment),
        ("/{a}-{b}/", 1, PatternFault::TwoInSegment),
        ("/{a}*", 1, PatternFault::Star),
        ("/x{a*}", 1, PatternFault::RestInSegment),
        ("/{a*}.html", 1, PatternFault::RestInSegment),
        ("/b/..%2F{a}", 3, PatternFault::NeverMatches),
        ("/{a", 1, PatternFault::Brace),
        ("/{}", 1, PatternFault::Name(named(""))),
        ("/{1a}", 1, PatternFault::Name(named("1a"))),
        ("/{a-b}", 1, PatternFault::Name(named("a-b"))),
        ("/{host}", 1, PatternFault::NameReserved(named("host"))),
        ("/{uri}", 1, PatternFault::NameReserved(named("uri"))),
        ("/{a}/{a*}", 5, PatternFault::NameTwice(named("a"))),
        ("/{a*}/b", 1, PatternFault::RestNotLast),
        ("/a%20b", 2, PatternFault::Encoded),
        ("/a?b", 2, PatternFault::NotPath('?')),
        ("/a//b", 3, PatternFault::NeverMatches),
        ("/a/../b", 3, PatternFault::NeverMatches),
        ("/a/.", 3, PatternFault::NeverMatches),
        ("/a\\b", 2, PatternFault::NeverMatches),
        ("/a/b%2F..", 3, PatternFault::NeverMatches),
        ("/a%2F%2f%20", 8, PatternFault::Encoded),
    ];
    for (text, at, fault) in cases {
        assert_eq!(
            Pattern::parse(text),
            Err(PatternError { at, fault }),
            "{text:?}"
        );
    }
}

#[test]
fn encoded_slash_separates_nothing() {
    let matches = |pattern: &str, path: &[u8]| Pattern::parse(pattern).unwrap().matches(path);
    for pattern in ["/a/b", "/a/*", "/a/{name}", "/a/{rest*}", "/{p}/b"] {
        assert_eq!(matches(pattern, b"/a\0b"), None, "{pattern}");
    }
    for pattern in ["/a%2Fb", "/a%2fb", "/{name}", "/*", "/{rest*}"] {
        assert!(matches(pattern, b"/a\0b").is_some(), "{pattern}");
        assert!(!pattern.contains('%') || matches(pattern, b"/a%2Fb").is_none());
    }
    assert!(matches("/x/*.c%2Fd", b"/x/y.c\0d").is_some());
    let captures = matches("/{user}/*", b"/a\0b/c").unwrap();
    assert_eq!(captures.text(0, b"/a\0b/c"), Some(&b"a\0b"[..]));
}

#[test]
fn counts_are_limited() {
    let captures = |count| (0..count).map(|n| format!("/{{n{n}}}")).collect::<String>();
    assert!(Pattern::parse(&captures(CAPTURES_MAX)).is_ok());
    let fault = Pattern::parse(&captures(CAPTURES_MAX + 1))
        .unwrap_err()
        .fault;
    assert_eq!(fault, PatternFault::TooManyCaptures);
    assert!(Pattern::parse(&"/a".repeat(SEGMENTS_MAX)).is_ok());
    let fault = Pattern::parse(&"/a".repeat(SEGMENTS_MAX + 1))
        .unwrap_err()
        .fault;
    assert_eq!(fault, PatternFault::TooManySegments);
}

#[test]
fn covering_examples() {
    let covering = [
        ("/*", "/a"),
        ("/*", "*.php"),
        ("/a/*", "/a/"),
        ("/a/*", "/a/{x}/b"),
        ("/{x}", "/a"),
        ("/{x}/*", "/a/b/*"),
        ("*.gz", "/a/*.tar.gz"),
        ("*.php", "/a/x.php"),
        ("/a/{x}", "/a/{y}"),
        ("/a/{rest*}", "/a/*"),
        ("/{x}", "/~{y}.html"),
        ("/~{x}", "/~ann"),
        ("*.html", "/a/{x}.html"),
        ("/*", "~ a"),
    ];
    for (wide, narrow) in covering {
        assert!(
            pattern(wide).covers(&pattern(narrow)),
            "{wide} covers {narrow}"
        );
    }
    let apart = [
        ("/a", "/b"),
        ("/a/*", "/a"),
        ("/a", "/{x}"),
        ("/{x}", "/"),
        ("/{x}", "/*"),
        ("/a/*.php", "*.php"),
        ("*.php", "/a/{x}"),
        ("*.tar.gz", "*.gz"),
        ("/~{x}", "/~"),
        ("/{x}.html", "/.html"),
        ("/a{x}a", "/aa"),
        ("~ a", "/a"),
        ("/a/*", "~ ^/a/"),
    ];
    for (one, other) in apart {
        assert!(
            !pattern(one).covers(&pattern(other)),
            "{one} does not cover {other}"
        );
    }
}

/// All paths of up to four pieces over a small alphabet, against all pairs of small patterns.
#[test]
fn covers_says_exactly_what_matching_shows() {
    let pieces = ["", "a", "b.x", "c.y.x", "bq", "bq.x", "cq.x"];
    let mut paths = vec![String::new()];
    for length in 0..4 {
        let longest: Vec<String> = paths
            .iter()
            .filter(|p| p.matches('/').count() == length)
            .cloned()
            .collect();
        for (path, piece) in longest.iter().flat_map(|p| pieces.map(|piece| (p, piece))) {
            paths.push(format!("{path}/{piece}"));
        }
    }
    paths.retain(|path| !path.is_empty() && !path.contains("//"));
    let heads = [
        "",
        "/a",
        "/b.x",
        "/{p}",
        "/a/{p}",
        "/{p}/a",
        "/{p}/{q}",
        "/{p}.x",
        "/b{p}",
        "/c{p}.x/{q}",
    ];
    let tails = ["", "/", "/*", "/*.x", "/*.y.x", "/{r*}"];
    let mut patterns: Vec<Pattern> = heads
        .iter()
        .flat_map(|head| tails.map(|tail| format!("{head}{tail}")))
        .filter(|text| !text.is_empty())
        .map(|text| pattern(&text))
        .collect();
    let mut dice = Dice::seeded(2);
    for _ in 0..600 {
        let wide = patterns[dice.below(patterns.len())].clone();
        let narrow = patterns[dice.below(patterns.len())].clone();
        let shown = paths.iter().all(|path| {
            narrow.matches(path.as_bytes()).is_none() || wide.matches(path.as_bytes()).is_some()
        });
        assert_eq!(wide.covers(&narrow), shown, "{wide:?} over {narrow:?}");
    }
    patterns.clear();
}
