//! Tests of the compiled formats: refusals here, lines in `crates/trace/tests/format/`.

use super::*;
use crate::record::{Record, Texts};

fn refusal(text: &str) -> String {
    AccessLogFormat::parse(text).unwrap_err().to_string()
}

#[test]
fn unknown_field_names_the_nearest() {
    let error = AccessLogFormat::parse("{client} {user-agent}").unwrap_err();
    assert_eq!(
        error,
        FormatError::UnknownField {
            name: "user-agent".into(),
            nearest: Some("user_agent"),
            at: 9
        }
    );
    assert_eq!(
        error.to_string(),
        "unknown log field {user-agent}; did you mean user_agent?"
    );
    assert_eq!(
        refusal("{statsu}"),
        "unknown log field {statsu}; did you mean status?"
    );
    assert_eq!(
        refusal("{quite_another_thing}"),
        "unknown log field {quite_another_thing}"
    );
    assert_eq!(refusal("{}"), "unknown log field {}");
}

#[test]
fn misspelt_whole_format_is_told() {
    assert_eq!(
        refusal("combind"),
        "log format is not one of common, combined, json and has no {field}; did you mean combined?"
    );
    assert_eq!(
        refusal(""),
        "log format is not one of common, combined, json and has no {field}"
    );
}

#[test]
fn wrong_braces_are_told_with_their_place() {
    let at = |text| AccessLogFormat::parse(text).unwrap_err();
    assert_eq!(
        at("{client} {status"),
        FormatError::BraceNotClosed { at: 9 }
    );
    assert_eq!(at("ü} {client}"), FormatError::BraceNotOpened { at: 2 });
    assert_eq!(at("{client}\t"), FormatError::ControlCharacter { at: 8 });
    let long = "x".repeat(AccessLogFormat::BYTES_MAX + 1);
    assert_eq!(
        at(&long),
        FormatError::TooLong {
            bytes: AccessLogFormat::BYTES_MAX + 1
        }
    );
}

#[test]
fn wrong_words_for_values_are_told_with_their_place() {
    let at = |text: &str| AccessLogFormat::parse(text).unwrap_err();
    for (word, start) in [
        ("header:a b", 0),
        ("cookie:", 4),
        ("env:A-B", 2),
        ("response:ü", 1),
    ] {
        let text = format!("{}{{{word}}}", " ".repeat(start));
        let wrong = FormatError::WrongName {
            word: word.into(),
            at: start,
        };
        assert_eq!(at(&text), wrong);
    }
    assert_eq!(
        refusal("{heeder:x}"),
        "unknown log field {heeder:x}",
        "no other field is like it"
    );
    let many: String = (0..=ASKED_COUNT_MAX)
        .map(|number| format!("{{header:x{number}}}"))
        .collect();
    let last = many.rfind('{').unwrap();
    assert_eq!(at(&many), FormatError::TooManyValues { at: last });
    let again = "{header:x}".repeat(ASKED_COUNT_MAX + 1);
    assert_eq!(AccessLogFormat::parse(&again).unwrap().asked().len(), 1);
}

#[test]
fn what_stands_behind_json_is_members() {
    let at = |text| AccessLogFormat::parse(text).unwrap_err();
    assert_eq!(
        at("json {header:x}, {user}"),
        FormatError::NoMember { at: 15 }
    );
    assert_eq!(at("json {status}"), FormatError::MemberTwice { at: 5 });
    assert_eq!(
        at("json {header:x} {header:x}"),
        FormatError::MemberTwice { at: 16 }
    );
    assert_eq!(at("json {header:x"), FormatError::BraceNotClosed { at: 5 });
    assert!(matches!(
        at("json {statsu}"),
        FormatError::UnknownField { at: 5, .. }
    ));
    assert!(AccessLogFormat::parse("json: {status}").is_ok());
}

#[test]
fn every_field_can_be_named() {
    for (name, help) in AccessLogFormat::fields() {
        assert!(
            AccessLogFormat::parse(&format!("{{{name}}}")).is_ok(),
            "{name}"
        );
        assert!(help.ends_with('.'), "{name}: {help}");
    }
}

#[test]
fn lines_do_not_depend_on_the_lines_before_them() {
    let texts = |user| Texts {
        method: b"GET",
        target: b"/",
        host: b"",
        referer: b"",
        user_agent: b"",
        user,
        detail: b"",
        asked: b"",
    };
    let record = |second: u64, client: [u8; 4]| Record {
        started_unix_ms: second * 1000,
        client: client.into(),
        ..Record::empty()
    };
    let formats = [
        "common",
        "combined",
        "{user}{client}",
        "{time} {status}",
        "json",
    ]
    .map(|text| AccessLogFormat::parse(text).unwrap());
    let mut shared = LineCache::new();
    for (second, client) in [(1, [127, 0, 0, 1]), (2, [127, 0, 0, 1]), (2, [10, 0, 0, 1])] {
        for user in [&b""[..], b"ann", b""] {
            for format in &formats {
                let line = |cache: &mut LineCache| {
                    let mut out = Vec::new();
                    let record = record(second, client);
                    format.push_line(cache, &RecordNames::new(), &record, &texts(user), &mut out);
                    out
                };
                assert_eq!(line(&mut shared), line(&mut LineCache::new()));
            }
        }
    }
}
