//! The task that starts a host, looks after it, and starts it again, on one of the threads.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use hob_http::Watched;
use hob_http::reactor::Timer;
use rustix::pipe::PipeFlags;

use crate::handle::script::lives::{LAST_WORDS_WAIT, Means, ending};
use crate::handle::script::stderr::{Stderr, StderrRateLimit, one_line};
use crate::handle::warm::host::{HostCommand, WarmHost};
use crate::handle::warm::limits::{HELD_LINES_MAX, START_TIME};
use crate::handle::warm::protocol::{FROM_HOST_BYTES_MAX, FromHost};
use hob_keeper::parcel;
use hob_keeper::process::packet::{self, Received};
use hob_keeper::process::{Child, EndSignal, Exit, Start, Strings};

/// Starts a host, looks after it, and starts it again when it dies, until no route wants it or it
/// cannot start.
pub(crate) fn start(host: &Arc<WarmHost>, means: &Means) {
    let (host, means) = (Arc::downgrade(host), means.clone());
    let reactor = means.reactor.clone();
    reactor.spawn_standing(async move {
        while let Some(pause) = run(&host, &means).await {
            let timer = means.reactor.timer();
            timer.set(pause);
            poll_fn(|cx| timer.poll_elapsed(cx)).await;
            match host.upgrade() {
                Some(host) => host.begin_again(),
                None => return,
            }
        }
    });
}

/// One life of a host; how long to wait before the next, when there is to be one.
async fn run(host: &Weak<WarmHost>, means: &Means) -> Option<Duration> {
    // Held for no longer than it takes: a keeper keeps no host that nobody wants.
    let begun = {
        let host = host.upgrade()?;
        host.tally.starts.fetch_add(1, Ordering::Relaxed);
        means.counters.warm_starts.add(1);
        begin(&host, means)
    };
    let exit = match begun {
        Ok(mut keeper) => poll_fn(|cx| keeper.poll(cx)).await,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let step = "make its sockets and pipes";
            Exit::NotStarted { step, errno }
        }
    };
    let host = host.upgrade()?;
    let is_blameless = exit.is_lack() || exit == Exit::HostGone;
    let is_crash = host.tally.is_up.load(Ordering::Relaxed);
    match is_crash {
        true => means.counters.warm_crashes.add(1),
        false => means.counters.warm_failures.add(1),
    }
    let why = ending("the warm interpreter", exit);
    let name = String::from_utf8_lossy(&host.birth.interpreter);
    match is_crash {
        true => tracing::warn!(interpreter = %name, "warm: {why}"),
        false => match host.new_cause(&why) {
            Some(cause) => tracing::warn!(
                interpreter = %name,
                "warm: {cause}; all that it printed is told by `hob status --programs`"
            ),
            None => tracing::debug!(interpreter = %name, "warm: {why} again"),
        },
    }
    host.is_gone(&why, is_blameless)
}

fn begin(host: &Arc<WarmHost>, means: &Means) -> io::Result<HostTask> {
    let (launcher, reactor) = (&means.launcher, &means.reactor);
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let birth = &host.birth;
    let (first, theirs) = parcel::pair()?;
    let (output, printed) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let child = launcher.start(Start {
        program: host.program(),
        path: birth.interpreter.clone(),
        dir: birth.dir.clone(),
        arguments: birth.arguments.clone(),
        // Both are the spawner's to give.
        environment: Strings::new(),
        stdin: None,
        stdout: printed.try_clone()?,
        stderr: printed,
        channel: Some(theirs),
        outlives: false,
        takes_along: true,
    });
    let mut output = Stderr::new(reactor.watch_later(output)?);
    output.look();
    let for_others = first.try_clone()?;
    let timer = reactor.timer();
    timer.set(START_TIME);
    Ok(HostTask {
        host: Arc::downgrade(host),
        name: String::from_utf8_lossy(&birth.interpreter).into_owned(),
        serial: SERIAL.fetch_add(1, Ordering::Relaxed) + 1,
        child,
        first: Some(reactor.watch(first)?),
        for_others: Some(for_others),
        output,
        is_output_over: false,
        held: Vec::new(),
        pace: StderrRateLimit::default(),
        means: means.clone(),
        timer,
        gone: None,
    })
}

struct HostTask {
    host: Weak<WarmHost>,
    name: String,
    serial: u64,
    child: Child,
    /// The first link; `None` when it is over, or to be.
    first: Option<Watched>,
    /// The same, until the host is ready.
    for_others: Option<OwnedFd>,
    output: Stderr,
    is_output_over: bool,
    /// What it printed before it was ready: of one that never is, the cause alone is logged.
    held: Vec<String>,
    /// How many lines of it are logged.
    pace: StderrRateLimit,
    means: Means,
    /// Until it is ready; when it is gone, until its last words are in.
    timer: Timer,
    gone: Option<Exit>,
}

