//! Numbers in fields of answers, whatever carries them.

/// Digits alone, at most as many as fit with ease: no body is longer.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_digits_and_nothing_else() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"007"), Some(7));
        assert_eq!(number(b"999999999999999999"), Some(999_999_999_999_999_999));
        for wrong in ["", "-1", "+1", " 1", "1 ", "0x1", "1000000000000000000"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
