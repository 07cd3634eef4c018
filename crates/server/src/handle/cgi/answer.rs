//! From a request to a running program and its answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::RandomState;
use hob_http::{Answered, Request, Response};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;

use crate::cache::entry::write_key;
use crate::handle::cgi::body::{self, Body, Trouble};
use crate::handle::cgi::fail::{self, Failure};
use crate::handle::cgi::find::{Folder, Found, Place};
use crate::handle::cgi::gate::{Entry, Permit};
use crate::handle::cgi::limits::{PLACES_MAX, STDERR_WAIT};
use crate::handle::cgi::output::Output;
use crate::handle::cgi::run::{Run, Why};
use crate::handle::cgi::start::{Job, Kind, Pipes};
use crate::handle::cgi::{Cgi, Runs, reply};
use crate::handle::files::open::May;
use crate::handle::plain;
use crate::handle::variables::push_unique_id;
use crate::process::{Launcher, Start};
use crate::shared::Shared;

/// One request for a program.
pub struct Ask {
    /// The handler.
    pub cgi: Arc<Cgi>,
    /// The request.
    pub request: Request,
    /// What all threads share.
    pub shared: Arc<Shared>,
    /// The thread's own counters.
    pub counters: Arc<ThreadCounters>,
    /// The thread's link to the spawner.
    pub launcher: Launcher,
    /// What the thread remembers of paths.
    pub places: Rc<Places>,
    /// Loop time, in milliseconds.
    pub now_ms: u64,
}

/// Where programs were found a moment ago, for one thread.
#[derive(Default)]
pub struct Places(RefCell<HashMap<Box<[u8]>, (Found, u64), RandomState>>);

impl Places {
    fn find(&self, key: &[u8], now_ms: u64, age_ms: u64) -> Option<Found> {
        let known = self.0.borrow();
        let (found, as_of_ms) = known.get(key)?;
        (now_ms < as_of_ms + age_ms).then(|| found.clone())
    }

    fn keep(&self, key: Box<[u8]>, found: &Found, now_ms: u64) {
        let Found::Program(_) = found else { return };
        let mut known = self.0.borrow_mut();
        if known.len() >= PLACES_MAX {
            known.clear();
        }
        known.insert(key, (found.clone(), now_ms));
    }
}

/// Answers a request. `path` is normal; from `below` on it is the program's.
pub fn answer(ask: Ask, path: &[u8], below: usize) -> Answered {
    let method = ask.request.head().method();
    let is_command = matches!(ask.cgi.runs, Runs::Command(_));
    match method {
        b"TRACE" => return Answered::Ready(plain::wrong_method(method, plain::PROGRAMS)),
        b"OPTIONS" if is_command => return Answered::Ready(plain::options(plain::COMMANDS)),
        b"GET" | b"HEAD" | b"POST" => {}
        _ if is_command => {
            return Answered::Ready(plain::wrong_method(method, plain::COMMANDS));
        }
        _ => {}
    }
    ask.request.set_half_close(ask.cgi.half_close);
    let job = match &ask.cgi.runs {
        Runs::Folder(folder) => match look(&ask, folder, &path[below..]) {
            Some(found) => ask.settle(folder, found, path, below),
            None => {
                let path = path.into();
                return Answered::Later(Box::pin(find_and_run(ask, path, below)));
            }
        },
        Runs::Script(script) => ask.script_job(script, path, below),
        Runs::Command(_) => ask.command_job(),
    };
    match job {
        Ok(job) => Answered::Later(Box::pin(run(ask, job))),
        Err(response) => Answered::Ready(*response),
    }
}

/// What the path means, if that can be told without waiting.
fn look(ask: &Ask, folder: &Folder, path: &[u8]) -> Option<Found> {
    let mut key = Vec::new();
    write_key(ask.cgi.id, path, &mut key);
    let age_ms = ask.shared.recheck_ms();
    if let Some(found) = ask.places.find(&key, ask.now_ms, age_ms) {
        return Some(found);
    }
    let found = folder.find(path, ask.now_ms, age_ms / 2, May::TouchMemoryOnly)?;
    ask.places.keep(key.into(), &found, ask.now_ms);
    Some(found)
}

