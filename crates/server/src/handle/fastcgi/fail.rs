//! What went wrong with a program behind FastCGI, whose fault it is, and how its client and the
//! record are told.

use hob_http::{Body, BodyError, Bytes, Request, Response};
use hob_trace::Fault;

use crate::handle::fastcgi::FastCgi;
use crate::handle::fastcgi::exchange::Exchange;
use crate::handle::fastcgi::wire::WireFault;
use crate::handle::plain;
use crate::handle::script::fail::explain_page;
use crate::handle::script::gate::GateRefusal;
use crate::handle::script::head::BadHead;

/// Why there is no answer, or no whole one.
#[derive(Debug)]
pub(super) enum FastCgiFailure {
    /// There is no connection for it.
    Gate(GateRefusal),
    /// Nobody listens there, or the server may not.
    Unreachable(String),
    /// No connection in time.
    ConnectTime,
    /// No head in time.
    FirstByte,
    /// It took too long.
    Total,
    /// It fell silent.
    Progress,
    /// No more of a stream of events in time.
    Silent,
    /// The connection ended before the answer.
    Closed,
    /// The connection broke.
    Broken(String),
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

impl FastCgiFailure {
    /// The status that tells the client.
    fn status(&self) -> u16 {
        match self {
            FastCgiFailure::Gate(_) | FastCgiFailure::Wire(WireFault::Refused(_)) => 503,
            FastCgiFailure::ConnectTime
            | FastCgiFailure::FirstByte
            | FastCgiFailure::Total
            | FastCgiFailure::Progress
            | FastCgiFailure::Silent => 504,
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
            FastCgiFailure::Gate(GateRefusal::Full) => {
                "limits: fastcgi.queue.max: too many requests wait for the program"
            }
            FastCgiFailure::Gate(GateRefusal::Time) => {
                "limits: fastcgi.queue.wait: no connection became free in time"
            }
            FastCgiFailure::Unreachable(_) => "the program cannot be reached",
            FastCgiFailure::ConnectTime => {
                "limits: fastcgi.timeout.connect: the program did not take the connection in time"
            }
            FastCgiFailure::FirstByte => {
                "limits: fastcgi.timeout.first_byte: no head of an answer in time"
            }
            FastCgiFailure::Total => "limits: fastcgi.timeout.total: the answer took too long",
            FastCgiFailure::Progress => "limits: fastcgi.timeout.progress: the answer fell silent",
            FastCgiFailure::Silent => {
                "limits: fastcgi.timeout.events: the stream of events fell silent"
            }
            FastCgiFailure::Closed => "the program closed the connection before its answer ended",
            FastCgiFailure::Broken(_) => "the connection to the program broke",
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
            FastCgiFailure::Unreachable(text)
            | FastCgiFailure::Broken(text)
            | FastCgiFailure::NotLooked(text) => text.clone(),
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

/// Tells the record why, which script it was, who was asked, and what it printed last.
fn note(
    request: &Request,
    (fastcgi, program): (&FastCgi, &[u8]),
    failure: &FastCgiFailure,
    printed: &[u8],
) {
    {
        let mut record = request.record_mut();
        record.fault = failure.fault();
        record.reason = Some(failure.reason());
    }
    let mut detail = program.to_vec();
    if !program.is_empty() {
        detail.extend_from_slice(b" at ");
    }
    detail.extend_from_slice(fastcgi.address.as_bytes());
    let details = failure.details();
    if !details.is_empty() {
        detail.extend_from_slice(b": ");
        detail.extend_from_slice(details.as_bytes());
    }
    let printed = printed.trim_ascii();
    if !printed.is_empty() {
        detail.extend_from_slice(b"; stderr: ");
        detail.extend_from_slice(printed);
    }
    request.set_detail(&detail);
}

/// How the body of an answer that has begun breaks.
pub(super) fn broken(exchange: &Exchange, failure: &FastCgiFailure) -> BodyError {
    let of = (&*exchange.fastcgi, &*exchange.program);
    note(&exchange.request, of, failure, &exchange.printed);
    BodyError::Source(failure.fault(), failure.reason())
}

/// The answer to a request that failed.
pub(super) fn respond(
    request: &Request,
    (fastcgi, program): (&FastCgi, &[u8]),
    failure: &FastCgiFailure,
    printed: &[u8],
) -> Response {
    note(request, (fastcgi, program), failure, printed);
    let status = failure.status();
    let mut response = match status {
        503 => plain::busy(),
        _ => plain::error(status),
    };
    if fastcgi.settings.dev {
        let shown = match program.is_empty() {
            true => fastcgi.address.as_bytes(),
            false => program,
        };
        let page = explain_page(
            (status, failure.reason()),
            shown,
            &failure.details(),
            printed,
            "fastcgi.dev",
        );
        response.body = Body::Bytes(Bytes::from(page));
        response.is_stand_in = false;
    }
    response
}
