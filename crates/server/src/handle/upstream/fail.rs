//! What goes wrong with an upstream whatever is spoken there.

use std::borrow::Cow;
use std::io::{self, ErrorKind};

use hob_http::tls::peer::{PeerFault, PeerFaultKind};
use hob_trace::metric::ThreadCounters;

use crate::handle::script::gate::GateRefusal;
use crate::handle::upstream::config::RetryCause;

/// Why there is no answer, or no whole one.
#[derive(Debug)]
pub(crate) enum UpstreamFailure {
    /// There is no connection for it.
    Gate(GateRefusal),
    /// All members are out.
    AllOut,
    /// Each member had as many requests as it may, for too long.
    MembersFull,
    /// Nobody listens there, or the server may not.
    Unreachable(String),
    /// It took too long.
    Time(TimeLimit),
    /// The connection ended before the answer.
    Closed,
    /// The connection broke.
    Broken(String),
    /// There is no TLS, or no more of it.
    Tls(PeerFault),
    /// It answered with a status after which another member is asked.
    Status(u16),
}

/// The limits of time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// No connection in time.
    Connect,
    /// No head in time.
    FirstByte,
    /// It took too long.
    Total,
    /// It fell silent.
    Progress,
    /// No more of a stream of events in time.
    Events,
}

impl TimeLimit {
    /// Counts that it was reached.
    pub(crate) fn count(self, counters: &ThreadCounters) {
        let counter = match self {
            TimeLimit::Connect => &counters.limit_upstream_connect,
            TimeLimit::FirstByte => &counters.limit_upstream_first_byte,
            TimeLimit::Total => &counters.limit_upstream_total,
            TimeLimit::Progress => &counters.limit_upstream_progress,
            TimeLimit::Events => &counters.limit_upstream_events,
        };
        counter.add(1);
    }
}

/// The reasons in the words of a handler, for records.
pub(crate) struct UpstreamReasons {
    pub(crate) queue_max: &'static str,
    pub(crate) queue_wait: &'static str,
    pub(crate) all_out: &'static str,
    pub(crate) members_full: &'static str,
    pub(crate) unreachable: &'static str,
    pub(crate) connect: &'static str,
    pub(crate) first_byte: &'static str,
    pub(crate) total: &'static str,
    pub(crate) progress: &'static str,
    pub(crate) events: &'static str,
    pub(crate) closed: &'static str,
    pub(crate) broken: &'static str,
}

/// The reasons of a handler with this key, which calls its other side so.
macro_rules! upstream_reasons {
    ($key:literal, $side:literal) => {
        $crate::handle::upstream::fail::UpstreamReasons {
            queue_max: concat!(
                "limits: ",
                $key,
                ".queue.max: too many requests wait for the ",
                $side
            ),
            queue_wait: concat!(
                "limits: ",
                $key,
                ".queue.wait: no connection became free in time"
            ),
            all_out: "all members are left out",
            members_full: "limits: upstream.member.connections: each member has as many requests \
                           as it may",
            unreachable: concat!("the ", $side, " cannot be reached"),
            connect: concat!(
                "limits: ",
                $key,
                ".timeout.connect: the ",
                $side,
                " did not take the connection in time"
            ),
            first_byte: concat!(
                "limits: ",
                $key,
                ".timeout.first_byte: no head of an answer in time"
            ),
            total: concat!("limits: ", $key, ".timeout.total: the answer took too long"),
            progress: concat!(
                "limits: ",
                $key,
                ".timeout.progress: the answer fell silent"
            ),
            events: concat!(
                "limits: ",
                $key,
                ".timeout.events: the stream of events fell silent"
            ),
            closed: concat!(
                "the ",
                $side,
                " closed the connection before its answer ended"
            ),
            broken: concat!("the connection to the ", $side, " broke"),
        }
    };
}
pub(crate) use upstream_reasons;

impl UpstreamFailure {
    /// There was no connection in time, which is counted.
    pub(crate) fn late_to_connect(counters: &ThreadCounters) -> UpstreamFailure {
        TimeLimit::Connect.count(counters);
        UpstreamFailure::Time(TimeLimit::Connect)
    }

    /// The status that tells the client.
    pub(crate) fn status(&self) -> u16 {
        match self {
            UpstreamFailure::Gate(_) | UpstreamFailure::AllOut | UpstreamFailure::MembersFull => {
                503
            }
            UpstreamFailure::Time(_) => 504,
            UpstreamFailure::Unreachable(_)
            | UpstreamFailure::Closed
            | UpstreamFailure::Broken(_)
            | UpstreamFailure::Tls(_)
            | UpstreamFailure::Status(_) => 502,
        }
    }

