//! The plan as threads need it: everything written out, every time in nanoseconds of the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::h1::AnswerReadOptions;
use super::socket::{Opener, ServerAddress, SourceAddresses};
use super::visits::Pages;
use super::{h2, h3};
use crate::arrive::Schedule;
use crate::conduct::Shard;
use crate::draw::Draw;
use crate::expect::Expected;
use crate::limits::VISITOR_CONNECTION_COUNT;
use crate::measure::Live;
use crate::plan::ClientActs;
use crate::plan::{BenchPlan, LoadModel, Protocol, Reuse};
use crate::replay::Feed;
use crate::request::H1Request;

/// What all threads read.
#[derive(Debug)]
pub(crate) struct PreparedRun {
    pub(crate) protocol: Protocol,
    /// Requests at once on a connection.
    pub(crate) streams: usize,
    /// The kinds of requests, and how the next one is chosen.
    pub(crate) kinds: Vec<RequestKind>,
    pub(crate) choice: Choice,
    /// The pages, where pages are loaded and not single requests.
    pub(crate) pages: Option<Pages>,
    /// Rows of the results that kinds belong to.
    pub(crate) class_count: usize,
    /// The requests over HTTP/1, by kind.
    pub(crate) requests: Vec<H1Request>,
    /// The requests over HTTP/2.
    pub(crate) h2: Option<h2::Common>,
    /// The requests over HTTP/3.
    pub(crate) h3: Option<h3::Common>,
    pub(crate) address: ServerAddress,
    pub(crate) is_open: bool,
    pub(crate) reuse: Reuse,
    /// What to say about TLS and who the server must be; none in clear text.
    pub(crate) tls: Option<(ClientConfig, ServerName<'static>)>,
    pub(crate) has_resumption: bool,
    pub(crate) think_ns: u64,
    /// What clients do besides, and where random numbers begin.
    pub(crate) acts: ClientActs,
    pub(crate) seed: u64,
    pub(crate) timeout_ns: u64,
    /// How long the warm-up is, and what is measured after it; for ever, for a mere count.
    pub(crate) warm_up_ns: u64,
    pub(crate) measured_ns: u64,
    /// When what is measured begins: at the end of the warm-up, or once it is said.
    pub(crate) warm_ns: AtomicU64,
    pub(crate) rate: Option<crate::arrive::ArrivalRate>,
    /// When the run began.
    pub(crate) begun: Instant,
    /// Set when the run is to end at once.
    pub(crate) is_stopped: std::sync::Arc<AtomicBool>,
    /// How far it is, for whoever watches.
    pub(crate) live: Live,
}

/// One kind of request.
#[derive(Debug)]
pub(crate) struct RequestKind {
    /// The row of the results it belongs to.
    pub(crate) class: u32,
    pub(crate) is_head: bool,
    pub(crate) expected: Arc<Expected>,
}

/// Which kind of request comes next.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The one behind the last.
    InTurn,
    /// By weight, from a seed.
    Drawn(Draw, u64),
}

impl PreparedRun {
    /// Opens the connections of a thread, which come from such sources.
    pub(crate) fn opener(&self, sources: SourceAddresses) -> Opener {
        Opener::new(self.address.clone(), self.protocol, sources).receiving(self.acts.read_rate)
    }

    pub(crate) fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// When the warm-up ends; never, as long as nobody has said so.
    pub(crate) fn warm_ns(&self) -> u64 {
        self.warm_ns.load(Ordering::Relaxed)
    }

    /// When the measured time ends; never, for a mere count.
    pub(crate) fn end_ns(&self) -> u64 {
        self.warm_ns().saturating_add(self.measured_ns)
    }

    /// What is measured begins now, if it has not begun in another thread; when this is.
    pub(crate) fn begin(&self) -> u64 {
        begin(&self.warm_ns, self.now())
    }

    pub(crate) fn kind(&self, kind: u32) -> &RequestKind {
        &self.kinds[kind as usize]
    }

