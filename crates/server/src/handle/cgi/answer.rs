//! From a request to a running program and its answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::RandomState;
use hob_http::{Answered, Request, Response};
use hob_trace::metric::ThreadCounters;

use crate::cache::entry::write_key;
use crate::handle::AnswersRoute;
use crate::handle::cgi::fail::{self, CgiFailure};
use crate::handle::cgi::find::{ProgramFolder, ProgramLookup};
use crate::handle::cgi::job::{AskedJob, JobKind, ProgramJob};
use crate::handle::cgi::limits::{PLACE_BYTES_MAX, PLACES_MAX};
use crate::handle::cgi::{Cgi, Runs, start};
use crate::handle::files::find::pool_is_full;
use crate::handle::files::open::May;
use crate::handle::plain;
use crate::handle::script::body::{BodyCollectError, ProgramRequestBody};
use crate::handle::script::call::ProgramCall;
use crate::handle::script::fail::broken_body;
use crate::handle::script::gate::{GateRefusal, enter};
use crate::handle::warm::HostLinks;
use crate::serve::ServerState;
use crate::serve::context::OnRoute;
use hob_keeper::process::Launcher;

/// One request for a program.
pub struct CgiRequest {
    /// The handler.
    pub cgi: Arc<Cgi>,
    /// The request.
    pub request: Request,
    /// What all threads share.
    pub shared: Arc<ServerState>,
    /// The thread's own counters.
    pub counters: Arc<ThreadCounters>,
    /// The thread's link to the spawner.
    pub launcher: Launcher,
    /// What the thread remembers of paths.
    pub places: Rc<Places>,
    /// The thread's links to warm interpreters.
    pub links: Rc<HostLinks>,
    /// Loop time, in milliseconds.
    pub now_ms: u64,
    /// A page asks, and gets what comes of it.
    pub(crate) call: Option<Rc<ProgramCall>>,
}

impl CgiRequest {
    pub(super) fn asked(&self) -> AskedJob<'_> {
        AskedJob {
            request: &self.request,
            call: self.call.as_deref(),
        }
    }
}

/// Where programs were found a moment ago, for one thread.
#[derive(Default)]
pub struct Places(RefCell<HashMap<Box<[u8]>, CachedLookup, RandomState>>);

/// What was found, and when.
struct CachedLookup {
    found: ProgramLookup,
    as_of_ms: u64,
}

impl Places {
    fn find(&self, key: &[u8], now_ms: u64, age_ms: u64) -> Option<ProgramLookup> {
        let known = self.0.borrow();
        let seen = known.get(key)?;
        (now_ms < seen.as_of_ms + age_ms).then(|| seen.found.clone())
    }

    fn keep(&self, key: Box<[u8]>, found: &ProgramLookup, now_ms: u64) {
        // Long paths are long for what follows the program in them, and seldom come twice.
        if !matches!(found, ProgramLookup::Program(_)) || key.len() > PLACE_BYTES_MAX {
            return;
        }
        let mut known = self.0.borrow_mut();
        if known.len() >= PLACES_MAX {
            known.clear();
        }
        let found = found.clone();
        known.insert(
            key,
            CachedLookup {
                found,
                as_of_ms: now_ms,
            },
        );
    }
}

impl AnswersRoute for Cgi {
    fn answer(self: &Arc<Cgi>, on: &OnRoute<'_>) -> Answered {
        let desk = on.desk;
        let Some(launcher) = desk.launcher.get() else {
            return Answered::Ready(plain::busy());
        };
        let ask = CgiRequest {
            cgi: Arc::clone(self),
            request: on.request.clone(),
            shared: Arc::clone(&desk.shared),
            counters: Arc::clone(&desk.counters),
            launcher: launcher.clone(),
            places: Rc::clone(&desk.places),
            links: Rc::clone(&desk.links),
            now_ms: desk.now_ms.get(),
            call: on.call.cloned(),
        };
        match &self.runs {
            Runs::Captured(captured) => captured.answer(ask, on),
            _ => answer(ask, on.path, on.below),
        }
    }
}

