//! What a bare start costs: an interpreter with nothing to do, started as the scripts of a route
//! are (by the spawner, as the same user, in the same sandbox), at the lowest priority.
//!
//! The CPU time is what the kernel tells the spawner of the ended process, exactly as for the runs
//! of scripts, so that the two can be subtracted.

use std::fs::{File, OpenOptions};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::task::Poll;
use std::time::Duration;

use hob_http::Reactor;
use hob_http::thread::{Crew, Handle, Thread};
use rustix::io::Errno;

use hob_keeper::process::{EndSignal, Exit, Launcher, ProgramRef, Start, Strings, bare};
use hob_server::answer::Answers;

/// How often it is started; the first time is not counted, it may find its files on a disk.
const RUNS: usize = 5;
/// How long one start may take until it is ended; at the lowest priority, on a busy machine.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(10);
/// How long the thread that starts it may take to answer beyond that.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is started, and as which program of the policy.
#[derive(Clone, Debug)]
pub(crate) struct BareStart {
    pub(crate) program: ProgramRef,
    pub(crate) path: Vec<u8>,
    pub(crate) dir: Vec<u8>,
}

/// Why a start could not be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unmeasured {
    /// It is the interpreter's own doing: it will be the same the next time.
    Its(String),
    /// The moment's: there was no spawner, say, or no descriptor left.
    Passing(String),
}

/// CPU time of a start in microseconds, the median of some. Takes a while.
///
/// # Errors
/// Why that cannot be told.
pub(crate) fn measure(crew: &Arc<Crew>, start: &BareStart) -> Result<u64, Unmeasured> {
    let mut costs_us = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        costs_us.push(cost_us(&run(crew, start)?)?);
    }
    costs_us.remove(0);
    costs_us.sort_unstable();
    Ok((costs_us[costs_us.len() / 2 - 1] + costs_us[costs_us.len() / 2]) / 2)
}

const _: () = assert!(RUNS >= 3 && RUNS % 2 == 1);

/// What one start used.
fn cost_us(exit: &Exit) -> Result<u64, Unmeasured> {
    match exit {
        Exit::Ended {
            code: Some(0),
            usage,
            ..
        } => Ok(usage.user_us + usage.system_us),
        Exit::Ended {
            code: Some(code), ..
        } => Err(Unmeasured::Its(format!("it ended with exit code {code}"))),
        Exit::Ended { .. } => Err(Unmeasured::Its(exit.to_string())),
        Exit::NotStarted { errno, .. } if !is_passing(*errno) => {
            Err(Unmeasured::Its(exit.to_string()))
        }
        // It has not run.
        Exit::NotStarted { .. } | Exit::SpawnerGone | Exit::HostGone | Exit::Busy => {
            Err(Unmeasured::Passing(exit.to_string()))
        }
    }
}

/// What could not be done now may be done later: there were too many of something.
fn is_passing(errno: i32) -> bool {
    let passing = [
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::MFILE,
        Errno::NFILE,
        Errno::CANCELED,
        Errno::INTR,
    ];
    passing.iter().any(|one| one.raw_os_error() == errno)
}

/// Starts it once, on a thread with a link to the spawner, and waits for its end.
fn run(crew: &Arc<Crew>, start: &BareStart) -> Result<Exit, Unmeasured> {
    let Some(arguments) = bare::arguments(&start.path) else {
        let text = "hob does not know how to start it with nothing to do";
        return Err(Unmeasured::Its(text.to_owned()));
    };
    let null = || OpenOptions::new().write(true).open("/dev/null");
    let cannot = |error: std::io::Error| Unmeasured::Passing(format!("/dev/null: {error}"));
    let outputs = (null().map_err(cannot)?, null().map_err(cannot)?);
    let (done, ended) = mpsc::channel();
    let start = start_of(start, arguments, outputs);
    Handle::new(crew, 0).run(move |thread: &mut Thread<Answers>| {
        if let Some((launcher, reactor)) = thread.answer().launching() {
            begin(launcher, reactor, start, done);
        }
    });
    match ended.recv_timeout(TIME_MAX + PATIENCE) {
        Ok(Some(exit)) => Ok(exit),
        Ok(None) => {
            let text = format!("it did not end within {} s", TIME_MAX.as_secs());
            Err(Unmeasured::Its(text))
        }
        Err(_) => Err(Unmeasured::Passing("nothing can be started now".to_owned())),
    }
}

fn start_of(bare: &BareStart, arguments: Strings, (stdout, stderr): (File, File)) -> Start {
    Start {
        program: bare.program,
        path: bare.path.clone(),
        dir: bare.dir.clone(),
        arguments,
        environment: Strings::new(),
        stdin: None,
        stdout: stdout.into(),
        stderr: stderr.into(),
        channel: None,
        outlives: false,
        takes_along: true,
    }
}

/// The part on a thread of the server: starts it, and tells its end, or `None` when its time is up.
pub(crate) fn begin(
    launcher: &Launcher,
    reactor: &Reactor,
    start: Start,
    done: Sender<Option<Exit>>,
) {
    let child = launcher.start(start);
    let timer = reactor.timer();
    timer.set(TIME_MAX);
    reactor.spawn_standing(async move {
        let exit = poll_fn(|cx| match child.poll_exit(cx) {
            Poll::Ready(exit) => Poll::Ready(Some(exit)),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        })
        .await;
        if exit.is_none() {
            child.end(EndSignal::Kill);
        }
        // Who asked may have given up.
        let _ = done.send(exit);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_keeper::process::{ProgramProcess, Usage};

    #[test]
    fn only_what_has_run_is_to_blame() {
        let ended = |code, signal| Exit::Ended {
            code,
            signal,
            core: false,
            usage: Usage::default(),
            process: ProgramProcess::default(),
        };
        assert_eq!(cost_us(&ended(Some(0), None)), Ok(0));
        let not_started = |errno: Errno| Exit::NotStarted {
            step: "cannot fork",
            errno: errno.raw_os_error(),
        };
        for exit in [
            ended(Some(3), None),
            ended(None, Some(9)),
            not_started(Errno::ACCESS),
            not_started(Errno::NOENT),
        ] {
            assert!(matches!(cost_us(&exit), Err(Unmeasured::Its(_))), "{exit}");
        }
        for exit in [
            not_started(Errno::AGAIN),
            Exit::SpawnerGone,
            Exit::HostGone,
            Exit::Busy,
        ] {
            let told = cost_us(&exit);
            assert!(matches!(told, Err(Unmeasured::Passing(_))), "{exit}");
        }
    }
}
