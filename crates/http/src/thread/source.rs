//! Where the bytes of an answer's body come from, a frame's worth at a time.

use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hob_trace::Fault;
use rustix::io::Errno;

use crate::body::{Body, BodyError, BodyStream, Chunk, FileBody, SHORTER, UNREADABLE};
use crate::head::Fields;
use crate::limits::{H2_FILL_BYTES, H2_TINY_DATA_BYTES, H2_TINY_DATA_HELD, H2_TINY_DATA_OUT};
use crate::rate::Bucket;
use crate::raw;
use crate::reactor::{Reactor, Timer};

/// A body on its way out.
pub(super) enum OutgoingBody {
    Bytes(Bytes),
    /// A range of a file, of which so many bytes are known to be in memory.
    File(FileBody, u64),
    /// Chunks, gathered as far as they are there.
    Chunks(GatheredChunks),
}

/// Chunks of a stream on their way into frames. A program may write ten bytes at a time: a frame
/// takes as many chunks as have come, or a client sees thousands of them, which some take for an
/// attack. If they come one by one all the same, those beyond a rate wait a moment for others.
pub(super) struct GatheredChunks {
    /// What of a chunk is to be sent next.
    ready: Bytes,
    rest: Box<dyn BodyStream>,
    /// At most so many bytes are asked for at a time.
    ask_bytes: usize,
    /// How the stream has ended, while bytes before that end have yet to be told.
    end: Option<Result<Option<Fields>, BodyError>>,
    /// A tunnel gives no more bytes, which is yet to be told.
    is_half_closed: bool,
    pace: FramePacing,
}

/// How tiny frames of a stream go out.
enum FramePacing {
    /// At once, always: the client may wait for each of them to say more.
    Free,
    /// At once within the rate of the connection.
    Even,
    /// What has come waits for more, until this timer.
    Held(Timer),
}

/// Tiny frames of a connection, of whichever answer: clients count them together.
pub(super) struct Tiny {
    /// Those that may still leave at once.
    left: Bucket,
    /// Those that were made to wait, since it was asked.
    held_count: u64,
}

impl Tiny {
    pub(super) fn new(now_ms: u64) -> Tiny {
        Tiny {
            left: Bucket::new(H2_TINY_DATA_OUT, now_ms),
            held_count: 0,
        }
    }

    /// How many were made to wait since this was asked before.
    pub(super) fn take_held_count(&mut self) -> u64 {
        std::mem::take(&mut self.held_count)
    }
}

/// What a source gave.
pub(super) enum Gave {
    /// So many bytes, behind what stood in the output.
    Bytes(usize),
    /// It is a tunnel, and gives no more bytes; its end comes later.
    HalfClose,
    /// It has no more.
    End(Option<Fields>),
}

/// What comes out of a pipe is mostly little: no more room than a frame has.
const PIPE_ASK_BYTES: usize = 16 * 1024;

impl OutgoingBody {
    /// Whose tiny pieces go at once.
    pub(super) fn of(body: Body) -> OutgoingBody {
        match body {
            Body::Empty => OutgoingBody::Bytes(Bytes::new()),
            Body::Bytes(bytes) => OutgoingBody::Bytes(bytes),
            Body::File(file) => OutgoingBody::File(file, 0),
            Body::Region(region) => {
                let mut bytes = Vec::new();
                raw::copy_region(region.as_ref(), 0, region.raw().1, &mut bytes);
                OutgoingBody::Bytes(bytes.into())
            }
            body => {
                let ask_bytes = match body {
                    Body::Pipe { .. } => PIPE_ASK_BYTES,
                    _ => H2_FILL_BYTES,
                };
                OutgoingBody::Chunks(GatheredChunks::new(body.into_stream(), ask_bytes))
            }
        }
    }

    /// The same for a client that says nothing more, so that it does not answer what comes: tiny
    /// pieces beyond a rate wait a moment.
    pub(super) fn paced(body: Body) -> OutgoingBody {
        let mut source = OutgoingBody::of(body);
        if let OutgoingBody::Chunks(gathered) = &mut source {
            gathered.pace = FramePacing::Even;
        }
        source
    }

    /// True when no bytes of it are at hand: it may be that only its end is left.
    pub(super) fn may_end(&self) -> bool {
        matches!(self, OutgoingBody::Chunks(gathered) if gathered.ready.is_empty())
    }

