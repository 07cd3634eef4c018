//! The Huffman code of HPACK and QPACK. Codes of one length follow each other in the order of the
//! bytes they stand for, so the lengths are all there is to know.

/// Bits of the longest code.
const BITS_MAX: usize = 30;
/// Bits of each byte's code. //= rfc7541#B
#[rustfmt::skip]
const BITS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
/// Codes, bytes in the order of their codes, and where each length begins.
static TABLES: Tables = Tables::new();

struct Tables {
    codes: [u32; 256],
    sorted: [u8; 256],
    /// By the next eight bits: a byte whose code is no longer, and the code's bits; 0 bits where
    /// it is longer.
    short: [(u8, u8); 256],
    /// For each length: its first code, how many codes there are, where their bytes begin.
    levels: [Level; BITS_MAX + 1],
}

#[derive(Clone, Copy)]
struct Level {
    first: u32,
    count: u32,
    offset: u32,
}

impl Tables {
    const fn new() -> Tables {
        let level = Level {
            first: 0,
            count: 0,
            offset: 0,
        };
        let mut tables = Tables {
            codes: [0; 256],
            sorted: [0; 256],
            short: [(0, 0); 256],
            levels: [level; BITS_MAX + 1],
        };
        let (mut code, mut place) = (0u32, 0);
        let mut bits = 1;
        while bits <= BITS_MAX {
            tables.levels[bits].first = code;
            tables.levels[bits].offset = place as u32;
            let mut byte = 0;
            while byte < 256 {
                if BITS[byte] as usize == bits {
                    tables.codes[byte] = code;
                    tables.sorted[place] = byte as u8;
                    tables.levels[bits].count += 1;
                    let mut rest = 0;
                    while bits <= 8 && rest < 1 << (8 - bits) {
                        let eight = (code as usize) << (8 - bits) | rest;
                        tables.short[eight] = (byte as u8, bits as u8);
                        rest += 1;
                    }
                    code += 1;
                    place += 1;
                }
                byte += 1;
            }
            code <<= 1;
            bits += 1;
        }
        tables
    }
}

/// Bytes that a text takes when it is encoded.
pub(crate) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|byte| usize::from(BITS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the code of a text.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut held, mut held_bits) = (0u64, 0u32);
    for byte in text {
        let bits = u32::from(BITS[usize::from(*byte)]);
        held = held << bits | u64::from(TABLES.codes[usize::from(*byte)]);
        held_bits += bits;
        while held_bits >= 8 {
            held_bits -= 8;
            out.push((held >> held_bits) as u8);
        }
    }
    if held_bits > 0 {
        // The rest is filled with the beginning of the end code: ones.
        out.push((held << (8 - held_bits)) as u8 | (0xff >> held_bits));
    }
}

/// Appends the text of a code; none where it is not one.
pub(crate) fn decode(code: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (mut held, mut held_bits) = (0u64, 0usize);
    let mut rest = code.iter();
    out.reserve(code.len() * 8 / 5);
    loop {
        while held_bits <= 32 {
            let Some(byte) = rest.next() else { break };
            held = held << 8 | u64::from(*byte);
            held_bits += 8;
        }
        // Nearly all letters of fields have short codes.
        while held_bits >= 8 {
            let (byte, bits) = TABLES.short[(held >> (held_bits - 8)) as usize & 0xff];
            if bits == 0 {
                break;
            }
            out.push(byte);
            held_bits -= usize::from(bits);
        }
        held &= (1 << held_bits) - 1;
        if held_bits < BITS_MAX && rest.len() > 0 {
            continue;
        }
        let Some((byte, bits)) = first(held, held_bits) else {
            // What is left must be fewer bits than a byte, all of them ones.
            let ones = (1u64 << held_bits.min(8)) - 1;
            let is_end = held_bits < 8 && held & ones == ones;
            return is_end.then_some(());
        };
        out.push(byte);
        held_bits -= bits;
        held &= (1 << held_bits) - 1;
    }
}

/// The byte whose code the held bits begin with, and the code's length.
fn first(held: u64, held_bits: usize) -> Option<(u8, usize)> {
    for bits in 5..=BITS_MAX.min(held_bits) {
        let level = &TABLES.levels[bits];
        let code = (held >> (held_bits - bits)) as u32;
        if let Some(place) = code
            .checked_sub(level.first)
            .filter(|place| *place < level.count)
        {
            let at = (level.offset + place) as usize;
            return Some((*TABLES.sorted.get(at)?, bits));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        digits
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    }

    //= rfc7541#C.4 and C.6
    #[test]
    fn examples_of_the_standard_read_both_ways() {
        for (text, code) in [
            ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
            ("no-cache", "a8eb10649cbf"),
            ("custom-value", "25a849e95bb8e8b4bf"),
            (
                "Mon, 21 Oct 2013 20:13:21 GMT",
                "d07abe941054d444a8200595040b8166e082a62d1bff",
            ),
            (
                "https://www.example.com",
                "9d29ad171863c78f0b97c8e9ae82ae43d3",
            ),
        ] {
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            assert_eq!(out, hex(code));
            assert_eq!(encoded_len(text.as_bytes()), out.len());
            let mut back = Vec::new();
            assert_eq!(decode(&out, &mut back), Some(()));
            assert_eq!(back, text.as_bytes());
        }
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        let (mut code, mut back) = (Vec::new(), Vec::new());
        encode(&all, &mut code);
        assert_eq!(decode(&code, &mut back), Some(()));
        assert!(back == all);
    }

    //= rfc7541#5.2
    #[test]
    fn padding_that_is_long_or_not_of_ones_is_refused() {
        let mut out = Vec::new();
        assert_eq!(decode(&[0x1f], &mut out), Some(()));
        assert_eq!(out, b"a");
        for wrong in [&[0x18][..], &[0x1f, 0xff], &[0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(decode(wrong, &mut Vec::new()), None, "{wrong:?}");
        }
    }
}
