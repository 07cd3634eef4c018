//! What is wrong with what the other side wrote into the region, and that there is no room.

use std::fmt;

use crate::malformed::MalformedMessage;

/// The other side wrote what cannot be. Its region is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A ring's position is outside the ring, or not at a multiple of 8.
    Position {
        /// How far it lies from the last one.
        distance: u32,
    },
    /// A message is longer than what has been published of it.
    Length(u32),
    /// A message is malformed.
    Message(MalformedMessage),
    /// There is no chunk of that number, or it does not hold so many bytes.
    Chunk(u32, u32),
    /// A chunk was sent again while the server still had it.
    ChunkTwice(u32),
    /// A request names a slot that is not there.
    Slot(u16),
    /// The region's header does not describe a region: what is wrong.
    Header(&'static str),
}

impl From<MalformedMessage> for Lie {
    fn from(malformed: MalformedMessage) -> Lie {
        Lie::Message(malformed)
    }
}

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lie::Position { distance } => {
                write!(
                    f,
                    "a ring's position that is {distance} bytes from the last"
                )
            }
            Lie::Length(bytes) => {
                write!(f, "a message of {bytes} bytes that was not written whole")
            }
            Lie::Message(malformed) => malformed.fmt(f),
            Lie::Chunk(index, bytes) => {
                write!(f, "{bytes} bytes in chunk {index}, which cannot be")
            }
            Lie::ChunkTwice(index) => write!(f, "chunk {index} sent twice"),
            Lie::Slot(index) => write!(f, "a request in slot {index}, which is not there"),
            Lie::Header(what) => write!(f, "a region whose header is wrong: {what}"),
        }
    }
}

impl std::error::Error for Lie {}

/// There is no room now: publish what was written, and try again when the other side has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingFull;

impl fmt::Display for RingFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room in shared memory until the other side has read")
    }
}

impl std::error::Error for RingFull {}
