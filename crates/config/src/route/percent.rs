//! Percent-encoding: which bytes stand for themselves in which part of a URL.

use super::target::ENCODED_SLASH;

/// The part of a URL that bytes are written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlPart {
    /// A normal path (see `target`), `/` included: `%`, `?` and `#` are escaped, and what stands
    /// for an encoded slash is one again.
    Path,
    /// One name or value: only letters, digits and `-._~` stand for themselves.
    Value,
    /// A query that is encoded already: `%` and its own delimiters stay.
    Query,
    /// A host as a client wrote it: no port, brackets allowed.
    Host,
}

/// Appends `bytes` to `out`; every byte that may not stand in `part` becomes `%XX`.
///
/// No part lets control bytes, spaces, quotes, backslashes or bytes above 0x7E through, so the
/// outcome is always safe in a header field. What an encoded slash is in a normal path becomes one
/// again in paths and values.
//= rfc3986#2.1
pub fn encode(bytes: &[u8], part: UrlPart, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let allowed = part.bit();
    for &byte in bytes {
        if STANDS[usize::from(byte)] & allowed != 0 {
            out.push(byte);
        } else if byte == ENCODED_SLASH && matches!(part, UrlPart::Path | UrlPart::Value) {
            out.extend_from_slice(b"%2F");
        } else {
            out.extend([
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
}

/// The byte that two hex digits mean; `None` when they are not two hex digits.
pub fn decode_pair(pair: &[u8]) -> Option<u8> {
    let &[high, low] = pair else { return None };
    Some((hex_value(high)? << 4) | hex_value(low)?)
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

impl UrlPart {
    const fn bit(self) -> u8 {
        match self {
            UrlPart::Path => 1,
            UrlPart::Value => 2,
            UrlPart::Query => 4,
            UrlPart::Host => 8,
        }
    }
}

/// One bit per [`UrlPart`] in which a byte stands for itself.
//= rfc3986#2.2
//= rfc3986#2.3
const STANDS: [u8; 256] = {
    let mut table = [0; 256];
    mark(
        &mut table,
        b"!$&'()*+,;=:@/",
        UrlPart::Path.bit() | UrlPart::Query.bit(),
    );
    mark(&mut table, b"?%", UrlPart::Query.bit());
    mark(&mut table, b"[]:", UrlPart::Host.bit());
    let everywhere =
        UrlPart::Path.bit() | UrlPart::Value.bit() | UrlPart::Query.bit() | UrlPart::Host.bit();
    mark(&mut table, b"-._~0123456789", everywhere);
    mark(&mut table, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", everywhere);
    mark(&mut table, b"abcdefghijklmnopqrstuvwxyz", everywhere);
    table
};

const fn mark(table: &mut [u8; 256], bytes: &[u8], bits: u8) {
    let mut index = 0;
    while index < bytes.len() {
        table[bytes[index] as usize] |= bits;
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8], part: UrlPart) -> String {
        let mut out = Vec::new();
        encode(bytes, part, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_part_escapes_what_would_end_it() {
        let hard = b"a/b?c#d%e&f=g h\r\n\"\\\xff[]:";
        assert_eq!(
            encoded(hard, UrlPart::Path),
            "a/b%3Fc%23d%25e&f=g%20h%0D%0A%22%5C%FF%5B%5D:"
        );
        assert_eq!(
            encoded(hard, UrlPart::Value),
            "a%2Fb%3Fc%23d%25e%26f%3Dg%20h%0D%0A%22%5C%FF%5B%5D%3A"
        );
        assert_eq!(
            encoded(hard, UrlPart::Query),
            "a/b?c%23d%e&f=g%20h%0D%0A%22%5C%FF%5B%5D:"
        );
        assert_eq!(
            encoded(b"h\xc3\xa4.x/[::1]:8@", UrlPart::Host),
            "h%C3%A4.x%2F[::1]:8%40"
        );
    }

    #[test]
    fn encoded_slash_of_a_path_is_one_again() {
        assert_eq!(encoded(b"/a\0b", UrlPart::Path), "/a%2Fb");
        assert_eq!(encoded(b"/a\0b", UrlPart::Value), "%2Fa%2Fb");
    }

    #[test]
    fn a_pair_is_exactly_two_hex_digits() {
        assert_eq!(decode_pair(b"2f"), Some(b'/'));
        assert_eq!(decode_pair(b"Ff"), Some(255));
        for wrong in [&b""[..], b"2", b"2g", b"g2", b"+2", b"222"] {
            assert_eq!(decode_pair(wrong), None, "{wrong:?}");
        }
    }
}
