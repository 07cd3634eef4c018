//! Fields of answers over HTTP/2 and HTTP/3: what both ways of packing them have together.

pub(crate) mod huffman;
pub(crate) mod meaning;
pub(crate) mod number;

pub use meaning::{Arriving, BlockMeaning};
pub(crate) use meaning::{Meaning, Size};
pub(crate) use number::Wrong;

/// A head of which no more is read.
pub(crate) const TOO_LONG: Wrong = "the answer's head is longer than 64 KiB";