/// The pool looks what the path means; then the program runs.
async fn find_and_run(ask: Ask, path: Box<[u8]>, below: usize) -> Response {
    let cgi = Arc::clone(&ask.cgi);
    let Runs::Folder(folder) = &cgi.runs else {
        return plain::error(500);
    };
    let started = Instant::now();
    let (looking, wanted): (_, Box<[u8]>) = (Arc::clone(&cgi), path[below..].into());
    let (now_ms, age_ms) = (ask.now_ms, ask.shared.recheck_ms() / 2);
    let job = folder.pool.run(move || match &looking.runs {
        Runs::Folder(folder) => folder.find(&wanted, now_ms, age_ms, May::Wait),
        _ => None,
    });
    let found = match job {
        Ok(job) => job.await.flatten(),
        Err(_) => {
            ask.counters.disk_refused.add(1);
            ask.counters.limit_disk_queue.add(1);
            note(&ask.request, Fault::Server, "limits: the file pool's queue is full");
            return plain::busy();
        }
    };
    ask.request.record_mut().disk_wait_us += started.elapsed().as_micros() as u64;
    let found = found.unwrap_or(Found::Missing);
    let mut key = Vec::new();
    write_key(cgi.id, &path[below..], &mut key);
    ask.places.keep(key.into(), &found, now_ms);
    match ask.settle(folder, found, &path, below) {
        Ok(job) => run(ask, job).await,
        Err(response) => *response,
    }
}

fn note(request: &Request, fault: Fault, reason: &'static str) {
    let mut record = request.record_mut();
    record.fault = fault;
    record.reason = Some(reason);
}

impl Ask {
    /// What follows from what was found.
    fn settle(
        &self,
        folder: &Folder,
        found: Found,
        path: &[u8],
        below: usize,
    ) -> Result<Job, Box<Response>> {
        match found {
            Found::Program(place) => self.program_job(folder, &place, path, below),
            Found::FolderWithoutSlash => Err(Box::new(plain::add_slash(&self.request))),
            Found::Missing => Err(Box::new(plain::error(404))),
            Found::Refused(reason) => {
                Err(Box::new(self.failed(path, &Failure::Refused(reason))))
            }
            Found::Failed(error) => {
                let path = String::from_utf8_lossy(path);
                tracing::warn!(%path, %error, "a program could not be looked for");
                note(&self.request, Fault::Server, "the program could not be looked for");
                Err(Box::new(plain::error(500)))
            }
        }
    }

    fn program_job(
        &self,
        folder: &Folder,
        place: &Place,
        path: &[u8],
        below: usize,
    ) -> Result<Job, Box<Response>> {
        let name = [&path[..below], &place.path].concat();
        let path_info = path[below + place.named_bytes..].to_vec();
        let interpreter = place.interpreter.map(|index| &folder.interpreters[index]);
        let file = folder.file(place);
        Job::program(&self.request, file, interpreter, name, path_info)
            .map_err(|_| Box::new(self.failed(path, &Failure::Unpassable)))
    }

    fn script_job(
        &self,
        script: &super::Script,
        path: &[u8],
        below: usize,
    ) -> Result<Job, Box<Response>> {
        let split = match script.splits_path {
            // The slash before the rest belongs to it.
            true => below.saturating_sub(1),
            false => path.len(),
        };
        let (name, path_info) = path.split_at(split);
        let file = script.file.clone();
        let interpreter = script.interpreter.as_ref();
        Job::program(&self.request, file, interpreter, name.to_vec(), path_info.to_vec())
            .map_err(|_| Box::new(self.failed(path, &Failure::Unpassable)))
    }

    fn command_job(&self) -> Result<Job, Box<Response>> {
        let Runs::Command(command) = &self.cgi.runs else {
            return Err(Box::new(plain::error(500)));
        };
        let query = self.request.head().query().unwrap_or_default();
        let words = command.arguments(query).map_err(|(misfit, name)| {
            note(&self.request, Fault::Client, misfit.reason());
            self.request.set_detail(name.as_bytes());
            Box::new(plain::error(400))
        })?;
        let mut arguments = crate::process::Strings::new();
        for word in words {
            let pushed = arguments.push(&word);
            pushed.map_err(|_| Box::new(self.failed(&command.program, &Failure::Unpassable)))?;
        }
        Ok(Job {
            path: command.program.clone(),
            file: command.program.clone(),
            dir: command.dir.clone(),
            arguments,
            kind: Kind::Command(command.output.clone()),
        })
    }

