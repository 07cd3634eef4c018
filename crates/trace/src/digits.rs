//! Numbers as text, without the machinery of `core::fmt`: they are part of every
//! request.

/// Appends a number in lower-case hexadecimal.
pub fn push_hex(number: u64, out: &mut Vec<u8>) {
    let digit_count = (16 - number.leading_zeros() / 4).max(1);
    for at in (0..digit_count).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * at) & 15) as usize]);
    }
}

/// Appends a number in decimal.
pub fn push_decimal(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(decimal(number, &mut [0; DIGITS_MAX]));
}

/// Digits of the largest number.
pub const DIGITS_MAX: usize = 20;

/// A number in decimal, written at the end of a buffer.
pub fn decimal(number: u64, digits: &mut [u8; DIGITS_MAX]) -> &[u8] {
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    &digits[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        let mut out = Vec::new();
        for number in [0, 7, 10, 1023, u64::MAX] {
            push_decimal(number, &mut out);
            out.push(b' ');
        }
        assert_eq!(out, b"0 7 10 1023 18446744073709551615 ");
    }

    #[test]
    fn chunk_sizes_are_hexadecimal() {
        let mut out = Vec::new();
        for number in [0, 15, 16, 0x1234, u64::MAX] {
            push_hex(number, &mut out);
            out.push(b' ');
        }
        assert_eq!(out, b"0 f 10 1234 ffffffffffffffff ");
    }
}
