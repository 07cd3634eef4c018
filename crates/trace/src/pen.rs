//! Writing a line piece by piece: most pieces are a few bytes, and a call to copy each of them
//! would cost more than the rest of the line. They are put into a block in moves of fixed size,
//! which the compiler does in registers; the block then goes to the line's buffer at once.
//!
//! What clients sent is looked at while it is copied: nearly always it is plain and nothing else is
//! to do.

/// The block that lines are written in; reused from line to line.
#[derive(Debug)]
pub(crate) struct PenBuffer(Box<[u8; BLOCK_BYTES]>);

const BLOCK_BYTES: usize = 2048;

impl PenBuffer {
    pub(crate) fn new() -> PenBuffer {
        PenBuffer(Box::new([0; BLOCK_BYTES]))
    }
}

impl Default for PenBuffer {
    fn default() -> PenBuffer {
        PenBuffer::new()
    }
}

/// A text of the format. Short ones are kept so that they can be put down in one move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    Short([u8; MOVE_BYTES], usize),
    Long(Vec<u8>),
}

/// Bytes of one move: a vector register.
const MOVE_BYTES: usize = 16;

impl Literal {
    pub(crate) fn new(text: Vec<u8>) -> Literal {
        let mut short = [0; MOVE_BYTES];
        match short.get_mut(..text.len()) {
            Some(start) => {
                start.copy_from_slice(&text);
                Literal::Short(short, text.len())
            }
            None => Literal::Long(text),
        }
    }
}

/// Writes one line.
pub(crate) struct Pen<'a> {
    block: &'a mut [u8; BLOCK_BYTES],
    /// Bytes of the block that are written.
    at: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Pen<'a> {
    pub(crate) fn new(block: &'a mut PenBuffer, out: &'a mut Vec<u8>) -> Pen<'a> {
        Pen {
            block: &mut block.0,
            at: 0,
            out,
        }
    }

    /// The line is complete.
    pub(crate) fn finish(mut self) {
        self.empty();
    }

    #[inline]
    pub(crate) fn put_literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Short(text, len) => {
                self.put_start(text, *len);
            }
            Literal::Long(text) => self.put(text),
        }
    }

    #[inline]
    pub(crate) fn put_array<const LEN: usize>(&mut self, bytes: &[u8; LEN]) {
        const { assert!(LEN <= BLOCK_BYTES) };
        if let Some(space) = self.space(LEN).first_chunk_mut() {
            *space = *bytes;
        }
        self.at += LEN;
    }

    /// Puts the first bytes of an array down, in one move of all of it.
    #[inline]
    pub(crate) fn put_start<const LEN: usize>(&mut self, bytes: &[u8; LEN], len: usize) {
        debug_assert!(len <= LEN);
        self.put_array(bytes);
        self.at -= LEN - len;
    }

    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if bytes.len() > BLOCK_BYTES {
            return self.put_long(bytes);
        }
        // As any byte is allowed here, what the copy found does not matter.
        copy(bytes, self.space(bytes.len()), Any);
        self.at += bytes.len();
    }

    /// Puts several texts down. Those that are known when this is compiled become moves.
    #[inline(always)]
    pub(crate) fn put_all<const COUNT: usize>(&mut self, texts: [&[u8]; COUNT]) {
        let len = texts.iter().map(|text| text.len()).sum();
        if len > BLOCK_BYTES {
            return texts.into_iter().for_each(|text| self.put_long(text));
        }
        let mut space = self.space(len);
        for text in texts {
            let (to, rest) = space.split_at_mut(text.len());
            copy(text, to, Any);
            space = rest;
        }
        self.at += len;
    }

    /// Puts the bytes down if all are printable ASCII, not below `lowest`, and none is a quote or a
    /// backslash. Says whether it did.
    #[inline]
    pub(crate) fn put_if_plain(&mut self, bytes: &[u8], lowest: u8) -> bool {
        if bytes.len() > BLOCK_BYTES {
            return false;
        }
        let is_plain = copy(bytes, self.space(bytes.len()), Plain { lowest });
        if is_plain {
            self.at += bytes.len();
        }
        is_plain
    }

    /// Puts a number's decimal digits down.
    #[inline]
    pub(crate) fn put_number(&mut self, mut number: u64) {
        const DIGITS_MAX: usize = 20;
        if number < 100 {
            let two = PAIRS[number as usize];
            return match number < 10 {
                true => self.put_array(&[two[1]]),
                false => self.put_array(&two),
            };
        }
        let len = number.ilog10() as usize + 1;
        let digits = &mut self.space(DIGITS_MAX)[..len];
        for pair in digits.rchunks_mut(2) {
            let two = PAIRS[(number % 100) as usize];
            number /= 100;
            match pair {
                [tens, ones] => [*tens, *ones] = two,
                [one] => *one = two[1],
                _ => {}
            }
        }
        self.at += len;
    }

    /// That much room in the block, or more.
    #[inline]
    fn space(&mut self, bytes: usize) -> &mut [u8] {
        debug_assert!(bytes <= BLOCK_BYTES);
        if BLOCK_BYTES - self.at < bytes {
            self.empty();
        }
        &mut self.block[self.at..]
    }

    fn empty(&mut self) {
        self.out.extend_from_slice(&self.block[..self.at]);
        self.at = 0;
    }

    #[cold]
    fn put_long(&mut self, bytes: &[u8]) {
        self.empty();
        self.out.extend_from_slice(bytes);
    }
}

