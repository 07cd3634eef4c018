//! From a request to its answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use hob_http::{Answered, HandlerPhase, Request, Response};
use hob_trace::digits::push_hex;
use hob_trace::metric::ThreadCounters;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::proxy::Proxy;
use crate::handle::proxy::exchange::ProxyExchange;
use crate::handle::proxy::fail::{self, ProxyFailure};
use crate::handle::proxy::head::{SentBody, SentHead, SentUpgrade, TargetParts, push_target};
use crate::handle::proxy::reply;
use crate::handle::proxy::rewrite::SamePlaces;
use crate::handle::proxy::wire::Asked;
use crate::handle::script::body::{BodyCollectError, ProgramRequestBody};
use crate::handle::script::fail::broken_body;
use crate::handle::script::gate::enter;
use crate::handle::upstream::ask::{AskFailure, AskTerms, AsksMember, note_time};
use crate::handle::upstream::buffer::ReadAhead;
use crate::handle::upstream::config::{RetryCause, RetryRules};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::link::{Link, LinkTerms};
use crate::handle::upstream::sending::{BodyFraming, Outgoing};
use crate::handle::{AnswersRoute, plain, upstream};
use crate::route::percent::{UrlPart, encode};
use crate::serve::context::OnRoute;

/// A request for another server.
struct ProxiedRequest {
    proxy: Arc<Proxy>,
    request: Request,
    counters: Arc<ThreadCounters>,
    pool: DiskThreads,
    target: Vec<u8>,
    /// The folder here for which the one in `to` stands; empty where there is none.
    folder: Vec<u8>,
}

/// The same once it has its place, and since when.
struct AskedServer<'a> {
    ask: &'a ProxiedRequest,
    started: Instant,
}

impl AnswersRoute for Proxy {
    const OPENS_TUNNELS: bool = true;

    fn answer(self: &Arc<Proxy>, on: &OnRoute<'_>) -> Answered {
        if let Some(refusal) = self.refuse(on.request) {
            return Answered::Ready(refusal);
        }
        on.request.set_half_close(self.half_close);
        let mut target = Vec::new();
        let is_rewritten = on.route.rewrite.is_some();
        push_target(
            &self.parts(on.request, (on.path, on.below), is_rewritten),
            &mut target,
        );
        let mut folder = Vec::new();
        if !self.settings.base.is_empty() && !is_rewritten && on.path[..on.below].ends_with(b"/") {
            encode(&on.path[..on.below], UrlPart::Path, &mut folder);
        }
        Answered::Later(Box::pin(run(ProxiedRequest {
            folder,
            proxy: Arc::clone(self),
            request: on.request.clone(),
            counters: Arc::clone(&on.desk.counters),
            pool: on.desk.shared.pool.clone(),
            target,
        })))
    }
}

impl Proxy {
    /// The answer to what nobody is asked for.
    pub(super) fn refuse(&self, request: &Request) -> Option<Response> {
        let head = request.head();
        if head.method() == b"TRACE" {
            return Some(plain::wrong_method(b"TRACE", plain::PROGRAMS));
        }
        let protocol = head.connect_protocol()?;
        let is_refused = !self.may_upgrade(protocol);
        is_refused.then(|| plain::error(501))
    }

    pub(super) fn parts<'a>(
        &'a self,
        request: &'a Request,
        path: (&'a [u8], usize),
        is_rewritten: bool,
    ) -> TargetParts<'a> {
        TargetParts {
            request,
            path,
            is_rewritten,
            base: self.settings.base.as_bytes(),
        }
    }

    /// Whether this protocol, in whichever version, may be asked for.
    fn may_upgrade(&self, protocol: &[u8]) -> bool {
        let protocol = protocol.split(|byte| *byte == b'/').next();
        let protocol = protocol.unwrap_or_default();
        let mut known = self.settings.upgrade.iter();
        known.any(|one| one.as_bytes().eq_ignore_ascii_case(protocol))
    }
}

impl ProxiedRequest {
    /// Has an answer lead here that names the other server by one of its names.
    fn lead_here(&self, authorities: [&[u8]; 2], response: &mut Response) {
        let settings = &self.proxy.settings;
        let may_lead = settings.location && matches!(response.status(), 201 | 300..=399);
        if !may_lead && !settings.cookies {
            return;
        }
        let host = self.request.head().host();
        let places = SamePlaces {
            authorities: authorities.map(|own| if own == host { &b""[..] } else { own }),
            host,
            folders: match self.folder.is_empty() {
                true => None,
                false => Some((settings.base.as_bytes(), &self.folder)),
            },
        };
        if may_lead {
            places.lead_here(response.fields_mut());
        }
        if settings.cookies {
            places.keep_cookies(response.fields_mut());
        }
    }
}

