//! Starting a program, and waiting for its answer.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use hob_http::{Aftermath, HandlerPhase, Request, Response};
use hob_trace::watch::RequestStage;
use rustix::fs::Mode;
use rustix::pipe::PipeFlags;

use crate::handle::cgi::answer::CgiRequest;
use crate::handle::cgi::fail::{self, CgiFailure};
use crate::handle::cgi::job::{JobKind, ProgramJob};
use crate::handle::cgi::limits::STDERR_WAIT;
use crate::handle::cgi::output::ProgramOutput;
use crate::handle::cgi::reply;
use crate::handle::cgi::run::{ProgramRun, Why};
use crate::handle::cgi::running::RunningProcess;
use crate::handle::script::body::{self, ProgramRequestBody};
use crate::handle::script::gate::Permit;
use crate::handle::script::lives::Means;
use crate::handle::script::variables::push_unique_id;
use crate::handle::warm::{self, Forked, NoWay, RouteHosts, WarmHost, Way};
use crate::watch::trail_of;
use hob_keeper::process::{Child, Start, Strings, now_us};

/// Runs a program and gives its answer, or that to its failure.
pub(super) async fn run(
    ask: &CgiRequest,
    job: ProgramJob,
    permit: Permit,
    body: ProgramRequestBody,
) -> Response {
    let mut attempt = Attempt::default();
    let answered = answer(ask, &job, permit, body, &mut attempt).await;
    attempt.note(&ask.request);
    match answered {
        Ok(response) => {
            if let (Some(run), Some(call)) = (&attempt.running, &ask.call)
                && call.came.borrow().code != 0
            {
                last_words(run).await;
                run.note_code(&ask.request);
            }
            response
        }
        Err(failure) => {
            if failure.is_by_account() {
                ask.counters.account_refused.add(1);
            }
            let printed = match &attempt.running {
                Some(_) if matches!(failure, CgiFailure::HostGone) => {
                    host_words(ask, attempt.host.as_deref()).await
                }
                Some(run) if failure.is_by_output() => last_words(run).await,
                Some(run) => run.printed(),
                None => Vec::new(),
            };
            fail::respond(&ask.cgi, &ask.request, &job.file, &failure, &printed)
        }
    }
}

/// What has come of a request so far.
#[derive(Default)]
struct Attempt {
    running: Option<Rc<ProgramRun>>,
    /// What it was forked from.
    host: Option<Arc<WarmHost>>,
    /// When its start was asked for.
    started: Option<Instant>,
}

impl Attempt {
    /// Tells the record what the program took, where it is not said by its head.
    fn note(&self, request: &Request) {
        request.set_phase(HandlerPhase::Server);
        if let Some(run) = &self.running {
            run.note_end(request);
        }
        let mut record = request.record_mut();
        if let (Some(started), 0) = (self.started, record.program_us) {
            record.program_us = started.elapsed().as_micros() as u64;
        }
    }
}

/// Starts the program and makes an answer of what it prints.
async fn answer(
    ask: &CgiRequest,
    job: &ProgramJob,
    permit: Permit,
    body: ProgramRequestBody,
    attempt: &mut Attempt,
) -> Result<Response, CgiFailure> {
    let request = &ask.request;
    let environment = job
        .environment(&ask.cgi, ask.asked(), body.len())
        .map_err(|_| CgiFailure::Unpassable)?;
    let reactor = request.reactor();
    request.set_phase(HandlerPhase::Program);
    let (started, asked_us) = (Instant::now(), now_us());
    attempt.started = Some(started);
    let host = match &ask.cgi.warm {
        None => None,
        Some(warm) => {
            let host = reach_host(ask, warm).await?;
            request.record_mut().start_us = started.elapsed().as_micros() as u64;
            Some(host)
        }
    };
    let is_file = body.is_file();
    let (stdin, feeding) = body.into_stdin().map_err(CgiFailure::NoPipes)?;
    let (stdin, values) = match &ask.call {
        None => (stdin, None),
        Some(_) => {
            let (values, program_values) = pipe()?;
            let values = reactor.watch(values).map_err(CgiFailure::NoPipes)?;
            (Some(program_values), Some(values))
        }
    };
    let (stdout, program_stdout) = pipe()?;
    let (stderr, program_stderr) = pipe()?;
    let stdout = reactor.watch(stdout).map_err(CgiFailure::NoPipes)?;
    let stderr = reactor.watch_later(stderr).map_err(CgiFailure::NoPipes)?;
    // Nobody has written yet: the first look would be in vain.
    stdout.clear_readable();
    if let Some((fd, pieces)) = feeding {
        let fd = reactor.watch(fd).map_err(CgiFailure::NoPipes)?;
        reactor.spawn(body::feed(request.clone(), fd, pieces));
    }
    let child = match host {
        Some(way) => {
            let outputs = [program_stdout, program_stderr];
            let forked = fork(ask, (job, &environment), &way, (stdin, is_file), outputs)?;
            attempt.host = Some(way.1);
            RunningProcess::Forked(forked)
        }
        None => {
            request.tell(
                RequestStage::Start,
                format_args!("started: {}", shown(&job.file)),
            );
            let standard = (stdin, program_stdout, program_stderr);
            RunningProcess::Started(launch(ask, job, environment, standard))
        }
    };
    let run = run_of(ask, job, asked_us);
    request.set_aftermath(Rc::clone(&run) as Rc<dyn Aftermath>);
    run.oversee(child, stderr, permit);
    attempt.running = Some(Rc::clone(&run));
    let mut output = Some(ProgramOutput::new(&run, stdout));
    let answered = match (&job.kind, &ask.call, values) {
        (_, Some(call), Some(values)) => reply::of_call(&mut output, call, values).await,
        (JobKind::Command(media_type), ..) => {
            reply::of_command(request, &mut output, media_type, started).await
        }
        (JobKind::Program { .. }, ..) => reply::of_program(request, &mut output, started).await,
    };
    if answered.is_err() {
        run.end(Why::Unusable);
    }
    answered
}

