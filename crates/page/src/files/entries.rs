//! The file of a registry: a first line that says so, and a line for each entry.
//!
//! ```text
//!  hob registry 1
//!  NAME=VALUE
//!  NAME%00INDEX=VALUE
//! ```
//!
//! Control characters, `%` and, in names, `=` are written as `%` and two hexadecimal digits.

use crate::host::RegistryEntry;

const HEAD: &[u8] = b"hob registry 1\n";

/// Entries of a file, in their order; `None` where it is none of a registry, or has more.
pub fn parse_entries(content: &[u8], entries_max: usize) -> Option<Vec<RegistryEntry>> {
    let rest = content.strip_prefix(HEAD)?;
    let mut entries = Vec::new();
    for line in rest.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n")?;
        let equals = memchr::memchr(b'=', line)?;
        if entries.len() >= entries_max {
            return None;
        }
        entries.push((decoded(&line[..equals])?, decoded(&line[equals + 1..])?));
    }
    Some(entries)
}

/// The file of these entries.
pub fn print_entries(entries: &[RegistryEntry]) -> Vec<u8> {
    let mut content = HEAD.to_vec();
    for (name, value) in entries {
        push_encoded(name, b'=', &mut content);
        content.push(b'=');
        push_encoded(value, b'%', &mut content);
        content.push(b'\n');
    }
    content
}

fn push_encoded(bytes: &[u8], also: u8, content: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if byte.is_ascii_control() || *byte == b'%' || *byte == also {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            content.extend_from_slice(&[b'%', HEX[high], HEX[low]]);
        } else {
            content.push(*byte);
        }
    }
}

fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push((high * 16 + low) as u8);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &[u8], value: &[u8]) -> RegistryEntry {
        (name.to_vec(), value.to_vec())
    }

    #[test]
    fn whatever_entries_hold_is_read_as_it_was_written() {
        let all: Vec<u8> = (0..=255).collect();
        let entries = [
            entry(b"", b""),
            entry(b"a=b", b"c=d\n"),
            entry(b"search\0ann", "gr\u{fc}n <i>50%</i>".as_bytes()),
            entry(&all, &all),
        ];
        let content = print_entries(&entries);
        assert_eq!(parse_entries(&content, 4).unwrap(), entries);
        assert_eq!(parse_entries(&content, 3), None, "there are more");
        let text = print_entries(&entries[1..3]);
        let text = String::from_utf8(text).unwrap();
        let wanted = "hob registry 1\na%3Db=c=d%0A\nsearch%00ann=gr\u{fc}n <i>50%25</i>\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn other_files_are_no_registries() {
        for wrong in [
            &b""[..],
            b"name=value\n",
            b"hob registry 1\nname=value",
            b"hob registry 1\nname\n",
            b"hob registry 1\nname=%0\n",
            b"hob registry 1\nname=%0g\n",
        ] {
            assert_eq!(parse_entries(wrong, 9), None, "{wrong:?}");
        }
        assert_eq!(parse_entries(b"hob registry 1\n", 9), Some(Vec::new()));
    }
}
