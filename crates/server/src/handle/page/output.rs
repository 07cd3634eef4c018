//! What a run prints, on its way from its thread to the client.
//!
//! ```text
//!  thread --> held, some 64 KiB --> client
//!      |                       ^
//!      '----> file ------------'    once something is in the file, all goes there
//! ```
//!
//! A run never waits for its client. Its answer begins when it has ended, or has printed so much
//! that it need not be known how it ends.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use hob_http::{BodyError, BodyStream, Bytes, Chunk, Request};
use hob_page::fault::PageFault;
use hob_page::host::{PageHead, Sink, SinkGone};
use hob_page::limits::PageUse;
use hob_trace::metric::ThreadCounters;
use hob_trace::{Fault, Mutex};
use rustix::io::pwrite;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::page::answer::count;
use crate::handle::page::calls::CallDesk;
use crate::handle::page::fail;
use crate::handle::page::files::FileLookupError;
use crate::handle::script::body::{in_pool, nameless_file, read_whole};

/// What is held in memory, in bytes, and at most a piece more. An answer begins when there is so
/// much of it.
const HELD_BYTES_MAX: usize = 64 << 10;
/// Bytes read from the file at a time.
const PIECE_BYTES: u64 = 64 << 10;

/// How a run ended.
pub(super) enum RunEnd {
    /// It has printed all, and what it wrote is kept.
    Done(PageUse),
    /// There is no such block.
    NoBlock,
    /// It would write, and is to read alone.
    Writes,
    /// There is no such page.
    NoPage(FileLookupError),
    /// It was ended, or ended itself.
    Fault(PageFault),
    /// Its visit was over before its turn came.
    VisitOver,
    /// Its time was up before a thread was free.
    Unbegun,
    /// The thread is gone.
    Lost,
}

/// The output of a run, and what its thread and its client see of each other.
pub(super) struct PageOutput {
    state: Mutex<OutputState>,
    /// Nobody wants it any more.
    is_left: AtomicBool,
    /// It goes on though its client has left.
    outlasts_client: AtomicBool,
    /// When the run has to end.
    pub(super) deadline: Instant,
    /// Where it asks for programs.
    pub(super) calls: Arc<CallDesk>,
}

#[derive(Default)]
struct OutputState {
    has_begun: bool,
    head: Option<PageHead>,
    held: VecDeque<Bytes>,
    held_bytes: usize,
    /// What stands behind that, from and to.
    file: Option<Arc<OwnedFd>>,
    file_begin: u64,
    file_end: u64,
    /// The answer can begin.
    is_open: bool,
    end: Option<RunEnd>,
    client: Option<Waker>,
    /// What happened, for who watches.
    events: Vec<String>,
    /// The slowest of its statements that were slow: milliseconds, and what it was.
    slowest: Option<(u128, String)>,
}

impl OutputState {
    fn wake(&mut self) {
        if self.is_open {
            self.client.take().into_iter().for_each(Waker::wake);
        }
    }
}

/// What an answer is made of, once it can begin.
pub(super) enum Begun {
    /// All of it.
    Whole(PageHead, Vec<Bytes>, RunEnd),
    /// The first part; the rest follows.
    Part(PageHead),
}

impl PageOutput {
    pub(super) fn new(deadline: Instant) -> Arc<PageOutput> {
        Arc::new(PageOutput {
            state: Mutex::default(),
            is_left: AtomicBool::new(false),
            outlasts_client: AtomicBool::new(false),
            deadline,
            calls: Arc::default(),
        })
    }

