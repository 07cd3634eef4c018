//! `hob status --statistics` for people: a column for each span, a row for each word that counted.

use hob_load::page::{bytes, count};
use serde_json::Value;

use crate::escape;

/// Spans and their headings.
const SPANS: [(&str, &str); 3] = [
    ("start", "since start"),
    ("today", "today (UTC)"),
    ("zero", "since zero"),
];
/// Parts with a row for each of their words.
const PARTS: &[(&str, &str)] = &[
    ("methods", "by method"),
    ("protocols", "by protocol"),
    ("handlers", "by handler"),
    ("status_classes", "by class of status"),
    ("statuses", "by status"),
    ("cache", "by what the cache did"),
    ("outcomes", "by how they ended"),
    ("faults", "by whose fault"),
    ("workers", "workers and programs"),
    ("tls", "TLS handshakes"),
    ("connections", "connections"),
    ("bytes", "bytes"),
];
/// Columns of a number.
const WIDTH: usize = 14;

/// The table. Rows of which nothing was counted in any span are left out.
pub(crate) fn text(told: &Value) -> String {
    let now_ms = told["now_unix_ms"].as_u64().unwrap_or(0);
    let mut text = String::new();
    let headings = SPANS.map(|(_, heading)| heading.to_owned());
    row(&mut text, "", &headings);
    let ages = SPANS.map(|(span, _)| {
        let since_ms = told[span]["since_unix_ms"].as_u64().unwrap_or(now_ms);
        age(now_ms.saturating_sub(since_ms) / 1000)
    });
    row(&mut text, "for", &ages);
    row(
        &mut text,
        "requests",
        &SPANS.map(|(span, _)| shown("", &told[span]["requests"])),
    );
    for (part, heading) in PARTS {
        let mut rows = String::new();
        for word in words(told, part) {
            let values = SPANS.map(|(span, _)| &told[span][part][word]);
            if values.iter().any(|value| value.as_u64().unwrap_or(0) > 0) {
                let name = format!("  {}", escape::line(&word.replace('_', " ")));
                row(&mut rows, &name, &values.map(|value| shown(part, value)));
            }
        }
        if !rows.is_empty() {
            text.push_str(&format!("{heading}\n{rows}"));
        }
    }
    text
}

/// Every word of a part in any span; the span since the start has them all.
fn words<'t>(told: &'t Value, part: &str) -> impl Iterator<Item = &'t str> {
    let all = told["start"][part].as_object();
    all.into_iter().flatten().map(|(word, _)| word.as_str())
}

fn shown(part: &str, value: &Value) -> String {
    let number = value.as_u64().unwrap_or(0);
    match part {
        "bytes" => bytes(number as f64),
        _ => count(number),
    }
}

fn row(text: &mut String, name: &str, values: &[String; 3]) {
    let mut line = format!("{name:22}");
    for value in values {
        line.push_str(&format!("{value:>WIDTH$}"));
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// An age in its two largest units.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_have_a_column_for_each_span_and_only_what_counted() {
        let span = |since: u64, requests: u64| {
            json!({
                "since_unix_ms": since,
                "requests": requests,
                "methods": { "GET": requests, "PUT": 0 },
                "statuses": { "200": requests },
                "bytes": { "in": 0, "out": 2048 },
            })
        };
        let told = json!({
            "now_unix_ms": 100_000_000,
            "start": span(0, 5000),
            "today": span(99_000_000, 12),
            "zero": span(99_999_000, 0),
        });
        let text = text(&told);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().count(), 6);
        assert!(
            lines[1].contains("1 d 3 h") && lines[1].ends_with("1 s"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("requests") && lines[2].ends_with(" 0"),
            "{text}"
        );
        assert_eq!(lines[3], "by method");
        assert!(
            lines[4].starts_with("  GET") && lines[4].contains(" 12 "),
            "{text}"
        );
        assert!(
            !text.contains("PUT") && !text.contains("by handler"),
            "{text}"
        );
    }
}
