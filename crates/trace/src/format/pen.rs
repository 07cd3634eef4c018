//! Writing a line piece by piece: most pieces are a few bytes, and a call to copy each of them
//! would cost more than the rest of the line. They are put into a block in moves of fixed size,
//! which the compiler does in registers; the block then goes to the line's buffer at once.
//!
//! What clients sent is looked at while it is copied: nearly always it is plain and nothing else is
//! to do.

/// The block that lines are written in; reused from line to line.
#[derive(Debug)]
pub(super) struct Block(Box<[u8; BLOCK_BYTES]>);

const BLOCK_BYTES: usize = 2048;

impl Block {
    pub(super) fn new() -> Block {
        Block(Box::new([0; BLOCK_BYTES]))
    }
}

/// A text of the format. Short ones are kept so that they can be put down in one move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Short([u8; MOVE_BYTES], usize),
    Long(Vec<u8>),
}

/// Bytes of one move: a vector register.
const MOVE_BYTES: usize = 16;

impl Literal {
    pub(super) fn new(text: Vec<u8>) -> Literal {
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
pub(super) struct Pen<'a> {
    block: &'a mut [u8; BLOCK_BYTES],
    /// Bytes of the block that are written.
    at: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Pen<'a> {
    pub(super) fn new(block: &'a mut Block, out: &'a mut Vec<u8>) -> Pen<'a> {
        Pen {
            block: &mut block.0,
            at: 0,
            out,
        }
    }

    /// The line is complete.
    pub(super) fn finish(mut self) {
        self.empty();
    }

    #[inline]
    pub(super) fn put_literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Short(text, len) => {
                if let Some(space) = self.space(MOVE_BYTES).first_chunk_mut() {
                    *space = *text;
                }
                self.at += len;
            }
            Literal::Long(text) => self.put(text),
        }
    }

    #[inline]
    pub(super) fn put_array<const LEN: usize>(&mut self, bytes: &[u8; LEN]) {
        const { assert!(LEN <= BLOCK_BYTES) };
        if let Some(space) = self.space(LEN).first_chunk_mut() {
            *space = *bytes;
        }
        self.at += LEN;
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if bytes.len() > BLOCK_BYTES {
            return self.put_long(bytes);
        }
        // As any byte is allowed here, what the copy found does not matter.
        copy(bytes, self.space(bytes.len()), Any);
        self.at += bytes.len();
    }

    /// Puts the bytes down if all are printable ASCII, not below `lowest`, and none is a quote or a
    /// backslash. Says whether it did.
    #[inline]
    pub(super) fn put_if_plain(&mut self, bytes: &[u8], lowest: u8) -> bool {
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
    pub(super) fn put_number(&mut self, mut number: u64) {
        const DIGITS_MAX: usize = 20;
        let len = if number < 10 {
            1
        } else {
            number.ilog10() as usize + 1
        };
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
trait Wanted: Copy {
    /// Some byte of the block is not wanted. The block comes by value and there is no early exit:
    /// so the compiler looks at all of it at once.
    fn refuses<const LEN: usize>(self, block: [u8; LEN]) -> bool;
}

#[derive(Clone, Copy)]
struct Any;

impl Wanted for Any {
    #[inline(always)]
    fn refuses<const LEN: usize>(self, _: [u8; LEN]) -> bool {
        false
    }
}

#[derive(Clone, Copy)]
struct Plain {
    lowest: u8,
}

impl Wanted for Plain {
    #[inline(always)]
    fn refuses<const LEN: usize>(self, block: [u8; LEN]) -> bool {
        block.iter().fold(false, |refused, byte| {
            let byte = *byte;
            refused | (byte < self.lowest) | (byte > b'~') | (byte == b'"') | (byte == b'\\')
        })
    }
}

/// Copies to the start of `to`, which is no shorter; says whether all bytes were wanted.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8], wanted: impl Wanted) -> bool {
    match from.len() {
        0 => true,
        1..4 => copy_blocks::<1>(from, to, wanted),
        4..8 => copy_blocks::<4>(from, to, wanted),
        8..16 => copy_blocks::<8>(from, to, wanted),
        _ => copy_blocks::<MOVE_BYTES>(from, to, wanted),
    }
}

/// Copies in moves of `LEN` bytes; the last overlaps the one before it, so that nothing is left
/// over.
#[inline(always)]
fn copy_blocks<const LEN: usize>(from: &[u8], to: &mut [u8], wanted: impl Wanted) -> bool {
    let to = &mut to[..from.len()];
    let mut is_refused = false;
    let (from_blocks, _) = from.as_chunks::<LEN>();
    let (to_blocks, _) = to.as_chunks_mut::<LEN>();
    for (from, to) in from_blocks.iter().zip(to_blocks) {
        is_refused |= wanted.refuses(*from);
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk::<LEN>(), to.last_chunk_mut::<LEN>()) {
        is_refused |= wanted.refuses(*from);
        *to = *from;
    }
    !is_refused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Pen<'_>)) -> Vec<u8> {
        let (mut block, mut out) = (Block::new(), b"before ".to_vec());
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
