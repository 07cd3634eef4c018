//! One answer after the other out of whatever pieces the connection gives.
//!
//! ```text
//! Head --(1xx)--> Head --> Length(n) | Chunks | UntilEnd | (no body) --> complete, Head again
//! ```
//!
//! A head that lies whole in the bytes at hand is read where it lies; only one that is cut is kept.

use std::fmt;

use memchr::memmem;

use super::chunks::Chunks;
use super::head::{self, AnswerHead, Framing};
use crate::expect::ExpectedField;
use crate::limits::{HEAD_BYTES_MAX, INTERIM_COUNT_MAX};
use crate::measure::AnswerSummary;
use crate::send::acts::bytes_to_come;
use crate::send::body::PartialAnswerBody;
use crate::send::kept::{Keep, Kept};

/// What is read at once of an answer that is to be broken off, as long as its head is not there.
const HEAD_PIECE_BYTES: u64 = 4096;

/// What of the request decides how its answer is read.
#[derive(Debug, Clone, Copy)]
pub struct AnswerReadOptions<'a> {
    /// The method is HEAD: the answer has no body, whatever its head says.
    pub is_head: bool,
    /// Fields to look for, at most 64.
    pub fields: &'a [ExpectedField],
    /// The body's hash is wanted.
    pub is_hashed: bool,
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerProgress {
    /// All bytes are used; the answer goes on.
    More,
    /// The answer is complete after so many of the bytes.
    Complete(usize),
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadAnswer {
    /// The connection ended before the answer began.
    NoAnswer,
    /// The connection ended within the answer.
    CutOff,
    /// The first line is no status line of HTTP/1.
    StatusLine,
    /// A field line has no name, no colon, or bytes that may not be there.
    Field,
    /// Length and coding of the body contradict each other or cannot be read.
    Framing,
    /// A chunk cannot be read.
    Chunk,
    /// Head, chunk line or trailers are longer than what is read of them.
    TooLong,
    /// More interim answers came than are read.
    Interim,
    /// A body follows where HEAD was asked.
    BodyToHead,
}

impl BadAnswer {
    /// The connection ended, as opposed to answers that cannot be read.
    pub(crate) fn is_end(self) -> bool {
        matches!(self, BadAnswer::NoAnswer | BadAnswer::CutOff)
    }
}

impl fmt::Display for BadAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadAnswer::NoAnswer => "the server closed the connection without an answer",
            BadAnswer::CutOff => "the server closed the connection within the answer",
            BadAnswer::StatusLine => "the answer does not begin with a status line of HTTP/1",
            BadAnswer::Field => "a header field of the answer is malformed",
            BadAnswer::Framing => "Content-Length and Transfer-Encoding cannot both be believed",
            BadAnswer::Chunk => "a chunk of the body is malformed",
            BadAnswer::TooLong => "the answer's head is longer than 64 KiB",
            BadAnswer::Interim => "more than 100 interim answers",
            BadAnswer::BodyToHead => "the answer to HEAD has a body, or something else follows it",
        })
    }
}

#[derive(Debug)]
enum AnswerReadState {
    Head,
    Length(u64),
    Chunks(Chunks),
    UntilEnd,
}

/// Reads the answers of one connection.
#[derive(Debug)]
pub struct AnswerReader {
    part: AnswerReadState,
    answer: AnswerSummary,
    body: PartialAnswerBody,
    /// The beginning of a head whose end has not come.
    kept: Vec<u8>,
    interim_count: u32,
    /// What is wanted of the next answer besides.
    wanted: Option<Box<Kept>>,
}

impl Default for AnswerReader {
    fn default() -> AnswerReader {
        AnswerReader {
            part: AnswerReadState::Head,
            answer: AnswerSummary::default(),
            body: PartialAnswerBody::default(),
            kept: Vec::new(),
            interim_count: 0,
            wanted: None,
        }
    }
}

impl AnswerReader {
    /// The answer that was completed last.
    pub fn answer(&self) -> &AnswerSummary {
        &self.answer
    }

    /// Forgets what was begun: the connection is another.
    pub fn reset(&mut self) {
        self.part = AnswerReadState::Head;
        self.kept.clear();
        self.interim_count = 0;
        self.wanted = None;
    }

    /// The body of the next answer is wanted as it comes, see [`AnswerReader::take_body`].
    pub fn want_body(&mut self) {
        self.keep(Kept::new(Keep::Body));
    }