/// The decimal digits of every number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Which bytes are wanted.
trait ByteFilter: Copy {
    /// Some byte of the block is not wanted. The block comes by value and there is no early exit:
    /// so the compiler looks at all of it at once.
    fn refuses(self, block: [u8; MOVE_BYTES]) -> bool;
    /// The same for eight bytes, in one register.
    fn refuses_word(self, word: u64) -> bool;
}

#[derive(Clone, Copy)]
struct Any;

impl ByteFilter for Any {
    #[inline(always)]
    fn refuses(self, _: [u8; MOVE_BYTES]) -> bool {
        false
    }

    #[inline(always)]
    fn refuses_word(self, _: u64) -> bool {
        false
    }
}

#[derive(Clone, Copy)]
struct Plain {
    lowest: u8,
}

impl ByteFilter for Plain {
    #[inline(always)]
    fn refuses(self, block: [u8; MOVE_BYTES]) -> bool {
        block.iter().fold(false, |refused, byte| {
            let byte = *byte;
            refused | (byte < self.lowest) | (byte > b'~') | (byte == b'"') | (byte == b'\\')
        })
    }

    #[inline(always)]
    fn refuses_word(self, word: u64) -> bool {
        const ONES: u64 = u64::from_ne_bytes([1; 8]);
        // Sets the highest bit of the first byte below `limit`; what it sets behind that one does
        // not matter here.
        let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
        let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let found = below(word, self.lowest) | equal(0x7f) | equal(b'"') | equal(b'\\') | word;
        found & (ONES << 7) != 0
    }
}

/// Copies to the start of `to`, which is no shorter; says whether all bytes were wanted. Moves of
/// one text overlap, so that nothing is left over.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8], wanted: impl ByteFilter) -> bool {
    let to = &mut to[..from.len()];
    match from {
        [] => true,
        [one] => {
            to[0] = *one;
            !wanted.refuses_word(u64::from_ne_bytes([*one; 8]))
        }
        [one, two] => {
            (to[0], to[1]) = (*one, *two);
            let [one, two] = [*one, *two];
            !wanted.refuses_word(u64::from_ne_bytes([one, two, one, two, one, two, one, two]))
        }
        [one, two, three] => {
            (to[0], to[1], to[2]) = (*one, *two, *three);
            let [a, b, c] = [*one, *two, *three];
            !wanted.refuses_word(u64::from_ne_bytes([a, b, c, a, b, c, a, b]))
        }
        _ if from.len() >= MOVE_BYTES => copy_blocks(from, to, wanted),
        _ => copy_words(from, to, wanted),
    }
}

