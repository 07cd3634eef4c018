//! Histograms as text: the compressed V2 layout of HdrHistogram in base64, which its tools read.
//!
//! ```text
//! compressed: 0 u32 cookie   4 u32 bytes that follow: zlib of
//! whole:      0 u32 cookie   4 u32 bytes of counts   8 u32 offset, 0   12 u32 digits
//!            16 u64 lowest  24 u64 highest          32 f64 ratio, 1.0
//!            40 counts, zigzag LEB128; a negative one stands for so many zeros
//! ```

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use hdrhistogram::{Counter, Histogram};

const COOKIE: u32 = 0x1c84_9313;
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;
const HEAD_BYTES: usize = 40;
/// Bytes that a decoded histogram has at most; ours have far fewer.
const DECODED_BYTES_MAX: u64 = 1 << 20;

/// How values become indices of counts.
struct HistogramLayout {
    unit_magnitude: u32,
    half_magnitude: u32,
}

impl HistogramLayout {
    fn of(lowest: u64, digits: u8) -> HistogramLayout {
        let largest = 2 * 10u64.pow(u32::from(digits));
        HistogramLayout {
            unit_magnitude: lowest.max(1).ilog2(),
            half_magnitude: largest.next_power_of_two().ilog2() - 1,
        }
    }

    fn index(&self, value: u64) -> u64 {
        let half = 1u64 << self.half_magnitude;
        let mask = (2 * half - 1) << self.unit_magnitude;
        let bits = u64::BITS - (value | mask).leading_zeros();
        let bucket = bits - self.unit_magnitude - self.half_magnitude - 1;
        let within = value >> (bucket + self.unit_magnitude);
        (u64::from(bucket + 1) << self.half_magnitude) + within - half
    }

    /// The lowest value of an index; none where there is no such value.
    fn value(&self, index: u64) -> Option<u64> {
        let half = 1u64 << self.half_magnitude;
        let (bucket, within) = match index >> self.half_magnitude {
            0 => (0, index),
            row => (row - 1, (index & (half - 1)) + half),
        };
        let shift = u32::try_from(bucket)
            .ok()?
            .checked_add(self.unit_magnitude)?;
        (shift < 48).then(|| within << shift)
    }
}

/// Writes a histogram.
pub(super) fn encode<C: Counter>(histogram: &Histogram<C>) -> String {
    let layout = HistogramLayout::of(histogram.low(), histogram.sigfig());
    let mut counts = Vec::new();
    let mut next = 0;
    for cell in histogram.iter_recorded() {
        let index = layout.index(cell.value_iterated_to());
        if index > next {
            write_number(&mut counts, -((index - next) as i64));
        }
        write_number(&mut counts, cell.count_at_value().as_u64() as i64);
        next = index + 1;
    }
    let mut whole = Vec::with_capacity(HEAD_BYTES + counts.len());
    whole.extend(COOKIE.to_be_bytes());
    whole.extend((counts.len() as u32).to_be_bytes());
    whole.extend(0u32.to_be_bytes());
    whole.extend(u32::from(histogram.sigfig()).to_be_bytes());
    whole.extend(histogram.low().to_be_bytes());
    whole.extend(histogram.high().to_be_bytes());
    whole.extend(1f64.to_be_bytes());
    whole.extend(counts);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let compressed = encoder.write_all(&whole).and_then(|()| encoder.finish());
    let compressed = compressed.expect("writing into memory does not fail");
    let mut bytes = COMPRESSED_COOKIE.to_be_bytes().to_vec();
    bytes.extend((compressed.len() as u32).to_be_bytes());
    bytes.extend(compressed);
    base64(&bytes)
}

/// Adds to a histogram what a text holds of another one with the same bounds.
pub(super) fn decode_into<C: Counter>(histogram: &mut Histogram<C>, text: &str) -> Option<()> {
    add(histogram, &whole(text)?)
}

