//! From a request to its answer.

use std::sync::Arc;
use std::time::Instant;

use hob_http::{Answered, HandlerPhase, Request, Response};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::AnswersRoute;
use crate::handle::fastcgi::exchange::{Connection, Exchange, Outgoing};
use crate::handle::fastcgi::fail::{self, FastCgiFailure};
use crate::handle::fastcgi::find::{AskedPath, Script, ScriptLookup};
use crate::handle::fastcgi::wire::RequestHead;
use crate::handle::fastcgi::{FastCgi, reply};
use crate::handle::files::open::May;
use crate::handle::plain;
use crate::handle::script::body::{BodyCollectError, ProgramRequestBody};
use crate::handle::script::fail::{broken_body, note};
use crate::handle::script::gate::{Permit, enter};
use crate::handle::script::variables::{self, ProgramRequest, ScriptLocation};
use crate::serve::context::OnRoute;

/// One request for a program.
struct FastCgiRequest {
    fastcgi: Arc<FastCgi>,
    request: Request,
    counters: Arc<ThreadCounters>,
    pool: DiskThreads,
    /// Loop time, and how old what is known of a script may be, in milliseconds.
    moment: (u64, u64),
}

impl AnswersRoute for FastCgi {
    fn answer(self: &Arc<FastCgi>, on: &OnRoute<'_>) -> Answered {
        if let Some(refusal) = refuse_method(on.request) {
            return Answered::Ready(refusal);
        }
        on.request.set_half_close(self.half_close);
        let ask = FastCgiRequest {
            fastcgi: Arc::clone(self),
            request: on.request.clone(),
            counters: Arc::clone(&on.desk.counters),
            pool: on.desk.shared.pool.clone(),
            moment: (on.desk.now_ms.get(), on.desk.shared.recheck_ms()),
        };
        let at = AskedPath {
            path: on.path,
            below: on.below,
        };
        match ask.find(at, May::TouchMemoryOnly) {
            Some(found) => ask.go_on(found, on.path),
            None => Answered::Later(Box::pin(find_and_ask(ask, on.path.into(), on.below))),
        }
    }
}

/// The answer to a method that no program is asked for.
pub(super) fn refuse_method(request: &Request) -> Option<Response> {
    match request.head().method() {
        method @ (b"TRACE" | b"CONNECT") => Some(plain::wrong_method(method, plain::PROGRAMS)),
        _ => None,
    }
}

/// The answer for a path that means no script, or the script.
pub(super) fn settle(
    fastcgi: &FastCgi,
    request: &Request,
    found: ScriptLookup,
    path: &[u8],
) -> Result<Script, Box<Response>> {
    let failed = |failure| fail::respond(request, (fastcgi, path), &failure, b"");
    Err(Box::new(match found {
        ScriptLookup::Script(script) => return Ok(script),
        ScriptLookup::FolderWithoutSlash => plain::add_slash(request),
        ScriptLookup::Missing => plain::error(404),
        ScriptLookup::Forbidden => failed(FastCgiFailure::Forbidden),
        ScriptLookup::Failed(error) => failed(FastCgiFailure::NotLooked(error)),
    }))
}

impl FastCgiRequest {
    fn find(&self, at: AskedPath<'_>, may: May) -> Option<ScriptLookup> {
        let FastCgi {
            scripts, settings, ..
        } = &*self.fastcgi;
        scripts.find(settings, self.request.head().path(), at, self.moment, may)
    }

    fn go_on(self, found: ScriptLookup, path: &[u8]) -> Answered {
        match settle(&self.fastcgi, &self.request, found, path) {
            Ok(script) => Answered::Later(Box::pin(run(self, script))),
            Err(response) => Answered::Ready(*response),
        }
    }

    fn outgoing(&self, script: &Script, body: ProgramRequestBody) -> Outgoing {
        Outgoing {
            head: self.head(script, body.len()),
            body,
            pool: self.pool.clone(),
        }
    }

    /// Asks the program; the exchange is left in its place where that fails.
    async fn exchange(
        &self,
        (script, started): (&Script, Instant),
        outgoing: (Permit, Outgoing),
        connection: Connection,
        exchange: &mut Option<Exchange>,
    ) -> Result<Response, FastCgiFailure> {
        let (fastcgi, request) = (&self.fastcgi, &self.request);
        let of = (&self.counters, &*script.file);
        let begun = Exchange::begin(fastcgi, request, of, outgoing, connection).await?;
        *exchange = Some(begun);
        reply::of(request, exchange, started).await
    }

