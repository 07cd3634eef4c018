//! From a request to its answer.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use hob_http::tls::peer::PeerVersions;
use hob_http::{Answered, HandlerPhase, Request, Response};
use hob_trace::digits::push_hex;
use hob_trace::metric::ThreadCounters;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::proxy::Proxy;
use crate::handle::proxy::exchange::{AwaitedAnswer, ExchangeOver, ProxyExchange};
use crate::handle::proxy::fail::{self, ProxyFailure};
use crate::handle::proxy::head::{
    SentBody, SentHead, SentUpgrade, TargetParts, is_passed_on, push_target,
};
use crate::handle::proxy::http1::Http1Exchange;
use crate::handle::proxy::http2::Http2Exchange;
use crate::handle::proxy::link::{Http2Link, ProxyLink};
use crate::handle::proxy::reply;
use crate::handle::proxy::rewrite::SamePlaces;
use crate::handle::proxy::wire::Asked;
use crate::handle::script::body::{BodyCollectError, ProgramRequestBody};
use crate::handle::script::carried;
use crate::handle::script::fail::broken_body;
use crate::handle::script::gate::{Permit, enter};
use crate::handle::upstream::ask::{AskFailure, AskTerms, AsksMember, note_time};
use crate::handle::upstream::buffer::{BufferSettings, ReadAhead};
use crate::handle::upstream::config::{RetryCause, RetryRules};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::http2::{
    self, Http2Connections, Http2Found, Http2Stream, Http2Wish, HttpVersions,
};
use crate::handle::upstream::link::{Connection, Link, LinkTerms, MemberLink};
use crate::handle::upstream::members::MemberUse;
use crate::handle::upstream::patience::Patience;
use crate::handle::upstream::sending::{self, BodyFraming, Outgoing};
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
    /// The key of a WebSocket whose client has none, because it asked by CONNECT.
    key: Option<Vec<u8>>,
    /// Of a program of another machine: what that is told besides.
    carried: Option<Vec<u8>>,
    connections: Rc<Http2Connections>,
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
        let asked = self.ask(on);
        Answered::Later(Box::pin(async { asked.await.unwrap_or_else(|own| *own) }))
    }
}

impl Proxy {
    /// Has a member answer. An error is the answer where none did.
    pub(crate) fn ask(
        self: &Arc<Proxy>,
        on: &OnRoute<'_>,
    ) -> impl Future<Output = Result<Response, Box<Response>>> + use<> {
        on.request.set_half_close(self.half_close);
        let mut target = Vec::new();
        let is_rewritten = on.route.rewrite.is_some() || on.request.rewritten_path().is_some();
        push_target(
            &self.parts(on.request, (on.path, on.below), is_rewritten),
            &mut target,
        );
        let mut folder = Vec::new();
        if !self.settings.base.is_empty() && !is_rewritten && on.path[..on.below].ends_with(b"/") {
            encode(&on.path[..on.below], UrlPart::Path, &mut folder);
        }
        let key = match on.request.head().connect_protocol() {
            Some(protocol) if protocol.eq_ignore_ascii_case(b"websocket") => {
                Some(super::tunnel::websocket_key())
            }
            _ => None,
        };
        let program = self.settings.program.as_deref();
        let carried =
            program.map(|program| carried::field(program, on.request, (on.path, on.below)));
        run(ProxiedRequest {
            folder,
            key,
            carried,
            connections: Rc::clone(&on.desk.http2),
            proxy: Arc::clone(self),
            request: on.request.clone(),
            counters: Arc::clone(&on.desk.counters),
            pool: on.desk.shared.pool.clone(),
            target,
        })
    }

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
        if self.settings.program.is_some() {
            return true;
        }
        let mut known = self.settings.upgrade.iter();
        known.any(|one| one.as_bytes().eq_ignore_ascii_case(protocol))
    }
}

impl ProxiedRequest {
    /// The protocol of the tunnel that is asked for, where it may be.
    fn tunnel(&self) -> Option<&[u8]> {
        let protocol = self.request.tunnel();
        protocol.filter(|name| self.proxy.may_upgrade(name))
    }

    /// What is sent before the body, to a member of this name.
    fn head<'a>(&'a self, body: &ProgramRequestBody, authority: &'a str) -> SentHead<'a> {
        SentHead {
            request: &self.request,
            settings: &self.proxy.settings,
            target: &self.target,
            authority,
            body: framing(&self.request, body).0,
            tunnel: self.tunnel().map(|protocol| SentUpgrade {
                protocol,
                key: self.key.as_deref(),
            }),
            carried: self.carried.as_deref(),
        }
    }

