//! Conditions: each field, and which wins.

use super::*;

const DATE: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &[u8] = b"Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &[u8] = b"Sunday, 06-Nov-94 08:49:38 GMT";
const MODIFIED: UnixSeconds = 784_111_777;
const NOW: UnixSeconds = 1_781_524_800;

const CURRENT: Validators<'static> = Validators {
    entity_tag: Some(b"\"a\""),
    modified: Some(MODIFIED),
    modified_text: Some(DATE),
};
const WEAK: Validators<'static> = Validators {
    entity_tag: Some(b"W/\"a\""),
    ..CURRENT
};
const NOTHING: Conditions<'static> = Conditions {
    if_match: None,
    if_none_match: None,
    if_modified_since: None,
    if_unmodified_since: None,
    if_range: None,
    range: None,
};

fn get(conditions: Conditions<'_>) -> PreconditionOutcome {
    evaluate(ConditionalMethod::Get, &conditions, &CURRENT, NOW)
}

fn if_match(list: &str, current: &Validators<'_>) -> PreconditionOutcome {
    let conditions = Conditions {
        if_match: Some(list.as_bytes()),
        ..NOTHING
    };
    evaluate(ConditionalMethod::Get, &conditions, current, NOW)
}

fn if_none_match(list: &str, current: &Validators<'_>) -> PreconditionOutcome {
    let conditions = Conditions {
        if_none_match: Some(list.as_bytes()),
        ..NOTHING
    };
    evaluate(ConditionalMethod::Get, &conditions, current, NOW)
}

#[test]
fn no_conditions_proceed() {
    assert_eq!(get(NOTHING), PreconditionOutcome::Proceed);
    assert_eq!(
        get(Conditions {
            range: Some(b"bytes=0-"),
            ..NOTHING
        }),
        PreconditionOutcome::Proceed
    );
}

#[test]
fn if_match_compares_strongly() {
    //= rfc9110#13.1.1
    for list in [
        "\"a\"",
        "*",
        "\"b\", \"a\"",
        ",, \"b\" ,\t\"a\"",
        "\"b,c\",\"a\"",
    ] {
        assert_eq!(
            if_match(list, &CURRENT),
            PreconditionOutcome::Proceed,
            "{list}"
        );
    }
    for list in [
        "\"b\"",
        "W/\"a\"",
        "",
        "a",
        "\"b\" \"a\"",
        "\"a",
        "'a'",
        "w/\"a\"",
        "*, \"b\"",
    ] {
        assert_eq!(
            if_match(list, &CURRENT),
            PreconditionOutcome::PreconditionFailed,
            "{list}"
        );
    }
    assert_eq!(
        if_match("W/\"a\"", &WEAK),
        PreconditionOutcome::PreconditionFailed
    );
    assert_eq!(
        if_match("*", &Validators::default()),
        PreconditionOutcome::Proceed
    );
    assert_eq!(
        if_match("\"a\"", &Validators::default()),
        PreconditionOutcome::PreconditionFailed
    );
}

#[test]
fn if_none_match_compares_weakly() {
    //= rfc9110#13.1.2
    for list in ["\"a\"", "W/\"a\"", "*", "\"b\", W/\"a\""] {
        assert_eq!(
            if_none_match(list, &CURRENT),
            PreconditionOutcome::NotModified,
            "{list}"
        );
        assert_eq!(
            if_none_match(list, &WEAK),
            PreconditionOutcome::NotModified,
            "{list}"
        );
    }
    for list in [
        "\"b\"",
        "\"aa\"",
        "\"A\"",
        "",
        "a",
        "\"b\"x\"a\"",
        "\"\u{1}\", \"a\"",
    ] {
        assert_eq!(
            if_none_match(list, &CURRENT),
            PreconditionOutcome::Proceed,
            "{list:?}"
        );
    }
    assert_eq!(
        if_none_match("\"a\"", &Validators::default()),
        PreconditionOutcome::Proceed
    );
}

#[test]
fn if_none_match_fails_other_methods() {
    let conditions = Conditions {
        if_none_match: Some(b"*"),
        ..NOTHING
    };
    let verdict = |method| evaluate(method, &conditions, &CURRENT, NOW);
    assert_eq!(
        verdict(ConditionalMethod::Head),
        PreconditionOutcome::NotModified
    );
    assert_eq!(
        verdict(ConditionalMethod::Unsafe),
        PreconditionOutcome::PreconditionFailed
    );
}

#[test]
fn if_modified_since_by_date() {
    //= rfc9110#13.1.3
    let verdict = |date| {
        get(Conditions {
            if_modified_since: Some(date),
            ..NOTHING
        })
    };
    assert_eq!(verdict(DATE), PreconditionOutcome::NotModified);
    assert_eq!(verdict(AFTER), PreconditionOutcome::NotModified);
    assert_eq!(
        verdict(b"Sun Nov  6 08:49:37 1994"),
        PreconditionOutcome::NotModified
    );
    assert_eq!(verdict(BEFORE), PreconditionOutcome::Proceed);
    assert_eq!(verdict(b"yesterday"), PreconditionOutcome::Proceed);
    let conditions = Conditions {
        if_modified_since: Some(DATE),
        ..NOTHING
    };
    assert_eq!(
        evaluate(ConditionalMethod::Unsafe, &conditions, &CURRENT, NOW),
        PreconditionOutcome::Proceed
    );
    assert_eq!(
        evaluate(
            ConditionalMethod::Get,
            &conditions,
            &Validators::default(),
            NOW
        ),
        PreconditionOutcome::Proceed
    );
}