/// Answers a request. `path` is normal; from `below` on it is the program's.
fn answer(ask: CgiRequest, path: &[u8], below: usize) -> Answered {
    if let Some(refusal) = begin(&ask) {
        return Answered::Ready(refusal);
    }
    let mut found = None;
    if let Runs::Folder(folder) = &ask.cgi.runs {
        found = look(&ask, folder, &path[below..]);
        if found.is_none() {
            return Answered::Later(Box::pin(find_and_run(ask, path.into(), below)));
        }
    }
    match ask.cgi.job(ask.asked(), found, path, below) {
        Ok(job) => Answered::Later(Box::pin(run(ask, job))),
        Err(response) => Answered::Ready(*response),
    }
}

/// What is done before a program is looked for; or the answer without one.
pub(super) fn begin(ask: &CgiRequest) -> Option<Response> {
    if ask.call.is_some() {
        return None;
    }
    let refusal = refuse_method(&ask.cgi, &ask.request);
    if refusal.is_none() {
        ask.request.set_half_close(ask.cgi.half_close);
    }
    refusal
}

/// The answer to a method that no program is started for.
pub(crate) fn refuse_method(cgi: &Cgi, request: &Request) -> Option<Response> {
    let method = request.head().method();
    let is_command = matches!(cgi.runs, Runs::Command(_));
    match method {
        b"TRACE" => Some(plain::wrong_method(method, plain::PROGRAMS)),
        b"GET" | b"HEAD" | b"POST" => None,
        b"OPTIONS" if is_command => Some(plain::options(plain::COMMANDS)),
        _ if is_command => Some(plain::wrong_method(method, plain::COMMANDS)),
        _ => None,
    }
}

/// What the path means, if that can be told without waiting.
fn look(ask: &CgiRequest, folder: &ProgramFolder, path: &[u8]) -> Option<ProgramLookup> {
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
async fn find_and_run(ask: CgiRequest, path: Box<[u8]>, below: usize) -> Response {
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
        Err(_) => return pool_is_full(&ask.counters, &ask.request),
    };
    ask.request.record_mut().disk_wait_us += started.elapsed().as_micros() as u64;
    let found = found.unwrap_or(ProgramLookup::Missing);
    let mut key = Vec::new();
    write_key(cgi.id, &path[below..], &mut key);
    ask.places.keep(key.into(), &found, now_ms);
    match cgi.job(ask.asked(), Some(found), &path, below) {
        Ok(job) => run(ask, job).await,
        Err(response) => *response,
    }
}

/// Collects a body that does not say its length, waits for a place, and runs the program.
pub(super) async fn run(ask: CgiRequest, job: ProgramJob) -> Response {
    let is_command = matches!(job.kind, JobKind::Command(_));
    let takes_body = !is_command && ask.call.is_none();
    let spooled = match ask.request.body_len() {
        None if takes_body => {
            match ProgramRequestBody::collect(&ask.request, &ask.shared.pool).await {
                Ok(body) => Some(body),
                Err(trouble) => return broken_body(&ask.request, trouble),
            }
        }
        _ => None,
    };
    let (gate, patience) = (&ask.cgi.gate, ask.cgi.settings.limits.queue_time);
    let permit = match enter(gate, &ask.request, &ask.counters, patience).await {
        Ok(permit) => permit,
        Err(refusal) => {
            let failure = match refusal {
                GateRefusal::Full => CgiFailure::QueueFull,
                GateRefusal::Time => CgiFailure::QueueTime,
            };
            return fail::respond(&ask.cgi, &ask.request, &job.file, &failure, b"");
        }
    };
    let body = match spooled {
        Some(body) => body,
        None if !takes_body => ProgramRequestBody::None,
        None => match ProgramRequestBody::begin(&ask.request).await {
            Ok(body) => body,
            Err(error) => return broken_body(&ask.request, BodyCollectError::Broken(error)),
        },
    };
    start::run(&ask, job, permit, body).await
}