    fn failed(&self, file: &[u8], failure: &Failure) -> Response {
        fail::respond(&self.cgi, &self.request, file, failure, b"")
    }
}

/// Collects a body that does not say its length, waits for a place, and runs the program.
async fn run(ask: Ask, job: Job) -> Response {
    let is_command = matches!(job.kind, Kind::Command(_));
    let spooled = match ask.request.body_len() {
        None if !is_command => match Body::collect(&ask.request, &ask.shared.pool).await {
            Ok(body) => Some(body),
            Err(trouble) => return broken_body(&ask.request, trouble),
        },
        _ => None,
    };
    let permit = match enter(&ask).await {
        Ok(permit) => permit,
        Err(failure) => return ask.failed(&job.file, &failure),
    };
    let body = match spooled {
        Some(body) => body,
        None if is_command => Body::None,
        None => match Body::begin(&ask.request).await {
            Ok(body) => body,
            Err(error) => return broken_body(&ask.request, Trouble::Broken(error)),
        },
    };
    let mut running = None;
    match run_to_answer(&ask, &job, permit, body, &mut running).await {
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

/// Waits for a place among the running.
async fn enter(ask: &Ask) -> Result<Permit, Failure> {
    let waiting = match ask.cgi.gate.enter() {
        Entry::Permit(permit) => return Ok(permit),
        Entry::Queued(waiting) => waiting,
        Entry::Full => {
            ask.counters.limit_program_queue.add(1);
            return Err(Failure::QueueFull);
        }
    };
    ask.counters.limit_program_concurrent.add(1);
    let started = Instant::now();
    let timer = ask.request.reactor().timer();
    timer.set(ask.cgi.settings.limits.queue_time);
    let mut waiting = std::pin::pin!(waiting);
    let entered = std::future::poll_fn(|cx| {
        if let std::task::Poll::Ready(permit) = waiting.as_mut().poll(cx) {
            return std::task::Poll::Ready(Ok(permit));
        }
        timer.poll_elapsed(cx).map(|()| Err(Failure::QueueTime))
    })
    .await;
    ask.request.record_mut().queue_us += started.elapsed().as_micros() as u64;
    if entered.is_err() {
        ask.counters.limit_program_queue_time.add(1);
    }
    entered
}

/// Starts the program and makes an answer of what it prints.
async fn run_to_answer(
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
    let pipes = Pipes::new().map_err(Failure::NoPipes)?;
    let (stdin, feeding) = body.into_stdin().map_err(Failure::NoPipes)?;
    let stdout = reactor.watch(pipes.stdout).map_err(Failure::NoPipes)?;
    let stderr = reactor.watch(pipes.stderr).map_err(Failure::NoPipes)?;
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
        stdout: pipes.program_stdout,
        stderr: pipes.program_stderr,
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

/// What the program printed on standard error, waited for a moment: it explains the failure.
async fn last_words(run: &Run) -> Vec<u8> {
    let timer = run.reactor.timer();
    timer.set(STDERR_WAIT);
    std::future::poll_fn(|cx| {
        let _ = run.exit(cx);
        match run.is_stderr_over() {
            true => std::task::Poll::Ready(()),
            false => timer.poll_elapsed(cx),
        }
    })
    .await;
    run.printed()
}

fn broken_body(request: &Request, trouble: Trouble) -> Response {
    match trouble {
        Trouble::Broken(error) => {
            note(request, Fault::Client, "the request body broke off");
            request.set_detail(error.to_string().as_bytes());
            plain::error(error.status())
        }
        Trouble::Unkept(error) => {
            tracing::warn!(%error, "a request body could not be kept for a program");
            note(request, Fault::Server, "the request body could not be kept for the program");
            request.set_detail(error.to_string().as_bytes());
            plain::error(500)
        }
    }
}
