//! Numbers and texts as HPACK and QPACK write them: a number begins in the low bits of a byte.

use super::huffman;
use crate::limits::HEAD_BYTES_MAX;

/// Why a block of fields cannot be read.
pub(crate) type Wrong = &'static str;

/// Appends a number whose first byte has `bits` for it, behind the flags in `first`.
//= rfc7541#5.1
pub(crate) fn write(mut number: usize, bits: u32, first: u8, out: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if number < most {
        return out.push(first | number as u8);
    }
    out.push(first | most as u8);
    number -= most;
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front.
pub(crate) fn read(bytes: &mut &[u8], bits: u32) -> Result<usize, Wrong> {
    let (first, mut rest) = bytes.split_first().ok_or("a block of fields is cut off")?;
    let most = (1usize << bits) - 1;
    let mut number = usize::from(*first) & most;
    if number == most {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or("a block of fields is cut off")?;
            rest = after;
            number += usize::from(byte & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                break;
            }
            // Three more bytes say 2 MiB, which is more than anything here may have.
            if shift > 21 {
                return Err("a number in a block of fields is too large");
            }
        }
    }
    *bytes = rest;
    Ok(number)
}

/// Appends a text, in the shorter way; its flag for Huffman is the bit above the number's.
//= rfc7541#5.2
pub(crate) fn write_text(text: &[u8], bits: u32, first: u8, out: &mut Vec<u8>) {
    let len = huffman::encoded_len(text);
    if len < text.len() {
        write(len, bits, first | 1 << bits, out);
        huffman::encode(text, out);
    } else {
        write(text.len(), bits, first, out);
        out.extend_from_slice(text);
    }
}

/// Takes a text from the front and appends it to `out`.
pub(crate) fn read_text(bytes: &mut &[u8], bits: u32, out: &mut Vec<u8>) -> Result<(), Wrong> {
    let is_huffman = bytes.first().is_some_and(|first| first & 1 << bits != 0);
    let len = read(bytes, bits)?;
    let (text, rest) = bytes
        .split_at_checked(len)
        .ok_or("a block of fields is cut off")?;
    *bytes = rest;
    if is_huffman {
        huffman::decode(text, out).ok_or("a Huffman code is none")?;
    } else {
        out.extend_from_slice(text);
    }
    if out.len() > HEAD_BYTES_MAX {
        return Err(super::TOO_LONG);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc7541#C.1
    #[test]
    fn numbers_of_the_standard_read_both_ways() {
        for (number, bits, bytes) in [
            (10, 5, &[0b1010][..]),
            (1337, 5, &[0b11111, 0b1001_1010, 0b1010]),
            (42, 8, &[42]),
            (127, 7, &[127, 0]),
        ] {
            let mut out = Vec::new();
            write(number, bits, 0, &mut out);
            assert_eq!(out, bytes);
            let mut rest = bytes;
            assert_eq!((read(&mut rest, bits), rest), (Ok(number), &[][..]));
        }
        assert!(read(&mut &[255, 255, 255, 255, 255, 255, 1][..], 5).is_err());
        assert!(read(&mut &[255, 255][..], 5).is_err());
        assert!(read(&mut &[][..], 5).is_err());
    }
}
