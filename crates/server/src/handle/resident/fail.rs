//! What went wrong with a resident program, whose fault it is, and how its client and the record
//! are told.

use hob_http::{Body, Bytes, Request, Response};
use hob_trace::Fault;
use hob_trace::ring::DETAIL_BYTES_MAX;

use crate::handle::plain;
use crate::handle::resident::Resident;
use crate::handle::script::fail::explain_page;
use crate::handle::script::head::BadHead;
use crate::serve::fleet::now_ms;

/// Why there is no answer, or no whole one.
#[derive(Clone, Debug)]
pub(crate) enum ResidentFailure {
    /// As many wait as may; why there is no further worker.
    QueueFull(String),
    /// It waited for too long; why there is no further worker.
    QueueWait(String),
    /// All workers of the server are others'.
    NoWorkers,
    /// The program ends before it is of use.
    Unstartable(String),
    /// No head in time.
    FirstByte,
    /// It took too long.
    Total,
    /// It fell silent.
    Progress,
    /// No more of a stream of events in time.
    Silent,
    /// Nothing came through its tunnel either way.
    TunnelIdle,
    /// It opened a tunnel that the client has not asked for, or with a status that opens none.
    WrongTunnel(&'static str),
    /// The client wants a tunnel and nothing else, and the program opened none.
    NoTunnel,
    /// The worker's process ended.
    Died(String),
    /// The worker broke the protocol.
    Malformed(String),
    /// The program says that it failed.
    Said(String),
    /// The answer ended without a head.
    NoHead,
    /// What it sent is no head.
    Head(BadHead),
    /// The body ended before the length that was announced.
    Short {
        /// Announced.
        announced: u64,
        /// What came.
        came: u64,
    },
    /// The body is not in chunks, as its head says.
    Chunks,
    /// A file that the program passed cannot be sent.
    File(&'static str),
    /// As many files of the worker as may are on their way.
    TooManyFiles,
    /// A variable cannot be passed on.
    Unpassable(&'static str),
    /// The variables are too long together.
    TooLong,
    /// The server stops.
    Stopping,
    /// The visit that it is of is over.
    VisitOver,
    /// As many of its visitor's requests wait as may.
    VisitorBusy,
}

impl ResidentFailure {
    /// The status that tells the client.
    pub(super) fn status(&self) -> u16 {
        match self {
            ResidentFailure::QueueFull(_)
            | ResidentFailure::QueueWait(_)
            | ResidentFailure::NoWorkers
            | ResidentFailure::TooManyFiles
            | ResidentFailure::Stopping => 503,
            ResidentFailure::FirstByte
            | ResidentFailure::Total
            | ResidentFailure::Progress
            | ResidentFailure::Silent
            | ResidentFailure::TunnelIdle => 504,
            ResidentFailure::NoTunnel => 501,
            ResidentFailure::Said(_) => 500,
            ResidentFailure::Unpassable(_) => 400,
            ResidentFailure::TooLong => 431,
            ResidentFailure::VisitOver => 410,
            ResidentFailure::VisitorBusy => 429,
            _ => 502,
        }
    }

    /// Whose fault it is.
    pub(super) fn fault(&self) -> Fault {
        match self.status() {
            503 => Fault::Server,
            400 | 410 | 429 | 431 | 501 => Fault::Client,
            _ => Fault::Script,
        }
    }

    /// The reason in words, for the record.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            ResidentFailure::QueueFull(_) => {
                "limits: resident.queue.max: too many requests wait for the program"
            }
            ResidentFailure::QueueWait(_) => {
                "limits: resident.queue.wait: no worker became free in time"
            }
            ResidentFailure::NoWorkers => {
                "limits: limits.workers: every worker of the server is in use"
            }
            ResidentFailure::Unstartable(_) => "the program ends before it is ready",
            ResidentFailure::FirstByte => {
                "limits: resident.timeout.first_byte: no head of an answer in time"
            }
            ResidentFailure::Total => "limits: resident.timeout.total: the answer took too long",
            ResidentFailure::Progress => {
                "limits: resident.timeout.progress: the answer fell silent"
            }
            ResidentFailure::Silent => {
                "limits: resident.timeout.events: the stream of events fell silent"
            }
            ResidentFailure::TunnelIdle => {
                "limits: resident.timeout.tunnel: nothing came through the tunnel either way"
            }
            ResidentFailure::WrongTunnel(reason) => reason,
            ResidentFailure::NoTunnel => {
                "the client asked for a tunnel, which the program does not open"
            }
            ResidentFailure::Died(_) => "the worker ended while it had the request",
            ResidentFailure::Malformed(_) => "the worker broke the protocol",
            ResidentFailure::Said(_) => "the program failed",
            ResidentFailure::NoHead => "the answer ended without a head",
            ResidentFailure::Head(bad) => bad.reason,
            ResidentFailure::Short { .. } => "the answer is shorter than its Content-Length",
            ResidentFailure::Chunks => "the answer is not in chunks, as its head says",
            ResidentFailure::File(reason) | ResidentFailure::Unpassable(reason) => reason,
            ResidentFailure::TooManyFiles => {
                "limits: as many files of one worker as may are on their way"
            }
            ResidentFailure::TooLong => "the variables of the request are longer than 128 KiB",
            ResidentFailure::Stopping => "the program is no longer in the config",
            ResidentFailure::VisitOver => "the visit is over",
            ResidentFailure::VisitorBusy => {
                "limits: session.queue.max: too many requests of the visitor wait"
            }
        }
    }

