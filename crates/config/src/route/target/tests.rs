//! Targets: one normal form, and what is refused.

use super::*;
use crate::route::dice::Dice;
use crate::route::percent::{UrlPart, encode};

fn normal(raw: &str) -> Result<String, BadPath> {
    let mut out = Vec::new();
    let found = normalise(raw.as_bytes(), &mut out)?;
    Ok(String::from_utf8_lossy(found.path(raw.as_bytes(), &out)).into_owned())
}

#[test]
fn clean_path_is_not_copied() {
    for path in ["/", "/a", "/a/", "/a.b/c..d/e-_~!$&'()*+,;=:@", "/\u{e4}"] {
        let mut out = vec![1];
        assert_eq!(
            normalise(path.as_bytes(), &mut out),
            Ok(Normal::Clean),
            "{path}"
        );
        assert_eq!(out, [1]);
    }
}

#[test]
fn rewritten_paths() {
    //= rfc3986#5.2.4
    let cases = [
        ("/a%20b", "/a b"),
        ("/%41%7e", "/A~"),
        ("/caf%C3%A9", "/café"),
        ("/%3F%23%25", "/?#%"),
        ("/./a", "/a"),
        ("/a/./b", "/a/b"),
        ("/a/.", "/a/"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/a/b/../", "/a/"),
        ("/a/b/../../c", "/c"),
        ("/a/%2e%2e/b", "/b"),
        ("/a/.%2E/b", "/b"),
        ("/a/%2e/b", "/a/b"),
        ("/.a/..b/...", "/.a/..b/..."),
        ("//", "/"),
        ("//a///b//", "/a/b/"),
        ("/a//../b", "/b"),
        ("/a/;/..;/b", "/a/;/..;/b"),
    ];
    for (raw, expected) in cases {
        assert_eq!(normal(raw).as_deref(), Ok(expected), "{raw}");
    }
}

#[test]
fn double_encoding_stays_literal() {
    assert_eq!(normal("/%252e%252e/a").as_deref(), Ok("/%2e%2e/a"));
    assert_eq!(normal("/%252f").as_deref(), Ok("/%2f"));
    assert_eq!(normal("/%2500").as_deref(), Ok("/%00"));
}

#[test]
fn ambiguous_paths_are_refused() {
    let cases = [
        ("", BadPath::NotAbsolute),
        ("a", BadPath::NotAbsolute),
        ("*", BadPath::NotAbsolute),
        ("%2fa", BadPath::NotAbsolute),
        ("/%", BadPath::Percent),
        ("/%4", BadPath::Percent),
        ("/%4/1", BadPath::Percent),
        ("/%zz", BadPath::Percent),
        ("/%+1", BadPath::Percent),
        ("/a%00b", BadPath::Control),
        ("/a\0b", BadPath::Control),
        ("/a%0d%0ab", BadPath::Control),
        ("/a\tb", BadPath::Control),
        ("/%7F", BadPath::Control),
        ("/..%2f", BadPath::Slash),
        ("/%2F..", BadPath::Slash),
        ("/a/%2F..%2F..%2Fetc/b", BadPath::Slash),
        ("/a%2f.%2Fb", BadPath::Slash),
        ("/%2e%2e%2fetc", BadPath::Slash),
        ("/a%2F..%5c", BadPath::Backslash),
        ("/a\\b", BadPath::Backslash),
        ("/..%5cetc", BadPath::Backslash),
        ("/a b", BadPath::Delimiter),
        ("/a#b", BadPath::Delimiter),
        ("/a?b", BadPath::Delimiter),
        ("/..", BadPath::AboveRoot),
        ("/../a", BadPath::AboveRoot),
        ("/a/../../b", BadPath::AboveRoot),
        ("//../a", BadPath::AboveRoot),
        ("/%2e%2e/a", BadPath::AboveRoot),
        ("/./../a", BadPath::AboveRoot),
    ];
    for (raw, expected) in cases {
        assert_eq!(normal(raw), Err(expected), "{raw:?}");
    }
}

#[test]
fn encoded_slash_is_a_byte_of_its_segment() {
    for (raw, expected) in [
        ("/a%2fb", "/a\0b"),
        ("/a%2Fb/", "/a\0b/"),
        ("/%2F", "/\0"),
        ("/%2f%2F/a", "/\0\0/a"),
        ("/a/%2F/../b", "/a/b"),
        ("/a%2Fb/../c", "/c"),
        ("/a//%2F//b", "/a/\0/b"),
        ("/..a%2F...%2f.b", "/..a\0...\0.b"),
        ("/a%252Fb", "/a%2Fb"),
        ("/a%25%32%46b", "/a%2Fb"),
        ("/a%2%46b", "refused"),
        ("/a%25252f", "/a%252f"),
    ] {
        let found = normal(raw).unwrap_or_else(|_| "refused".to_owned());
        assert_eq!(found, expected, "{raw}");
    }
    assert_eq!(with_encoded_slashes(b"/a%2fb%2F%2%2"), b"/a\0b\0%2%2");
}

/// Every path that can be put together from these, and its normal form.
fn every_path(pieces: &[&str], count: usize, mut each: impl FnMut(&str, &[u8])) {
    for number in 0..pieces.len().pow(count as u32) {
        let (mut raw, mut rest) = (String::from("/"), number);
        for _ in 0..count {
            raw.push_str(pieces[rest % pieces.len()]);
            rest /= pieces.len();
        }
        let mut out = Vec::new();
        if let Ok(found) = normalise(raw.as_bytes(), &mut out) {
            each(&raw, found.path(raw.as_bytes(), &out));
        }
    }
}

/// A way to find normal paths that knows nothing of the one here: a list of names, each a list of
/// bytes or encoded slashes.
fn names_of(raw: &str) -> Vec<Vec<Option<u8>>> {
    let mut names: Vec<Vec<Option<u8>>> = Vec::new();
    for segment in raw[1..].split('/') {
        let mut name = Vec::new();
        let mut bytes = segment.bytes();
        while let Some(byte) = bytes.next() {
            let digits = (byte == b'%').then(|| [bytes.next().unwrap(), bytes.next().unwrap()]);
            let decoded = digits
                .map(|pair| u8::from_str_radix(std::str::from_utf8(&pair).unwrap(), 16).unwrap());
            name.push(match decoded {
                Some(b'/') => None,
                Some(decoded) => Some(decoded),
                None => Some(byte),
            });
        }
        let is = |text: &str| text.bytes().map(Some).eq(name.iter().copied());
        if is("..") {
            names.pop().unwrap();
        } else if !is("") && !is(".") {
            names.push(name);
        }
    }
    names
}

#[test]
fn of_two_paths_with_one_normal_form_each_name_is_the_same() {
    let pieces = [
        "", "/", "a", "%2F", "%2f", "%252F", "%25", "2F", "2f", ".", "%61",
    ];
    let mut known = std::collections::HashMap::new();
    every_path(&pieces, 5, |raw, path| {
        let names = names_of(raw);
        let same = known.entry(path.to_vec()).or_insert_with(|| names.clone());
        assert_eq!(*same, names, "{raw}");
        // And the way back: what a redirect has for it is the same path again.
        let (mut encoded, mut again) = (Vec::new(), Vec::new());
        encode(path, UrlPart::Path, &mut encoded);
        let found = normalise(&encoded, &mut again).unwrap();
        assert_eq!(found.path(&encoded, &again), path, "{raw}");
    });
    assert!(known.len() > 5_000, "{}", known.len());
    let mut shown = std::collections::HashSet::new();
    for path in known.keys() {
        assert!(
            shown.insert(PathDisplay(path).to_string()),
            "{:?}",
            PathDisplay(path).to_string()
        );
    }
}

#[test]
fn what_people_are_shown_has_one_meaning() {
    for (raw, plain, ascii) in [
        ("/a%2fb%20\u{e4}", "/a%2Fb \u{e4}", "/a%2Fb \\xc3\\xa4"),
        ("/100%25", "/100%", "/100%"),
        ("/%252f", "/%252f", "/%252f"),
        ("/%25252F", "/%25252F", "/%25252F"),
        ("/%2520", "/%20", "/%20"),
    ] {
        let mut out = Vec::new();
        let found = normalise(raw.as_bytes(), &mut out).unwrap();
        let shown = PathDisplay(found.path(raw.as_bytes(), &out));
        assert_eq!(
            (format!("{shown}"), format!("{shown:#}")),
            (plain.into(), ascii.into())
        );
    }
}

#[test]
fn what_follows_a_program_keeps_the_slashes_that_were_sent() {
    for (raw, named, expected) in [
        ("/app//a///b", "/app", "//a///b"),
        ("//app//a/", "/app", "//a/"),
        ("//app//", "/app", "//"),
        ("/app/", "/app", "/"),
        ("/app//a//../b", "/app", "//b"),
        ("/app//a/..//b", "/app", "///b"),
        ("/app/./a//%2e/b", "/app", "/a//b"),
        ("/app//a/..", "/app", "//"),
        ("//cgi-bin//x.cgi//a//b", "/cgi-bin/x.cgi", "//a//b"),
        (
            "//%63gi-bin/./y/..//x.cgi//%61//b",
            "/cgi-bin/x.cgi",
            "//a//b",
        ),
        ("/app//a%2F%2fb", "/app", "//a\0\0b"),
        ("//x%2Fy//a", "/x\0y", "//a"),
        ("//", "", "//"),
        ("//a//b/../c", "", "//a//c"),
        // All of it is the program's name: nothing follows.
        ("/app//", "/app/", ""),
    ] {
        let mut out = Vec::new();
        let found = normalise(raw.as_bytes(), &mut out).unwrap();
        let path = found.path(raw.as_bytes(), &out);
        assert!(path.starts_with(named.as_bytes()), "{raw}");
        let rest = rest_as_sent(raw.as_bytes(), path, named.len());
        assert_eq!(String::from_utf8_lossy(&rest), expected, "{raw}");
    }
    // A path that was rewritten has nothing to do with the one that was sent.
    assert_eq!(*rest_as_sent(b"/old//a//b", b"/new/a/b", 4), *b"/a/b");
    assert_eq!(*rest_as_sent(b"//../x", b"/a/b", 2), *b"/b");
    assert_eq!(*told(b"/a\0b"[..].into()), *b"/a/b");
}

#[test]
fn route_and_rest_agree_where_the_programs_part_ends() {
    let pieces = ["/", "//", "a", "b", "..", ".", "%2F", "/%2e%2e/", "%2e"];
    let mut count = 0;
    every_path(&pieces, 5, |raw, path| {
        let ends = memchr::memchr_iter(b'/', path);
        for named in ends {
            let rest = rest_as_sent(raw.as_bytes(), path, named);
            count += usize::from(matches!(rest, Cow::Owned(_)));
            let mut merged = rest.to_vec();
            merged.dedup_by(|one, before| *one == b'/' && *before == b'/');
            assert_eq!(merged, path[named..], "{raw} {named}");
            // What a program makes of it has no dot segment either.
            let info = told(rest);
            assert!(
                info.split(|byte| *byte == b'/')
                    .all(|name| name != b"." && name != b".."),
                "{raw}"
            );
        }
    });
    assert!(count > 10_000, "{count}");
}

#[test]
fn overlong_utf8_is_no_dot_and_no_slash() {
    assert_eq!(
        normalise(b"/%c0%ae%c0%ae/%c0%af", &mut Vec::new()),
        Ok(Normal::Rewritten)
    );
    let mut out = Vec::new();
    normalise(b"/%c0%ae%c0%ae/%c0%af", &mut out).unwrap();
    assert_eq!(out, b"/\xc0\xae\xc0\xae/\xc0\xaf");
}

#[test]
fn outcome_never_holds_what_was_to_be_taken_out() {
    let pieces = [
        "/", "/", "a", ".", "..", "%2e", "%2E", "%2f", "%2F", "%5c", "%", "%25", "\\", "\0", "b",
    ];
    let mut dice = Dice::seeded(1);
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut raw = String::from("/");
        for _ in 0..dice.below(9) {
            raw.push_str(dice.pick(&pieces));
        }
        let Ok(path) = normal(&raw) else { continue };
        accepted += 1;
        let segments: Vec<&str> = path[1..].split('/').collect();
        let (last, before) = segments.split_last().unwrap();
        assert!(
            path.starts_with('/') && *last != "." && *last != "..",
            "{raw:?} {path:?}"
        );
        assert!(
            before.iter().all(|s| !matches!(*s, "" | "." | "..")),
            "{raw:?} {path:?}"
        );
        assert!(!path.contains('\\'), "{raw:?} {path:?}");
        let mut again = Vec::new();
        let collapsed = collapse(path.as_bytes(), &mut again).unwrap();
        assert_eq!(
            collapsed.path(path.as_bytes(), &again),
            path.as_bytes(),
            "{raw:?}"
        );
    }
    assert!(accepted > 2_000, "{accepted}");
}

