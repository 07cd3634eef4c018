//! The stream carrier: messages one after another over a Unix socket.
//!
//! Pure: bytes in, messages out. Bytes are read from the socket straight into the decoder's
//! buffer, and a message borrows its payload from there, so a payload is copied once, by the
//! kernel. Limits hold before a payload is waited for.

use crate::limits::{HEAD_BYTES, MESSAGE_BYTES_MAX};
use crate::malformed::MalformedMessage;
use crate::message::{Carrier, MessageHead, MessageSender};

/// What one read should have room for: a few small messages, or much of a large one.
const READ_BYTES: usize = 16 * 1024;

/// A message of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its head, checked.
    pub head: MessageHead,
    /// Its payload, as long as the head says.
    pub payload: &'a [u8],
}

/// Takes a stream apart.
#[derive(Debug)]
pub struct MessageDecoder {
    side: MessageSender,
    /// `start..end` holds what has not been given out.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// What was found wrong; nothing is read after it.
    broken: Option<MalformedMessage>,
}

impl MessageDecoder {
    /// For what that side sends.
    pub fn new(side: MessageSender) -> MessageDecoder {
        MessageDecoder {
            side,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            broken: None,
        }
    }

    /// Where the next bytes of the stream go: never empty, and with room for the rest of a message
    /// that has begun.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let wanted = self.missing().max(READ_BYTES);
        if self.buffer.len() - self.end < wanted && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < wanted {
            self.buffer.resize(self.end + wanted, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes were put into [`MessageDecoder::space`].
    ///
    /// # Panics
    ///
    /// When that is more than there was room for.
    pub fn filled(&mut self, count: usize) {
        assert!(
            count <= self.buffer.len() - self.end,
            "no more is filled in than there was space"
        );
        self.end += count;
    }

    /// The next message, or `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`MalformedMessage`], and again at every later call: there is no way to find the next
    /// message.
    pub fn next_message(&mut self) -> Result<Option<Message<'_>>, MalformedMessage> {
        let Some(head) = self.head()? else {
            return Ok(None);
        };
        let payload_at = self.start + HEAD_BYTES;
        let after = payload_at + head.len as usize;
        if after > self.end {
            return Ok(None);
        }
        self.start = after;
        Ok(Some(Message {
            head,
            payload: &self.buffer[payload_at..after],
        }))
    }

    /// What the end of the stream means: fine between two messages, else [`MalformedMessage::Cut`].
    ///
    /// # Errors
    ///
    /// [`MalformedMessage`] when a message was cut, or one before it was bad.
    pub fn finish(&self) -> Result<(), MalformedMessage> {
        match &self.broken {
            Some(malformed) => Err(malformed.clone()),
            None if self.start != self.end => Err(MalformedMessage::Cut),
            None => Ok(()),
        }
    }

    /// True when bytes are there that have not been given out.
    pub fn has_bytes(&self) -> bool {
        self.start != self.end
    }

    /// Gives memory back that a large message needed, when nothing is in it. For workers that idle.
    pub fn shrink(&mut self) {
        if self.start == self.end && self.buffer.len() > READ_BYTES {
            self.buffer = Vec::new();
            (self.start, self.end) = (0, 0);
        }
    }

    /// The head of the next message, if all of it is there.
    fn head(&mut self) -> Result<Option<MessageHead>, MalformedMessage> {
        if let Some(malformed) = &self.broken {
            return Err(malformed.clone());
        }
        let Some(bytes) = self.buffer[self.start..self.end].first_chunk() else {
            return Ok(None);
        };
        match MessageHead::decode(bytes, self.side, Carrier::Stream) {
            Ok(head) => Ok(Some(head)),
            Err(malformed) => {
                self.broken = Some(malformed.clone());
                Err(malformed)
            }
        }
    }

    /// How many bytes the message that has begun still needs; none are known without its head.
    fn missing(&mut self) -> usize {
        match self.head() {
            Ok(Some(head)) => {
                let whole = HEAD_BYTES + head.len as usize;
                debug_assert!(whole <= MESSAGE_BYTES_MAX, "a checked head keeps the limit");
                whole.saturating_sub(self.end - self.start)
            }
            _ => 0,
        }
    }
}

/// Appends a message whose payload comes in pieces.
///
/// # Panics
///
/// When the payload is longer than the kind allows.
pub fn append(out: &mut Vec<u8>, head: MessageHead, payload: &[&[u8]]) {
    let len = payload.iter().map(|piece| piece.len()).sum();
    out.reserve(HEAD_BYTES + len);
    out.extend_from_slice(&head.sized(len).encode());
    for piece in payload {
        out.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{LAST, MessageKind};

    fn feed(decoder: &mut MessageDecoder, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = decoder.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            decoder.filled(count);
            bytes = &bytes[count..];
        }
    }

    fn sample() -> (Vec<u8>, Vec<(MessageHead, Vec<u8>)>) {
        let payloads = [0, 3, 65_536, 20_000, 1];
        let mut bytes = Vec::new();
        let mut messages = Vec::new();
        for (number, len) in payloads.into_iter().enumerate() {
            let payload = vec![b'a' + number as u8; len];
            let head = MessageHead::new(MessageKind::Data, 9).flags(LAST);
            append(
                &mut bytes,
                head,
                &[&payload[..len / 2], &payload[len / 2..]],
            );
            messages.push((head.sized(len), payload));
        }
        (bytes, messages)
    }

    #[test]
    fn messages_come_out_however_the_bytes_come_in() {
        let (bytes, expected) = sample();
        for step in [1, 7, 16, 4096, bytes.len()] {
            let mut decoder = MessageDecoder::new(MessageSender::Worker);
            let mut seen = Vec::new();
            for piece in bytes.chunks(step) {
                feed(&mut decoder, piece);
                while let Some(message) = decoder.next_message().unwrap() {
                    seen.push((message.head, message.payload.to_vec()));
                }
            }
            assert!(seen == expected, "in pieces of {step}");
            assert_eq!(decoder.finish(), Ok(()));
        }
    }

    #[test]
    fn a_stream_that_ends_anywhere_in_a_message_is_cut() {
        let mut bytes = Vec::new();
        append(
            &mut bytes,
            MessageHead::new(MessageKind::Data, 1),
            &[b"abc"],
        );
        for len in 1..bytes.len() {
            let mut decoder = MessageDecoder::new(MessageSender::Worker);
            feed(&mut decoder, &bytes[..len]);
            assert_eq!(decoder.next_message(), Ok(None));
            assert_eq!(decoder.finish(), Err(MalformedMessage::Cut));
        }
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_anything_is_kept_for_it() {
        let head = MessageHead {
            len: u32::MAX,
            ..MessageHead::new(MessageKind::Data, 1)
        };
        let mut decoder = MessageDecoder::new(MessageSender::Worker);
        feed(&mut decoder, &head.encode());
        assert!(decoder.space().len() <= 2 * READ_BYTES);
        for _ in 0..2 {
            let refused = decoder.next_message().expect_err("too long");
            assert!(matches!(refused, MalformedMessage::Length { .. }));
        }
        assert!(decoder.finish().is_err());
    }
}