impl HostTask {
    /// How the host ended, once it has and what it said is in.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        let host = self.host.upgrade();
        self.read_output(cx, host.as_deref());
        match &host {
            Some(host) => {
                if let Some(pid) = self.child.pid() {
                    host.tally.pid.store(pid, Ordering::Relaxed);
                }
                self.follow_orders(cx, host);
                self.read_link(cx, host);
            }
            // Nobody wants it, and it may not come to see that its first link has ended.
            None if self.for_others.take().is_some() => self.child.end(EndSignal::Kill),
            // Without its first link it ends when its runs have.
            None => self.first = None,
        }
        if self.gone.is_none()
            && let Poll::Ready(exit) = self.child.poll_exit(cx)
        {
            self.gone = Some(exit);
            self.timer.set(LAST_WORDS_WAIT);
        }
        if let Some(exit) = self.gone {
            if !self.is_output_over && self.timer.poll_elapsed(cx).is_pending() {
                return Poll::Pending;
            }
            return Poll::Ready(exit);
        }
        if self.for_others.is_some() && self.timer.poll_elapsed(cx).is_ready() {
            tracing::warn!(interpreter = %self.name, "a warm interpreter took too long to start");
            self.child.end(EndSignal::Kill);
            self.for_others = None;
        }
        Poll::Pending
    }

    fn read_output(&mut self, cx: &mut Context<'_>, host: Option<&WarmHost>) {
        let (name, held) = (&self.name, &mut self.held);
        let (pace, means) = (&self.pace, &self.means);
        let is_starting = self.for_others.is_some();
        let each = |line: &[u8]| {
            let text = one_line(&String::from_utf8_lossy(line));
            if let Some(host) = host {
                host.note_line(line);
            }
            match is_starting {
                false => log(name, pace, means, &text),
                true if held.len() < HELD_LINES_MAX => held.push(text),
                true => {}
            }
        };
        let over = self.output.poll(cx, &mut Vec::new(), each);
        self.is_output_over |= over.is_ready();
    }

    fn follow_orders(&self, cx: &mut Context<'_>, host: &WarmHost) {
        while let Poll::Ready(order) = host.poll_order(cx) {
            match order {
                HostCommand::EndRun(run, how) => self.child.end_part(run, how),
                HostCommand::EndAll => self.child.end(EndSignal::Kill),
            }
        }
    }

    fn read_link(&mut self, cx: &mut Context<'_>, host: &WarmHost) {
        let mut buffer = [0; FROM_HOST_BYTES_MAX];
        while let Some(first) = &self.first
            && first.poll_readable(cx).is_ready()
        {
            match packet::receive(first.fd(), &mut buffer) {
                Received::Nothing => first.clear_readable(),
                Received::Packet(len, _) => match FromHost::decode(&buffer[..len]) {
                    Ok(FromHost::Ready(what)) => self.note_ready(host, what),
                    Ok(FromHost::Over(..)) | Err(_) => {
                        tracing::error!(interpreter = %self.name, "a warm interpreter makes no sense");
                        self.first = None;
                        self.child.end(EndSignal::Kill);
                    }
                },
                Received::Gone | Received::Bare(_) => self.first = None,
            }
        }
    }

    fn note_ready(&mut self, host: &WarmHost, what: &[u8]) {
        if let Some(first) = self.for_others.take() {
            self.timer.clear();
            for text in self.held.drain(..) {
                tracing::warn!(interpreter = %self.name, "warm: {text}");
            }
            let what = String::from_utf8_lossy(what);
            tracing::info!(interpreter = %self.name, "warm: {} is ready", what.escape_debug());
            if let Some(pid) = self.child.pid() {
                host.tally.pid.store(pid, Ordering::Relaxed);
            }
            host.is_up(self.serial, first, what.into_owned());
        }
    }
}

/// Tells the log a line that an interpreter printed, as long as there are not too many.
fn log(name: &str, pace: &StderrRateLimit, means: &Means, text: &str) {
    let Some(left_out) = pace.allows(means.reactor.now_ms()) else {
        return means.counters.program_stderr_dropped.add(1);
    };
    if left_out > 0 {
        tracing::warn!(interpreter = %name, lines = left_out, "more output than is logged");
    }
    tracing::warn!(interpreter = %name, "warm: {text}");
}
