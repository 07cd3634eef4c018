//! From a request to its answer.

use std::sync::Arc;
use std::time::Instant;

use hob_http::{Answered, HandlerPhase, Request, Response};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::AnswersRoute;
use crate::handle::fastcgi::exchange::Exchange;
use crate::handle::fastcgi::fail::{self, Befallen, FastCgiFailure};
use crate::handle::fastcgi::find::{AskedPath, Script, ScriptLookup};
use crate::handle::fastcgi::wire::{RequestHead, push_body, push_body_end};
use crate::handle::fastcgi::{FastCgi, reply};
use crate::handle::files::open::May;
use crate::handle::plain;
use crate::handle::script::body::{BodyCollectError, ProgramRequestBody};
use crate::handle::script::fail::{broken_body, note};
use crate::handle::script::gate::enter;
use crate::handle::script::variables::{self, ProgramRequest, ScriptLocation};
use crate::handle::upstream;
use crate::handle::upstream::ask::{AskFailure, AskTerms, AsksMember, note_time};
use crate::handle::upstream::config::{RetryCause, RetryRules};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::link::{Link, LinkTerms};
use crate::handle::upstream::sending::{BodyFraming, Outgoing};
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
    let on = Befallen {
        fastcgi,
        program: path,
        member: "",
        printed: b"",
    };
    let failed = |failure| fail::respond(request, on, &failure);
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
        let mut head = RequestHead::new(settings.upstream.keep > 0);
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

/// A script, asked for.
struct AskedScript<'a> {
    ask: &'a FastCgiRequest,
    script: &'a Script,
    started: Instant,
}

impl AsksMember for AskedScript<'_> {
    type Failure = FastCgiFailure;

    async fn ask(
        &self,
        link: Link,
        body: ProgramRequestBody,
        retry: Option<&RetryRules>,
    ) -> Result<Response, Box<AskFailure<FastCgiFailure>>> {
        let FastCgiRequest {
            fastcgi,
            request,
            counters,
            pool,
            ..
        } = self.ask;
        let outgoing = Outgoing {
            head: self.ask.head(self.script, body.len()),
            body,
            pool: pool.clone(),
            framing: BodyFraming {
                piece: push_body,
                end: push_body_end,
            },
        };
        let of = (counters, &*self.script.file);
        let begun = Exchange::begin(fastcgi, request, of, (link, outgoing)).await;
        let mut exchange = Some(begun);
        let answered = reply::of(request, &mut exchange, (self.started, retry)).await;
        answered.map_err(|failure| {
            let left = exchange.map(Exchange::give_up);
            let (link, is_unheard, printed) = left.unwrap_or_default();
            Box::new(AskFailure {
                failure,
                link,
                is_unheard,
                printed,
            })
        })
    }

    fn cause(&self, failure: &FastCgiFailure) -> Option<RetryCause> {
        match failure {
            FastCgiFailure::Upstream(failure) => failure.cause(),
            FastCgiFailure::Wire(_) => Some(RetryCause::Closed),
            _ => None,
        }
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
    let waited_for = match request.body_len() {
        None => ProgramRequestBody::collect(request, pool).await.map(Some),
        Some(_) => ProgramRequestBody::short(request)
            .await
            .map_err(BodyCollectError::Broken),
    };
    let waited_for = match waited_for {
        Ok(body) => body,
        Err(trouble) => return broken_body(request, trouble),
    };
    let failed = |failure: &FastCgiFailure, member: &str, printed: &[u8]| {
        let on = Befallen {
            fastcgi,
            program: &script.file,
            member,
            printed,
        };
        fail::respond(request, on, failure)
    };
    let settings = &fastcgi.settings.upstream;
    let permit = match enter(&fastcgi.gate, request, counters, settings.wait).await {
        Ok(permit) => permit,
        Err(refusal) => return failed(&UpstreamFailure::Gate(refusal).into(), "", b""),
    };
    let body = match waited_for {
        Some(body) => body,
        None => match ProgramRequestBody::begin(request).await {
            Ok(body) => body,
            Err(error) => return broken_body(request, BodyCollectError::Broken(error)),
        },
    };
    request.set_phase(HandlerPhase::Program);
    let asked = AskedScript {
        ask: &ask,
        script: &script,
        started: Instant::now(),
    };
    let on = AskTerms {
        upstream: &fastcgi.upstream,
        request,
        counters,
        link: LinkTerms {
            connect: fastcgi.settings.timeout.connect,
            holds_process: true,
            pool,
        },
        retry: &fastcgi.settings.retry,
    };
    let answered = upstream::ask::ask(&asked, on, permit, body).await;
    request.set_phase(HandlerPhase::Server);
    note_time(request, asked.started);
    answered.unwrap_or_else(|vain| match request.body_error() {
        Some(error) => broken_body(request, BodyCollectError::Broken(error)),
        None => failed(&vain.failure, &vain.member, &vain.printed),
    })
}
