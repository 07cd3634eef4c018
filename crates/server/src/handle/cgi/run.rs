//! A running program: what the answer, its body and the overseer know of it together, and the
//! overseer, a task of its own that outlives the answer.
//!
//! ```text
//!   start --> runs --> ended by itself ----------------------------.
//!               |                                                  v
//!               |  client left, time up: SIGTERM --grace--> SIGKILL --> output read for `linger`
//! ```
//!
//! The place among the running is given back when the process has ended, not when its answer has:
//! a program may go on working after it has closed its output, until `total`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hob_http::reactor::Timer;
use hob_http::{Aftermath, Reactor, Request, Watched};
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::{Hidden, Pen, RequestStage, Trail};
use hob_trace::{Fault, ProgramEnd};

use crate::handle::cgi::fail::{self, CgiFailure};
use crate::handle::cgi::limits::{KILLED_WAIT, READ_BYTES, STDERR_UNSEEN};
use crate::handle::cgi::running::RunningProcess;
use crate::handle::cgi::{Cgi, Runs};
use crate::handle::config::ExitRule;
use crate::handle::script::gate::Permit;
use crate::handle::script::limits::ASIDE_BYTES_PER_TURN;
use crate::handle::script::stderr::{self, Stderr};
use hob_keeper::process::{EndSignal, Exit};

/// An exit code that is recorded, and counts for nothing.
const ODD_CODE: &str = "the program ended with an exit code other than 0";
const FAILED_LATE: &str = "the program failed after its answer was complete";

/// Why a program is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Nobody waits for its answer any more.
    ClientLeft,
    /// Its head did not come in time.
    FirstByte,
    /// It ran for too long.
    Total,
    /// Its output is no answer.
    Unusable,
    /// Its stream of events fell silent.
    Silent,
    /// Its stream of events has ended because the server stops.
    ServerStops,
}

/// What runs, as its answer sees it.
pub(super) struct ProgramRun {
    pub(super) cgi: Arc<Cgi>,
    pub(super) reactor: Reactor,
    pub(super) counters: Arc<ThreadCounters>,
    /// The request's, for the log.
    pub(super) id: Box<str>,
    /// The program's file.
    pub(super) file: Box<[u8]>,
    /// When its start was asked for, in microseconds on the monotonic clock.
    asked_us: u64,
    /// The status of its answer, once it has a head; else 0.
    status: Cell<u16>,
    /// Who watches the request.
    trail: Trail,
    state: RefCell<ProgramRunState>,
}

#[derive(Default)]
struct ProgramRunState {
    /// How it ended, once the spawner has told.
    exit: Option<Exit>,
    /// Why it was told to end, where it was.
    ended_for: Option<Why>,
    /// A new `total`, from now on.
    total: Option<Duration>,
    /// The end of its standard error, for the record.
    printed: Vec<u8>,
    /// Nothing more comes of that.
    is_stderr_over: bool,
    /// How long the record waits for the end of what has answered already.
    told_late: Option<Timer>,
    /// Output that nobody wants.
    unwanted: Option<Watched>,
    /// The answer waits for news of the run.
    answer: Option<Waker>,
    /// So does its overseer.
    overseer: Option<Waker>,
}

impl ProgramRun {
    pub(super) fn new(
        cgi: Arc<Cgi>,
        reactor: Reactor,
        counters: Arc<ThreadCounters>,
        id: Box<str>,
        file: Box<[u8]>,
        trail: Trail,
        asked_us: u64,
    ) -> Rc<ProgramRun> {
        Rc::new(ProgramRun {
            cgi,
            reactor,
            counters,
            id,
            file,
            asked_us,
            status: Cell::new(0),
            trail,
            state: RefCell::default(),
        })
    }

    /// Looks after the process until it is gone.
    pub(super) fn oversee(
        self: &Rc<ProgramRun>,
        child: RunningProcess,
        stderr: Watched,
        permit: Permit,
    ) {
        let total = self.reactor.timer();
        total.set(self.cgi.settings.limits.total);
        let next = self.reactor.timer();
        next.set(STDERR_UNSEEN);
        let mut overseer = Overseer {
            run: Rc::clone(self),
            child,
            stderr: Stderr::new(stderr),
            permit: Some(permit),
            total,
            next,
            stage: ProcessStage::Runs,
        };
        self.reactor
            .spawn(async move { poll_fn(|cx| overseer.poll(cx)).await });
    }

    /// How it ended, once it has. The answer is woken for that and for everything else it should
    /// look at.
    pub(super) fn exit(&self, cx: &mut Context<'_>) -> Option<Exit> {
        let mut state = self.state.borrow_mut();
        let old = state.answer.replace(cx.waker().clone());
        let exit = state.exit;
        drop(state);
        drop(old);
        exit
    }

    /// The head of its answer is there.
    pub(super) fn has_head(&self, status: u16) {
        self.status.set(status);
    }

