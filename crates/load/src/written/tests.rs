//! What is read as a result, and what is not.

use super::*;
use crate::limits::INTERVAL_COUNT_MAX;

#[test]
fn what_is_no_result_is_refused_with_what_is_wrong() {
    for (text, says) in [
        ("", "it is empty"),
        ("{", "this is no JSON"),
        ("[1]", "no result of `hob bench --json`"),
        (r#"{"format":1}"#, "no result of `hob bench --json`"),
        (r#"{"format":2,"series":{}}"#, "format 2 is newer than 1"),
        (
            r#"{"format":1,"series":{},"failures":["x"]}"#,
            "failures is not as it must be: array of objects",
        ),
        (
            r#"{"format":1,"series":{},"tls":7}"#,
            "tls is not as it must be: object",
        ),
        (
            r#"{"format":1,"series":{},"requests":{"due":18446744073709551615}}"#,
            "requests.due is not as it must be: integer",
        ),
    ] {
        let why = SavedResult::read(text).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn series_that_is_longer_than_any_is_refused() {
    let histograms = vec!["x"; INTERVAL_COUNT_MAX + 1];
    let value = serde_json::json!({ "format": 1, "series": { "histograms": histograms } });
    let read = SavedResult::read(&value.to_string()).unwrap();
    assert!(read[0].hdr_log().unwrap_err().contains("more than 600"));
}
