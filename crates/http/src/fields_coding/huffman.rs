//! Strings in the Huffman code (RFC 7541 section 5.2).
//!
//! Nearly every byte of a field has a code of at most eight bits: one look into a table. The rest
//! is told by the first code of each length, as codes of one length are consecutive.

use crate::fields_coding::MalformedFieldBlock;
use crate::fields_coding::code::CODES;

/// How many bytes `text` has in the code.
pub fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&byte| usize::from(CODES[byte as usize].1))
        .sum();
    bits.div_ceil(8)
}

/// Appends `text` in the code.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let mut bits = 0u64;
    let mut bit_count = 0u32;
    for &byte in text {
        let (code, len) = CODES[byte as usize];
        bits = bits << len | u64::from(code);
        bit_count += u32::from(len);
        while bit_count >= 8 {
            bit_count -= 8;
            out.push((bits >> bit_count) as u8);
        }
    }
    if bit_count > 0 {
        let padding = 8 - bit_count;
        out.push((bits << padding) as u8 | (1u8 << padding).wrapping_sub(1));
    }
}

/// Appends what `input` says.
///
/// # Errors
/// The end-of-string symbol within it, or padding that is too long or not all ones.
//= rfc7541#5.2
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), MalformedFieldBlock> {
    const BAD: MalformedFieldBlock = MalformedFieldBlock("a Huffman-coded string is malformed");
    // No code is shorter than five bits.
    out.reserve(input.len() * 8 / 5 + 1);
    let mut input = input.iter();
    // The bits not used yet, the first one on top, and ones behind the last: as padding has them.
    let mut bits = u64::MAX;
    let mut bit_count = 0u32;
    loop {
        while bit_count <= 56 {
            let Some(&byte) = input.next() else { break };
            let room = 56 - bit_count;
            bits &= !(0xff << room);
            bits |= u64::from(byte) << room;
            bit_count += 8;
        }
        let (symbol, len) = match SHORT[(bits >> 56) as usize] {
            (_, 0) => long_code(bits).ok_or(BAD)?,
            (symbol, len) => (u16::from(symbol), u32::from(len)),
        };
        if len > bit_count {
            break;
        }
        if symbol == END_OF_STRING {
            return Err(BAD);
        }
        out.push(symbol as u8);
        bits = bits << len | ((1 << len) - 1);
        bit_count -= len;
    }
    // What is left is less than a code: padding, at most seven ones.
    let is_padding = bit_count < 8 && bits == u64::MAX;
    if is_padding { Ok(()) } else { Err(BAD) }
}

const END_OF_STRING: u16 = 256;

/// The symbol whose code is on top of `bits` and longer than eight of them.
#[inline(never)]
fn long_code(bits: u64) -> Option<(u16, u32)> {
    let mut len = 9;
    while len <= 30 {
        let (first, count, at) = LENGTHS[len as usize];
        let code = (bits >> (64 - len)) as u32;
        // Shorter codes are smaller, so `code` is never below the first.
        let beyond = code.wrapping_sub(first);
        if beyond < u32::from(count) {
            return Some((BY_CODE[at as usize + beyond as usize], len));
        }
        len += 1;
    }
    None
}

/// Symbol and length by the next eight bits; length 0 when the code is longer.
const SHORT: [(u8, u8); 256] = {
    let mut table = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < 256 {
        let (code, len) = CODES[symbol];
        if len <= 8 {
            let start = (code as usize) << (8 - len);
            let mut at = 0;
            while at < 1 << (8 - len) {
                table[start + at] = (symbol as u8, len);
                at += 1;
            }
        }
        symbol += 1;
    }
    table
};

/// For each length of a code: the first code, how many there are, and where their symbols stand.
const LENGTHS: [(u32, u16, u16); 31] = {
    let mut table = [(0, 0, 0); 31];
    let mut at = 0;
    let mut len = 1;
    while len <= 30 {
        let mut first = u32::MAX;
        let mut count = 0;
        let mut symbol = 0;
        while symbol < 257 {
            if CODES[symbol].1 as usize == len {
                if CODES[symbol].0 < first {
                    first = CODES[symbol].0;
                }
                count += 1;
            }
            symbol += 1;
        }
        table[len] = (first, count, at);
        at += count;
        len += 1;
    }
    table
};

/// Symbols in the order of their codes, shorter ones first.
const BY_CODE: [u16; 257] = {
    let mut table = [0; 257];
    let mut symbol = 0;
    while symbol < 257 {
        let (code, len) = CODES[symbol];
        let (first, _, at) = LENGTHS[len as usize];
        table[at as usize + (code - first) as usize] = symbol as u16;
        symbol += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(input, &mut out).ok().map(|()| out)
    }

    //= rfc7541#appendix-C.4.1
    #[test]
    fn the_host_of_the_example_is_read_and_written() {
        let bytes = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(decoded(&bytes).as_deref(), Some(&b"www.example.com"[..]));
        let mut out = Vec::new();
        encode(b"www.example.com", &mut out);
        assert_eq!(out, bytes);
        assert_eq!(encoded_len(b"www.example.com"), bytes.len());
    }

    #[test]
    fn every_byte_comes_back_alone_and_among_others() {
        for byte in 0..=u8::MAX {
            for text in [
                vec![byte],
                vec![byte; 7],
                vec![b'a', byte, b'z', byte, b'0', 0, byte],
            ] {
                let mut out = Vec::new();
                encode(&text, &mut out);
                assert_eq!(out.len(), encoded_len(&text));
                assert_eq!(decoded(&out), Some(text));
            }
        }
    }

    #[test]
    fn padding_is_ones_and_less_than_a_byte() {
        // "a" is 00011, and three ones follow.
        assert_eq!(decoded(&[0b0001_1111]).as_deref(), Some(&b"a"[..]));
        assert_eq!(decoded(&[0b0001_1110]), None);
        assert_eq!(decoded(&[0b0001_1111, 0xff]), None);
        assert_eq!(decoded(&[0xff]), None);
        assert_eq!(decoded(&[]).as_deref(), Some(&b""[..]));
        // The end of string, written out.
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(decoded(&[0x1f, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