    /// Why an answer whose output has ended is not whole, as the end of its program tells.
    ///
    /// An exit code alone says little: that of a shell script is its last command's, and old
    /// scripts end with `exit 1` out of habit. What an uncaught error leaves in every language is
    /// a code and words on standard error. A program whose own status says that it failed (pages of
    /// `CGI::Carp`) has told its client already.
    pub(super) fn failure(&self, exit: Exit) -> Option<CgiFailure> {
        let (code, signal) = match exit {
            Exit::Ended { code, signal, .. } => (code.unwrap_or_default(), signal),
            exit => return Some(CgiFailure::of_exit(exit)),
        };
        let is_told = || self.status.get() >= 400 || self.printed().trim_ascii().is_empty();
        match (self.cgi.settings.exit, signal, &self.cgi.runs) {
            (ExitRule::Trust, ..) => None,
            (_, Some(signal), _) => Some(CgiFailure::Killed(signal)),
            (_, None, _) if code == 0 => None,
            (_, None, Runs::Command(_)) => Some(CgiFailure::Code(code)),
            (_, None, _) => (!is_told()).then_some(CgiFailure::Failed(code)),
        }
    }

    /// Tells the record how the process ended and what it has used, if that is known by now.
    pub(super) fn note_end(&self, request: &Request) {
        let Some(exit) = self.state.borrow().exit else {
            return;
        };
        request.tell(RequestStage::Program, format_args!("{exit}"));
        let Exit::Ended {
            code,
            signal,
            usage,
            process,
            ..
        } = exit
        else {
            return;
        };
        let (end, number) = match (signal, code.unwrap_or_default()) {
            (Some(signal), _) => (ProgramEnd::Killed, signal),
            (None, 0) => (ProgramEnd::Clean, 0),
            (None, code) if self.failure(exit).is_some() => (ProgramEnd::Failed, code),
            (None, code) => (ProgramEnd::Code, code),
        };
        let mut record = request.record_mut();
        record.cpu_us = usage.user_us + usage.system_us;
        record.pid = process.pid;
        (record.program_end, record.end_number) = (end, number as u8);
        if process.since_us > 0 {
            record.start_us = process.since_us.saturating_sub(self.asked_us).max(1);
        }
        if end == ProgramEnd::Code {
            record.note.get_or_insert(ODD_CODE);
        }
    }

    /// Tells the record of an exit code that is no failure of its own.
    pub(super) fn note_code(&self, request: &Request) {
        if let Some(exit) = self.state.borrow().exit {
            fail::note_end_detail(request, self, exit);
        }
    }

    /// The answer has left: what the end of its program adds to the record.
    fn note_late_end(&self, request: &Request) {
        let state = self.state.borrow();
        let (exit, ended_for) = (state.exit, state.ended_for);
        drop(state);
        let Some(exit) = exit else {
            return;
        };
        if request.record().program_end == ProgramEnd::Unknown {
            self.note_end(request);
        }
        let mut record = request.record_mut();
        let is_clean = record.fault == Fault::None;
        if is_clean && ended_for.is_none() && self.failure(exit).is_some() {
            record.fault = Fault::Script;
            record.reason = Some(FAILED_LATE);
        }
        drop(record);
        let says_more = !matches!(exit, Exit::Ended { code: Some(0), .. })
            || !self.printed().trim_ascii().is_empty();
        if request.detail().is_empty() && says_more {
            fail::note_end_detail(request, self, exit);
        }
    }

    /// Why it is ended, if it is.
    pub(super) fn ended_for(&self) -> Option<Why> {
        self.state.borrow().ended_for
    }

    /// Has it ended, for the first reason that is given.
    pub(super) fn end(&self, why: Why) {
        let mut state = self.state.borrow_mut();
        state.ended_for.get_or_insert(why);
        wake(state.overseer.take());
    }

    /// Gives it so long from now on, instead of what is left of `total`; `Duration::MAX` is for
    /// ever.
    pub(super) fn set_total(&self, total: Duration) {
        let mut state = self.state.borrow_mut();
        state.total = Some(total);
        wake(state.overseer.take());
    }

    /// Has the rest of its output read and dropped, so that it can end by itself.
    pub(super) fn drop_output(&self, output: Watched) {
        let mut state = self.state.borrow_mut();
        let old = state.unwanted.replace(output);
        wake(state.overseer.take());
        drop(state);
        drop(old);
    }

    /// The last of what it printed on standard error.
    pub(super) fn printed(&self) -> Vec<u8> {
        self.state.borrow().printed.clone()
    }

    /// Whether standard error has ended.
    pub(super) fn is_stderr_over(&self) -> bool {
        self.state.borrow().is_stderr_over
    }

    fn log(&self, line: &[u8]) {
        if self.trail.is_traced() {
            let now_us = self.reactor.now_us();
            let tell = |pen: &mut Pen<'_>, _: Option<&Hidden>| pen.text("text", line);
            self.reactor
                .station()
                .tell(&self.trail, RequestStage::Stderr, now_us, tell);
        }
        let paced = (&self.cgi.pace, &*self.counters);
        let now_ms = self.reactor.now_ms();
        stderr::log(paced, now_ms, (&self.id, &self.file), line);
    }
}