/// What the program's answer, its overseer and its feeder share.
fn run_of(ask: &CgiRequest, job: &ProgramJob, asked_us: u64) -> Rc<ProgramRun> {
    let request = &ask.request;
    let mut id = Vec::new();
    push_unique_id(request, &mut id);
    ProgramRun::new(
        Arc::clone(&ask.cgi),
        request.reactor().clone(),
        Arc::clone(&ask.counters),
        String::from_utf8_lossy(&id).into(),
        job.file.as_slice().into(),
        trail_of(request),
        asked_us,
    )
}

fn shown(file: &[u8]) -> std::slice::EscapeAscii<'_> {
    file.escape_ascii()
}

/// Has a kept interpreter fork for the program.
fn fork(
    ask: &CgiRequest,
    (job, environment): (&ProgramJob, &Strings),
    (link, host): &Way,
    (stdin, is_file): (Option<OwnedFd>, bool),
    outputs: [OwnedFd; 2],
) -> Result<Forked, CgiFailure> {
    let script = warm::ScriptStart {
        file: &job.file,
        dir: &job.dir,
        arguments: &job.arguments,
        environment,
        is_stdin_file: is_file,
    };
    let mode = match (is_file, &ask.call) {
        (true, _) => None,
        (false, None) => Some(0o444),
        // It sets values by it.
        (false, Some(_)) => Some(0o222),
    };
    let standard = opened_again((stdin, mode), outputs)?;
    let text = format_args!("forked from a kept interpreter: {}", shown(&job.file));
    ask.request.tell(RequestStage::Start, text);
    Ok(link.run(host, &script, standard))
}

/// Has the spawner start the program.
fn launch(
    ask: &CgiRequest,
    job: &ProgramJob,
    environment: Strings,
    (stdin, stdout, stderr): (Option<OwnedFd>, OwnedFd, OwnedFd),
) -> Child {
    ask.launcher.start(Start {
        program: ask.cgi.program,
        path: job.path.clone(),
        dir: job.dir.clone(),
        arguments: job.arguments.clone(),
        environment,
        stdin,
        stdout,
        stderr,
        channel: None,
        outlives: false,
        takes_along: false,
    })
}

/// Standard streams of a script that is forked. The spawner, who gives pipes to the program's user,
/// does not see them: their modes let a script open `/dev/stdout` all the same. Nobody else finds
/// them, because `/proc` shows them to the process's own user only.
fn opened_again(
    (stdin, stdin_mode): (Option<OwnedFd>, Option<u32>),
    [stdout, stderr]: [OwnedFd; 2],
) -> Result<[OwnedFd; 3], CgiFailure> {
    let stdin = match stdin {
        Some(stdin) => stdin,
        None => pipe()?.0,
    };
    let may = |fd: &OwnedFd, mode: u32| {
        let changed = rustix::fs::fchmod(fd, Mode::from_raw_mode(mode));
        changed.map_err(|error| CgiFailure::NoPipes(io::Error::from(error)))
    };
    if let Some(mode) = stdin_mode {
        may(&stdin, mode)?;
    }
    may(&stdout, 0o666)?;
    may(&stderr, 0o666)?;
    Ok([stdin, stdout, stderr])
}

/// A way to the interpreter that is kept, which may have to start first.
async fn reach_host(ask: &CgiRequest, warm: &RouteHosts) -> Result<Way, CgiFailure> {
    let reactor = ask.request.reactor();
    let timer = reactor.timer();
    timer.set(ask.cgi.settings.limits.queue_time);
    let means = Means {
        launcher: ask.launcher.clone(),
        reactor: reactor.clone(),
        counters: Arc::clone(&ask.counters),
    };
    let program = ask.cgi.program;
    poll_fn(|cx| {
        let asked = ask.links.poll_link(cx, warm, program, &means);
        let asked = asked.map_err(|no_way| match no_way {
            NoWay::Broken(broken) => CgiFailure::NoHost(broken.0),
            NoWay::Lack(error) => CgiFailure::NoPipes(error),
        });
        match asked {
            Poll::Ready(way) => Poll::Ready(way),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| Err(CgiFailure::HostTime)),
        }
    })
    .await
}

/// A pipe's reading and writing end.
fn pipe() -> Result<(OwnedFd, OwnedFd), CgiFailure> {
    let made = rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    made.map_err(|error| CgiFailure::NoPipes(io::Error::from(error)))
}

/// Why the interpreter died, waited for a moment: it is its keeper who hears of that.
async fn host_words(ask: &CgiRequest, host: Option<&WarmHost>) -> Vec<u8> {
    let Some(host) = host else {
        return Vec::new();
    };
    let timer = ask.request.reactor().timer();
    timer.set(STDERR_WAIT);
    let words = poll_fn(|cx| match host.poll_death(cx) {
        Poll::Ready(words) => Poll::Ready(Some(words)),
        Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
    });
    words
        .await
        .map_or_else(Vec::new, |words| words.as_bytes().to_vec())
}

/// What the program printed on standard error, waited for a moment: it explains the failure.
async fn last_words(run: &ProgramRun) -> Vec<u8> {
    let timer = run.reactor.timer();
    timer.set(STDERR_WAIT);
    std::future::poll_fn(|cx| {
        let _ = run.exit(cx);
        match run.is_stderr_over() {
            true => Poll::Ready(()),
            false => timer.poll_elapsed(cx),
        }
    })
    .await;
    run.printed()
}
