//! Encodings: references of HTML, percent signs of addresses, escapes of JavaScript.

/// Markup characters as references. `'` stays, as the language's `HTMLENCODE` leaves it.
pub(crate) fn html_encode(bytes: &[u8], out: &mut Vec<u8>) {
    encode_markup(bytes, out, |byte| byte != b'\'');
}

/// Markup characters and both quotes as references.
pub(crate) fn html_encode_all(bytes: &[u8], out: &mut Vec<u8>) {
    encode_markup(bytes, out, |_| true);
}

/// As [`html_encode_all`] for text whose `&` already begin references.
pub(super) fn html_encode_marked(bytes: &[u8], out: &mut Vec<u8>) {
    encode_markup(bytes, out, |byte| byte != b'&');
}

fn encode_markup(bytes: &[u8], out: &mut Vec<u8>, is_wanted: impl Fn(u8) -> bool) {
    let mut rest = bytes;
    while let Some(at) = rest
        .iter()
        .position(|byte| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\''))
    {
        let byte = rest[at];
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match byte {
            _ if !is_wanted(byte) => out.push(byte),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            _ => out.extend_from_slice(b"&#39;"),
        }
    }
    out.extend_from_slice(rest);
}

/// For a value without quotes: all but letters, digits and some signs as numbers.
pub(super) fn html_encode_unquoted(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'-' | b'.' | b'_' | 0x80.. => out.push(*byte),
            _ if byte.is_ascii_alphanumeric() => out.push(*byte),
            _ => out.extend_from_slice(format!("&#{byte};").as_bytes()),
        }
    }
}

/// For a comment: nothing in it can end it.
pub(super) fn html_encode_comment(bytes: &[u8], out: &mut Vec<u8>) {
    let mut encoded = Vec::with_capacity(bytes.len());
    html_encode_all(bytes, &mut encoded);
    for byte in encoded {
        match byte {
            b'-' => out.extend_from_slice(b"&#45;"),
            _ => out.push(byte),
        }
    }
}

/// What [`html_encode`] and [`html_encode_all`] made, undone.
pub(super) fn html_decode(bytes: &[u8]) -> Vec<u8> {
    let known: [(&[u8], u8); 6] = [
        (b"&amp;", b'&'),
        (b"&lt;", b'<'),
        (b"&gt;", b'>'),
        (b"&quot;", b'"'),
        (b"&#39;", b'\''),
        (b"&#34;", b'"'),
    ];
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, others @ ..] = rest {
        let reference = known.iter().find(|(text, _)| rest.starts_with(text));
        let (byte, length) = reference.map_or((*first, 1), |(text, byte)| (*byte, text.len()));
        decoded.push(byte);
        rest = match length {
            1 => others,
            _ => &rest[length..],
        };
    }
    decoded
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// All but letters, digits and `-._~` with percent signs.
pub(crate) fn percent_encode(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(*byte),
            _ if byte.is_ascii_alphanumeric() => out.push(*byte),
            _ => push_percent(*byte, out),
        }
    }
}

fn push_percent(byte: u8, out: &mut Vec<u8>) {
    out.push(b'%');
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 15)]);
}

/// An address as a whole: what may stand in one stays, for the value of an attribute.
pub(super) fn percent_encode_address(bytes: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'%' => {
                let next = bytes.get(at + 1..at + 3);
                let is_escape = next.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
                match is_escape {
                    true => out.push(b'%'),
                    false => out.extend_from_slice(b"%25"),
                }
            }
            b'-' | b'.' | b'_' | b'~' | b':' | b'/' | b'?' | b'#' | b'[' | b']' | b'@' | b'!'
            | b'$' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => out.push(*byte),
            _ if byte.is_ascii_alphanumeric() => out.push(*byte),
            _ => push_percent(*byte, out),
        }
    }
}

/// The inside of a string of JavaScript or JSON; also fit for attributes.
pub(super) fn script_encode(bytes: &[u8], is_quoted: bool, out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        let is_separator = *byte == 0xe2
            && bytes.get(at + 1) == Some(&0x80)
            && matches!(bytes.get(at + 2), Some(0xa8 | 0xa9));
        match byte {
            b' ' if is_quoted => out.push(b' '),
            // A line separator ends a line for old engines: its first byte alone is no character.
            0x80.. if !is_separator => out.push(*byte),
            0x80.. => out.push(b'?'),
            b'.' | b'_' | b',' => out.push(*byte),
            _ if byte.is_ascii_alphanumeric() => out.push(*byte),
            _ => out.extend_from_slice(format!("\\u{:04x}", byte).as_bytes()),
        }
    }
}