    /// How much it may give at once, of at most so much.
    pub(super) fn size_hint(&self, max: usize) -> usize {
        match self {
            OutgoingBody::Bytes(bytes) => bytes.len().min(max),
            OutgoingBody::File(file, _) => (file.len.min(max as u64)) as usize,
            OutgoingBody::Chunks(gathered) => gathered.ready.len().min(max),
        }
    }

    /// Appends the next bytes, at most `max`, to `out`. With no room for any it gives no bytes,
    /// unless it waits for some or has come to its end.
    pub(super) fn poll_into(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        tiny: Option<&mut Tiny>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Gave, BodyError>> {
        loop {
            match self {
                OutgoingBody::Bytes(_) | OutgoingBody::File(..)
                    if max == 0 && self.size_hint(1) > 0 =>
                {
                    return Poll::Ready(Ok(Gave::Bytes(0)));
                }
                OutgoingBody::Bytes(bytes) => return Poll::Ready(Ok(take(bytes, max, out))),
                OutgoingBody::File(file, resident) => {
                    if let Some(result) = read_file(file, resident, max, out) {
                        return Poll::Ready(result);
                    }
                    self.fetch();
                }
                OutgoingBody::Chunks(gathered) => return gathered.poll_into(cx, max, tiny, out),
            }
        }
    }

    /// The next bytes of the file are on a disk: from here on they are fetched.
    fn fetch(&mut self) {
        let file = match std::mem::replace(self, OutgoingBody::Bytes(Bytes::new())) {
            OutgoingBody::File(file, _) => file,
            other => {
                *self = other;
                return;
            }
        };
        let rest = Body::File(file).into_stream();
        *self = OutgoingBody::Chunks(GatheredChunks::new(rest, H2_FILL_BYTES));
    }
}

impl GatheredChunks {
    fn new(rest: Box<dyn BodyStream>, ask_bytes: usize) -> GatheredChunks {
        GatheredChunks {
            ready: Bytes::new(),
            rest,
            ask_bytes,
            end: None,
            is_half_closed: false,
            pace: FramePacing::Free,
        }
    }

