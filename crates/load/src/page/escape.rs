//! Plain text on its way into the page.

/// A text as it may stand in an element or in a quoted attribute.
///
/// What would be read as markup is escaped. What a person would not see or would see in the wrong
/// place (control characters, and those that turn the direction of writing) becomes U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(one),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            _ if one.is_control() => safe.push('\u{fffd}'),
            _ => safe.push(one),
        }
    }
    safe
}

/// The beginning of a text that is too long for its place.
pub(super) fn shortened(text: &str, char_count_max: usize) -> String {
    if text.chars().count() <= char_count_max {
        return text.to_owned();
    }
    let kept = text.chars().take(char_count_max.saturating_sub(1));
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            escaped("<script>alert(\"1\" & '2')</script>"),
            "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;"
        );
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(
            escaped("a\0b\u{1b}[1m\u{202e}c\nd"),
            "a\u{fffd}b\u{fffd}[1m\u{fffd}c\nd"
        );
    }

    #[test]
    fn long_text_ends_with_dots() {
        assert_eq!(shortened("äöüß", 4), "äöüß");
        assert_eq!(shortened("äöüßx", 4), "äöü…");
    }
}
