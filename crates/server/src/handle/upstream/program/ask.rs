//! From a request to its answer.

use std::sync::Arc;
use std::time::Instant;

use hob_http::tls::peer::PeerVersions;
use hob_http::{Answered, HandlerPhase, Request, Response};
use hob_trace::metric::ThreadCounters;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::script::body::{BodyCollectError, ProgramRequestBody};
use crate::handle::script::fail::broken_body;
use crate::handle::script::gate::{Permit, enter};
use crate::handle::script::variables::{ProgramRequest, ScriptLocation};
use crate::handle::upstream::ask::{AskFailure, AskTerms, AsksMember, note_time};
use crate::handle::upstream::buffer::ReadAhead;
use crate::handle::upstream::config::{RetryCause, RetryRules};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::link::{Connection, Link, LinkTerms};
use crate::handle::upstream::members::MemberUse;
use crate::handle::upstream::program::exchange::Exchange;
use crate::handle::upstream::program::fail::{self, Befallen, ProgramFailure};
use crate::handle::upstream::program::protocol::UnfitVariables;
use crate::handle::upstream::program::{UpstreamProgram, reply};
use crate::handle::upstream::run::program::NotTaken;
use crate::handle::upstream::sending::Outgoing;
use crate::handle::{plain, upstream};
use crate::route::target::{rest_as_sent, told};
use crate::serve::context::OnRoute;

/// What is asked of a program, as it is told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AskedScript {
    /// Its file (`SCRIPT_FILENAME`); empty where there is none.
    pub(crate) file: Vec<u8>,
    /// The part of the path that names it.
    pub(crate) name: Vec<u8>,
    /// What follows.
    pub(crate) path_info: Vec<u8>,
}

impl AskedScript {
    /// Of a program that answers for every path of its route: the route's prefix names it. A path
    /// was sent so, and leaves the prefix at `below`.
    pub(crate) fn of_route(sent: &[u8], path: &[u8], below: usize) -> AskedScript {
        // The slash before the rest belongs to it.
        let split = below.saturating_sub(1);
        AskedScript {
            file: Vec::new(),
            name: told(path[..split].into()).into_owned(),
            path_info: told(rest_as_sent(sent, path, split)).into_owned(),
        }
    }
}

/// The answer to a method that no program is asked for.
pub(crate) fn refuse_method(request: &Request) -> Option<Response> {
    match request.head().method() {
        method @ (b"TRACE" | b"CONNECT") => Some(plain::wrong_method(method, plain::PROGRAMS)),
        _ => None,
    }
}

/// Asks a program that answers for every path of its route.
pub(crate) fn answer(program: &Arc<UpstreamProgram>, on: &OnRoute<'_>) -> Answered {
    if let Some(refusal) = refuse_method(on.request) {
        return Answered::Ready(refusal);
    }
    let sent = on.request.head().path();
    let script = AskedScript::of_route(sent, on.path, on.below);
    Answered::Later(Box::pin(run(ProgramAsk::new(program, on), script)))
}

/// One request for a program.
pub(crate) struct ProgramAsk {
    pub(crate) program: Arc<UpstreamProgram>,
    pub(crate) request: Request,
    pub(crate) counters: Arc<ThreadCounters>,
    pool: DiskThreads,
}

impl ProgramAsk {
    pub(crate) fn new(program: &Arc<UpstreamProgram>, on: &OnRoute<'_>) -> ProgramAsk {
        on.request.set_half_close(program.half_close);
        ProgramAsk {
            program: Arc::clone(program),
            request: on.request.clone(),
            counters: Arc::clone(&on.desk.counters),
            pool: on.desk.shared.pool.clone(),
        }
    }

    /// A program that hob runs itself takes requests when it has started.
    async fn await_program(&self) -> Result<(), ProgramFailure> {
        let Some(run) = &self.program.run else {
            return Ok(());
        };
        let patience = self.program.settings.timeout.connect;
        let taken = run.take(&self.request, &self.counters, patience).await;
        taken.map_err(
            |NotTaken {
                 status,
                 reason,
                 why,
             }| { ProgramFailure::Unasked(status, reason, why.to_string()) },
        )
    }

    /// What stands before the body.
    fn head(&self, script: &AskedScript, body_bytes: u64) -> Result<Vec<u8>, ProgramFailure> {
        let UpstreamProgram {
            settings, protocol, ..
        } = &*self.program;
        let asked = ProgramRequest {
            request: &self.request,
            body_bytes: Some(body_bytes),
            script: ScriptLocation {
                name: &script.name,
                path_info: &script.path_info,
                file: &script.file,
                document_root: settings.document_root(),
            },
            passes_authorization: settings.pass_authorization,
            may_tunnel: false,
        };
        let unfit = match protocol.head(&asked, &settings.env) {
            Ok(head) => return Ok(head),
            Err(unfit) => unfit,
        };
        let (status, reason) = match unfit {
            UnfitVariables::TooLong => {
                self.counters.limit_upstream_variables.add(1);
                (431, "the variables of the request are longer than 64 KiB")
            }
            UnfitVariables::Nul => (
                400,
                "the request holds a NUL byte, which no program can be passed",
            ),
        };
        Err(ProgramFailure::Unasked(status, reason, String::new()))
    }
}