    /// The records that begin the request.
    fn head(&self, script: &Script, body_bytes: u64) -> Vec<u8> {
        let settings = &self.fastcgi.settings;
        let asked = ProgramRequest {
            request: &self.request,
            body_bytes: Some(body_bytes),
            script: ScriptLocation {
                name: &script.name,
                path_info: &script.path_info,
                file: &script.file,
                document_root: &self.fastcgi.document_root,
            },
            passes_authorization: settings.pass_authorization,
            may_tunnel: false,
        };
        let mut head = RequestHead::new(self.fastcgi.kept.is_any());
        match settings.env.is_empty() {
            true => {
                variables::write_lasting(&asked, &mut head);
                variables::write_passing(&asked, &mut head);
            }
            false => {
                for (name, value) in &settings.env {
                    head.push(name.as_bytes(), value.as_bytes());
                }
                // What the config sets stays.
                variables::each(&asked, |name, value| {
                    if !self.fastcgi.sets(name) {
                        head.push(name, value);
                    }
                });
            }
        }
        head.finish()
    }
}

/// The same body once more, where all of it is here and the request may be made twice: what has it
/// done twice does the same (RFC 9110 section 9.2.2).
fn held_again(request: &Request, body: &ProgramRequestBody) -> Option<ProgramRequestBody> {
    const IDEMPOTENT: [&[u8]; 5] = [b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"];
    match body {
        _ if !IDEMPOTENT.contains(&request.head().method()) => None,
        ProgramRequestBody::None => Some(ProgramRequestBody::None),
        ProgramRequestBody::Held(bytes) => Some(ProgramRequestBody::Held(bytes.clone())),
        ProgramRequestBody::Spooled(..) | ProgramRequestBody::Coming(..) => None,
    }
}

/// The pool looks what the path means; then the program is asked.
async fn find_and_ask(ask: FastCgiRequest, path: Box<[u8]>, below: usize) -> Response {
    let started = Instant::now();
    let Some(pool) = ask.fastcgi.scripts.pool().cloned() else {
        return plain::error(500);
    };
    let (fastcgi, sent) = (Arc::clone(&ask.fastcgi), ask.request.head().path().to_vec());
    let (wanted, moment) = (path.clone(), ask.moment);
    let job = pool.run(move || {
        let at = AskedPath {
            path: &wanted,
            below,
        };
        let FastCgi {
            scripts, settings, ..
        } = &*fastcgi;
        scripts.find(settings, &sent, at, moment, May::Wait)
    });
    let found = match job {
        Ok(job) => job.await.flatten(),
        Err(_) => {
            ask.counters.disk_refused.add(1);
            ask.counters.limit_disk_queue.add(1);
            let reason = "limits: the file pool's queue is full";
            note(&ask.request, Fault::Server, reason);
            return plain::busy();
        }
    };
    ask.request.record_mut().disk_wait_us += started.elapsed().as_micros() as u64;
    let found = found.unwrap_or(ScriptLookup::Missing);
    match settle(&ask.fastcgi, &ask.request, found, &path) {
        Ok(script) => run(ask, script).await,
        Err(response) => *response,
    }
}

/// Collects a body that does not say its length, waits for a place, and asks the program.
async fn run(ask: FastCgiRequest, script: Script) -> Response {
    let FastCgiRequest {
        fastcgi,
        request,
        counters,
        pool,
        ..
    } = &ask;
    let spooled = match request.body_len() {
        None => match ProgramRequestBody::collect(request, pool).await {
            Ok(body) => Some(body),
            Err(trouble) => return broken_body(request, trouble),
        },
        Some(_) => None,
    };
    let program = (&**fastcgi, &*script.file);
    let permit = match enter(&fastcgi.gate, request, counters, fastcgi.settings.wait).await {
        Ok(permit) => permit,
        Err(refusal) => {
            return fail::respond(request, program, &FastCgiFailure::Gate(refusal), b"");
        }
    };
    let body = match spooled {
        Some(body) => body,
        None => match ProgramRequestBody::begin(request).await {
            Ok(body) => body,
            Err(error) => return broken_body(request, BodyCollectError::Broken(error)),
        },
    };
    request.set_phase(HandlerPhase::Program);
    let started = Instant::now();
    let again = held_again(request, &body);
    let outgoing = (permit, ask.outgoing(&script, body));
    let mut exchange = None;
    let mut answered = ask
        .exchange((&script, started), outgoing, Connection::Any, &mut exchange)
        .await;
    let is_unheard =
        |exchange: &Option<Exchange>| exchange.as_ref().is_some_and(Exchange::is_unheard);
    if let (Err(FastCgiFailure::Closed | FastCgiFailure::Broken(_)), Some(body)) =
        (&answered, again)
        && is_unheard(&exchange)
    {
        counters.upstream_retries.add(1);
        let permit = exchange.take().and_then(Exchange::into_permit);
        answered = match permit {
            Some(permit) => {
                let outgoing = (permit, ask.outgoing(&script, body));
                let of = (&script, started);
                ask.exchange(of, outgoing, Connection::New, &mut exchange)
                    .await
            }
            None => answered,
        };
    }
    request.set_phase(HandlerPhase::Server);
    {
        let mut record = request.record_mut();
        if record.program_us == 0 {
            record.program_us = started.elapsed().as_micros() as u64;
        }
    }
    answered.unwrap_or_else(|failure| {
        let printed = exchange.as_ref().map_or(&b""[..], |one| &one.printed);
        fail::respond(request, program, &failure, printed)
    })
}
