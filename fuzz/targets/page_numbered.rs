//! Parameters of a statement for PostgreSQL: whatever the statement, numbers stand where marks
//! stood, and nothing else has changed. URLs of databases beside it: they are read or refused.
#![no_main]

use hob_page::sql::postgres::{PostgresOptions, numbered};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = PostgresOptions::parse(text);
    let _ = PostgresOptions::parse(&format!("postgres://{text}"));
    assert_eq!(numbered(text, 0).as_deref(), Some(text));
    let marks = text.matches('?').count();
    let found = (1..=marks).filter_map(|count| Some((count, numbered(text, count)?)));
    let found: Vec<(usize, String)> = found.collect();
    assert!(found.len() <= 1, "a statement has one number of parameters");
    for (count, numbered) in found {
        let mut back = String::new();
        let mut rest = numbered.as_str();
        let mut from = text;
        for number in 1..=count {
            let mark = format!("${number}");
            // The text up to the next parameter is as it was; the first place that fits is it.
            let at = rest.match_indices(&mark).find(|(at, _)| {
                from.get(..*at) == rest.get(..*at) && from.get(*at..*at + 1) == Some("?")
            });
            let (at, _) = at.expect("the parameter is there");
            back.push_str(&rest[..at]);
            back.push('?');
            rest = &rest[at + mark.len()..];
            from = &from[at + 1..];
        }
        back.push_str(rest);
        assert_eq!(back, text);
    }
});