    /// What has come of the body since this was last asked, where it is wanted. What is more than
    /// [`DOCUMENT_BYTES_MAX`](crate::limits::DOCUMENT_BYTES_MAX) between two askings is lost.
    pub fn take_body(&mut self) -> Vec<u8> {
        let kept = self.body.kept.as_mut();
        kept.map(|kept| std::mem::take(&mut kept.body))
            .unwrap_or_default()
    }

    /// So much of the next answer is to be kept.
    pub(crate) fn keep(&mut self, kept: Kept) {
        self.wanted = Some(Box::new(kept));
    }

    /// What was kept of the answer that was completed last.
    pub(crate) fn take_kept(&mut self) -> Option<Box<Kept>> {
        self.body.kept.take()
    }

    /// Status and what is kept so far of an answer whose body has not ended.
    pub(crate) fn coming(&self) -> Option<(u16, &Kept)> {
        let kept = self.body.kept.as_deref().filter(|_| self.is_within_body());
        kept.map(|kept| (self.answer.status, kept))
    }

    /// Something of an answer has come that is not complete.
    pub(crate) fn has_begun(&self) -> bool {
        self.is_within_body() || !self.kept.is_empty() || self.interim_count > 0
    }

    /// The head of an answer has come, and its body has not ended.
    pub(crate) fn is_within_body(&self) -> bool {
        !matches!(self.part, AnswerReadState::Head)
    }

    /// Bytes of the body that are still to come and need not be looked at.
    pub(crate) fn skippable_bytes(&self) -> u64 {
        match self.part {
            AnswerReadState::Length(left) if !self.body.is_looked_at() => left,
            _ => 0,
        }
    }

    /// Bytes that are still to come until a share of the answer's body is there; some, while its
    /// head is not.
    fn bytes_to_come(&self, share: f32) -> u64 {
        let told = match self.part {
            AnswerReadState::Head => return HEAD_PIECE_BYTES,
            AnswerReadState::Length(left) => Some(self.body.bytes + left),
            AnswerReadState::Chunks(_) | AnswerReadState::UntilEnd => None,
        };
        bytes_to_come(share, told, self.body.bytes)
    }

    /// How much may be read at once, so that an answer that is to be broken off is so at its point.
    pub(crate) fn piece_bytes(&self, break_at: Option<f32>) -> usize {
        break_at.map_or(usize::MAX, |share| {
            self.bytes_to_come(share).max(1) as usize
        })
    }

    /// Is the answer to be broken off now? Also one that is whole before anybody could do so.
    pub(crate) fn is_broken_off(&self, break_at: Option<f32>, progress: AnswerProgress) -> bool {
        break_at.is_some_and(|share| match progress {
            AnswerProgress::More => self.bytes_to_come(share) == 0,
            AnswerProgress::Complete(_) => true,
        })
    }

    /// So many bytes of the body came and were not looked at.
    pub(crate) fn skip(&mut self, count: u64) -> AnswerProgress {
        let AnswerReadState::Length(left) = self.part else {
            return AnswerProgress::More;
        };
        debug_assert!(count <= left);
        self.body.bytes += count;
        self.part = AnswerReadState::Length(left - count);
        if left > count {
            return AnswerProgress::More;
        }
        self.complete(0)
    }

    /// The connection cannot carry another request, whatever the answer said.
    pub(crate) fn refuse_reuse(&mut self) {
        self.answer.is_reusable = false;
    }

    /// Takes bytes as they came.
    pub fn read(
        &mut self,
        bytes: &[u8],
        asked: AnswerReadOptions<'_>,
    ) -> Result<AnswerProgress, BadAnswer> {
        let mut used = 0;
        while matches!(self.part, AnswerReadState::Head) {
            match self.read_head(&bytes[used..], asked)? {
                None => return Ok(AnswerProgress::More),
                Some(head_bytes) => used += head_bytes,
            }
            if matches!(self.part, AnswerReadState::Length(0)) {
                return Ok(self.complete(used));
            }
        }
        let rest = &bytes[used..];
        match &mut self.part {
            AnswerReadState::Head => Ok(AnswerProgress::More),
            AnswerReadState::UntilEnd => {
                self.body.take(rest);
                Ok(AnswerProgress::More)
            }
            AnswerReadState::Length(left) => {
                let here = (*left).min(rest.len() as u64);
                self.body.take(&rest[..here as usize]);
                *left -= here;
                let is_complete = *left == 0;
                Ok(if is_complete {
                    self.complete(used + here as usize)
                } else {
                    AnswerProgress::More
                })
            }
            AnswerReadState::Chunks(chunks) => match chunks.read(rest, &mut self.body)? {
                None => Ok(AnswerProgress::More),
                Some(chunk_bytes) => Ok(self.complete(used + chunk_bytes)),
            },
        }
    }

