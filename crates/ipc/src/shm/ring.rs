//! A ring of messages: one writer, one reader, bytes that wrap around.
//!
//! ```text
//!        head (the reader's)          tail (the writer's)
//!          v                            v
//! ...free..|message|message|message|pad.|...free...
//! ```
//!
//! Head and tail are counts of bytes, modulo 2^32; the ring's size is a power of two. A message
//! begins at a multiple of 8 and may wrap around at the end. The writer copies messages in and
//! publishes them all with one release store of the tail. The reader copies a head out, checks the
//! copy, then copies the payload out; it never reads a byte twice, and believes no position before
//! it has been compared with the ring's size.

use std::sync::atomic::Ordering;

use super::lie::{Lie, RingFull};
use super::word::{Bytes, Word};
use crate::limits::HEAD_BYTES;
use crate::message::{Carrier, MessageHead, MessageSender};

const ALIGN: u32 = 8;

/// What a message takes in the ring.
fn taken(payload_bytes: u32) -> u32 {
    (HEAD_BYTES as u32 + payload_bytes).next_multiple_of(ALIGN)
}

/// The writer's own counts.
#[derive(Debug)]
pub struct RingWriter {
    size: u32,
    /// Behind the last message written.
    tail: u32,
    /// Behind the last message published.
    published: u32,
    /// The reader's head, as last seen.
    head_seen: u32,
}

impl RingWriter {
    /// For an empty ring of that size.
    pub fn new(size: u32) -> RingWriter {
        assert!(size.is_power_of_two(), "positions wrap by a mask");
        RingWriter {
            size,
            tail: 0,
            published: 0,
            head_seen: 0,
        }
    }

    /// Is there room for a message with such a payload?
    ///
    /// # Errors
    ///
    /// [`Lie`] when the reader's head cannot be.
    pub fn has_room<W: Word>(&mut self, head: &W, payload_bytes: u32) -> Result<bool, Lie> {
        let wanted = taken(payload_bytes);
        if self.fits(wanted) {
            return Ok(true);
        }
        let seen = head.load(Ordering::Acquire);
        // Only forward, and not past what was published.
        let distance = seen.wrapping_sub(self.head_seen);
        if distance > self.published.wrapping_sub(self.head_seen) {
            return Err(Lie::Position { distance });
        }
        self.head_seen = seen;
        Ok(self.fits(wanted))
    }

    fn fits(&self, wanted: u32) -> bool {
        wanted <= self.size - self.tail.wrapping_sub(self.head_seen)
    }

    /// Copies a message in behind the others. It is not published yet.
    ///
    /// # Errors
    ///
    /// [`RingFull`] without room as of the last [`RingWriter::has_room`], which is to be asked
    /// before.
    pub fn push<B: Bytes>(
        &mut self,
        bytes: &B,
        head: MessageHead,
        payload: &[&[u8]],
    ) -> Result<(), RingFull> {
        let len: usize = payload.iter().map(|piece| piece.len()).sum();
        let head = head.sized(len);
        let wanted = taken(head.len);
        if !self.fits(wanted) {
            return Err(RingFull);
        }
        let mut at = self.tail;
        self.put(bytes, &mut at, &head.encode());
        for piece in payload {
            self.put(bytes, &mut at, piece);
        }
        self.tail = self.tail.wrapping_add(wanted);
        Ok(())
    }

    fn put<B: Bytes>(&self, bytes: &B, at: &mut u32, piece: &[u8]) {
        let place = *at & (self.size - 1);
        let (before, after) = piece.split_at(piece.len().min((self.size - place) as usize));
        bytes.copy_in(place, before);
        if !after.is_empty() {
            bytes.copy_in(0, after);
        }
        *at = at.wrapping_add(piece.len() as u32);
    }

    /// Shows the reader all that was written; false when there is nothing new.
    pub fn publish<W: Word>(&mut self, tail: &W) -> bool {
        if self.published == self.tail {
            return false;
        }
        tail.store(self.tail, Ordering::Release);
        self.published = self.tail;
        true
    }
}

/// The reader's own counts.
#[derive(Debug)]
pub struct RingReader {
    size: u32,
    /// Before the next message.
    head: u32,
    /// What the writer was told.
    released: u32,
    /// The writer's tail, as last seen and checked.
    tail_seen: u32,
}

impl RingReader {
    /// For an empty ring of that size.
    pub fn new(size: u32) -> RingReader {
        assert!(size.is_power_of_two(), "positions wrap by a mask");
        RingReader {
            size,
            head: 0,
            released: 0,
            tail_seen: 0,
        }
    }

    /// Copies the next message out: its head is returned, its payload replaces what is in
    /// `payload`. `None` when the ring is empty.
    ///
    /// # Errors
    ///
    /// [`Lie`] when what the writer wrote cannot be. Nothing can be read after that.
    pub fn pop<W: Word, B: Bytes>(
        &mut self,
        tail: &W,
        bytes: &B,
        side: MessageSender,
        payload: &mut Vec<u8>,
    ) -> Result<Option<MessageHead>, Lie> {
        payload.clear();
        if self.tail_seen == self.head && !self.look(tail)? {
            return Ok(None);
        }
        // A multiple of 8 like the size: both halves lie in the ring, the second may wrap.
        let mut copy = [0; HEAD_BYTES];
        copy[..8].copy_from_slice(&bytes.eight(self.head & (self.size - 1)));
        copy[8..].copy_from_slice(&bytes.eight(self.head.wrapping_add(8) & (self.size - 1)));
        let head = MessageHead::decode(&copy, side, Carrier::Shm)?;
        let wanted = taken(head.len);
        if wanted > self.tail_seen.wrapping_sub(self.head) {
            return Err(Lie::Length(head.len));
        }
        let place = self.head.wrapping_add(HEAD_BYTES as u32) & (self.size - 1);
        let before = head.len.min(self.size - place);
        bytes.copy_out(place, before, payload);
        if before < head.len {
            bytes.copy_out(0, head.len - before, payload);
        }
        self.head = self.head.wrapping_add(wanted);
        Ok(Some(head))
    }

    /// Looks for messages behind those known; true when there are some.
    fn look<W: Word>(&mut self, tail: &W) -> Result<bool, Lie> {
        let seen = tail.load(Ordering::Acquire);
        let distance = seen.wrapping_sub(self.head);
        if distance == 0 {
            return Ok(false);
        }
        if distance > self.size || !distance.is_multiple_of(ALIGN) || distance < HEAD_BYTES as u32 {
            return Err(Lie::Position { distance });
        }
        self.tail_seen = seen;
        Ok(true)
    }

    /// True when something was published that has not been read.
    pub fn has_more<W: Word>(&self, tail: &W) -> bool {
        self.tail_seen != self.head || tail.load(Ordering::Acquire) != self.head
    }

    /// True when enough was read since the writer was last told that it is time to tell it again.
    pub fn should_release(&self) -> bool {
        self.head.wrapping_sub(self.released) >= self.size / 8
    }

    /// Tells the writer what has been read; false when it knows.
    pub fn release<W: Word>(&mut self, head: &W) -> bool {
        if self.released == self.head {
            return false;
        }
        head.store(self.head, Ordering::Release);
        self.released = self.head;
        true
    }
}