impl AsksMember for AskedServer<'_> {
    type Failure = ProxyFailure;

    async fn ask(
        &self,
        link: Link,
        body: ProgramRequestBody,
        retry: Option<&RetryRules>,
    ) -> Result<Response, Box<AskFailure<ProxyFailure>>> {
        let ProxiedRequest {
            proxy,
            request,
            counters,
            pool,
            target,
            ..
        } = self.ask;
        let head = request.head();
        let tunnel = request.tunnel().filter(|name| proxy.may_upgrade(name));
        let asked = Asked {
            is_head: head.method() == b"HEAD",
            tunnel: tunnel.is_some(),
        };
        let key = match head.connect_protocol() {
            Some(protocol) if protocol.eq_ignore_ascii_case(b"websocket") => {
                Some(super::tunnel::websocket_key())
            }
            _ => None,
        };
        let (sent, framing) = framing(request, &body);
        let head = SentHead {
            request,
            settings: &proxy.settings,
            target,
            authority: &proxy.settings.authorities[link.used.index()],
            body: sent,
            tunnel: tunnel.map(|protocol| SentUpgrade {
                protocol,
                key: key.as_deref(),
            }),
        };
        let authorities = [head.authority.as_bytes(), head.host()];
        let outgoing = Outgoing {
            head: head.lines(),
            body,
            pool: pool.clone(),
            framing,
        };
        let begun = ProxyExchange::begin(proxy, request, counters, asked, (link, outgoing)).await;
        let mut exchange = Some(begun);
        let may_steer = proxy.settings.control;
        let times = (self.started, retry);
        let ahead = ReadAhead {
            reactor: request.reactor(),
            pool,
            counters,
            bytes_max: proxy.settings.buffer.response,
        };
        let answered = reply::of(request, &mut exchange, (&ahead, may_steer), times).await;
        let led = |mut response: Response| {
            self.ask.lead_here(authorities, &mut response);
            response
        };
        answered.map(led).map_err(|failure| {
            let (link, is_unheard) = exchange.map(ProxyExchange::give_up).unwrap_or_default();
            Box::new(AskFailure {
                failure,
                link,
                is_unheard,
                printed: Vec::new(),
            })
        })
    }

    fn cause(&self, failure: &ProxyFailure) -> Option<RetryCause> {
        match failure {
            ProxyFailure::Upstream(failure) => failure.cause(),
            ProxyFailure::Wire(_) | ProxyFailure::WrongTunnel => Some(RetryCause::Closed),
        }
    }
}

/// How the body is sent, and what of that is told in the head.
fn framing(request: &Request, body: &ProgramRequestBody) -> (SentBody, BodyFraming) {
    const CHUNKED: BodyFraming = BodyFraming {
        piece: push_chunk,
        end: |out| out.extend_from_slice(b"0\r\n\r\n"),
    };
    const WITHOUT: [&[u8]; 4] = [b"GET", b"HEAD", b"OPTIONS", b"DELETE"];
    match (body, request.body_len()) {
        // What follows are the tunnel's bytes.
        _ if request.head().connect_protocol().is_some() => (SentBody::None, BodyFraming::PLAIN),
        (_, None) => (SentBody::Chunked, CHUNKED),
        // Who announced that there is nothing says so on the other side too.
        (ProgramRequestBody::None, _) if WITHOUT.contains(&request.head().method()) => {
            (SentBody::None, BodyFraming::PLAIN)
        }
        (body, _) => (SentBody::Sized(body.len()), BodyFraming::PLAIN),
    }
}

fn push_chunk(out: &mut Vec<u8>, piece: &[u8]) {
    push_hex(piece.len() as u64, out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(piece);
    out.extend_from_slice(b"\r\n");
}

/// Waits for a place, and asks a member.
async fn run(ask: ProxiedRequest) -> Response {
    let ProxiedRequest {
        proxy,
        request,
        counters,
        pool,
        ..
    } = &ask;
    let settings = &proxy.settings.upstream;
    let short = match request.tunnel() {
        Some(_) => Ok(Some(ProgramRequestBody::None)),
        None => {
            let buffer = proxy.settings.buffer.request;
            ProgramRequestBody::announced(request, pool, buffer).await
        }
    };
    let short = match short {
        Ok(short) => short,
        Err(trouble) => return broken_body(request, trouble),
    };
    let permit = match enter(&proxy.gate, request, counters, settings.wait).await {
        Ok(permit) => permit,
        Err(refusal) => {
            let failure = UpstreamFailure::Gate(refusal).into();
            return fail::respond(request, &proxy.addresses, &failure);
        }
    };
    let body = match (short, request.body_len()) {
        (Some(body), _) => Ok(body),
        (None, None) => Ok(ProgramRequestBody::Coming(VecDeque::new(), u64::MAX)),
        (None, Some(_)) => ProgramRequestBody::begin(request).await,
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return broken_body(request, BodyCollectError::Broken(error)),
    };
    request.set_phase(HandlerPhase::Program);
    let asked = AskedServer {
        ask: &ask,
        started: Instant::now(),
    };
    let on = AskTerms {
        upstream: &proxy.upstream,
        request,
        counters,
        link: LinkTerms {
            connect: proxy.settings.timeout.connect,
            holds_process: false,
            pool,
        },
        retry: &proxy.settings.retry,
    };
    let answered = upstream::ask::ask(&asked, on, permit, body).await;
    request.set_phase(HandlerPhase::Server);
    note_time(request, asked.started);
    answered.unwrap_or_else(|vain| {
        if let Some(error) = request.body_error() {
            return broken_body(request, BodyCollectError::Broken(error));
        }
        let member = match &*vain.member {
            "" => &proxy.addresses,
            member => member,
        };
        fail::respond(request, member, &vain.failure)
    })
}
