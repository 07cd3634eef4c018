//! What goes wrong with an upstream whatever is spoken there.

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
        }
    }

    /// What it is that another member may be asked after, and that speaks against this one.
    pub(crate) fn cause(&self) -> Option<RetryCause> {
        match self {
            UpstreamFailure::Unreachable(_) | UpstreamFailure::Time(TimeLimit::Connect) => {
                Some(RetryCause::Connect)
            }
            UpstreamFailure::Closed | UpstreamFailure::Broken(_) => Some(RetryCause::Closed),
            UpstreamFailure::Time(TimeLimit::FirstByte) => Some(RetryCause::FirstByte),
            UpstreamFailure::Status(status) => Some(RetryCause::Status(*status)),
            UpstreamFailure::Gate(_)
            | UpstreamFailure::AllOut
            | UpstreamFailure::MembersFull
            | UpstreamFailure::Time(_) => None,
        }
    }

    /// What the reason leaves open.
    pub(crate) fn details(&self) -> &str {
        match self {
            UpstreamFailure::Unreachable(text) | UpstreamFailure::Broken(text) => text,
            _ => "",
        }
    }
}
