//! Targets: one normal form, and what is refused.

use super::*;
use crate::route::dice::Dice;
use crate::route::percent::{Part, encode};

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
        ("/a%2fb", BadPath::Slash),
        ("/..%2f", BadPath::Slash),
        ("/%2e%2e%2fetc", BadPath::Slash),
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
        "/", "/", "a", ".", "..", "%2e", "%2E", "%2f", "%5c", "%", "%25", "\\", "\0", "b",
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
        assert!(!path.contains(['\\', '\0']), "{raw:?} {path:?}");
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
}

#[test]
fn target_splits_at_the_first_question_mark() {
    assert_eq!(split_target(b"/a"), (&b"/a"[..], None));
    assert_eq!(split_target(b"/a?"), (&b"/a"[..], Some(&b""[..])));
    assert_eq!(split_target(b"/a?b?c%"), (&b"/a"[..], Some(&b"b?c%"[..])));
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
        encode(name, Part::Value, &mut link);
        let mut out = Vec::new();
        let normal = normalise(&link, &mut out);
        let comes_back =
            normal.is_ok_and(|normal| !name.is_empty() && normal.path(&link, &out)[1..] == *name);
        assert_eq!(can_be_segment(name), comes_back, "{name:?}");
    }
}
