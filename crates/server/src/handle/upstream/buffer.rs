//! `buffer` of an upstream: members shielded from slow clients. A request's body is waited for
//! before anybody is asked; an answer's is read ahead of its client, in memory and then in a file
//! without a name, so that the member is free before the client has all of it.
//!
//! ```text
//!  member --> fill --> held, some 64 KiB --> client
//!               |                        ^
//!               '----> file, a ring -----'    once something is in the file, all goes there
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use hob_http::{BodyError, BodyStream, Bytes, Chunk, Fields, Reactor};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;
use rustix::io::pwrite;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::config::key::ValueType::{Size, Table};
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable};
use crate::handle::config::schema::{KIB, MIB};
use crate::handle::config::tree::Section;
use crate::handle::script::body::{in_pool, nameless_file, read_whole};

/// How much of a body is held for a slow client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSettings {
    /// Of a request: longest body that is waited for, in bytes.
    pub request: u64,
    /// The same of one that does not announce its length; 0 is not at all.
    pub unannounced: u64,
    /// Of an answer: how far its reading may be ahead of its client, in bytes; 0 is not at all.
    pub response: u64,
}

impl BufferSettings {
    /// As a handler's section says.
    pub(crate) fn read(section: &Section) -> BufferSettings {
        section.inner("buffer", &BUFFER_TABLE, |buffer| BufferSettings {
            request: buffer.size("request"),
            // Who sends so may wait for an answer to what was sent: only who asks for it waits.
            unannounced: match buffer.given("request") {
                Some(_) => buffer.size("request"),
                None => 0,
            },
            response: buffer.size("response"),
        })
    }
}

pub(in crate::handle) const BUFFER: SchemaKey =
    SchemaKey::new("buffer", Table(&BUFFER_TABLE), Preset::Nothing("")).aka(&["buffering"]);

/// `buffer`
pub(crate) static BUFFER_TABLE: SchemaTable = SchemaTable {
    name: "buffer",
    header: "`buffer` of an upstream",
    text: "What is held of bodies, so that a slow client does not occupy who answers. Above 64 KiB \
           they are in a file without a name, in `/var/tmp` or `/tmp`. Otherwise bodies are passed \
           on as they come.",
    base: None,
    keys: &[
        SchemaKey::new(
            "request",
            Size {
                min: 0,
                max: SIZE_MAX,
            },
            Preset::Size(64 * KIB),
        )
        .says(
            "A request's body that announces its length, and is no longer than this, is waited for \
             before anybody is asked. Where the key is written, `proxy` and `remote` wait for one \
             that does not announce its length, too (but not of gRPC): up to so many bytes, and \
             what is longer is passed on as it comes. `fastcgi`, `scgi` and `uwsgi` always wait \
             for all of such a body.",
        )
        .example("\"10MiB\"")
        .aka(&["request_buffers"]),
        SchemaKey::new(
            "response",
            Size {
                min: 0,
                max: SIZE_MAX,
            },
            Preset::Size(0),
        )
        .says(
            "An answer's body is read so far ahead of its client. 0 reads it as the client does. \
             Events, and answers with `X-Accel-Buffering: no`, are not read ahead.",
        )
        .example("\"1MiB\"")
        .aka(&["response_buffers"]),
    ],
};

const SIZE_MAX: u64 = 1024 * MIB;
/// What of an answer is held in memory, in bytes, and at most a piece more.
const HELD_BYTES_MAX: u64 = 64 * KIB;
/// Bytes taken at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// What reading ahead needs.
pub(crate) struct ReadAhead<'a> {
    pub(crate) reactor: &'a Reactor,
    pub(crate) pool: &'a DiskThreads,
    pub(crate) counters: &'a Arc<ThreadCounters>,
    /// How far.
    pub(crate) bytes_max: u64,
}

impl ReadAhead<'_> {
    /// A body that is read ahead of its client; the same one where it is not to be.
    pub(crate) fn of(&self, body: Box<dyn BodyStream>) -> Box<dyn BodyStream> {
        if self.bytes_max == 0 {
            return body;
        }
        let len = body.len();
        let shared = Rc::new(AnswerAhead {
            state: RefCell::default(),
            bytes_max: Cell::new(self.bytes_max),
            // One piece may come when there is hardly room.
            ring_bytes: self.bytes_max + PIECE_BYTES as u64,
            pool: self.pool.clone(),
        });
        let (filled, counters) = (Rc::clone(&shared), Arc::clone(self.counters));
        self.reactor
            .spawn(async move { filled.fill(body, &counters).await });
        let reading = None;
        Box::new(BufferedBody {
            shared,
            len,
            reading,
        })
    }
}

