//! Keys, from the bytes a terminal sends for them.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPress {
    Letter(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Next,
    Previous,
}

/// The keys in bytes that were read at once. What is not known is left out; an escape that nothing
/// follows is the key of that name.
pub(crate) fn keys(bytes: &[u8]) -> Vec<KeyPress> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                let (key, rest) = sequenced(sequence);
                keys.extend(key);
                rest
            }
            (0x1b, _) => {
                keys.push(KeyPress::Escape);
                after
            }
            (b'\r' | b'\n', _) => {
                keys.push(KeyPress::Enter);
                after
            }
            (b'\t', _) => {
                keys.push(KeyPress::Next);
                after
            }
            (0x08 | 0x7f, _) => {
                keys.push(KeyPress::Backspace);
                after
            }
            _ => {
                let (letter, length) = letter(rest);
                keys.extend(letter.map(KeyPress::Letter));
                &rest[length..]
            }
        };
    }
    keys
}

/// A sequence behind its begin: parameters, then the byte that ends it and says which key it is.
fn sequenced(bytes: &[u8]) -> (Option<KeyPress>, &[u8]) {
    let end = bytes.iter().position(|byte| (0x40..=0x7e).contains(byte));
    let Some(end) = end else {
        return (None, &[]);
    };
    let key = match (bytes[end], &bytes[..end]) {
        (b'A', _) => Some(KeyPress::Up),
        (b'B', _) => Some(KeyPress::Down),
        (b'C', _) => Some(KeyPress::Next),
        (b'D' | b'Z', _) => Some(KeyPress::Previous),
        (b'H', _) | (b'~', b"1" | b"7") => Some(KeyPress::First),
        (b'F', _) | (b'~', b"4" | b"8") => Some(KeyPress::Last),
        (b'~', b"5") => Some(KeyPress::PageUp),
        (b'~', b"6") => Some(KeyPress::PageDown),
        (b'M', _) => Some(KeyPress::Enter),
        _ => None,
    };
    (key, &bytes[end + 1..])
}

/// The first letter, if it is one, and how many bytes it takes.
fn letter(bytes: &[u8]) -> (Option<char>, usize) {
    let longest = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&longest[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(one) => (Some(one).filter(|one| !one.is_control()), one.len_utf8()),
        None => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let all = keys(b"q\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\r\x7f\t\x1b[Z");
        assert_eq!(
            all,
            [
                KeyPress::Letter('q'),
                KeyPress::Up,
                KeyPress::Down,
                KeyPress::PageUp,
                KeyPress::PageDown,
                KeyPress::First,
                KeyPress::Last,
                KeyPress::Enter,
                KeyPress::Backspace,
                KeyPress::Next,
                KeyPress::Previous,
            ]
        );
        assert_eq!(keys(b"\x1b"), [KeyPress::Escape]);
        assert_eq!(
            keys("ä/".as_bytes()),
            [KeyPress::Letter('ä'), KeyPress::Letter('/')]
        );
        // What is cut, unknown or no text is no key.
        for none in [&b"\x1b[1;5"[..], b"\x1b[99~", b"\xff\xfe", b"\x01\x02", b""] {
            assert_eq!(keys(none), [], "{none:?}");
        }
    }
}
