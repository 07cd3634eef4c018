//! An event as a line, or more where it holds a head or a body.

use hob_load::page::time_us;
use serde_json::Value;

use super::dump;
use crate::escape;
use crate::facts::JsonView;
use crate::table::UNKNOWN;

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchOutputStyle {
    Plain,
    Coloured,
    Json,
}

/// Fields that stand in a place of their own.
const PLACED: &[&str] = &["t_us", "id", "stage", "text", "hex", "started_unix_ms"];
/// Fields that are a part of `text` as a rule: of a request, of its end, of a failed handshake.
const WITHIN: &[&str] = &["method", "target", "outcome", "verdict", "reason"];
/// Stages whose bytes are a head.
const HEADS: &[&str] = &["request-head", "answer"];
/// Longest text of a field that stands behind the others; longer ones have lines of their own.
const SHORT: usize = 100;

/// The event as people read it.
pub(crate) fn line(event: JsonView<'_>, style: WatchOutputStyle) -> String {
    let time = event.count("t_us").map(|us| time_us(us as f64));
    let time = time.unwrap_or_else(|| UNKNOWN.to_owned());
    let id = escape::line(event.text("id").unwrap_or(UNKNOWN)).into_owned();
    let stage = event.text("stage").unwrap_or(UNKNOWN);
    let shown = escape::line(stage);
    let (begin, end) = match (style, colour(stage)) {
        (WatchOutputStyle::Coloured, Some(colour)) => (format!("\x1b[{colour}m"), "\x1b[0m"),
        _ => (String::new(), ""),
    };
    let mut text = format!("{time:>9}  {id:<10}  {begin}{shown:<12}{end}");
    // Heads are text; of bodies nobody knows.
    let hex = event.text("hex").filter(|_| !HEADS.contains(&stage));
    let dump = hex.and_then(dump::lines);
    let (first, rest) = match event.text("text").filter(|_| dump.is_none()) {
        None => ("", None),
        Some(said) => match said.trim_end().split_once('\n') {
            None => (said.trim_end(), None),
            Some((first, rest)) => (first.trim_end(), Some(rest)),
        },
    };
    if !first.is_empty() {
        text.push_str(&format!("  {}", escape::line(first)));
    }
    text.push_str(&fields(event, first));
    for line in dump.into_iter().flatten() {
        text.push_str(&format!("\n{:>9}  {line}", ""));
    }
    for more in rest.into_iter().flat_map(str::lines) {
        text.push_str(&format!("\n{:>9}  {}", "", escape::line(more)));
    }
    text
}

/// What else an event has: short ones as `name=value`, long ones on lines of their own.
fn fields(event: JsonView<'_>, said: &str) -> String {
    let mut short = String::new();
    let mut long = String::new();
    for (name, value) in event.0.as_object().into_iter().flatten() {
        if PLACED.contains(&name.as_str()) {
            continue;
        }
        let value = match value {
            Value::Null => continue,
            // What is said has them already.
            Value::String(text) if WITHIN.contains(&&**name) && said.contains(text.as_str()) => {
                continue;
            }
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) => escape::json(value),
            value => value.to_string(),
        };
        let name = escape::line(name);
        if value.len() <= SHORT && !value.contains('\n') {
            short.push_str(&format!("  {name}={}", escape::line(&value)));
            continue;
        }
        long.push_str(&format!("\n{:>9}  {name}:", ""));
        for line in value.lines() {
            long.push_str(&format!("\n{:>11}{}", "", escape::line(line)));
        }
    }
    short + &long
}

/// A colour by what an event is about.
fn colour(stage: &str) -> Option<u8> {
    const COLOURS: &[(u8, &[&str])] = &[
        (90, &["connection", "tls"]),
        (34, &["request", "request-head", "request-body"]),
        (36, &["route", "step", "cache"]),
        (35, &["queue", "start", "worker", "program", "callout"]),
        (31, &["stderr"]),
        (33, &["answer-body"]),
        (32, &["answer", "done"]),
    ];
    let known = COLOURS.iter().find(|(_, stages)| stages.contains(&stage));
    known.map(|(colour, _)| *colour)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn event_is_a_line_with_its_fields() {
        let event = json!({
            "t_us": 1234, "id": "1.2.0", "stage": "route", "text": "/cgi-bin/* matches",
            "site": "b.example", "none": null, "route": "/cgi-bin/*",
        });
        assert_eq!(
            line(JsonView(&event), WatchOutputStyle::Plain),
            "  1.23 ms  1.2.0       route         /cgi-bin/* matches  route=/cgi-bin/*  site=b.example"
        );
        assert_eq!(
            line(JsonView(&event), WatchOutputStyle::Coloured),
            "  1.23 ms  1.2.0       \x1b[36mroute       \x1b[0m  /cgi-bin/* matches  route=/cgi-bin/*  site=b.example"
        );
    }

    #[test]
    fn heads_and_bodies_have_lines_of_their_own_and_steer_nothing() {
        let event = json!({
            "t_us": 5, "id": "1\u{1b}", "stage": "st\u{9b}err", "text": "one\ntwo\u{1b}[2J\n",
            "more": "00 01\n02 03", "li\nst": ["\u{7f}"],
        });
        assert_eq!(
            line(JsonView(&event), WatchOutputStyle::Coloured),
            "  5.00 us  1\\x1b       st\\u{9b}err   one  li\\nst=[\"\\u007f\"]\n           \
             more:\n           00 01\n           02 03\n           two\\x1b[2J"
        );
    }

    #[test]
    fn heads_are_text() {
        let event = json!({
            "t_us": 5, "id": "1.2.0", "stage": "answer", "bytes": 18, "status": 200,
            "text": "200 OK\r\nServer: a\u{1b}b\r\n", "hex": "32",
        });
        assert_eq!(
            line(JsonView(&event), WatchOutputStyle::Plain),
            "  5.00 us  1.2.0       answer        200 OK  bytes=18  status=200\n           \
             Server: a\\x1bb"
        );
    }

    #[test]
    fn bytes_are_shown_as_they_are_and_as_text() {
        let event = json!({
            "t_us": 5, "id": "1.2.0", "stage": "answer-body", "bytes": 18, "text": "lost",
            "hex": "48656c6c6f1b5b324a80ff0a0102030405060708",
        });
        assert_eq!(
            line(JsonView(&event), WatchOutputStyle::Plain),
            "  5.00 us  1.2.0       answer-body   bytes=18\n           \
             0000  48 65 6c 6c 6f 1b 5b 32  4a 80 ff 0a 01 02 03 04  Hello.[2J.......\n           \
             0010  05 06 07 08                                       ...."
        );
    }

    #[test]
    fn what_is_no_event_is_a_line_too() {
        for value in [json!(null), json!([]), json!({ "t_us": -1, "stage": 5 })] {
            let text = line(JsonView(&value), WatchOutputStyle::Plain);
            assert!(text.starts_with("        -  -"), "{text}");
        }
    }
}
