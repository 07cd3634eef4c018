//! Starting a program, and waiting for its answer.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use hob_http::Response;
use rustix::pipe::PipeFlags;

use crate::handle::cgi::answer::Ask;
use crate::handle::cgi::body::{self, Body};
use crate::handle::cgi::fail::{self, Failure};
use crate::handle::cgi::gate::Permit;
use crate::handle::cgi::job::{Job, Kind};
use crate::handle::cgi::limits::STDERR_WAIT;
use crate::handle::cgi::output::Output;
use crate::handle::cgi::reply;
use crate::handle::cgi::run::{Run, Why};
use crate::handle::variables::push_unique_id;
use crate::process::Start;

/// Runs a program and gives its answer, or that to its failure.
pub(super) async fn run(ask: &Ask, job: Job, permit: Permit, body: Body) -> Response {
    let mut running = None;
    match answer(ask, &job, permit, body, &mut running).await {
        Ok(response) => response,
        Err(failure) => {
            let printed = match &running {
                Some(run) if failure.is_by_output() => last_words(run).await,
                Some(run) => run.printed(),
                None => Vec::new(),
            };
            fail::respond(&ask.cgi, &ask.request, &job.file, &failure, &printed)
        }
    }
}

/// Starts the program and makes an answer of what it prints.
async fn answer(
    ask: &Ask,
    job: &Job,
    permit: Permit,
    body: Body,
    running: &mut Option<Rc<Run>>,
) -> Result<Response, Failure> {
    let request = &ask.request;
    let environment = job
        .environment(&ask.cgi, request, body.len())
        .map_err(|_| Failure::Unpassable)?;
    let reactor = request.reactor();
    let (stdin, feeding) = body.into_stdin().map_err(Failure::NoPipes)?;
    let (stdout, program_stdout) = pipe()?;
    let (stderr, program_stderr) = pipe()?;
    let stdout = reactor.watch(stdout).map_err(Failure::NoPipes)?;
    let stderr = reactor.watch_later(stderr).map_err(Failure::NoPipes)?;
    // Nobody has written yet: the first look would be in vain.
    stdout.clear_readable();
    if let Some((fd, pieces)) = feeding {
        let fd = reactor.watch(fd).map_err(Failure::NoPipes)?;
        reactor.spawn(body::feed(request.clone(), fd, pieces));
    }
    let started = Instant::now();
    let child = ask.launcher.start(Start {
        program: ask.cgi.program,
        path: job.path.clone(),
        dir: job.dir.clone(),
        arguments: job.arguments.clone(),
        environment,
        stdin,
        stdout: program_stdout,
        stderr: program_stderr,
        channel: None,
        outlives: false,
    });
    let mut id = Vec::new();
    push_unique_id(request, &mut id);
    let run = Run::new(
        Arc::clone(&ask.cgi),
        reactor.clone(),
        Arc::clone(&ask.counters),
        String::from_utf8_lossy(&id).into(),
        job.file.as_slice().into(),
    );
    run.oversee(child, stderr, permit);
    *running = Some(Rc::clone(&run));
    let mut output = Some(Output::new(&run, stdout));
    let answered = match &job.kind {
        Kind::Program { .. } => reply::of_program(request, &mut output, started).await,
        Kind::Command(media_type) => {
            reply::of_command(request, &mut output, media_type, started).await
        }
    };
    if answered.is_err() {
        run.end(Why::Unusable);
    }
    answered
}

/// A pipe's reading and writing end.
fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    let made = rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    made.map_err(|error| Failure::NoPipes(io::Error::from(error)))
}

/// What the program printed on standard error, waited for a moment: it explains the failure.
async fn last_words(run: &Run) -> Vec<u8> {
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