    /// Why the run has to end now, if it has to.
    pub(super) fn is_over(&self) -> Option<&'static str> {
        let is_left = self.is_left.load(Ordering::Relaxed);
        if is_left && !self.outlasts_client.load(Ordering::Relaxed) {
            return Some("its client has left");
        }
        (Instant::now() >= self.deadline).then_some("it takes longer than `time`")
    }

    /// The run is about to begin. False where nobody wants it any more.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        state.has_begun = self.is_over().is_none();
        state.has_begun
    }

    /// The same for a run that is finished though its client leaves.
    pub(super) fn begin_lasting(&self) -> bool {
        let mut state = self.state.lock();
        state.has_begun = self.is_over().is_none();
        self.outlasts_client
            .store(state.has_begun, Ordering::Relaxed);
        state.has_begun
    }

    pub(super) fn end(&self, end: RunEnd, events: Vec<String>) {
        self.calls.close();
        let mut state = self.state.lock();
        state.end = Some(end);
        state.events = events;
        state.is_open = true;
        state.wake();
    }

    /// A statement was slow.
    pub(super) fn note_slow(&self, ms: u128, what: String) {
        let mut state = self.state.lock();
        if state.slowest.as_ref().is_none_or(|(most, _)| *most < ms) {
            state.slowest = Some((ms, what));
        }
    }

    fn push(&self, piece: Vec<u8>) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.file_begin == state.file_end && state.held_bytes < HELD_BYTES_MAX {
            state.held_bytes += piece.len();
            state.held.push_back(piece.into());
            state.is_open |= state.held_bytes >= HELD_BYTES_MAX;
            state.wake();
            return Ok(());
        }
        let at = state.file_end;
        let known = state.file.clone();
        drop(state);
        let file = match known {
            Some(file) => file,
            None => Arc::new(nameless_file()?),
        };
        let mut written = 0;
        while written < piece.len() {
            written += pwrite(&file, &piece[written..], at + written as u64)?;
        }
        let mut state = self.state.lock();
        state.file = Some(file);
        state.file_end += written as u64;
        state.wake();
        Ok(())
    }
}

/// The output as a run sees it.
pub(super) struct RunSink<'a>(pub(super) &'a PageOutput);

impl Sink for RunSink<'_> {
    fn begin(&mut self, head: &PageHead) -> Result<(), SinkGone> {
        self.0.state.lock().head = Some(head.clone());
        Ok(())
    }

    fn piece(&mut self, bytes: &mut Vec<u8>) -> Result<(), SinkGone> {
        if self.0.is_left.load(Ordering::Relaxed) {
            bytes.clear();
            let goes_on = self.0.outlasts_client.load(Ordering::Relaxed);
            return if goes_on { Ok(()) } else { Err(SinkGone) };
        }
        self.0.push(std::mem::take(bytes)).map_err(|error| {
            hob_trace::warn_seldom!(%error, "the file of a page's output cannot be written");
            SinkGone
        })
    }
}

/// The output as its client sees it. Dropping it ends the run.
pub(super) struct OutputReader(pub(super) Arc<PageOutput>);

impl Drop for OutputReader {
    fn drop(&mut self) {
        // Whether the run begins, and outlasts this, is settled under the lock.
        let state = self.0.state.lock();
        self.0.is_left.store(true, Ordering::Relaxed);
        drop(state);
        if !self.0.outlasts_client.load(Ordering::Relaxed) {
            self.0.calls.close();
        }
    }
}

impl OutputReader {
    /// Ready once the answer can begin.
    pub(super) fn poll_begun(&self, cx: &mut Context<'_>) -> Poll<Begun> {
        let mut state = self.0.state.lock();
        if !state.is_open {
            state.client = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let head = state.head.clone().unwrap_or_default();
        if state.file.is_some() || state.end.is_none() {
            return Poll::Ready(Begun::Part(head));
        }
        let pieces = std::mem::take(&mut state.held).into();
        let end = state.end.take().unwrap_or(RunEnd::Lost);
        Poll::Ready(Begun::Whole(head, pieces, end))
    }

    /// What happened, for who watches.
    pub(super) fn take_events(&self) -> Vec<String> {
        std::mem::take(&mut self.0.state.lock().events)
    }

    /// Tells the record of the slowest statement, if one was slow.
    pub(super) fn tell_slow(&self, request: &Request) {
        if let Some((_, what)) = self.0.state.lock().slowest.take() {
            request.record_mut().note = Some("a statement of the page was slow");
            request.set_detail(what.as_bytes());
        }
    }

    /// What is held of the first part, without waiting: a page's own head stands in it.
    pub(super) fn take_held(&self) -> Vec<Bytes> {
        let mut state = self.0.state.lock();
        state.held_bytes = 0;
        std::mem::take(&mut state.held).into()
    }

    /// Whether a thread has begun the run.
    pub(super) fn has_begun(&self) -> bool {
        self.0.state.lock().has_begun
    }
}

/// A read from the file that is under way.
type FileRead = Pin<Box<dyn Future<Output = io::Result<Bytes>>>>;

/// The body of an answer whose run may not have ended.
pub(super) struct PageBody {
    output: OutputReader,
    /// What goes ahead.
    first: VecDeque<Bytes>,
    reading: Option<FileRead>,
    request: Request,
    counters: Arc<ThreadCounters>,
    pool: DiskThreads,
}

impl PageBody {
    pub(super) fn new(
        output: OutputReader,
        first: Vec<Bytes>,
        request: &Request,
        counters: Arc<ThreadCounters>,
        pool: &DiskThreads,
    ) -> PageBody {
        PageBody {
            output,
            first: first.into(),
            reading: None,
            request: request.clone(),
            counters,
            pool: pool.clone(),
        }
    }