    /// What the reason leaves open.
    pub(super) fn details(&self) -> String {
        match self {
            ResidentFailure::QueueFull(text)
            | ResidentFailure::QueueWait(text)
            | ResidentFailure::Unstartable(text)
            | ResidentFailure::Died(text)
            | ResidentFailure::Malformed(text)
            | ResidentFailure::Said(text) => text.clone(),
            ResidentFailure::Head(bad) if !bad.line.is_empty() => {
                format!("{:?}", String::from_utf8_lossy(&bad.line))
            }
            ResidentFailure::Short { announced, came } => format!("{came} bytes of {announced}"),
            _ => String::new(),
        }
    }
}

/// Tells the record why, and which program it was.
pub(super) fn note(request: &Request, resident: &Resident, failure: &ResidentFailure) {
    {
        let mut record = request.record_mut();
        record.fault = failure.fault();
        record.reason = Some(failure.reason());
    }
    let mut detail = resident.settings.runs.name().as_bytes().to_vec();
    let details = failure.details();
    if !details.is_empty() {
        detail.extend_from_slice(b": ");
        detail.extend_from_slice(details.as_bytes());
        keep_the_end(&mut detail);
    }
    request.set_detail(&detail);
}

/// What is too long for a record loses the beginning of what the program printed: why it ended is
/// said in the last lines.
fn keep_the_end(detail: &mut Vec<u8>) {
    const PRINTED: &[u8] = b"it printed: ";
    let Some(surplus) = detail
        .len()
        .checked_sub(DETAIL_BYTES_MAX)
        .filter(|bytes| *bytes > 0)
    else {
        return;
    };
    let found = detail
        .windows(PRINTED.len())
        .position(|part| part == PRINTED);
    if let Some(at) = found.map(|at| at + PRINTED.len())
        && at + surplus + 3 <= detail.len()
    {
        detail.splice(at..at + surplus + 3, *b"...");
    }
}

/// The answer to a request that failed.
pub(super) fn respond(
    request: &Request,
    resident: &Resident,
    failure: &ResidentFailure,
) -> Response {
    note(request, resident, failure);
    let status = failure.status();
    let mut response = match status {
        503 => plain::busy_for(match failure {
            ResidentFailure::QueueFull(_) | ResidentFailure::QueueWait(_) => {
                resident.pool.0.retry_after_s(now_ms())
            }
            _ => 1,
        }),
        _ => plain::error(status),
    };
    if resident.settings.dev {
        let details = failure.details();
        let (says, printed) = match details.split_once("; it printed: ") {
            Some((says, printed)) => (says, printed),
            None => (details.as_str(), ""),
        };
        let name = resident.settings.runs.name();
        let page = explain_page(
            (status, failure.reason()),
            name.as_bytes(),
            says,
            Some(printed.as_bytes()),
            "resident.dev",
        );
        response.body = Body::Bytes(Bytes::from(page));
        response.is_stand_in = false;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_details_keep_the_end_of_what_was_printed() {
        let mut short = b"app: signal 9; it printed: a".to_vec();
        keep_the_end(&mut short);
        assert_eq!(short, b"app: signal 9; it printed: a");
        let mut long = b"app: exit code 1; it printed: ".to_vec();
        long.extend_from_slice(&[b'x'; 3 * DETAIL_BYTES_MAX]);
        long.extend_from_slice(b"ValueError: no");
        keep_the_end(&mut long);
        assert_eq!(long.len(), DETAIL_BYTES_MAX);
        assert!(long.starts_with(b"app: exit code 1; it printed: ...xxx"));
        assert!(long.ends_with(b"xValueError: no"));
    }
}