    /// Connections of each visitor; without visitors there is one where they would be.
    pub(crate) fn conns_per_visitor(&self) -> usize {
        match (&self.pages, self.protocol) {
            (Some(_), Protocol::H1) => VISITOR_CONNECTION_COUNT,
            _ => 1,
        }
    }

    /// What decides how the answer to a kind of request is read.
    pub(crate) fn asked(&self, kind: u32) -> AnswerReadOptions<'_> {
        let kind = self.kind(kind);
        AnswerReadOptions {
            is_head: kind.is_head,
            fields: &kind.expected.fields,
            is_hashed: kind.expected.hash.is_some(),
        }
    }

    /// The step of the rate that a request belongs to.
    pub(crate) fn step(&self, intended_ns: u64) -> usize {
        let into = intended_ns.saturating_sub(self.warm_ns());
        let rate = self.rate.as_ref();
        rate.map_or(0, |rate| rate.step(into, self.measured_ns))
    }

    pub(crate) fn step_count(&self) -> usize {
        match &self.rate {
            Some(crate::arrive::ArrivalRate::Steps(steps)) => steps.len(),
            _ => 1,
        }
    }
}

/// Of several threads the first one sets when it begins. One that comes later has its own time and
/// what is left of the whole; one that looked at the clock earlier begins with the first.
fn begin(warm_ns: &AtomicU64, now: u64) -> u64 {
    let relaxed = Ordering::Relaxed;
    match warm_ns.compare_exchange(u64::MAX, now, relaxed, relaxed) {
        Ok(_) => now,
        Err(begun) => now.max(begun),
    }
}

/// What says when a thread's requests are due.
#[derive(Debug)]
pub(crate) enum DueSource {
    /// The answers to those before, in a closed loop.
    Answers,
    Rate(Schedule),
    Log(Feed),
}

/// What one thread has of the whole.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) connections: usize,
    /// Measured requests it may send.
    pub(crate) quota: u64,
    /// Its number among all threads of all machines.
    pub(crate) number: usize,
    /// When its requests are due.
    pub(crate) source: DueSource,
    /// Where its connections come from.
    pub(crate) sources: SourceAddresses,
    pub(crate) cpu: Option<usize>,
}

impl Share {
    /// The share of one thread.
    pub(crate) fn of(
        plan: &BenchPlan,
        thread: usize,
        shard: Option<Shard>,
        feed: Option<Feed>,
    ) -> Share {
        let count = plan.threads;
        let part = |whole: u64| {
            let (each, rest) = (whole / count as u64, whole % count as u64);
            each + u64::from((thread as u64) < rest)
        };
        // Threads of all machines take turns, so that together they keep the rate.
        let turn = shard.map_or((thread, count), |shard| {
            (
                (shard.number as usize - 1) * count + thread,
                shard.count as usize * count,
            )
        });
        let source = match &plan.pace {
            LoadModel::Closed { .. } => DueSource::Answers,
            LoadModel::Log(_) => feed.map_or(DueSource::Answers, DueSource::Log),
            LoadModel::Open { rate, arrivals } => DueSource::Rate(Schedule::new(
                rate,
                *arrivals,
                (plan.warm_up, plan.duration.unwrap_or_default()),
                turn,
                plan.seed,
            )),
        };
        let connections = part(plan.connections as u64) as usize;
        let before = plan.connections / count * thread + (plan.connections % count).min(thread);
        Share {
            connections,
            sources: match plan.sources {
                0 | 1 => SourceAddresses::Any,
                count => SourceAddresses::Spread {
                    count,
                    first: before,
                    own: connections,
                },
            },
            quota: plan.count.map_or(u64::MAX, part),
            number: turn.0,
            source,
            cpu: (!plan.cpus.is_empty()).then(|| plan.cpus[thread % plan.cpus.len()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_begins_before_what_is_measured_does() {
        let warm_ns = AtomicU64::new(u64::MAX);
        assert_eq!(begin(&warm_ns, 7), 7);
        assert_eq!(begin(&warm_ns, 5), 7);
        assert_eq!(begin(&warm_ns, 9), 9);
        assert_eq!(warm_ns.into_inner(), 7);
    }
}
