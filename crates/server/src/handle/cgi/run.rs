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

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hob_http::reactor::Timer;
use hob_http::{Reactor, Request, Watched};
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::{Hidden, Pen, Stage as Event, Trail};

use crate::handle::cgi::Cgi;
use crate::handle::cgi::gate::Permit;
use crate::handle::cgi::limits::{ASIDE_BYTES_PER_TURN, KILLED_WAIT, READ_BYTES, STDERR_UNSEEN};
use crate::handle::cgi::running::Running;
use crate::handle::cgi::stderr::Stderr;
use crate::process::{End, Exit};

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
}

/// What runs, as its answer sees it.
pub(super) struct Run {
    pub(super) cgi: Arc<Cgi>,
    pub(super) reactor: Reactor,
    pub(super) counters: Arc<ThreadCounters>,
    /// The request's, for the log.
    pub(super) id: Box<str>,
    /// The program's file.
    pub(super) file: Box<[u8]>,
    /// Who watches the request.
    trail: Trail,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    exit: Option<Exit>,
    ended_for: Option<Why>,
    /// A new `total`, from now on.
    total: Option<Duration>,
    printed: Vec<u8>,
    is_stderr_over: bool,
    /// Output that nobody wants.
    unwanted: Option<Watched>,
    answer: Option<Waker>,
    overseer: Option<Waker>,
}

impl Run {
    pub(super) fn new(
        cgi: Arc<Cgi>,
        reactor: Reactor,
        counters: Arc<ThreadCounters>,
        id: Box<str>,
        file: Box<[u8]>,
        trail: Trail,
    ) -> Rc<Run> {
        Rc::new(Run {
            cgi,
            reactor,
            counters,
            id,
            file,
            trail,
            state: RefCell::default(),
        })
    }

    /// Looks after the process until it is gone.
    pub(super) fn oversee(self: &Rc<Run>, child: Running, stderr: Watched, permit: Permit) {
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
            stage: Stage::Runs,
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

    /// Tells the record what the process has used, if that is known by now.
    pub(super) fn note_use(&self, request: &Request) {
        let Some(exit) = self.state.borrow().exit else {
            return;
        };
        if let Exit::Ended { usage, .. } = exit {
            request.record_mut().cpu_us = usage.user_us + usage.system_us;
        }
        request.tell(Event::Program, format_args!("{exit}"));
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

    /// Gives it so long from now on, instead of what is left of `total`.
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

    /// The beginning of what it printed on standard error.
    pub(super) fn printed(&self) -> Vec<u8> {
        self.state.borrow().printed.clone()
    }

    /// Whether standard error has ended.
    pub(super) fn is_stderr_over(&self) -> bool {
        self.state.borrow().is_stderr_over
    }

    fn log(&self, line: &[u8]) {
        if self.trail.is_watched() {
            let now_us = self.reactor.now_us();
            let tell = |pen: &mut Pen<'_>, _: Option<&Hidden>| pen.text("text", line);
            self.reactor
                .station()
                .tell(&self.trail, Event::Stderr, now_us, tell);
        }
        let Some(dropped) = self.cgi.pace.allows(self.reactor.now_ms()) else {
            self.counters.program_stderr_dropped.add(1);
            return;
        };
        let program = String::from_utf8_lossy(&self.file);
        if dropped > 0 {
            tracing::warn!(%program, lines = dropped, "more standard error than is logged");
        }
        let text = one_line(&String::from_utf8_lossy(line));
        tracing::warn!(request = %self.id, %program, "stderr: {text}");
    }
}

/// A line as it was printed, but what cannot be seen is made visible: it cannot move a terminal's
/// cursor, or look like a line of ours. Quotes and backslashes stay, messages are full of them.
fn one_line(text: &str) -> String {
    const STAY: [char; 3] = ['\'', '"', '\\'];
    let text = text.trim_end();
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(STAY) {
        let before = piece.strip_suffix(STAY).unwrap_or(piece);
        shown.extend(before.escape_debug());
        shown.push_str(&piece[before.len()..]);
    }
    shown
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

struct Overseer {
    run: Rc<Run>,
    child: Running,
    stderr: Stderr,
    permit: Option<Permit>,
    total: Timer,
    /// When the next stage begins; at first, when standard error is looked at.
    next: Timer,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
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
        if self.stage != Stage::Ended
            && let Poll::Ready(exit) = self.child.poll_exit(cx)
        {
            self.note_exit(exit);
        }
        self.read_stderr(cx);
        if self.stage == Stage::Ended {
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
        let is_due = self.stage != Stage::Runs
            || self.run.trail.is_watched()
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
        self.stage = Stage::Ended;
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
        if self.stage == Stage::Runs && self.run.ended_for().is_some() {
            self.child.end(End::Term);
            self.stage = Stage::Asked;
            self.next.set(self.run.cgi.settings.limits.grace);
        }
        if self.stage == Stage::Asked && self.next.poll_elapsed(cx).is_ready() {
            self.run.counters.limit_program_grace.add(1);
            self.child.end(End::Kill);
            self.stage = Stage::Killed;
            self.next.set(KILLED_WAIT);
        }
        if self.stage == Stage::Killed && self.next.poll_elapsed(cx).is_ready() {
            // Nobody says that it has ended: it was not there yet, or who should tell does not.
            self.child.end(End::Kill);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_standard_error_is_shown_as_it_was_printed() {
        assert_eq!(
            one_line("env: 'x': \"no\" C:\\a é\r\n"),
            "env: 'x': \"no\" C:\\a é"
        );
        assert_eq!(
            one_line("a\tb\x1b[2Jc\0\u{85}d"),
            "a\\tb\\u{1b}[2Jc\\0\\u{85}d"
        );
    }
}
