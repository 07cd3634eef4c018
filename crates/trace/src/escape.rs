//! Escaping of what clients sent, so that a line stays one line and a value stays one value.
//!
//! Nearly every value is plain ASCII and is copied as it is. Otherwise: in text, quotes,
//! backslashes, control characters, line separators and bytes that are not UTF-8 become `\xHH`
//! each; in JSON they become what JSON has for them, and a byte that is not UTF-8 becomes the
//! replacement character.

use crate::pen::Pen;

/// Puts a value into a text line. The spaces in it stay.
#[inline]
pub(crate) fn put_text(value: &[u8], pen: &mut Pen<'_>) {
    if !pen.put_if_plain(value, b' ') {
        put_text_escaped(value, b' ', pen);
    }
}

/// Puts a value that must be one word into a text line: spaces are escaped too.
#[inline]
pub(crate) fn put_word(value: &[u8], pen: &mut Pen<'_>) {
    if !pen.put_if_plain(value, b'!') {
        put_text_escaped(value, b'!', pen);
    }
}

/// Puts down the inside of a JSON string.
#[inline]
pub(crate) fn put_json(value: &[u8], pen: &mut Pen<'_>) {
    if !pen.put_if_plain(value, b' ') {
        put_json_escaped(value, pen);
    }
}

#[cold]
fn put_text_escaped(value: &[u8], lowest: u8, pen: &mut Pen<'_>) {
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            let low = character < char::from(lowest);
            if low || matches!(character, '"' | '\\') || is_steering(character) {
                put_hex(bytes, pen);
            } else {
                pen.put(bytes);
            }
        }
        put_hex(chunk.invalid(), pen);
    }
}

#[cold]
fn put_json_escaped(value: &[u8], pen: &mut Pen<'_>) {
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => pen.put(b"\\\""),
                '\\' => pen.put(b"\\\\"),
                '\n' => pen.put(b"\\n"),
                '\r' => pen.put(b"\\r"),
                '\t' => pen.put(b"\\t"),
                _ if is_steering(character) => {
                    let escaped = format_args!("\\u{:04x}", u32::from(character)).to_string();
                    pen.put(escaped.as_bytes());
                }
                _ => pen.put(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            pen.put(b"\\ufffd");
        }
    }
}

/// Characters that end a line or steer a terminal for someone who reads the log: C0 and C1
/// controls, the line and paragraph separators, and those that turn the direction of writing.
fn is_steering(character: char) -> bool {
    let turns_direction = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns_direction || matches!(character, '\u{2028}' | '\u{2029}')
}

fn put_hex(bytes: &[u8], pen: &mut Pen<'_>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        pen.put_array(&[b'\\', b'x', high, low]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pen::PenBuffer;

    fn written(put: impl Fn(&[u8], &mut Pen<'_>), value: &[u8]) -> String {
        let (mut block, mut out) = (PenBuffer::new(), Vec::new());
        let mut pen = Pen::new(&mut block, &mut out);
        put(value, &mut pen);
        pen.finish();
        String::from_utf8(out).unwrap()
    }

    fn text(value: &[u8]) -> String {
        written(put_text, value)
    }

    fn json(value: &[u8]) -> String {
        written(put_json, value)
    }

    #[test]
    fn plain_values_are_not_changed() {
        let plain = "Mozilla/5.0 (X11; Linux x86_64) ~!#$%&'()*+,-./:;<=>?@[]^_`{|}";
        assert_eq!(
            (text(plain.as_bytes()), json(plain.as_bytes())),
            (plain.into(), plain.into())
        );
        assert_eq!(text("Grüße, 世界".as_bytes()), "Grüße, 世界");
        assert_eq!(json("Grüße, 世界".as_bytes()), "Grüße, 世界");
    }

    #[test]
    fn every_single_byte_is_safe() {
        for byte in 0..=u8::MAX {
            let (text, json) = (text(&[byte]), json(&[byte]));
            let kept = matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
            if kept {
                assert_eq!(
                    (text.as_bytes(), json.as_bytes()),
                    (&[byte][..], &[byte][..])
                );
            } else {
                assert_eq!(text, format!("\\x{byte:02X}"));
                assert!(json.starts_with('\\') && json.bytes().all(|b| (0x20..0x7f).contains(&b)));
            }
        }
    }

    #[test]
    fn line_ends_and_terminal_sequences_are_escaped() {
        assert_eq!(text(b"a\r\nb\x1b[2J"), "a\\x0D\\x0Ab\\x1B[2J");
        assert_eq!(
            text("\u{85}\u{2028}\u{202e}".as_bytes()),
            "\\xC2\\x85\\xE2\\x80\\xA8\\xE2\\x80\\xAE"
        );
        assert_eq!(
            json("\r\n\t\u{85}\u{2028}\"\\".as_bytes()),
            "\\r\\n\\t\\u0085\\u2028\\\"\\\\"
        );
    }

    #[test]
    fn bytes_that_are_not_utf8_are_escaped() {
        assert_eq!(text(b"a\xff\xe4\xb8b"), "a\\xFF\\xE4\\xB8b");
        assert_eq!(json(b"a\xff\xe4\xb8b"), "a\\ufffd\\ufffdb");
    }

    #[test]
    fn word_has_no_space() {
        assert_eq!(
            written(put_word, b"x - [now] \"GET /"),
            "x\\x20-\\x20[now]\\x20\\x22GET\\x20/"
        );
    }
}