    /// The reason in words, for the record.
    pub(crate) fn reason(&self, words: &UpstreamReasons) -> &'static str {
        match self {
            UpstreamFailure::Gate(GateRefusal::Full) => words.queue_max,
            UpstreamFailure::Gate(GateRefusal::Time) => words.queue_wait,
            UpstreamFailure::AllOut => words.all_out,
            UpstreamFailure::MembersFull => words.members_full,
            UpstreamFailure::Unreachable(_) => words.unreachable,
            UpstreamFailure::Time(TimeLimit::Connect) => words.connect,
            UpstreamFailure::Time(TimeLimit::FirstByte) => words.first_byte,
            UpstreamFailure::Time(TimeLimit::Total) => words.total,
            UpstreamFailure::Time(TimeLimit::Progress) => words.progress,
            UpstreamFailure::Time(TimeLimit::Events) => words.events,
            // Who answers so last has its answer sent.
            UpstreamFailure::Closed | UpstreamFailure::Status(_) => words.closed,
            UpstreamFailure::Broken(_) => words.broken,
            UpstreamFailure::Tls(fault) => tls_reason(fault.kind),
        }
    }

    /// What it is that another member may be asked after, and that speaks against this one.
    pub(crate) fn cause(&self) -> Option<RetryCause> {
        match self {
            UpstreamFailure::Unreachable(_)
            | UpstreamFailure::Tls(_)
            | UpstreamFailure::Time(TimeLimit::Connect) => Some(RetryCause::Connect),
            UpstreamFailure::Closed | UpstreamFailure::Broken(_) => Some(RetryCause::Closed),
            UpstreamFailure::Time(TimeLimit::FirstByte) => Some(RetryCause::FirstByte),
            UpstreamFailure::Status(status) => Some(RetryCause::Status(*status)),
            UpstreamFailure::Gate(_)
            | UpstreamFailure::AllOut
            | UpstreamFailure::MembersFull
            | UpstreamFailure::Time(_) => None,
        }
    }

    /// What the reason leaves open, and what to do.
    pub(crate) fn details(&self) -> Cow<'_, str> {
        match self {
            UpstreamFailure::Unreachable(text) | UpstreamFailure::Broken(text) => text.into(),
            UpstreamFailure::Tls(PeerFault { kind, text }) => {
                let what_to_do = match kind {
                    PeerFaultKind::Expired => "renew it there, or set the clock",
                    PeerFaultKind::WrongName => {
                        "write a name that it has in `to`, or in `tls.name`"
                    }
                    PeerFaultKind::UnknownAuthority => {
                        "name a file of who signed it, or of itself, in `tls.ca`"
                    }
                    PeerFaultKind::ClearText => "write it without TLS in `to`, or its port for TLS",
                    PeerFaultKind::OursRefused => "name one that it accepts in `tls.certificate`",
                    PeerFaultKind::Other => return text.into(),
                };
                format!("{text}; {what_to_do}").into()
            }
            _ => "".into(),
        }
    }

    /// What it is that reading from a member failed.
    pub(crate) fn of_read(error: io::Error, counters: &ThreadCounters) -> UpstreamFailure {
        match error.kind() {
            // It has closed, and not read all of the request; or not said that it ends.
            ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => UpstreamFailure::Closed,
            _ => match error.downcast() {
                Ok(fault) => UpstreamFailure::of_tls(fault, counters),
                Err(error) => UpstreamFailure::Broken(error.to_string()),
            },
        }
    }

    pub(crate) fn of_tls(fault: PeerFault, counters: &ThreadCounters) -> UpstreamFailure {
        counters.upstream_tls_failed.add(1);
        UpstreamFailure::Tls(fault)
    }
}

/// In the words that all have.
fn tls_reason(kind: PeerFaultKind) -> &'static str {
    match kind {
        PeerFaultKind::Expired => "the certificate of the other server is not good today",
        PeerFaultKind::WrongName => "the certificate of the other server is for another name",
        PeerFaultKind::UnknownAuthority => {
            "the certificate of the other server is signed by nobody who is believed"
        }
        PeerFaultKind::ClearText => "the other server speaks no TLS",
        PeerFaultKind::OursRefused => {
            "the other server wants a certificate of ours, or another one"
        }
        PeerFaultKind::Other => "there is no TLS with the other server",
    }
}