    /// Makes the answer of a program of another machine what it was there.
    fn unpack(&self, member: &str, response: &mut Response) {
        if self.carried.is_some()
            && let Some(failed) = carried::unpack(response.fields_mut())
        {
            match carried::is_of_offers(&failed) {
                true => *response = plain::error(502),
                false => response.is_stand_in = true,
            }
            fail::note_remote(&self.request, member, &failed);
        }
    }

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
    type Link = ProxyLink;

    async fn open(
        &self,
        used: MemberUse,
        permit: Permit,
        connection: Connection,
    ) -> Result<ProxyLink, (UpstreamFailure, MemberUse, Permit)> {
        let ProxiedRequest {
            proxy,
            request,
            counters,
            pool,
            ..
        } = self.ask;
        let terms = LinkTerms {
            connect: proxy.settings.timeout.connect,
            holds_process: false,
            versions: PeerVersions::Http1,
            pool,
        };
        if proxy.settings.http != HttpVersions::Http1 {
            let wish = Http2Wish {
                request,
                counters,
                terms,
                versions: proxy.settings.http,
                connection,
                for_tunnel: self.ask.tunnel().is_some(),
                head_bytes_max: proxy.settings.head,
            };
            match self.ask.connections.find(&used, wish).await {
                Ok(Http2Found::Shared(connection, is_kept)) => {
                    return Ok(ProxyLink::Http2(Http2Link {
                        connection,
                        stream: None,
                        used,
                        permit,
                        is_kept,
                    }));
                }
                Ok(Http2Found::Http1(stream, age)) => {
                    return Ok(ProxyLink::Http1(Link::of((stream, age), used, permit)));
                }
                Ok(Http2Found::Nothing) => {}
                Err(failure) => return Err((failure, used, permit)),
            }
        }
        let opened = Link::open(used, permit, request, counters, (terms, connection)).await;
        opened.map(ProxyLink::Http1)
    }

    async fn ask(
        &self,
        link: ProxyLink,
        body: ProgramRequestBody,
        retry: Option<&RetryRules>,
    ) -> Result<Response, Box<AskFailure<ProxyFailure, ProxyLink>>> {
        let ProxiedRequest { proxy, request, .. } = self.ask;
        let authority = &proxy.settings.authorities[link.used().configured()];
        let head = self.ask.head(&body, authority);
        let authorities = [authority.as_bytes(), head.host()];
        let awaited = AwaitedAnswer::new(proxy, request, &self.ask.counters);
        let member = Arc::clone(&link.used().member().text);
        let told = Arc::clone(&member);
        let over = match link {
            ProxyLink::Http1(link) => {
                self.send_http1(&head, (link, body), &awaited.patience)
                    .await
            }
            ProxyLink::Http2(link) => {
                self.send_http2(&head, (link, body), &awaited.patience)
                    .await
            }
        };
        let begun = ProxyExchange::new(proxy, awaited, member, over);
        let mut exchange = Some(begun.with_key(self.ask.key.as_deref()));
        let may_steer = proxy.settings.control;
        let times = (self.started, retry);
        let ahead = ReadAhead {
            reactor: request.reactor(),
            pool: &self.ask.pool,
            counters: &self.ask.counters,
            bytes_max: proxy.settings.buffer.response,
        };
        let answered = reply::of(request, &mut exchange, (&ahead, may_steer), times).await;
        let led = |mut response: Response| {
            self.ask.unpack(&told, &mut response);
            self.ask.lead_here(authorities, &mut response);
            response
        };
        answered.map(led).map_err(|failure| {
            let left = exchange.map(ProxyExchange::give_up);
            let (link, is_unheard, is_undone) = left.unwrap_or_default();
            Box::new(AskFailure {
                failure,
                link,
                is_unheard,
                is_undone,
                printed: Vec::new(),
            })
        })
    }

    fn cause(&self, failure: &ProxyFailure) -> Option<RetryCause> {
        match failure {
            ProxyFailure::Upstream(failure) => failure.cause(),
            ProxyFailure::Wire(_)
            | ProxyFailure::WrongTunnel
            | ProxyFailure::WrongKey
            | ProxyFailure::Reset(_) => Some(RetryCause::Closed),
            ProxyFailure::NotTaken(_) => None,
        }
    }
}