    /// Appends chunks until there are `max` bytes, or no more for now: nothing is waited for.
    fn poll_into(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        tiny: Option<&mut Tiny>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Gave, BodyError>> {
        // Where there is no room, a chunk is only to tell that there is one.
        let ask_bytes = if max == 0 {
            PIPE_ASK_BYTES
        } else {
            self.ask_bytes
        };
        if self.ready.is_empty() && std::mem::take(&mut self.is_half_closed) {
            return Poll::Ready(Ok(Gave::HalfClose));
        }
        let mut given = 0;
        loop {
            let count = self.ready.len().min(max - given);
            out.extend_from_slice(&self.ready[..count]);
            self.ready.advance(count);
            given += count;
            if given == max && (max > 0 || !self.ready.is_empty()) {
                return Poll::Ready(Ok(Gave::Bytes(given)));
            }
            if self.end.is_none() {
                match self.rest.poll_chunk(cx, ask_bytes) {
                    Poll::Ready(Some(Ok(Chunk::Bytes(bytes)))) => self.ready = bytes,
                    Poll::Ready(Some(Ok(Chunk::HalfClose))) if given == 0 => {
                        return Poll::Ready(Ok(Gave::HalfClose));
                    }
                    Poll::Ready(Some(Ok(Chunk::HalfClose))) => {
                        self.is_half_closed = true;
                        return Poll::Ready(Ok(Gave::Bytes(given)));
                    }
                    Poll::Ready(Some(Ok(_))) => {
                        debug_assert!(false, "chunks of `into_stream` are bytes");
                    }
                    Poll::Ready(Some(Err(error))) => self.end = Some(Err(error)),
                    Poll::Ready(None) => self.end = Some(Ok(self.rest.trailers())),
                    Poll::Pending if given == 0 => return Poll::Pending,
                    Poll::Pending if self.is_held(cx, given, tiny) => {
                        // A copy of what fits into a tiny frame.
                        let held = out.split_off(out.len() - given);
                        self.ready = held.into();
                        return Poll::Pending;
                    }
                    Poll::Pending => return Poll::Ready(Ok(Gave::Bytes(given))),
                }
            }
            if self.ready.is_empty() && self.end.is_some() {
                if given > 0 {
                    return Poll::Ready(Ok(Gave::Bytes(given)));
                }
                let end = self.end.take().unwrap_or(Ok(None));
                return Poll::Ready(end.map(Gave::End));
            }
        }
    }

    /// Whether so many bytes, which are all there are, wait for more.
    fn is_held(&mut self, cx: &mut Context<'_>, bytes: usize, tiny: Option<&mut Tiny>) -> bool {
        if let FramePacing::Held(until) = &self.pace {
            let is_over = bytes >= H2_TINY_DATA_BYTES || until.poll_elapsed(cx).is_ready();
            if is_over {
                self.pace = FramePacing::Even;
            }
            return !is_over;
        }
        if matches!(self.pace, FramePacing::Free) || bytes >= H2_TINY_DATA_BYTES {
            return false;
        }
        let (Some(reactor), Some(tiny)) = (Reactor::here(), tiny) else {
            return false;
        };
        if tiny.left.take(reactor.now_ms()) {
            return false;
        }
        tiny.held_count += 1;
        let until = reactor.timer();
        until.set_precise(H2_TINY_DATA_HELD);
        let is_held = until.poll_elapsed(cx).is_pending();
        self.pace = FramePacing::Held(until);
        is_held
    }
}

fn take(bytes: &mut Bytes, max: usize, out: &mut Vec<u8>) -> Gave {
    if bytes.is_empty() {
        return Gave::End(None);
    }
    let count = bytes.len().min(max);
    out.extend_from_slice(&bytes[..count]);
    bytes.advance(count);
    Gave::Bytes(count)
}

/// Reads what is in memory of a file straight behind the output; `None` when a disk must be asked.
fn read_file(
    file: &mut FileBody,
    resident: &mut u64,
    max: usize,
    out: &mut Vec<u8>,
) -> Option<Result<Gave, BodyError>> {
    if file.len == 0 {
        return Some(Ok(Gave::End(None)));
    }
    if *resident == 0 {
        let wanted = file.len.min(H2_FILL_BYTES as u64);
        *resident = file.source.resident(file.offset, wanted).min(wanted);
        if *resident == 0 {
            return None;
        }
    }
    let count = (*resident).min(max as u64) as usize;
    let start = out.len();
    out.resize(start + count, 0);
    let fd = file.source.fd();
    let read = rustix::io::pread(fd, &mut out[start..], file.offset);
    let count = match read {
        Ok(count) => count,
        Err(Errno::INTR) => 0,
        Err(error) => {
            out.truncate(start);
            hob_trace::warn_seldom!(%error, "a file could not be read");
            return Some(Err(BodyError::Source(Fault::Server, UNREADABLE)));
        }
    };
    out.truncate(start + count);
    if read == Ok(0) {
        return Some(Err(BodyError::Source(Fault::Server, SHORTER)));
    }
    *resident -= count as u64;
    if count == 0 {
        // Interrupted: it is asked again.
        return read_file(file, resident, max, out);
    }
    if let Err(reason) = file.take_resident(count) {
        out.truncate(start);
        return Some(Err(BodyError::Source(Fault::Server, reason)));
    }
    Some(Ok(Gave::Bytes(count)))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use super::*;
    use crate::reactor::wake::Here;

    /// Chunks, each of which is there, or not yet; `|` is where nothing more is said.
    struct Given(VecDeque<Poll<&'static str>>, Result<(), BodyError>);

    impl BodyStream for Given {
        fn poll_chunk(
            &mut self,
            _cx: &mut Context<'_>,
            _max: usize,
        ) -> Poll<Option<Result<Chunk, BodyError>>> {
            match (self.0.pop_front(), self.1) {
                (None, Ok(())) => Poll::Ready(None),
                (None, Err(error)) => Poll::Ready(Some(Err(error))),
                (Some(Poll::Ready("|")), _) => Poll::Ready(Some(Ok(Chunk::HalfClose))),
                (Some(chunk), _) => chunk.map(|text| {
                    let bytes = Bytes::from_static(text.as_bytes());
                    Some(Ok(Chunk::Bytes(bytes)))
                }),
            }
        }
    }

    /// What a source gives look after look, with at most so many bytes at each.
    fn looks(chunks: &[Poll<&'static str>], end: Result<(), BodyError>, max: usize) -> Vec<String> {
        let body = Body::Stream(Box::new(Given(chunks.iter().copied().collect(), end)));
        let mut source = OutgoingBody::paced(body);
        let mut cx = Context::from_waker(Waker::noop());
        let mut looks = Vec::new();
        loop {
            let mut out = Vec::new();
            let polled = source.poll_into(&mut cx, max, None, &mut out);
            let bytes = String::from_utf8(out).unwrap();
            looks.push(match polled {
                Poll::Pending => format!("{bytes}."),
                Poll::Ready(Ok(Gave::Bytes(count))) => {
                    assert_eq!(count, bytes.len());
                    bytes
                }
                Poll::Ready(Ok(Gave::HalfClose)) => format!("{bytes}|"),
                Poll::Ready(Ok(Gave::End(_))) => format!("{bytes}end"),
                Poll::Ready(Err(_)) => format!("{bytes}broken"),
            });
            if looks
                .last()
                .is_some_and(|last| ["end", "broken"].contains(&last.as_str()))
            {
                return looks;
            }
        }
    }

    #[test]
    fn chunks_that_are_there_go_together_and_nothing_is_waited_for() {
        let (now, not_yet) = (Poll::Ready, Poll::Pending);
        let chunks = [now("a"), now("bc"), not_yet, now("d"), now(""), now("e")];
        assert_eq!(looks(&chunks, Ok(()), 100), ["abc", "de", "end"]);
        assert_eq!(looks(&[not_yet, now("a")], Ok(()), 100), [".", "a", "end"]);
    }

    #[test]
    fn no_more_goes_together_than_there_is_room_for() {
        let chunks = [Poll::Ready("abc"), Poll::Ready("defgh"), Poll::Ready("i")];
        assert_eq!(looks(&chunks, Ok(()), 4), ["abcd", "efgh", "i", "end"]);
    }

    #[test]
    fn what_came_before_a_half_close_is_given_before_it() {
        let chunks = [Poll::Ready("a"), Poll::Ready("|"), Poll::Pending];
        assert_eq!(looks(&chunks, Ok(()), 9), ["a", "|", ".", "end"]);
        assert_eq!(looks(&chunks[1..], Ok(()), 9), ["|", ".", "end"]);
    }

    #[test]
    fn answers_of_a_connection_share_the_rate_of_tiny_frames() {
        let reactor = Reactor::offline();
        let _here = Here::enter(&reactor);
        let mut tiny = Tiny::new(reactor.now_ms());
        let rounds = H2_TINY_DATA_OUT.most as usize;
        let mut sources: Vec<_> = (0..3)
            .map(|_| {
                let chunks = [Poll::Ready("a"), Poll::Pending].repeat(rounds);
                OutgoingBody::paced(Body::Stream(Box::new(Given(chunks.into(), Ok(())))))
            })
            .collect();
        let mut cx = Context::from_waker(Waker::noop());
        let mut out = Vec::new();
        for _ in 0..rounds {
            for source in &mut sources {
                let _ = source.poll_into(&mut cx, 100, Some(&mut tiny), &mut out);
            }
        }
        assert_eq!(out.len(), rounds);
        // One of each, which waits still.
        assert_eq!((tiny.take_held_count(), tiny.take_held_count()), (3, 0));
    }

    #[test]
    fn without_room_an_end_is_given_and_bytes_are_not() {
        let source = |chunks: &[Poll<&'static str>]| {
            let chunks = chunks.iter().copied().collect();
            OutgoingBody::of(Body::Stream(Box::new(Given(chunks, Ok(())))))
        };
        let mut cx = Context::from_waker(Waker::noop());
        let mut out = Vec::new();
        let mut look = |source: &mut OutgoingBody| source.poll_into(&mut cx, 0, None, &mut out);
        assert!(matches!(
            look(&mut source(&[])),
            Poll::Ready(Ok(Gave::End(None)))
        ));
        assert!(matches!(
            look(&mut source(&[Poll::Ready("|")])),
            Poll::Ready(Ok(Gave::HalfClose))
        ));
        assert!(look(&mut source(&[Poll::Pending])).is_pending());
        let mut full = source(&[Poll::Ready("abc")]);
        assert!(full.may_end());
        for _ in 0..2 {
            assert!(matches!(look(&mut full), Poll::Ready(Ok(Gave::Bytes(0)))));
            assert!(!full.may_end());
        }
        assert_eq!(out, b"");
    }

    #[test]
    fn what_came_before_a_break_is_given() {
        let error = BodyError::Source(Fault::Script, "it broke");
        assert_eq!(looks(&[Poll::Ready("a")], Err(error), 9), ["a", "broken"]);
    }
}
