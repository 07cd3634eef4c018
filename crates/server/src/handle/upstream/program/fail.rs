//! What went wrong with a program behind an upstream, whose fault it is, and how its client and the
//! record are told.

use hob_http::{Body, BodyError, Bytes, Request, Response};
use hob_trace::Fault;

use crate::handle::plain;
use crate::handle::script::fail::explain_page;
use crate::handle::script::head::BadHead;
use crate::handle::upstream::config::RetryCause;
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::program::UpstreamProgram;
use crate::handle::upstream::program::exchange::Exchange;
use crate::handle::upstream::program::protocol::ProtocolWords;

/// Why there is no answer, or no whole one.
#[derive(Debug)]
pub(crate) enum ProgramFailure {
    /// What can happen with any upstream.
    Upstream(UpstreamFailure),
    /// What came is not the protocol (502), or a refusal (503): the reason, and how.
    Wire(u16, &'static str, &'static str),
    /// What it printed is no answer.
    Head(Box<BadHead>),
    /// The connection ended within the head.
    HeadCut(Box<BadHead>),
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
    /// Nobody was asked: the status that says so, the reason, and what that leaves open.
    Unasked(u16, &'static str, String),
}

impl From<UpstreamFailure> for ProgramFailure {
    fn from(failure: UpstreamFailure) -> ProgramFailure {
        ProgramFailure::Upstream(failure)
    }
}

impl ProgramFailure {
    /// The status that tells the client.
    fn status(&self) -> u16 {
        match self {
            ProgramFailure::Upstream(failure) => failure.status(),
            ProgramFailure::Wire(status, ..) | ProgramFailure::Unasked(status, ..) => *status,
            _ => 502,
        }
    }

    fn fault(&self) -> Fault {
        match self.status() {
            400 | 431 => Fault::Client,
            503 | 500 | 403 => Fault::Server,
            _ => Fault::Script,
        }
    }

    /// What it is that another member may be asked after, and that speaks against this one.
    pub(super) fn cause(&self) -> Option<RetryCause> {
        match self {
            ProgramFailure::Upstream(failure) => failure.cause(),
            ProgramFailure::Wire(..) | ProgramFailure::HeadCut(_) => Some(RetryCause::Closed),
            _ => None,
        }
    }

    /// The reason in words, for the record.
    fn reason(&self, words: &ProtocolWords) -> &'static str {
        match self {
            ProgramFailure::Upstream(failure) => failure.reason(&words.reasons),
            ProgramFailure::Wire(_, reason, _) | ProgramFailure::Unasked(_, reason, _) => reason,
            ProgramFailure::Head(bad) | ProgramFailure::HeadCut(bad) => bad.reason,
            ProgramFailure::Bodiless(_) => "the program sent a body with a status that has none",
            ProgramFailure::Short { .. } => "the answer is shorter than its Content-Length",
            ProgramFailure::Chunks => "the answer is not in chunks, as its head says",
        }
    }

    /// What the reason leaves open.
    pub(super) fn details(&self) -> String {
        match self {
            ProgramFailure::Upstream(failure) => failure.details().into_owned(),
            ProgramFailure::Unasked(_, _, text) => text.clone(),
            ProgramFailure::Wire(_, _, text) => (*text).to_owned(),
            ProgramFailure::Head(bad) | ProgramFailure::HeadCut(bad) if !bad.line.is_empty() => {
                format!("{:?}", String::from_utf8_lossy(&bad.line))
            }
            ProgramFailure::Bodiless(status) => format!("status {status}"),
            ProgramFailure::Short { announced, came } => format!("{came} bytes of {announced}"),
            _ => String::new(),
        }
    }
}

/// What a failure befell: the program, its script, and the member, as far as one was asked.
#[derive(Clone, Copy)]
pub(crate) struct Befallen<'a> {
    pub(crate) program: &'a UpstreamProgram,
    pub(crate) script: &'a [u8],
    pub(crate) member: &'a str,
    /// What was printed last.
    pub(crate) printed: &'a [u8],
}

/// Tells the record why, which script it was, who was asked, and what it printed last.
fn note(request: &Request, on: Befallen<'_>, failure: &ProgramFailure) {
    {
        let mut record = request.record_mut();
        record.fault = failure.fault();
        record.reason = Some(failure.reason(on.program.protocol.words()));
    }
    let mut detail = on.script.to_vec();
    if !on.script.is_empty() {
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
            "" => &self.program.addresses,
            member => member,
        }
    }
}

/// How the body of an answer that has begun breaks.
pub(super) fn broken(exchange: &Exchange, failure: &ProgramFailure) -> BodyError {
    let on = Befallen {
        program: &exchange.program,
        script: &exchange.script,
        member: &exchange.member,
        printed: &exchange.printed,
    };
    note(&exchange.request, on, failure);
    let words = exchange.program.protocol.words();
    BodyError::Source(failure.fault(), failure.reason(words))
}

/// The answer to a request that failed.
pub(crate) fn respond(request: &Request, on: Befallen<'_>, failure: &ProgramFailure) -> Response {
    note(request, on, failure);
    let status = failure.status();
    let mut response = match status {
        503 => plain::busy(),
        _ => plain::error(status),
    };
    if on.program.settings.dev {
        let words = on.program.protocol.words();
        let shown = match on.script.is_empty() {
            true => on.shown_member().as_bytes(),
            false => on.script,
        };
        let page = explain_page(
            (status, failure.reason(words)),
            shown,
            &failure.details(),
            Some(on.printed),
            words.dev,
        );
        response.body = Body::Bytes(Bytes::from(page));
        response.is_stand_in = false;
    }
    response
}