    /// Begins to read from the file; false where it has nothing.
    fn begin_read(&mut self) -> bool {
        let state = self.output.0.state.lock();
        let Some(file) = state.file.clone() else {
            return false;
        };
        let (begin, bytes) = (state.file_begin, state.file_end - state.file_begin);
        if bytes == 0 {
            return false;
        }
        let (pool, bytes) = (self.pool.clone(), bytes.min(PIECE_BYTES));
        self.reading = Some(Box::pin(async move {
            in_pool(&pool, move || read_whole(&file, begin, bytes as usize)).await
        }));
        true
    }

    /// How it ended, once all was read.
    fn at_end(&self, end: RunEnd) -> Option<Result<Chunk, BodyError>> {
        self.output.tell_slow(&self.request);
        if let RunEnd::Done(used) = &end {
            count(&self.counters, used);
            return None;
        }
        fail::note(&self.request, &self.counters, &end);
        let reason = "the page ended before its end";
        Some(Err(BodyError::Source(Fault::Script, reason)))
    }
}

impl BodyStream for PageBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        loop {
            if let Some(mut piece) = self.first.pop_front() {
                let chunk = piece.split_to(piece.len().min(max));
                if !piece.is_empty() {
                    self.first.push_front(piece);
                }
                return Poll::Ready(Some(Ok(Chunk::Bytes(chunk))));
            }
            if let Some(reading) = &mut self.reading {
                let read = ready!(reading.as_mut().poll(cx));
                self.reading = None;
                let broken = "the file of a page's output cannot be read";
                let piece = match read {
                    Ok(piece) => piece,
                    Err(_) => {
                        let error = BodyError::Source(Fault::Server, broken);
                        return Poll::Ready(Some(Err(error)));
                    }
                };
                self.output.0.state.lock().file_begin += piece.len() as u64;
                self.first.push_back(piece);
                continue;
            }
            {
                let mut state = self.output.0.state.lock();
                if !state.held.is_empty() {
                    state.held_bytes = 0;
                    self.first = std::mem::take(&mut state.held);
                    continue;
                }
            }
            if self.begin_read() {
                continue;
            }
            let mut state = self.output.0.state.lock();
            // Something may have come meanwhile.
            if !state.held.is_empty() || state.file_begin < state.file_end {
                continue;
            }
            let Some(end) = state.end.take() else {
                state.client = Some(cx.waker().clone());
                return Poll::Pending;
            };
            drop(state);
            return Poll::Ready(self.at_end(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn output_is_held_and_then_in_a_file_and_never_waits() {
        let output = PageOutput::new(Instant::now() + Duration::from_secs(60));
        let reader = OutputReader(Arc::clone(&output));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(reader.poll_begun(&mut cx).is_pending());
        let mut sink = RunSink(&output);
        sink.begin(&PageHead::default()).unwrap();
        sink.piece(&mut vec![1; HELD_BYTES_MAX - 1]).unwrap();
        assert!(reader.poll_begun(&mut cx).is_pending(), "it may still fail");
        sink.piece(&mut vec![2; HELD_BYTES_MAX]).unwrap();
        sink.piece(&mut vec![3; 1 << 20]).unwrap();
        assert!(matches!(
            reader.poll_begun(&mut cx),
            Poll::Ready(Begun::Part(_))
        ));
        let state = output.state.lock();
        let held: usize = state.held.iter().map(Bytes::len).sum();
        assert_eq!((held, state.file_end), (2 * HELD_BYTES_MAX - 1, 1 << 20));
        drop(state);
        drop(reader);
        assert_eq!(output.is_over(), Some("its client has left"));
        assert_eq!(sink.piece(&mut vec![4]), Err(SinkGone));
    }
}
