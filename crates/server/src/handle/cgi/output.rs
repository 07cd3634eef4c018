//! What a program prints: read ahead until the head is there and a little more, then given to
//! the connection as a pipe.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hob_http::reactor::Timer;
use hob_http::{BodyError, DrainWatch, PipeEnd, Request, Watched};

use crate::handle::cgi::fail::{self, CgiFailure};
use crate::handle::cgi::limits::{FIRST_READ_BYTES, READ_BYTES};
use crate::handle::cgi::run::{ProgramRun, Why};
use crate::handle::script::reply::note_cut;
use hob_keeper::process::Exit;

/// The output of a program whose answer is being made. Dropped before it is taken apart, it ends
/// the program: its client has left.
pub(super) struct ProgramOutput {
    pub(super) run: Rc<ProgramRun>,
    /// All that was read.
    pub(super) bytes: Vec<u8>,
    /// `None` once it has ended.
    source: Option<Watched>,
    /// Until the head is complete.
    first_byte: Timer,
    linger: Timer,
    is_lingering: bool,
    is_taken: bool,
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    /// There are more bytes.
    Bytes,
    /// There are no more.
    End,
}

impl ProgramOutput {
    pub(super) fn new(run: &Rc<ProgramRun>, source: Watched) -> ProgramOutput {
        let first_byte = run.reactor.timer();
        first_byte.set(run.cgi.settings.limits.first_byte);
        ProgramOutput {
            run: Rc::clone(run),
            bytes: Vec::new(),
            source: Some(source),
            first_byte,
            linger: run.reactor.timer(),
            is_lingering: false,
            is_taken: false,
        }
    }

    /// Waits for more.
    pub(super) async fn more(&mut self) -> Result<More, CgiFailure> {
        poll_fn(|cx| self.poll_more(cx)).await
    }

    /// Takes what is there, and what comes until the timer has run out; `None` then.
    pub(super) async fn more_until(&mut self, timer: &Timer) -> Option<Result<More, CgiFailure>> {
        poll_fn(|cx| match self.poll_more(cx) {
            Poll::Ready(more) => Poll::Ready(Some(more)),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        })
        .await
    }