/// What client and member see of each other.
struct AnswerAhead {
    state: RefCell<AheadState>,
    bytes_max: Cell<u64>,
    /// Size of the file.
    ring_bytes: u64,
    pool: DiskThreads,
}

#[derive(Default)]
struct AheadState {
    held: VecDeque<Bytes>,
    held_bytes: u64,
    /// What stands behind that.
    file: Option<Arc<OwnedFd>>,
    /// Where it begins in the file, and how many bytes that are, in a ring.
    file_begin: u64,
    file_bytes: u64,
    /// How it ended.
    end: Option<Result<Option<Fields>, BodyError>>,
    client: Option<Waker>,
    member: Option<Waker>,
    /// The client wants no more.
    is_left: bool,
}

impl AheadState {
    fn bytes(&self) -> u64 {
        self.held_bytes + self.file_bytes
    }

    fn wake_client(&mut self) {
        self.client.take().into_iter().for_each(Waker::wake);
    }

    fn wake_member(&mut self) {
        self.member.take().into_iter().for_each(Waker::wake);
    }
}

impl AnswerAhead {
    /// Reads a body to its end, as far ahead as may be.
    async fn fill(&self, mut body: Box<dyn BodyStream>, counters: &ThreadCounters) {
        let mut is_counted = false;
        let end = loop {
            let room = poll_fn(|cx| self.poll_room(cx, &mut is_counted, counters)).await;
            if !room {
                return;
            }
            let piece = poll_fn(|cx| match self.has_left(cx) {
                true => Poll::Ready(None),
                false => body.poll_chunk(cx, PIECE_BYTES).map(Some),
            });
            match piece.await {
                // What is left of it is for who sends it to give up.
                None => return,
                Some(Some(Ok(Chunk::Bytes(piece)))) => self.push(piece).await,
                Some(None) => break Ok(body.trailers()),
                Some(Some(Err(error))) => break Err(error),
                // None of those bodies gives anything else.
                Some(Some(Ok(_))) => {
                    let reason = "the answer cannot be read ahead";
                    break Err(BodyError::Source(Fault::Server, reason));
                }
            }
        };
        drop(body);
        let mut state = self.state.borrow_mut();
        state.end = Some(end);
        state.wake_client();
    }

    /// Ready with true when there is room; with false when nobody wants more.
    fn poll_room(
        &self,
        cx: &mut Context<'_>,
        is_counted: &mut bool,
        counters: &ThreadCounters,
    ) -> Poll<bool> {
        if self.has_left(cx) {
            return Poll::Ready(false);
        }
        if self.state.borrow().bytes() < self.bytes_max.get() {
            return Poll::Ready(true);
        }
        if !std::mem::replace(is_counted, true) {
            counters.limit_upstream_buffer.add(1);
        }
        Poll::Pending
    }

    fn has_left(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.state.borrow_mut();
        state.member = Some(cx.waker().clone());
        state.is_left
    }

    async fn push(&self, piece: Bytes) {
        let is_held = {
            let state = self.state.borrow();
            state.file_bytes == 0 && state.held_bytes < HELD_BYTES_MAX
        };
        let piece = match is_held {
            true => Some(piece),
            false => self.spill(piece).await,
        };
        let mut state = self.state.borrow_mut();
        if let Some(piece) = piece {
            state.held_bytes += piece.len() as u64;
            state.held.push_back(piece);
        }
        state.wake_client();
    }

    /// Writes a piece behind what the file has. Gives it back where there is no file for it: from
    /// then on memory has to do.
    async fn spill(&self, piece: Bytes) -> Option<Bytes> {
        let file = match self.file().await {
            Ok(file) => file,
            Err(error) => return self.do_without(piece, &error),
        };
        let (begin, size) = {
            let state = self.state.borrow();
            (state.file_begin + state.file_bytes, self.ring_bytes)
        };
        let written = piece.clone();
        let job = move || write_ring(&file, &written, begin % size, size);
        match in_pool(&self.pool, job).await {
            Ok(()) => {
                self.state.borrow_mut().file_bytes += piece.len() as u64;
                None
            }
            Err(error) => self.do_without(piece, &error),
        }
    }