#[test]
fn if_unmodified_since_by_date() {
    //= rfc9110#13.1.4
    let verdict = |date| {
        get(Conditions {
            if_unmodified_since: Some(date),
            ..NOTHING
        })
    };
    assert_eq!(verdict(DATE), PreconditionOutcome::Proceed);
    assert_eq!(verdict(AFTER), PreconditionOutcome::Proceed);
    assert_eq!(verdict(BEFORE), PreconditionOutcome::PreconditionFailed);
    assert_eq!(verdict(b"yesterday"), PreconditionOutcome::Proceed);
}

#[test]
fn entity_tags_take_precedence_over_dates() {
    //= rfc9110#13.2.2
    let cases = [
        (
            Conditions {
                if_match: Some(b"\"a\""),
                if_unmodified_since: Some(BEFORE),
                ..NOTHING
            },
            PreconditionOutcome::Proceed,
        ),
        (
            Conditions {
                if_match: Some(b"\"b\""),
                if_unmodified_since: Some(DATE),
                ..NOTHING
            },
            PreconditionOutcome::PreconditionFailed,
        ),
        (
            Conditions {
                if_none_match: Some(b"\"b\""),
                if_modified_since: Some(DATE),
                ..NOTHING
            },
            PreconditionOutcome::Proceed,
        ),
        (
            Conditions {
                if_none_match: Some(b"\"a\""),
                if_modified_since: Some(BEFORE),
                ..NOTHING
            },
            PreconditionOutcome::NotModified,
        ),
        (
            Conditions {
                if_match: Some(b"\"b\""),
                if_none_match: Some(b"\"a\""),
                ..NOTHING
            },
            PreconditionOutcome::PreconditionFailed,
        ),
        (
            Conditions {
                if_match: Some(b"\"a\""),
                if_none_match: Some(b"\"a\""),
                ..NOTHING
            },
            PreconditionOutcome::NotModified,
        ),
        (
            Conditions {
                if_unmodified_since: Some(DATE),
                if_modified_since: Some(DATE),
                ..NOTHING
            },
            PreconditionOutcome::NotModified,
        ),
    ];
    for (conditions, expected) in cases {
        assert_eq!(get(conditions), expected, "{conditions:?}");
    }
}

#[test]
fn if_range_needs_a_strong_match() {
    //= rfc9110#13.1.5
    let verdict = |value: &[u8], current: &Validators<'_>, now| {
        let conditions = Conditions {
            range: Some(b"bytes=0-1"),
            if_range: Some(value),
            ..NOTHING
        };
        evaluate(ConditionalMethod::Get, &conditions, current, now)
    };
    assert_eq!(
        verdict(b"\"a\"", &CURRENT, NOW),
        PreconditionOutcome::Proceed
    );
    assert_eq!(verdict(DATE, &CURRENT, NOW), PreconditionOutcome::Proceed);
    assert_eq!(
        verdict(b"Sun Nov  6 08:49:37 1994", &CURRENT, NOW),
        PreconditionOutcome::Proceed
    );
    for value in [
        &b"\"b\""[..],
        b"W/\"a\"",
        b"\"a\", \"b\"",
        b"*",
        b"",
        BEFORE,
        AFTER,
    ] {
        assert_eq!(
            verdict(value, &CURRENT, NOW),
            PreconditionOutcome::IgnoreRange,
            "{value:?}"
        );
    }
    assert_eq!(
        verdict(b"W/\"a\"", &WEAK, NOW),
        PreconditionOutcome::IgnoreRange
    );
    assert_eq!(
        verdict(DATE, &CURRENT, MODIFIED),
        PreconditionOutcome::IgnoreRange
    );
    assert_eq!(
        verdict(DATE, &Validators::default(), NOW),
        PreconditionOutcome::IgnoreRange
    );
}

#[test]
fn if_range_counts_only_with_a_range_and_after_the_others() {
    let alone = Conditions {
        if_range: Some(b"\"b\""),
        ..NOTHING
    };
    assert_eq!(get(alone), PreconditionOutcome::Proceed);
    let all = Conditions {
        range: Some(b"bytes=0-1"),
        if_none_match: Some(b"\"a\""),
        ..alone
    };
    assert_eq!(get(all), PreconditionOutcome::NotModified);
}

#[test]
fn a_range_counts_for_get_only() {
    //= rfc9110#14.2
    let conditions = Conditions {
        range: Some(b"bytes=0-1"),
        ..NOTHING
    };
    let verdict = |method| evaluate(method, &conditions, &CURRENT, NOW);
    assert_eq!(
        verdict(ConditionalMethod::Head),
        PreconditionOutcome::IgnoreRange
    );
    assert_eq!(
        verdict(ConditionalMethod::Unsafe),
        PreconditionOutcome::IgnoreRange
    );
}
