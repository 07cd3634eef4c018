//! Conditions and dates: no input panics, and a date that is read is written as the same time.
#![no_main]

use hob_http::date::imf_fixdate;
use hob_server::step::conditional::{
    ConditionalMethod, Conditions, PreconditionOutcome, Validators, evaluate,
};
use hob_server::step::date::parse_http_date;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (i64, i64, &[u8])| {
    let (now, modified, text) = input;
    // What is written has four digits for the year.
    let year_0_to_9999 = -62_167_219_200..=253_402_300_799;
    if let Some(time) = parse_http_date(text, now).filter(|time| year_0_to_9999.contains(time)) {
        let written = imf_fixdate(time);
        assert_eq!(parse_http_date(&written, now), Some(time));
    }
    let written = imf_fixdate(modified);
    let current = Validators {
        entity_tag: Some(b"\"tag\""),
        modified: Some(modified),
        modified_text: Some(&written),
    };
    // Up to six fields, one per line; an empty line is no field.
    let mut lines = text
        .split(|&byte| byte == b'\n')
        .map(|line| (!line.is_empty()).then_some(line));
    let mut next = || lines.next().flatten();
    let conditions = Conditions {
        if_match: next(),
        if_none_match: next(),
        if_modified_since: next(),
        if_unmodified_since: next(),
        if_range: next(),
        range: next(),
    };
    let verdict = evaluate(ConditionalMethod::Get, &conditions, &current, now);
    assert!(verdict != PreconditionOutcome::IgnoreRange || conditions.range.is_some());
    assert_ne!(
        evaluate(ConditionalMethod::Unsafe, &conditions, &current, now),
        PreconditionOutcome::NotModified
    );
});
