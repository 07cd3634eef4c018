//! Bytes as people read them: where they are, in hexadecimal, and as text.

/// Bytes of a line.
const LINE_BYTES: usize = 16;

/// The lines of a dump; none when the text is no hexadecimal.
pub(super) fn lines(hex: &str) -> Option<Vec<String>> {
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    let lines = bytes.chunks(LINE_BYTES).enumerate();
    Some(
        lines
            .map(|(index, bytes)| line(index * LINE_BYTES, bytes))
            .collect(),
    )
}

fn line(offset: usize, bytes: &[u8]) -> String {
    let mut hex = String::new();
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if index == LINE_BYTES / 2 {
            hex.push(' ');
        }
        hex.push_str(&format!("{byte:02x} "));
        // Nothing else is sure to take one column and to steer nothing.
        text.push(match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        });
    }
    let wide = LINE_BYTES * 3 + 1;
    format!("{offset:04x}  {hex:<wide$} {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_hexadecimal_is_no_dump() {
        assert_eq!(lines("0"), None);
        assert_eq!(lines("0g"), None);
        assert_eq!(lines("ää"), None);
        assert_eq!(lines(""), Some(Vec::new()));
    }
}