    /// The server has ended the connection.
    pub fn end(&mut self) -> Result<(), BadAnswer> {
        match self.part {
            AnswerReadState::UntilEnd => {
                self.complete(0);
                Ok(())
            }
            _ if !self.has_begun() => Err(BadAnswer::NoAnswer),
            _ => Err(BadAnswer::CutOff),
        }
    }

    fn complete(&mut self, used: usize) -> AnswerProgress {
        self.part = AnswerReadState::Head;
        self.interim_count = 0;
        self.answer.body_bytes = self.body.bytes;
        self.answer.body_hash = self.body.finish();
        AnswerProgress::Complete(used)
    }

    /// Reads a head and says how many of the bytes it took; none while its end is missing.
    fn read_head(
        &mut self,
        bytes: &[u8],
        asked: AnswerReadOptions<'_>,
    ) -> Result<Option<usize>, BadAnswer> {
        if self.kept.is_empty() {
            if let Some((head, len)) = head::read(bytes, asked.fields, self.wanted.as_deref_mut())?
            {
                if len > HEAD_BYTES_MAX {
                    return Err(BadAnswer::TooLong);
                }
                self.begin(&head, asked)?;
                return Ok(Some(len));
            }
            if bytes.len() > HEAD_BYTES_MAX {
                return Err(BadAnswer::TooLong);
            }
            self.kept.extend_from_slice(bytes);
            return Ok(None);
        }
        let before = self.kept.len();
        let room = (HEAD_BYTES_MAX + 1).saturating_sub(before);
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // Only a head that has ended is looked at again: one that drips in costs no more.
        let from = before.saturating_sub(3);
        if !ends_head(&self.kept[from..]) {
            return if self.kept.len() > HEAD_BYTES_MAX {
                Err(BadAnswer::TooLong)
            } else {
                Ok(None)
            };
        }
        let mut kept = std::mem::take(&mut self.kept);
        let found = head::read(&kept, asked.fields, self.wanted.as_deref_mut())?;
        let (head, len) = found.ok_or(BadAnswer::Field)?;
        if len > HEAD_BYTES_MAX {
            return Err(BadAnswer::TooLong);
        }
        kept.clear();
        self.kept = kept;
        self.begin(&head, asked)?;
        Ok(Some(len.saturating_sub(before)))
    }

    /// What follows a head: another one after an interim answer, else a body of some kind.
    fn begin(&mut self, head: &AnswerHead, asked: AnswerReadOptions<'_>) -> Result<(), BadAnswer> {
        //= rfc9110#15.2: a client must be able to parse interim answers before the final one.
        if (100..200).contains(&head.status) && head.status != 101 {
            self.interim_count += 1;
            return if self.interim_count > INTERIM_COUNT_MAX {
                Err(BadAnswer::Interim)
            } else {
                Ok(())
            };
        }
        self.answer = AnswerSummary {
            status: head.status,
            body_bytes: 0,
            is_reusable: head.is_kept,
            fields_seen: head.fields_seen,
            body_hash: None,
        };
        self.body = PartialAnswerBody::new(asked.is_hashed);
        self.body.kept = self.wanted.take();
        //= rfc9112#6.3: these have no body, whatever their fields say.
        let has_no_body = asked.is_head || matches!(head.status, 204 | 304);
        self.part = match head.framing {
            _ if has_no_body => AnswerReadState::Length(0),
            Framing::Length(length) => AnswerReadState::Length(length),
            Framing::Chunked => AnswerReadState::Chunks(Chunks::default()),
            Framing::UntilEnd => {
                self.answer.is_reusable = false;
                AnswerReadState::UntilEnd
            }
        };
        // 101 was not asked for; what follows is not HTTP any more.
        if head.status == 101 {
            self.answer.is_reusable = false;
        }
        Ok(())
    }
}

/// Is there an empty line, with a line before it?
fn ends_head(bytes: &[u8]) -> bool {
    memmem::find(bytes, b"\n\r\n").is_some() || memmem::find(bytes, b"\n\n").is_some()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