/// The same once it has its place.
struct BegunAsk<'a> {
    ask: &'a ProgramAsk,
    script: &'a AskedScript,
    head: Vec<u8>,
    started: Instant,
}

impl AsksMember for BegunAsk<'_> {
    type Failure = ProgramFailure;
    type Link = Link;

    async fn open(
        &self,
        used: MemberUse,
        permit: Permit,
        connection: Connection,
    ) -> Result<Link, (UpstreamFailure, MemberUse, Permit)> {
        let ProgramAsk {
            program,
            request,
            counters,
            pool,
        } = self.ask;
        let terms = LinkTerms {
            connect: program.settings.timeout.connect,
            holds_process: true,
            versions: PeerVersions::Unnamed,
            pool,
        };
        Link::open(used, permit, request, counters, (terms, connection)).await
    }

    async fn ask(
        &self,
        link: Link,
        body: ProgramRequestBody,
        retry: Option<&RetryRules>,
    ) -> Result<Response, Box<AskFailure<ProgramFailure, Link>>> {
        let ProgramAsk {
            program,
            request,
            counters,
            pool,
        } = self.ask;
        let outgoing = Outgoing {
            head: self.head.clone(),
            body,
            pool: pool.clone(),
            framing: program.protocol.framing(),
        };
        let of = (counters, &*self.script.file);
        let begun = Exchange::begin(program, request, of, (link, outgoing)).await;
        let mut exchange = Some(begun);
        let ahead = ReadAhead {
            reactor: request.reactor(),
            pool,
            counters,
            bytes_max: program.settings.buffer.response,
        };
        let answered = reply::of(request, &mut exchange, &ahead, (self.started, retry)).await;
        answered.map_err(|failure| {
            let left = exchange.map(Exchange::give_up);
            let (link, is_unheard, printed) = left.unwrap_or_default();
            Box::new(AskFailure {
                failure,
                link,
                is_unheard,
                is_undone: false,
                printed,
            })
        })
    }

    fn cause(&self, failure: &ProgramFailure) -> Option<RetryCause> {
        failure.cause()
    }
}

/// Collects a body that does not say its length, waits for a place, and asks the program.
pub(crate) async fn run(ask: ProgramAsk, script: AskedScript) -> Response {
    let ProgramAsk {
        program,
        request,
        counters,
        pool,
    } = &ask;
    let waited_for = match request.body_len() {
        None => ProgramRequestBody::collect(request, pool).await.map(Some),
        Some(_) => {
            let buffer = program.settings.buffer.request;
            ProgramRequestBody::announced(request, pool, buffer).await
        }
    };
    let waited_for = match waited_for {
        Ok(body) => body,
        Err(trouble) => return broken_body(request, trouble),
    };
    let failed = |failure: &ProgramFailure, member: &str, printed: &[u8]| {
        let on = Befallen {
            program,
            script: &script.file,
            member,
            printed,
        };
        fail::respond(request, on, failure)
    };
    let settings = &program.settings.upstream;
    let permit = match enter(&program.gate, request, counters, settings.wait).await {
        Ok(permit) => permit,
        Err(refusal) => return failed(&UpstreamFailure::Gate(refusal).into(), "", b""),
    };
    if let Err(unready) = ask.await_program().await {
        return failed(&unready, "", b"");
    }
    let body = match waited_for {
        Some(body) => body,
        None => match ProgramRequestBody::begin(request).await {
            Ok(body) => body,
            Err(error) => return broken_body(request, BodyCollectError::Broken(error)),
        },
    };
    let head = match ask.head(&script, body.len()) {
        Ok(head) => head,
        Err(unfit) => return failed(&unfit, "", b""),
    };
    request.set_phase(HandlerPhase::Program);
    let asked = BegunAsk {
        ask: &ask,
        script: &script,
        head,
        started: Instant::now(),
    };
    let on = AskTerms {
        upstream: &program.upstream,
        request,
        counters,
        retry: &program.settings.retry,
        connect: program.settings.timeout.connect,
    };
    let answered = upstream::ask::ask(&asked, on, permit, body).await;
    request.set_phase(HandlerPhase::Server);
    note_time(request, asked.started);
    answered.unwrap_or_else(|vain| match request.body_error() {
        Some(error) => broken_body(request, BodyCollectError::Broken(error)),
        None => failed(&vain.failure, &vain.member, &vain.printed),
    })
}