/// What a text has below letters and compression.
fn whole(text: &str) -> Option<Vec<u8>> {
    let bytes = from_base64(text)?;
    let (head, compressed) = bytes.split_at_checked(8)?;
    if number_at::<4>(head, 0)? != u64::from(COMPRESSED_COOKIE) {
        return None;
    }
    let mut whole = Vec::new();
    let decoder = ZlibDecoder::new(compressed);
    let mut decoder = decoder.take(DECODED_BYTES_MAX);
    decoder.read_to_end(&mut whole).ok()?;
    Some(whole)
}

pub(super) fn add<C: Counter>(histogram: &mut Histogram<C>, whole: &[u8]) -> Option<()> {
    let (head, mut counts) = whole.split_at_checked(HEAD_BYTES)?;
    let is_known = number_at::<4>(head, 0)? == u64::from(COOKIE)
        && number_at::<4>(head, 4)? == counts.len() as u64
        && number_at::<4>(head, 12)? == u64::from(histogram.sigfig())
        && number_at::<8>(head, 16)? == histogram.low();
    if !is_known {
        return None;
    }
    let layout = HistogramLayout::of(histogram.low(), histogram.sigfig());
    let mut index = 0u64;
    while !counts.is_empty() {
        let number = read_number(&mut counts)?;
        if number < 0 {
            index = index.checked_add(number.unsigned_abs())?;
            continue;
        }
        let count = C::from_u64(number as u64)?;
        histogram.record_n(layout.value(index)?, count).ok()?;
        index += 1;
    }
    Some(())
}

fn number_at<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + BYTES)?;
    Some(
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

/// Zigzag, then seven bits a byte; the ninth byte has eight.
fn write_number(bytes: &mut Vec<u8>, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if left < 0x80 {
            return bytes.push(left as u8);
        }
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0u64;
    for index in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let is_last = index == 8 || *byte < 0x80;
        let part = if index == 8 { *byte } else { *byte & 0x7f };
        number |= u64::from(part) << (7 * index);
        if is_last {
            break;
        }
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * index)) as usize & 63];
            text.push(if index <= group.len() { letter } else { b'=' } as char);
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0u32;
        for letter in group {
            let index = LETTERS.iter().position(|known| known == letter)?;
            bits = bits << 6 | index as u32;
        }
        bits <<= 6 * (4 - group.len());
        let whole = bits.to_be_bytes();
        bytes.extend_from_slice(&whole[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_comes_back_as_it_was() {
        let new = || Histogram::<u64>::new_with_bounds(1, 86_400_000_000_000, 3).unwrap();
        let mut histogram = new();
        for value in [1, 1, 2047, 2048, 2049, 1_000_000, 86_399_999_999_999] {
            histogram.record(value).unwrap();
        }
        histogram.record_n(5_000, 1 << 40).unwrap();
        let text = encode(&histogram);
        assert!(text.starts_with("HISTF"), "{text}");
        let mut found = new();
        assert_eq!(decode_into(&mut found, &text), Some(()));
        assert!(found == histogram);
        // Once more is added, not put in its place.
        decode_into(&mut found, &text).unwrap();
        assert_eq!(found.len(), 2 * histogram.len());
    }

    #[test]
    fn text_that_is_no_histogram_is_refused() {
        let mut histogram = Histogram::<u32>::new_with_bounds(1000, 10_000_000, 2).unwrap();
        histogram.record(5000).unwrap();
        let text = encode(&histogram);
        let mut other = Histogram::<u64>::new_with_bounds(1, 10_000_000, 3).unwrap();
        assert_eq!(decode_into(&mut other, &text), None);
        for wrong in ["", "HIST", "*", &text[..text.len() / 2]] {
            assert_eq!(decode_into(&mut histogram, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_of_any_size_come_back() {
        for number in [0, 1, -1, 63, 64, -64, -65, 1 << 40, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            assert_eq!(read_number(&mut bytes.as_slice()), Some(number));
        }
        for length in 0..7 {
            let bytes = &b"\x00\xff\x10abc\x80"[..length];
            assert_eq!(from_base64(&base64(bytes)).unwrap(), bytes);
        }
    }
}
