//! What built-in pages share: escaping and one style, light and dark.
//!
//! The pages need no script, no font and no file besides themselves; [`CONTENT_SECURITY_POLICY`]
//! says so to browsers.

/// A policy that lets a built-in page show itself and nothing else.
pub const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The media type of built-in pages.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// Style of every built-in page.
pub(super) const STYLE: &str = include_str!("page.css");

/// Appends text so that HTML shows it as it is, also inside of a quoted attribute.
///
/// Bytes that are not UTF-8 become U+FFFD, and so do control bytes, which HTML does not allow.
pub fn escape(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '&' => out.extend_from_slice(b"&amp;"),
                '<' => out.extend_from_slice(b"&lt;"),
                '>' => out.extend_from_slice(b"&gt;"),
                '"' => out.extend_from_slice(b"&quot;"),
                '\'' => out.extend_from_slice(b"&#39;"),
                _ if is_hidden(character) => push(char::REPLACEMENT_CHARACTER, out),
                _ => push(character, out),
            }
        }
        if !chunk.invalid().is_empty() {
            push(char::REPLACEMENT_CHARACTER, out);
        }
    }
}

/// Control characters, and those that turn the direction of text and so can disguise a name.
fn is_hidden(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push(character: char, out: &mut Vec<u8>) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut out = Vec::new();
        escape(
            b"<a href=\"x\" b='&amp;'>\xff\xfe\n\xe2\x80\xae\xc3\xa4",
            &mut out,
        );
        let expected = "&lt;a href=&quot;x&quot; b=&#39;&amp;amp;&#39;&gt;\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{e4}";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
