//! What went wrong with a program behind FastCGI, whose fault it is, and how its client and the
//! record are told.

use hob_http::{Body, BodyError, Bytes, Request, Response};
use hob_trace::Fault;

use crate::handle::fastcgi::FastCgi;
use crate::handle::fastcgi::exchange::Exchange;
use crate::handle::fastcgi::wire::WireFault;
use crate::handle::plain;
use crate::handle::script::fail::explain_page;
use crate::handle::script::head::BadHead;
use crate::handle::upstream::fail::{UpstreamFailure, UpstreamReasons, upstream_reasons};

/// Why there is no answer, or no whole one.
#[derive(Debug)]
pub(super) enum FastCgiFailure {
    /// What can happen with any upstream.
    Upstream(UpstreamFailure),
    /// What came is not the protocol, or a refusal.
    Wire(WireFault),
    /// What it printed is no answer.
    Head(Box<BadHead>),
    /// A body where the status allows none.
    Bodiless(u16),
    /// The body ended before the length that was announced.
    Short {
        /// Announced.
        announced: u64,
        /// What came.
        came: u64,
    },
    /// The body is not in chunks as its head says.
    Chunks,
    /// What the path names is not passed on.
    Forbidden,
    /// The script could not be looked for.
    NotLooked(String),
}

static REASONS: UpstreamReasons = upstream_reasons!("fastcgi", "program");

impl From<UpstreamFailure> for FastCgiFailure {
    fn from(failure: UpstreamFailure) -> FastCgiFailure {
        FastCgiFailure::Upstream(failure)
    }
}

impl FastCgiFailure {
    /// The status that tells the client.
    fn status(&self) -> u16 {
        match self {
            FastCgiFailure::Upstream(failure) => failure.status(),
            FastCgiFailure::Wire(WireFault::Refused(_)) => 503,
            FastCgiFailure::Forbidden => 403,
            FastCgiFailure::NotLooked(_) => 500,
            _ => 502,
        }
    }

    fn fault(&self) -> Fault {
        match self.status() {
            503 | 500 | 403 => Fault::Server,
            _ => Fault::Script,
        }
    }

    /// The reason in words, for the record.
    fn reason(&self) -> &'static str {
        match self {
            FastCgiFailure::Upstream(failure) => failure.reason(&REASONS),
            FastCgiFailure::Wire(WireFault::Malformed(_)) => "what the program sent is not FastCGI",
            FastCgiFailure::Wire(WireFault::Refused(_)) => "the program takes no more requests",
            FastCgiFailure::Head(bad) => bad.reason,
            FastCgiFailure::Bodiless(_) => "the program sent a body with a status that has none",
            FastCgiFailure::Short { .. } => "the answer is shorter than its Content-Length",
            FastCgiFailure::Chunks => "the answer is not in chunks, as its head says",
            FastCgiFailure::Forbidden => "the server may not look into a folder on the way to it",
            FastCgiFailure::NotLooked(_) => "the program could not be looked for",
        }
    }

    /// What the reason leaves open.
    fn details(&self) -> String {
        match self {
            FastCgiFailure::Upstream(failure) => failure.details().to_owned(),
            FastCgiFailure::NotLooked(text) => text.clone(),
            FastCgiFailure::Wire(WireFault::Malformed(text) | WireFault::Refused(text)) => {
                (*text).to_owned()
            }
            FastCgiFailure::Head(bad) if !bad.line.is_empty() => {
                format!("{:?}", String::from_utf8_lossy(&bad.line))
            }
            FastCgiFailure::Bodiless(status) => format!("status {status}"),
            FastCgiFailure::Short { announced, came } => format!("{came} bytes of {announced}"),
            _ => String::new(),
        }
    }
}

/// What a failure befell: the handler, the script, and the member, as far as one was asked.
#[derive(Clone, Copy)]
pub(super) struct Befallen<'a> {
    pub(super) fastcgi: &'a FastCgi,
    pub(super) program: &'a [u8],
    pub(super) member: &'a str,
    /// What was printed last.
    pub(super) printed: &'a [u8],
}

/// Tells the record why, which script it was, who was asked, and what it printed last.
fn note(request: &Request, on: Befallen<'_>, failure: &FastCgiFailure) {
    {
        let mut record = request.record_mut();
        record.fault = failure.fault();
        record.reason = Some(failure.reason());
    }
    let mut detail = on.program.to_vec();
    if !on.program.is_empty() {
        detail.extend_from_slice(b" at ");
    }
    detail.extend_from_slice(on.shown_member().as_bytes());
    let details = failure.details();
    if !details.is_empty() {
        detail.extend_from_slice(b": ");
        detail.extend_from_slice(details.as_bytes());
    }
    let printed = on.printed.trim_ascii();
    if !printed.is_empty() {
        detail.extend_from_slice(b"; stderr: ");
        detail.extend_from_slice(printed);
    }
    request.set_detail(&detail);
}

impl Befallen<'_> {
    fn shown_member(&self) -> &str {
        match self.member {
            "" => &self.fastcgi.addresses,
            member => member,
        }
    }
}

/// How the body of an answer that has begun breaks.
pub(super) fn broken(exchange: &Exchange, failure: &FastCgiFailure) -> BodyError {
    let on = Befallen {
        fastcgi: &exchange.fastcgi,
        program: &exchange.program,
        member: &exchange.member,
        printed: &exchange.printed,
    };
    note(&exchange.request, on, failure);
    BodyError::Source(failure.fault(), failure.reason())
}

/// The answer to a request that failed.
pub(super) fn respond(request: &Request, on: Befallen<'_>, failure: &FastCgiFailure) -> Response {
    note(request, on, failure);
    let status = failure.status();
    let mut response = match status {
        503 => plain::busy(),
        _ => plain::error(status),
    };
    if on.fastcgi.settings.dev {
        let shown = match on.program.is_empty() {
            true => on.shown_member().as_bytes(),
            false => on.program,
        };
        let page = explain_page(
            (status, failure.reason()),
            shown,
            &failure.details(),
            on.printed,
            "fastcgi.dev",
        );
        response.body = Body::Bytes(Bytes::from(page));
        response.is_stand_in = false;
    }
    response
}