#[test]
fn collapse_decodes_nothing() {
    let mut out = Vec::new();
    assert_eq!(collapse(b"/a%2e b", &mut out), Ok(Normal::Clean));
    assert_eq!(collapse(b"/a/../%2e//b", &mut out), Ok(Normal::Rewritten));
    assert_eq!(out, b"/%2e/b");
    assert_eq!(collapse(b"/..", &mut out), Err(BadPath::AboveRoot));
    assert_eq!(collapse(b"/a\0b%2F", &mut out), Ok(Normal::Rewritten));
    assert_eq!(out, b"/a\0b%2F");
    assert_eq!(collapse(b"/a\0..", &mut out), Err(BadPath::Slash));
}

#[test]
fn a_segment_is_what_comes_back_from_its_link() {
    for name in [
        &b"a"[..],
        b"a b?#%2e",
        b"\xff",
        b"...",
        b"a\\b",
        b"a/b",
        b"..",
        b".",
        b"",
        b"\n",
        b"\x7f",
    ] {
        let mut link = b"/".to_vec();
        encode(name, UrlPart::Value, &mut link);
        let mut out = Vec::new();
        let normal = normalise(&link, &mut out);
        let comes_back =
            normal.is_ok_and(|normal| !name.is_empty() && normal.path(&link, &out)[1..] == *name);
        assert_eq!(can_be_segment(name), comes_back, "{name:?}");
    }
}