    /// Takes what is there without waiting; `None` when nothing is.
    pub(super) async fn more_now(&mut self) -> Option<Result<More, CgiFailure>> {
        poll_fn(|cx| match self.poll_more(cx) {
            Poll::Ready(more) => Poll::Ready(Some(more)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// True when all of it was read.
    pub(super) fn is_over(&self) -> bool {
        self.source.is_none()
    }

    /// The head is complete: its limit of time no longer holds.
    pub(super) fn has_head(&self) {
        self.first_byte.clear();
    }

    /// How the program ended; waits a while for it. `None` when it goes on without output.
    pub(super) async fn exit(&mut self) -> Option<Exit> {
        poll_fn(|cx| self.poll_exit(cx)).await
    }

    pub(super) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Option<Exit>> {
        self.begin_to_linger();
        match self.run.exit(cx) {
            Some(exit) => Poll::Ready(Some(exit)),
            None => self.linger.poll_elapsed(cx).map(|()| None),
        }
    }

    /// The program may go on by itself: its answer is complete. What it still prints is read and
    /// dropped.
    pub(super) fn release(mut self) {
        self.is_taken = true;
        if let Some(source) = self.source.take() {
            self.run.drop_output(source);
        }
    }

    /// The rest, for a body that comes out of the pipe; `None` when nothing more comes.
    pub(super) fn into_source(mut self) -> Option<Watched> {
        self.is_taken = true;
        self.source.take()
    }

    fn begin_to_linger(&mut self) {
        if !self.is_lingering {
            self.is_lingering = true;
            self.linger.set(self.run.cgi.settings.limits.linger);
        }
    }

    pub(super) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, CgiFailure>> {
        let Some(source) = &self.source else {
            return Poll::Ready(Ok(More::End));
        };
        let filled = self.bytes.len();
        if source.poll_readable(cx).is_pending() {
            return self.poll_silent(cx);
        }
        let room = match filled {
            0 => FIRST_READ_BYTES,
            _ => READ_BYTES,
        };
        self.bytes.resize(filled + room, 0);
        let polled = source.poll_read(cx, &mut self.bytes[filled..]);
        let count = match polled {
            Poll::Ready(Ok(count)) => count,
            _ => 0,
        };
        self.bytes.truncate(filled + count);
        match polled {
            Poll::Ready(Ok(0)) => self.source = None,
            Poll::Ready(Ok(_)) => return Poll::Ready(Ok(More::Bytes)),
            Poll::Ready(Err(_)) => return Poll::Ready(Err(CgiFailure::Unreadable)),
            Poll::Pending => return self.poll_silent(cx),
        }
        Poll::Ready(Ok(More::End))
    }

    /// Nothing to read: whether something is still to come.
    fn poll_silent(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, CgiFailure>> {
        match self.run.exit(cx) {
            Some(Exit::Ended { .. }) => {
                self.begin_to_linger();
                if self.linger.poll_elapsed(cx).is_ready() {
                    self.run.counters.limit_program_linger.add(1);
                    self.source = None;
                    return Poll::Ready(Ok(More::End));
                }
            }
            Some(exit) => return Poll::Ready(Err(CgiFailure::of_exit(exit))),
            None => {}
        }
        if self.run.ended_for() == Some(Why::Total) {
            return Poll::Ready(Err(CgiFailure::Total));
        }
        if self.first_byte.poll_elapsed(cx).is_ready() {
            self.run.counters.limit_program_first_byte.add(1);
            self.run.end(Why::FirstByte);
            return Poll::Ready(Err(CgiFailure::FirstByte));
        }
        Poll::Pending
    }
}

impl Drop for ProgramOutput {
    fn drop(&mut self) {
        if !self.is_taken {
            self.run.end(Why::ClientLeft);
        }
    }
}

/// How long the body of an answer goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputLifetime {
    /// It has an end, which is waited for until `total`.
    ToItsEnd,
    /// A stream of events: `total` does not hold.
    Events,
    /// The same, and the program has said when it is to end.
    EventsUntilTotal,
}

/// The end of a body that comes out of a program's pipe.
pub(super) struct OutputEnd {
    run: Rc<ProgramRun>,
    request: Request,
    span: OutputLifetime,
    /// Of a stream of events.
    events: Option<Events>,
    linger: Timer,
    is_lingering: Cell<bool>,
    is_over: Cell<bool>,
}

/// What ends a stream of events.
struct Events {
    /// Since the last piece.
    silence: Timer,
    silence_max: Duration,
    drain: DrainWatch,
}

impl Events {
    fn begin_silence(&self) {
        if !self.silence_max.is_zero() {
            self.silence.set(self.silence_max);
        }
    }
}

impl OutputEnd {
    pub(super) fn new(run: &Rc<ProgramRun>, request: &Request, span: OutputLifetime) -> OutputEnd {
        if span == OutputLifetime::Events {
            run.set_total(Duration::MAX);
        }
        let events = (span != OutputLifetime::ToItsEnd).then(|| Events {
            silence: run.reactor.timer(),
            silence_max: run.cgi.settings.limits.events,
            drain: run.reactor.watch_drain(),
        });
        if let Some(events) = &events {
            events.begin_silence();
        }
        OutputEnd {
            run: Rc::clone(run),
            request: request.clone(),
            span,
            events,
            linger: run.reactor.timer(),
            is_lingering: Cell::new(false),
            is_over: Cell::new(false),
        }
    }

    fn lingered(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_lingering.replace(true) {
            self.linger.set(self.run.cgi.settings.limits.linger);
        }
        self.linger.poll_elapsed(cx)
    }

    fn decide(&self, cx: &mut Context<'_>, at_eof: bool) -> Poll<Result<(), CgiFailure>> {
        let exit = self.run.exit(cx);
        if self.run.ended_for() == Some(Why::Total) {
            return Poll::Ready(Err(CgiFailure::Total));
        }
        if let Some(exit) = exit
            && let Some(failure) = self.run.failure(exit)
        {
            return Poll::Ready(Err(failure));
        }
        match (exit, at_eof) {
            (Some(_), true) => Poll::Ready(Ok(())),
            // What it left running may write more, or it may yet be told how it ended.
            (Some(_), false) | (None, true) => self.lingered(cx).map(|()| {
                self.run.counters.limit_program_linger.add(1);
                Ok(())
            }),
            (None, false) => self.look_at_events(cx),
        }
    }

    /// A stream of events that is waited for: it ends when the server stops, so that its client
    /// asks again elsewhere, and breaks off when it is silent for too long.
    fn look_at_events(&self, cx: &mut Context<'_>) -> Poll<Result<(), CgiFailure>> {
        let Some(events) = &self.events else {
            return Poll::Pending;
        };
        if events.drain.poll_begun(cx).is_ready() {
            self.run.end(Why::ServerStops);
            return Poll::Ready(Ok(()));
        }
        if events.silence.poll_elapsed(cx).is_ready() {
            self.run.counters.limit_program_events.add(1);
            self.run.end(Why::Silent);
            return Poll::Ready(Err(CgiFailure::Silent));
        }
        Poll::Pending
    }
}

impl PipeEnd for OutputEnd {
    fn poll_end(&self, cx: &mut Context<'_>, at_eof: bool) -> Poll<Result<(), BodyError>> {
        let decided = self.decide(cx, at_eof);
        self.is_over.set(decided.is_ready());
        if decided.is_ready() {
            self.run.note_end(&self.request);
        }
        decided.map_err(|failure| {
            fail::note_detail(&self.request, &self.run, &failure);
            let (fault, reason) = (failure.fault(), failure.reason());
            BodyError::Source(fault, reason)
        })
    }

    fn note_surplus(&self) {
        note_cut(&self.request);
    }

    fn note_progress(&self) {
        if let Some(events) = &self.events {
            events.begin_silence();
        }
    }
}

impl Drop for OutputEnd {
    fn drop(&mut self) {
        if self.span == OutputLifetime::Events {
            // What goes on without its answer does so for as long as any.
            self.run.set_total(self.run.cgi.settings.limits.total);
        }
        // A body of an announced length is complete without anyone asking.
        if !self.is_over.get() && self.request.has_left() {
            self.run.end(Why::ClientLeft);
        }
    }
}