    async fn file(&self) -> io::Result<Arc<OwnedFd>> {
        let known = self.state.borrow().file.clone();
        if let Some(file) = known {
            return Ok(file);
        }
        let file = Arc::new(in_pool(&self.pool, nameless_file).await?);
        self.state.borrow_mut().file = Some(Arc::clone(&file));
        Ok(file)
    }

    fn do_without(&self, piece: Bytes, error: &io::Error) -> Option<Bytes> {
        tracing::warn!("upstream: an answer is not read further ahead: {error}");
        self.bytes_max.set(HELD_BYTES_MAX);
        let mut state = self.state.borrow_mut();
        if state.file_bytes == 0 {
            return Some(piece);
        }
        // What is there comes first, and behind it there is no place.
        state.end = Some(Err(BodyError::Source(
            Fault::Server,
            "the file of an answer that is read ahead cannot be written",
        )));
        state.is_left = true;
        None
    }
}

/// A read from the file that is under way.
type FileRead = Pin<Box<dyn Future<Output = io::Result<Bytes>>>>;

/// The body as its client gets it.
struct BufferedBody {
    shared: Rc<AnswerAhead>,
    len: Option<u64>,
    reading: Option<FileRead>,
}

impl BufferedBody {
    /// Takes what was read from the file, or begins to read; ready with false when it has nothing.
    fn poll_file(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        if self.reading.is_none() {
            let state = self.shared.state.borrow();
            let Some(file) = state.file.clone().filter(|_| state.file_bytes > 0) else {
                return Poll::Ready(Ok(false));
            };
            let size = self.shared.ring_bytes;
            let begin = state.file_begin % size;
            let bytes = state.file_bytes.min(size - begin).min(PIECE_BYTES as u64);
            let pool = self.shared.pool.clone();
            self.reading = Some(Box::pin(async move {
                in_pool(&pool, move || read_whole(&file, begin, bytes as usize)).await
            }));
        }
        let Some(reading) = &mut self.reading else {
            return Poll::Ready(Ok(false));
        };
        let read = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        let broken = "the file of an answer that is read ahead cannot be read";
        let piece = read.map_err(|_| BodyError::Source(Fault::Server, broken))?;
        let mut state = self.shared.state.borrow_mut();
        let bytes = piece.len() as u64;
        state.file_begin += bytes;
        state.file_bytes -= bytes;
        state.held_bytes += bytes;
        state.held.push_back(piece);
        Poll::Ready(Ok(true))
    }
}

impl BodyStream for BufferedBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        loop {
            let mut state = self.shared.state.borrow_mut();
            if let Some(mut piece) = state.held.pop_front() {
                let chunk = piece.split_to(piece.len().min(max));
                if !piece.is_empty() {
                    state.held.push_front(piece);
                }
                state.held_bytes -= chunk.len() as u64;
                state.wake_member();
                return Poll::Ready(Some(Ok(Chunk::Bytes(chunk))));
            }
            drop(state);
            match ready!(self.poll_file(cx)) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
            let mut state = self.shared.state.borrow_mut();
            return match &mut state.end {
                Some(Ok(_)) => Poll::Ready(None),
                Some(Err(error)) => Poll::Ready(Some(Err(*error))),
                None => {
                    state.client = Some(cx.waker().clone());
                    Poll::Pending
                }
            };
        }
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn trailers(&mut self) -> Option<Fields> {
        match &mut self.shared.state.borrow_mut().end {
            Some(Ok(trailers)) => trailers.take(),
            _ => None,
        }
    }
}

impl Drop for BufferedBody {
    /// What was not read any more is given up, by who reads it.
    fn drop(&mut self) {
        let mut state = self.shared.state.borrow_mut();
        state.is_left = true;
        state.wake_member();
    }
}

/// Writes at a place of a ring of this size.
fn write_ring(file: &OwnedFd, mut bytes: &[u8], mut at: u64, size: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let part = usize::try_from(size - at).unwrap_or(usize::MAX);
        let count = pwrite(file, &bytes[..bytes.len().min(part)], at)?;
        bytes = &bytes[count..];
        at = (at + count as u64) % size;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_a_ring() {
        let file = nameless_file().unwrap();
        write_ring(&file, b"abcdef", 6, 8).unwrap();
        assert_eq!(&read_whole(&file, 6, 2).unwrap()[..], b"ab");
        assert_eq!(&read_whole(&file, 0, 4).unwrap()[..], b"cdef");
        assert!(read_whole(&file, 7, 4).is_err());
    }
}