impl AskedServer<'_> {
    async fn send_http1(
        &self,
        head: &SentHead<'_>,
        (link, body): (Link, ProgramRequestBody),
        patience: &Patience,
    ) -> ExchangeOver {
        let ProxiedRequest { proxy, request, .. } = self.ask;
        let asked = Asked {
            is_head: request.head().method() == b"HEAD",
            tunnel: head.tunnel.is_some(),
        };
        let outgoing = Outgoing {
            head: head.lines(),
            framing: framing(request, &body).1,
            body,
            pool: self.ask.pool.clone(),
        };
        sending::begin(outgoing, &link.stream, request, patience).await;
        ExchangeOver::Http1(Http1Exchange::new(asked, proxy.settings.head, link))
    }

    async fn send_http2(
        &self,
        head: &SentHead<'_>,
        (mut link, body): (Http2Link, ProgramRequestBody),
        patience: &Patience,
    ) -> ExchangeOver {
        let request = &self.ask.request;
        let is_all = matches!(body, ProgramRequestBody::None) && head.tunnel.is_none();
        let terms = (request.head().method() == b"HEAD", is_all);
        let is_https = link.connection.is_secure();
        link.stream = Http2Stream::open(&link.connection, terms, |block| {
            head.write_block(block, is_https);
        });
        if let (Some(stream), false) = (&link.stream, is_all) {
            let proxy = Arc::clone(&self.ask.proxy);
            let passes = move |name: &[u8]| is_passed_on(&proxy.settings, name);
            let body = (body, &self.ask.pool);
            http2::send(stream, body, (request, patience), passes).await;
        }
        ExchangeOver::Http2(Http2Exchange::new(
            link,
            head.tunnel.map(|tunnel| tunnel.protocol),
        ))
    }
}

/// How the body is sent, and what of that is told in the head.
fn framing(request: &Request, body: &ProgramRequestBody) -> (SentBody, BodyFraming) {
    const CHUNKED: BodyFraming = BodyFraming {
        is_plain: false,
        piece: push_chunk,
        end: |out| out.extend_from_slice(b"0\r\n\r\n"),
    };
    const WITHOUT: [&[u8]; 4] = [b"GET", b"HEAD", b"OPTIONS", b"DELETE"];
    match (body, request.body_len()) {
        // What follows are the tunnel's bytes.
        _ if request.head().connect_protocol().is_some() => (SentBody::None, BodyFraming::PLAIN),
        (ProgramRequestBody::Coming(..) | ProgramRequestBody::Begun(..), None) => {
            (SentBody::Chunked, CHUNKED)
        }
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

/// Waits for all of a body that is to be waited for; `None` where it is not.
async fn collect(
    request: &Request,
    pool: &DiskThreads,
    buffer: BufferSettings,
) -> Result<Option<ProgramRequestBody>, BodyCollectError> {
    if request.body_len().is_some() {
        return ProgramRequestBody::announced(request, pool, buffer.request).await;
    }
    // Both sides of it may speak in turns.
    let mut kinds = request.head().values(b"content-type");
    if buffer.unannounced == 0 || kinds.any(|kind| kind.starts_with(b"application/grpc")) {
        return Ok(None);
    }
    let collected = ProgramRequestBody::unannounced(request, pool, buffer.unannounced);
    collected.await.map(Some)
}

/// Waits for a place, and asks a member. An error is the answer where none gave one.
async fn run(ask: ProxiedRequest) -> Result<Response, Box<Response>> {
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
        None => collect(request, pool, proxy.settings.buffer).await,
    };
    let short = match short {
        Ok(short) => short,
        Err(trouble) => return Ok(broken_body(request, trouble)),
    };
    let permit = match enter(&proxy.gate, request, counters, settings.wait).await {
        Ok(permit) => permit,
        Err(refusal) => {
            let failure = UpstreamFailure::Gate(refusal).into();
            return Err(fail::respond(request, &proxy.addresses, &failure).into());
        }
    };
    if let Some(run) = &proxy.run
        && let Err(not) = run
            .take(request, counters, proxy.settings.timeout.connect)
            .await
    {
        let failure = ProxyFailure::NotTaken(not);
        return Err(fail::respond(request, &proxy.addresses, &failure).into());
    }
    let body = match (short, request.body_len()) {
        (Some(body), _) => Ok(body),
        (None, None) => Ok(ProgramRequestBody::Coming(VecDeque::new(), u64::MAX)),
        (None, Some(_)) => ProgramRequestBody::begin(request).await,
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => return Ok(broken_body(request, BodyCollectError::Broken(error))),
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
        retry: &proxy.settings.retry,
        connect: proxy.settings.timeout.connect,
    };
    let answered = upstream::ask::ask(&asked, on, permit, body).await;
    request.set_phase(HandlerPhase::Server);
    note_time(request, asked.started);
    answered.or_else(|vain| {
        if let Some(error) = request.body_error() {
            return Ok(broken_body(request, BodyCollectError::Broken(error)));
        }
        let member = match &*vain.member {
            "" => &proxy.addresses,
            member => member,
        };
        Err(fail::respond(request, member, &vain.failure).into())
    })
}
