//! Texts of other people on a terminal: paths, names of browsers, what a script wrote. Whatever
//! could steer the terminal or make a line read otherwise than it is becomes visible instead.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::Value;

/// One line of text.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

/// Text whose line ends are its own.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

/// JSON in one line, which means the same and holds nothing that steers a terminal.
pub(crate) fn json(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.chars().any(is_hostile) {
        return plain;
    }
    let mut text = String::with_capacity(plain.len());
    // Only inside of strings: JSON itself has no such character, and serde escapes C0.
    for one in plain.chars() {
        match is_hostile(one) {
            false => text.push(one),
            true => {
                for unit in one.encode_utf16(&mut [0; 2]) {
                    add(&mut text, format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
    text
}

fn escaped(text: &str, keeps_lines: bool) -> Cow<'_, str> {
    let is_kept = |one: char| !is_hostile(one) || keeps_lines && one == '\n';
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        match one {
            _ if is_kept(one) => shown.push(one),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '\0'..='\x7f' => add(&mut shown, format_args!("\\x{:02x}", u32::from(one))),
            _ => add(&mut shown, format_args!("\\u{{{:x}}}", u32::from(one))),
        }
    }
    Cow::Owned(shown)
}

/// Writing to a string does not fail.
fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}

/// Controls of both sets; marks that turn the direction of writing; separators of lines; and what
/// is there but cannot be seen.
fn is_hostile(one: char) -> bool {
    one.is_control()
        || matches!(
            one,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_and_not_sent() {
        for (text, shown) in [
            ("/plain path?ä=ü&日本", "/plain path?ä=ü&日本"),
            ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
            ("a\nb\r\tc\0\x7f", "a\\nb\\r\\tc\\x00\\x7f"),
            ("\u{9b}31m\u{85}", "\\u{9b}31m\\u{85}"),
            ("exe\u{202e}txt.\u{2066}", "exe\\u{202e}txt.\\u{2066}"),
            (
                "a\u{200b}b\u{2028}c\u{e0041}",
                "a\\u{200b}b\\u{2028}c\\u{e0041}",
            ),
        ] {
            assert_eq!(line(text), shown);
        }
        assert_eq!(lines("a\nb\x1b"), "a\nb\\x1b");
    }

    #[test]
    fn json_says_the_same_without_them() {
        let value = serde_json::json!({ "a\u{9b}": "\x1b\x7f\u{e0041}\u{202e}ä\n" });
        let text = json(&value);
        assert!(text.chars().all(|one| !is_hostile(one)), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(json(&serde_json::json!(["ä", 1])), "[\"ä\",1]");
    }
}
