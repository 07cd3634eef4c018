//! What went wrong with another server, and how its client and the record are told.

use std::borrow::Cow;

use hob_http::{BodyError, Request, Response};
use hob_trace::{Fault, HandlerKind};

use crate::handle::plain;
use crate::handle::proxy::exchange::ProxyExchange;
use crate::handle::proxy::wire::WireFault;
use crate::handle::script::carried;
use crate::handle::upstream::fail::{UpstreamFailure, UpstreamReasons, upstream_reasons};
use crate::handle::upstream::run::program::NotTaken;

/// Why there is no answer, or no whole one.
#[derive(Debug)]
pub(super) enum ProxyFailure {
    /// What can happen with any upstream.
    Upstream(UpstreamFailure),
    /// What came is no answer.
    Wire(WireFault),
    /// A tunnel was opened for another protocol than the one asked for.
    WrongTunnel,
    /// It opened a WebSocket without having read the key it was asked with.
    WrongKey,
    /// It broke the stream off, with this code of HTTP/2.
    Reset(u32),
    /// Hob was to start it, and it takes no requests.
    NotTaken(NotTaken),
}

static REASONS: UpstreamReasons = upstream_reasons!("proxy", "other server");
static OF_PROGRAMS: UpstreamReasons = upstream_reasons!("remote", "other machine");

impl From<UpstreamFailure> for ProxyFailure {
    fn from(failure: UpstreamFailure) -> ProxyFailure {
        ProxyFailure::Upstream(failure)
    }
}

impl ProxyFailure {
    fn status(&self) -> u16 {
        match self {
            ProxyFailure::Upstream(failure) => failure.status(),
            ProxyFailure::Wire(_)
            | ProxyFailure::WrongTunnel
            | ProxyFailure::WrongKey
            | ProxyFailure::Reset(_) => 502,
            ProxyFailure::NotTaken(not) => not.status,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            ProxyFailure::Upstream(UpstreamFailure::Gate(_)) => Fault::Server,
            ProxyFailure::NotTaken(not) if not.status == 503 => Fault::Server,
            ProxyFailure::NotTaken(_) => Fault::Script,
            _ => Fault::Upstream,
        }
    }

    /// The reason in words, for the record.
    fn reason(&self, request: &Request) -> &'static str {
        let reasons = match request.record().handler {
            HandlerKind::Remote => &OF_PROGRAMS,
            _ => &REASONS,
        };
        match self {
            ProxyFailure::Upstream(failure) => failure.reason(reasons),
            ProxyFailure::Wire(_) => "what the other server sent is no answer",
            ProxyFailure::WrongTunnel => "the other server opened a tunnel for another protocol",
            ProxyFailure::WrongKey => {
                "the other server opened a WebSocket with another Sec-WebSocket-Accept than its key's"
            }
            ProxyFailure::Reset(_) => "the other server broke its answer off",
            ProxyFailure::NotTaken(not) => not.reason,
        }
    }

    fn details(&self) -> Cow<'_, str> {
        match self {
            ProxyFailure::Upstream(failure) => failure.details(),
            ProxyFailure::Wire(WireFault(text)) => (*text).into(),
            ProxyFailure::WrongTunnel | ProxyFailure::WrongKey => "".into(),
            ProxyFailure::Reset(code) => format!("RST_STREAM with code {code}").into(),
            ProxyFailure::NotTaken(not) => (&*not.why).into(),
        }
    }
}

fn note(request: &Request, member: &str, failure: &ProxyFailure) {
    let reason = failure.reason(request);
    {
        let mut record = request.record_mut();
        record.fault = failure.fault();
        record.reason = Some(reason);
    }
    let detail = match &*failure.details() {
        "" => member.to_owned(),
        details => format!("{member}: {details}"),
    };
    request.set_detail(detail.as_bytes());
}

/// How the body of an answer that has begun breaks.
pub(super) fn broken(exchange: &ProxyExchange, failure: &ProxyFailure) -> BodyError {
    note(exchange.request(), &exchange.member, failure);
    BodyError::Source(failure.fault(), failure.reason(exchange.request()))
}

/// Tells the record why another machine's hob answered itself, and not the program.
pub(super) fn note_remote(request: &Request, member: &str, failed: &[u8]) {
    {
        let mut record = request.record_mut();
        record.fault = carried::fault_of(failed);
        record.reason = Some("the machine that has the program says that it failed");
    }
    request.set_detail(&[member.as_bytes(), b": ", failed].concat());
}

/// The answer to a request that failed with a member, or with all of them.
pub(super) fn respond(request: &Request, member: &str, failure: &ProxyFailure) -> Response {
    note(request, member, failure);
    match failure.status() {
        503 => plain::busy(),
        status => plain::error(status),
    }
}
