//! The task that starts a process of a program, looks after it, and starts it again, on one of the
//! threads.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hob_http::Watched;
use hob_http::reactor::Timer;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, shutdown,
    socket_with,
};
use rustix::pipe::PipeFlags;

use crate::handle::script::lives::{LAST_WORDS_WAIT, Means, PROVEN_AFTER, back_off, ending};
use crate::handle::script::stderr::{Stderr, one_line};
use crate::handle::upstream::run::config::RunKind;
use crate::handle::upstream::run::program::{AfterEnd, RunPlace, RunProgram};
use crate::handle::upstream::run::socket::RunListener;
use crate::handle::upstream::run::start;
use hob_keeper::process::{Child, EndSignal, Exit, Start, Strings};

/// Starts its processes, and each again when it dies, until no route asks the program.
pub(crate) fn start(program: &Arc<RunProgram>, means: &Means) {
    let listener = program.listener_to_start();
    for index in 0..program.settings.processes() {
        let (program, means) = (Arc::downgrade(program), means.clone());
        let listener = Arc::clone(&listener);
        let at = RunPlace { listener, index };
        let reactor = means.reactor.clone();
        reactor.spawn_standing(async move {
            let mut deaths = 0;
            loop {
                let begun = Instant::now();
                if run(&program, &at, &means).await != Some(AfterEnd::Again) {
                    return;
                }
                if begun.elapsed() >= PROVEN_AFTER {
                    deaths = 0;
                }
                deaths += 1;
                let timer = means.reactor.timer();
                timer.set(back_off(deaths));
                timer.elapsed().await;
            }
        });
    }
}

/// One life of a process; `None` when nobody asks the program any more.
async fn run(program: &Weak<RunProgram>, at: &RunPlace, means: &Means) -> Option<AfterEnd> {
    // Held for no longer than it takes: who keeps it does not want it.
    let begun = {
        let program = program.upgrade()?;
        // Others have taken its place while it was not there.
        if at.listener.is_left() {
            return Some(AfterEnd::Never);
        }
        program.begin(at);
        Process::begin(&program, at, means)
    };
    let exit = match begun {
        Ok(mut process) => poll_fn(|cx| process.poll(cx)).await,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let step = "make its pipes";
            Exit::NotStarted { step, errno }
        }
    };
    let program = program.upgrade()?;
    let why = ending(program.settings.name(), exit);
    let was_left = at.listener.is_left();
    let after = program.note_end(at, &why, exit);
    match after {
        AfterEnd::Again => tracing::warn!("{why}; it is started again"),
        AfterEnd::Never if was_left => {}
        AfterEnd::Never => tracing::warn!("{why}; it takes nobody's place"),
    }
    Some(after)
}

/// A process of a program.
struct Process {
    program: Weak<RunProgram>,
    at: RunPlace,
    name: String,
    child: Child,
    output: Stderr,
    is_output_over: bool,
    /// A connection whose end says that it was taken.
    trial: Option<Watched>,
    /// Nobody asks it, and it was told to end.
    is_asked: bool,
    grace: Duration,
    /// How it is told.
    asks: EndSignal,
    /// Until it is killed then; when it is gone, until its last words are in.
    timer: Timer,
    gone: Option<Exit>,
    means: Means,
}

impl Process {
    fn begin(program: &Arc<RunProgram>, at: &RunPlace, means: &Means) -> io::Result<Process> {
        let settings = &program.settings;
        let (output, printed) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let child = means.launcher.start(Start {
            program: program.rules(),
            path: start::SHELL.into(),
            dir: settings.dir.as_os_str().as_bytes().to_vec(),
            arguments: program.arguments.clone(),
            // All of it is the spawner's to give.
            environment: Strings::new(),
            stdin: start::input(settings)?,
            stdout: printed.try_clone()?,
            stderr: printed,
            channel: Some(at.listener.listener().try_clone_to_owned()?),
            outlives: false,
            takes_along: true,
        });
        let mut output = Stderr::new(means.reactor.watch_later(output)?);
        output.look();
        Ok(Process {
            program: Arc::downgrade(program),
            at: at.clone(),
            name: settings.name().to_owned(),
            child,
            output,
            is_output_over: false,
            trial: None,
            is_asked: false,
            grace: settings.grace,
            asks: match settings.kind {
                RunKind::Fpm => EndSignal::Quit,
                RunKind::PhpCgi | RunKind::Plain => EndSignal::Term,
            },
            timer: means.reactor.timer(),
            gone: None,
            means: means.clone(),
        })
    }

    /// How it ended, once it has and what it said is in.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        let program = self.program.upgrade();
        self.read_output(cx, program.as_deref());
        match &program {
            Some(program) => {
                program.look_after(&self.at, self.child.pid(), cx.waker());
                self.try_it(cx, program);
                // Others have taken its place.
                if self.at.listener.poll_deserted(cx).is_ready() {
                    self.end(cx);
                }
            }
            None => self.end(cx),
        }
        if self.gone.is_none()
            && let Poll::Ready(exit) = self.child.poll_exit(cx)
        {
            self.gone = Some(exit);
            self.timer.set(LAST_WORDS_WAIT);
        }
        match self.gone {
            Some(exit) if self.is_output_over || self.timer.poll_elapsed(cx).is_ready() => {
                Poll::Ready(exit)
            }
            _ => Poll::Pending,
        }
    }

    fn read_output(&mut self, cx: &mut Context<'_>, program: Option<&RunProgram>) {
        let (name, means) = (&self.name, &self.means);
        let each = |line: &[u8]| {
            let text = one_line(&String::from_utf8_lossy(line));
            let Some(program) = program else {
                return tracing::warn!(program = %name, "stderr: {text}");
            };
            program.note_line(&text);
            let Some(left_out) = program.pace.allows(means.reactor.now_ms()) else {
                return means.counters.program_stderr_dropped.add(1);
            };
            if left_out > 0 {
                tracing::warn!(program = %name, lines = left_out, "more output than is logged");
            }
            tracing::warn!(program = %name, "stderr: {text}");
        };
        let over = self.output.poll(cx, &mut Vec::new(), each);
        self.is_output_over |= over.is_ready();
    }

    /// Sees whether it takes connections, until it has taken one: who takes one that is over
    /// already ends it, whatever is spoken there.
    fn try_it(&mut self, cx: &mut Context<'_>, program: &RunProgram) {
        if self.gone.is_some() || program.is_ready_at(&self.at) {
            self.trial = None;
            return;
        }
        if self.trial.is_none() {
            let trial = ended_connection(&self.at.listener);
            self.trial = trial.and_then(|end| self.means.reactor.watch(end)).ok();
        }
        if let Some(trial) = &self.trial
            && trial.poll_read(cx, &mut [0; 1]).is_ready()
        {
            self.trial = None;
            tracing::info!("{} is ready", self.name);
            program.set_ready(&self.at);
        }
    }

    /// Asks it to end, and makes it in the end.
    fn end(&mut self, cx: &mut Context<'_>) {
        if !self.is_asked {
            self.is_asked = true;
            self.timer.set(self.grace);
            self.child.end(self.asks);
        }
        if self.gone.is_none() && self.timer.poll_elapsed(cx).is_ready() {
            self.child.end(EndSignal::Kill);
        }
    }
}

/// A connection over which nothing will be sent.
fn ended_connection(listener: &RunListener) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let end = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&end, &SocketAddrUnix::new(listener.path())?)?;
    shutdown(&end, Shutdown::Write)?;
    Ok(end)
}
