//! Integers with a prefix, and strings (RFC 7541 section 5).

use crate::fields_coding::{MalformedFieldBlock, huffman};

/// Bytes a block's field may begin with besides its integer: the pattern in the first byte.
pub(crate) fn push_number(value: usize, prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let most = (1usize << prefix_bits) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes an integer off the front of `input`.
//= rfc7541#5.1
#[inline]
pub(crate) fn take_number(
    input: &mut &[u8],
    prefix_bits: u32,
) -> Result<usize, MalformedFieldBlock> {
    let Some((&first, rest)) = input.split_first() else {
        return Err(CUT);
    };
    *input = rest;
    let most = (1u32 << prefix_bits) - 1;
    let value = u32::from(first) & most;
    if value < most {
        return Ok(value as usize);
    }
    take_rest(input, value)
}

fn take_rest(input: &mut &[u8], start: u32) -> Result<usize, MalformedFieldBlock> {
    let mut value = u64::from(start);
    // Four more bytes hold whatever is meaningful here.
    for shift in [0, 7, 14, 21] {
        let Some((&byte, rest)) = input.split_first() else {
            return Err(CUT);
        };
        *input = rest;
        value += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value as usize);
        }
    }
    Err(MalformedFieldBlock(
        "an integer in a field block is too large",
    ))
}

/// Appends a string, in the Huffman code when that is shorter.
pub(crate) fn push_string(text: &[u8], out: &mut Vec<u8>) {
    push_string_of(text, 7, 0, out);
}

/// The same with a length of so many bits, behind a pattern in the first byte.
pub(crate) fn push_string_of(text: &[u8], prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let len = huffman::encoded_len(text);
    if len < text.len() {
        push_number(len, prefix_bits, pattern | 1 << prefix_bits, out);
        huffman::encode(text, out);
    } else {
        push_number(text.len(), prefix_bits, pattern, out);
        out.extend_from_slice(text);
    }
}

/// Takes a string off the front of `input` and appends it to `out`.
//= rfc7541#5.2
pub(crate) fn take_string(input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), MalformedFieldBlock> {
    take_string_of(input, 7, out)
}

/// The same with a length of so many bits.
pub(crate) fn take_string_of(
    input: &mut &[u8],
    prefix_bits: u32,
    out: &mut Vec<u8>,
) -> Result<(), MalformedFieldBlock> {
    let coded = 1u8 << prefix_bits;
    let is_coded = input.first().is_some_and(|byte| byte & coded != 0);
    let len = take_number(input, prefix_bits)?;
    let Some((text, rest)) = input.split_at_checked(len) else {
        return Err(CUT);
    };
    *input = rest;
    if is_coded {
        return huffman::decode(text, out);
    }
    out.extend_from_slice(text);
    Ok(())
}

const CUT: MalformedFieldBlock = MalformedFieldBlock("a field block ends within a field");

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc7541#appendix-C.1
    #[test]
    fn integers_of_the_examples() {
        for (value, prefix_bits, bytes) in [
            (10, 5, &[0b01010][..]),
            (1337, 5, &[0b11111, 0b1001_1010, 0b1010]),
            (42, 8, &[0b10_1010]),
            (31, 5, &[0b11111, 0]),
            (127, 7, &[0x7f, 0]),
        ] {
            let mut out = Vec::new();
            push_number(value, prefix_bits, 0, &mut out);
            assert_eq!(out, bytes);
            let mut input = bytes;
            assert_eq!(take_number(&mut input, prefix_bits), Ok(value));
            assert!(input.is_empty());
        }
    }

    #[test]
    fn integers_without_end_are_refused() {
        assert!(take_number(&mut &[][..], 7).is_err());
        assert!(take_number(&mut &[0x7f, 0x80][..], 7).is_err());
        assert!(take_number(&mut &[0x7f, 0xff, 0xff, 0xff, 0xff, 0][..], 7).is_err());
        assert_eq!(
            take_number(&mut &[0x7f, 0xff, 0xff, 0xff, 0x7f][..], 7),
            Ok(127 + (1 << 28) - 1)
        );
    }

    #[test]
    fn string_longer_than_its_block_is_refused() {
        let mut out = Vec::new();
        assert!(take_string(&mut &[3, b'a', b'b'][..], &mut out).is_err());
        assert!(take_string(&mut &[][..], &mut out).is_err());
    }
}