impl Aftermath for ProgramRun {
    fn poll_told(&self, cx: &mut Context<'_>, request: &Request) -> Poll<()> {
        if self.exit(cx).is_none() {
            let linger = self.cgi.settings.limits.linger;
            let mut state = self.state.borrow_mut();
            let timer = state.told_late.get_or_insert_with(|| {
                let timer = self.reactor.timer();
                timer.set(linger);
                timer
            });
            if timer.poll_elapsed(cx).is_pending() {
                return Poll::Pending;
            }
        }
        self.note_late_end(request);
        Poll::Ready(())
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

struct Overseer {
    run: Rc<ProgramRun>,
    child: RunningProcess,
    stderr: Stderr,
    permit: Option<Permit>,
    total: Timer,
    /// When the next stage begins; at first, when standard error is looked at.
    next: Timer,
    stage: ProcessStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessStage {
    Runs,
    /// SIGTERM was sent.
    Asked,
    /// SIGKILL was sent.
    Killed,
    /// It has ended; what it left running may still hold its output.
    Ended,
}

impl Overseer {
    /// Ready when nothing is left to do.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.hear_wishes(cx);
        if self.stage != ProcessStage::Ended
            && let Poll::Ready(exit) = self.child.poll_exit(cx)
        {
            self.note_exit(exit);
        }
        self.read_stderr(cx);
        if self.stage == ProcessStage::Ended {
            let is_over = self.run.is_stderr_over() && !self.drop_unwanted(cx);
            return match is_over || self.next.poll_elapsed(cx).is_ready() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            };
        }
        self.drop_unwanted(cx);
        self.press_on(cx);
        Poll::Pending
    }

    fn hear_wishes(&mut self, cx: &mut Context<'_>) {
        let mut state = self.run.state.borrow_mut();
        let old = state.overseer.replace(cx.waker().clone());
        if let Some(total) = state.total.take() {
            self.total.set(total);
        }
        drop(state);
        drop(old);
    }

    fn read_stderr(&mut self, cx: &mut Context<'_>) {
        let is_due = self.stage != ProcessStage::Runs
            || self.run.trail.is_traced()
            || self.run.ended_for().is_some()
            || self.next.poll_elapsed(cx).is_ready();
        if is_due {
            self.stderr.look();
        }
        let mut printed = std::mem::take(&mut self.run.state.borrow_mut().printed);
        let run = &self.run;
        let polled = self.stderr.poll(cx, &mut printed, |line| run.log(line));
        let mut state = self.run.state.borrow_mut();
        state.printed = printed;
        if polled.is_ready() && !state.is_stderr_over {
            state.is_stderr_over = true;
            let answer = state.answer.take();
            drop(state);
            wake(answer);
        }
    }

    fn note_exit(&mut self, exit: Exit) {
        self.permit = None;
        self.stage = ProcessStage::Ended;
        self.next.set(self.run.cgi.settings.limits.linger);
        let mut state = self.run.state.borrow_mut();
        state.exit = Some(exit);
        let answer = state.answer.take();
        drop(state);
        wake(answer);
        // Last: nobody waits for this.
        if let Exit::Ended { usage, .. } = exit {
            let (run, cpu_us) = (&self.run, usage.user_us + usage.system_us);
            let now_ms = run.reactor.now_ms();
            run.cgi.scripts.note(&run.file, cpu_us, now_ms);
        }
    }

    /// Ends the process, step by step, when that is due.
    fn press_on(&mut self, cx: &mut Context<'_>) {
        if self.total.poll_elapsed(cx).is_ready() && self.run.ended_for().is_none() {
            self.run.counters.limit_program_total.add(1);
            let mut state = self.run.state.borrow_mut();
            state.ended_for = Some(Why::Total);
            let answer = state.answer.take();
            drop(state);
            wake(answer);
        }
        if self.stage == ProcessStage::Runs && self.run.ended_for().is_some() {
            self.child.end(EndSignal::Term);
            self.stage = ProcessStage::Asked;
            self.next.set(self.run.cgi.settings.limits.grace);
        }
        if self.stage == ProcessStage::Asked && self.next.poll_elapsed(cx).is_ready() {
            self.run.counters.limit_program_grace.add(1);
            self.child.end(EndSignal::Kill);
            self.stage = ProcessStage::Killed;
            self.next.set(KILLED_WAIT);
        }
        if self.stage == ProcessStage::Killed && self.next.poll_elapsed(cx).is_ready() {
            // Nobody says that it has ended: it was not there yet, or who should tell does not.
            self.child.end(EndSignal::Kill);
            self.next.set(KILLED_WAIT);
        }
    }

    /// Reads output that nobody wants; true while more may come.
    fn drop_unwanted(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(output) = self.run.state.borrow_mut().unwanted.take() else {
            return false;
        };
        let mut buffer = [0; READ_BYTES];
        for _ in 0..ASIDE_BYTES_PER_TURN / READ_BYTES {
            match output.poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(count)) if count > 0 => {}
                Poll::Ready(_) => return false,
                Poll::Pending => {
                    self.run.state.borrow_mut().unwanted = Some(output);
                    return true;
                }
            }
        }
        self.run.state.borrow_mut().unwanted = Some(output);
        cx.waker().wake_by_ref();
        true
    }
}