/// Copies 4 to 15 bytes in two moves.
#[inline(always)]
fn copy_words(from: &[u8], to: &mut [u8], wanted: impl ByteFilter) -> bool {
    if let (Some(first), Some(last)) = (from.first_chunk::<8>(), from.last_chunk::<8>()) {
        let (first_word, last_word) = (u64::from_ne_bytes(*first), u64::from_ne_bytes(*last));
        if let Some(to) = to.first_chunk_mut() {
            *to = *first;
        }
        if let Some(to) = to.last_chunk_mut() {
            *to = *last;
        }
        return !(wanted.refuses_word(first_word) | wanted.refuses_word(last_word));
    }
    let (Some(first), Some(last)) = (from.first_chunk::<4>(), from.last_chunk::<4>()) else {
        return false;
    };
    if let Some(to) = to.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
    let halves = [u32::from_ne_bytes(*first), u32::from_ne_bytes(*last)].map(u64::from);
    !wanted.refuses_word(halves[0] << 32 | halves[1])
}

/// Copies in moves of 16 bytes.
#[inline(always)]
fn copy_blocks(from: &[u8], to: &mut [u8], wanted: impl ByteFilter) -> bool {
    let mut is_refused = false;
    let (from_blocks, _) = from.as_chunks::<MOVE_BYTES>();
    let (to_blocks, _) = to.as_chunks_mut::<MOVE_BYTES>();
    for (from, to) in from_blocks.iter().zip(to_blocks) {
        is_refused |= wanted.refuses(*from);
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk(), to.last_chunk_mut()) {
        is_refused |= wanted.refuses(*from);
        *to = *from;
    }
    !is_refused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Pen<'_>)) -> Vec<u8> {
        let (mut block, mut out) = (PenBuffer::new(), b"before ".to_vec());
        let mut pen = Pen::new(&mut block, &mut out);
        write(&mut pen);
        pen.finish();
        out.split_off(b"before ".len())
    }

    #[test]
    fn texts_of_every_length_arrive_whole() {
        for len in (0..100).chain([1000, 2047, 2048, 2049, 5000]) {
            let text: Vec<u8> = (0..len).map(|n| b'a' + (n % 26) as u8).collect();
            assert_eq!(written(|pen| pen.put(&text)), text);
            let literal = Literal::new(text.clone());
            let thrice = written(|pen| pen.put_all([b"a", &text, b"b"]));
            assert_eq!(thrice, [b"a", &text[..], b"b"].concat());
            let twice = written(|pen| {
                pen.put_literal(&literal);
                pen.put_literal(&literal);
            });
            assert_eq!(twice, [&text[..], &text].concat());
            if len <= BLOCK_BYTES {
                assert_eq!(written(|pen| assert!(pen.put_if_plain(&text, b' '))), text);
            }
        }
    }

    #[test]
    fn line_longer_than_the_block_arrives_whole() {
        let line = written(|pen| {
            for _ in 0..1000 {
                pen.put(b"0123456");
                pen.put_number(789);
                pen.put_array(b"abcdef");
            }
        });
        assert_eq!(line, b"0123456789abcdef".repeat(1000));
    }

    #[test]
    fn byte_that_is_not_plain_is_found_at_every_place_of_every_length() {
        for len in 1..70 {
            for at in 0..len {
                for byte in [b'"', b'\\', b'\n', 0, 0x1f, 0x7f, 0x80, 0xff] {
                    let mut text = vec![b'a'; len];
                    text[at] = byte;
                    let line = written(|pen| {
                        assert!(!pen.put_if_plain(&text, b' '), "{byte} at {at} of {len}");
                    });
                    assert!(line.is_empty(), "nothing is put down");
                }
            }
        }
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        let powers = (0..20).map(|n| 10u64.pow(n));
        let numbers = powers
            .flat_map(|p| [p - 1, p, p + 1])
            .chain([0, 42, u64::MAX]);
        for number in numbers {
            assert_eq!(
                written(|pen| pen.put_number(number)),
                number.to_string().into_bytes()
            );
        }
    }
}
