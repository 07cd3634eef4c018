//! Pages instead of single requests: each visitor has connections and lanes of its own, and what
//! its view of a page wants next is begun wherever one of them is free.
//!
//! Over HTTP/1 a visitor has six connections with a lane each, over HTTP/2 and HTTP/3 one
//! connection with many lanes: lane and connection `v`, `v + visitors`, `v + 2 * visitors`, ... are
//! those of visitor `v`. How requests end is queued and looked at once per turn of the loop, so
//! that one that ends at once does not begin the next within itself.

use std::collections::VecDeque;

use super::conn::{BenchConnection, ConnectionPhase};
use super::kept::{Keep, Kept};
use super::lane::{Lane, LaneState};
use super::prepared::PreparedRun;
use super::thread::Thread;
use crate::browse::{
    Ahead, Answered, Asker, AssetRequest, Base, FetchOutcome, PageViewOutcome, Readings, Visitor,
    What,
};
use crate::limits::RETRY_PAUSE;
use crate::measure::AnswerSummary;
use crate::measure::{FailureKind, MeasuredAnswer, PageCount};

/// What threads need to know of the pages.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) bases: Vec<Base>,
    pub(crate) asker: Asker,
    pub(crate) has_cache: bool,
}

/// A request that a lane carries.
#[derive(Debug)]
struct LaneRequest {
    wanted: AssetRequest,
    /// What was read of the answer before it was whole.
    ahead: Option<Box<Ahead>>,
    head: Vec<u8>,
    begun_ns: u64,
}

/// A request that has ended.
#[derive(Debug)]
struct Settled {
    lane: usize,
    outcome: FetchOutcome,
    at_ns: u64,
}

/// The visitors of one thread.
#[derive(Debug)]
pub(super) struct Visits {
    visitors: Vec<Visitor>,
    asked: Vec<Option<LaneRequest>>,
    settled: VecDeque<Settled>,
    readings: Readings,
    count: Box<PageCount>,
}

impl Visits {
    pub(super) fn new(pages: &Pages, visitor_count: usize, lane_count: usize) -> Visits {
        let visitors = (0..visitor_count).map(|_| Visitor::new(pages.has_cache));
        Visits {
            visitors: visitors.collect(),
            asked: (0..lane_count).map(|_| None).collect(),
            settled: VecDeque::new(),
            readings: Readings::default(),
            count: Box::new(PageCount::new()),
        }
    }

    pub(super) fn visitor_count(&self) -> usize {
        self.visitors.len()
    }

    /// Something has ended that nobody has looked at.
    pub(super) fn has_settled(&self) -> bool {
        !self.settled.is_empty()
    }

    /// The request that a lane carries, as it goes out.
    pub(super) fn head(&self, lane: usize) -> &[u8] {
        let asked = self.asked.get(lane).and_then(Option::as_ref);
        asked.map_or(&[], |asked| &asked.head)
    }

    /// What is wanted of the answer on a lane.
    pub(super) fn kept(&self, lane: usize) -> Kept {
        let asked = self.asked.get(lane).and_then(Option::as_ref);
        let is_read = asked.is_some_and(|asked| asked.wanted.kind.is_scanned());
        Kept::new(if is_read { Keep::Body } else { Keep::Fields })
    }

    /// How many measured pages each visitor has seen, and what they have come to.
    pub(super) fn finish(self) -> (Vec<u64>, Box<PageCount>) {
        let counts = self.visitors.iter().map(|visitor| visitor.page_count);
        (counts.collect(), self.count)
    }
}

/// The bytes of a lane's request over HTTP/1.
pub(super) fn request<'a>(
    visits: Option<&'a Visits>,
    prepared: &'a PreparedRun,
    lane: usize,
    of: &'a Lane,
) -> &'a [u8] {
    match visits {
        Some(visits) => visits.head(lane),
        None => of.request(&prepared.requests),
    }
}

impl Thread<'_> {
    /// Visitors that must fill their cache before they count do so; in an open loop nothing else
    /// makes them begin.
    pub(super) fn prime(&mut self, now: u64) {
        let Some(visits) = self.visits.as_ref().filter(|_| self.prepared.is_open) else {
            return;
        };
        for visitor in 0..visits.visitor_count() {
            if self.must_prime(visitor) {
                self.next_request(visitor, now);
            }
        }
    }

    /// Has a visitor not been there before, though it should have?
    pub(super) fn must_prime(&self, visitor: usize) -> bool {
        let visits = self.visits.as_ref();
        visits.is_some_and(|visits| !visits.visitors[visitor].is_primed)
    }

    /// A visitor goes to the page whose turn it is.
    pub(super) fn begin_view(&mut self, visitor: usize, intended_ns: u64, now: u64) {
        let what = match intended_ns >= self.prepared.warm_ns() {
            _ if self.must_prime(visitor) => What::Priming,
            true => What::Measured,
            false => What::WarmUp,
        };
        let kind = self.chooser.next();
        let class = self.prepared.kind(kind).class as usize;
        let (Some(visits), Some(pages)) = (&mut self.visits, &self.prepared.pages) else {
            return;
        };
        let base = &pages.bases[kind as usize];
        visits.visitors[visitor].begin(base, what, class, (intended_ns, now));
        self.ask(visitor, now);
    }

    /// Begins as much of what a visitor wants as it has room for.
    fn ask(&mut self, visitor: usize, now: u64) {
        while let Some(lane) = self.free_lane(visitor) {
            let (Some(visits), Some(pages)) = (&mut self.visits, &self.prepared.pages) else {
                return;
            };
            let of = &mut visits.visitors[visitor];
            let is_measured = of.what() == Some(What::Measured);
            let Some(wanted) = of.next(now, &mut visits.count) else {
                return self.take_over(visitor, lane, now);
            };
            visits.asked[lane] = Some(LaneRequest {
                head: pages.asker.head(&wanted),
                wanted,
                ahead: None,
                begun_ns: now,
            });
            if self.conns[lane % self.conn_count].many.is_none() {
                self.conns[lane].reader.keep(visits.kept(lane));
            }
            let one = &mut self.lanes[lane];
            (one.intended_ns, one.begun_ns) = (now, now);
            one.is_measured = is_measured;
            self.launch(lane, now);
        }
    }

    /// A lane has become free, and nothing is left for it but what waits for a connection that is
    /// not open yet: browsers send that over the first connection there is.
    fn take_over(&mut self, visitor: usize, lane: usize, now: u64) {
        let Some(visits) = &mut self.visits else {
            return;
        };
        let is_free =
            |conn: &BenchConnection| conn.many.is_none() && conn.phase == ConnectionPhase::Open;
        if !self.conns.get(lane).is_some_and(is_free) {
            return;
        }
        let mut lanes = (visitor..self.lanes.len()).step_by(visits.visitor_count());
        let Some(waiting) = lanes.find(|other| self.lanes[*other].state == LaneState::Opening)
        else {
            return;
        };
        visits.asked[lane] = visits.asked[waiting].take();
        self.conns[waiting].reader.reset();
        self.conns[lane].reader.keep(visits.kept(lane));
        let waited = &mut self.lanes[waiting];
        waited.state = LaneState::Idle;
        self.busy_count -= 1;
        let (begun_ns, is_measured) = (waited.begun_ns, waited.is_measured);
        (self.lanes[lane].begun_ns, self.lanes[lane].is_measured) = (begun_ns, is_measured);
        self.launch(lane, now);
    }

    /// A lane of a visitor that carries nothing: best one whose connection is open, then one whose
    /// connection will be.
    fn free_lane(&self, visitor: usize) -> Option<usize> {
        let visits = self.visits.as_ref()?;
        let lanes = (visitor..self.lanes.len()).step_by(visits.visitor_count());
        let free = lanes.filter(|lane| visits.asked[*lane].is_none());
        free.min_by_key(|lane| match self.conns[lane % self.conn_count].phase {
            ConnectionPhase::Open => 0,
            ConnectionPhase::Handshaking => 1,
            ConnectionPhase::Connecting => 2,
            ConnectionPhase::Closed => 3,
        })
    }

    /// A lane's request has its answer.
    pub(super) fn visit_answered(
        &mut self,
        lane: usize,
        answer: &AnswerSummary,
        kept: Option<Box<Kept>>,
        now: u64,
    ) {
        let outcome = FetchOutcome::Answered(Answered {
            status: answer.status,
            body_bytes: answer.body_bytes,
            is_expected: self.prepared.kind(0).expected.has_status(answer.status),
            kept: kept.map_or_else(Kept::default, |kept| *kept),
        });
        self.visit_settled(lane, outcome, now);
    }

    /// A lane's request has no good answer.
    pub(super) fn visit_failed(&mut self, lane: usize, kind: FailureKind, text: String, now: u64) {
        self.visit_settled(lane, FetchOutcome::Failed(kind, text), now);
    }

    fn visit_settled(&mut self, lane: usize, outcome: FetchOutcome, at_ns: u64) {
        // A connection that was begun in vain carries nothing that could end.
        if !self.lanes[lane].is_busy() {
            return;
        }
        self.busy_count -= 1;
        self.lanes[lane].state = LaneState::Idle;
        if let Some(visits) = &mut self.visits {
            visits.settled.push_back(Settled {
                lane,
                outcome,
                at_ns,
            });
        }
    }

    /// Looks at what has ended since the last turn, and begins what follows from it.
    pub(super) fn go_on_visiting(&mut self) {
        let count = self.visits.as_ref().map_or(0, |all| all.settled.len());
        for _ in 0..count {
            let Some(visits) = &mut self.visits else {
                return;
            };
            let Some(settled) = visits.settled.pop_front() else {
                return;
            };
            let Some(asked) = visits.asked[settled.lane].take() else {
                continue;
            };
            let visitor = settled.lane % visits.visitor_count();
            let of = &mut visits.visitors[visitor];
            let times = (asked.begun_ns, settled.at_ns);
            let (readings, count) = (&mut visits.readings, &mut visits.count);
            of.settled(asked.wanted, settled.outcome, times, readings, count);
            self.ask(visitor, self.prepared.now());
            self.look_for_end(visitor, settled.at_ns);
        }
    }

    /// The view of a visitor may be over, whose last answer came then.
    fn look_for_end(&mut self, visitor: usize, at_ns: u64) {
        let Some(visits) = &mut self.visits else {
            return;
        };
        let Some((what, ended)) = visits.visitors[visitor].end() else {
            return;
        };
        self.leave(visitor);
        let is_answered = ended.status.is_some();
        self.tally.answers_since_warm_up += u64::from(is_answered);
        if what == What::Measured {
            self.count_page(visitor, ended, at_ns);
        }
        let now = self.prepared.now();
        let pause_ns = match is_answered {
            true => self.prepared.think_ns,
            false => RETRY_PAUSE.as_nanos() as u64,
        };
        match pause_ns {
            0 => self.next_request(visitor, now),
            _ => self.pause(visitor, now + pause_ns),
        }
    }

    /// Who comes for the first time each time has no connection from before.
    fn leave(&mut self, visitor: usize) {
        let Some(visits) = &self.visits else {
            return;
        };
        if self
            .prepared
            .pages
            .as_ref()
            .is_some_and(|pages| pages.has_cache)
        {
            return;
        }
        for conn in (visitor..self.conn_count).step_by(visits.visitor_count()) {
            self.conns[conn].close();
        }
    }

    fn count_page(&mut self, visitor: usize, ended: PageViewOutcome, at_ns: u64) {
        let Some(visits) = &mut self.visits else {
            return;
        };
        let step = self.prepared.step(ended.intended_ns);
        self.tally.now_ns = at_ns;
        let waited_ns = at_ns.saturating_sub(ended.intended_ns);
        let Some(status) = ended.status else {
            let (kind, text) = ended.fault.unwrap_or((FailureKind::Closed, String::new()));
            return self
                .tally
                .failed(kind, (ended.class, step), waited_ns, || text);
        };
        visits.visitors[visitor].page_count += 1;
        if let Some(first) = ended.first_byte_ns {
            let waited = first.saturating_sub(ended.intended_ns);
            visits.count.first_byte.record(waited);
        }
        let answer = AnswerSummary {
            status,
            body_bytes: ended.body_bytes,
            ..AnswerSummary::default()
        };
        let counted = MeasuredAnswer {
            answer: &answer,
            class: ended.class,
            step,
            connection: visitor,
            logged_status: 0,
            response_ns: waited_ns,
            service_ns: at_ns.saturating_sub(ended.begun_ns),
        };
        let is_open = self.prepared.is_open;
        self.tally.page(&counted, ended.fault, is_open);
    }

    /// After something came on a connection: it may be more of a document, which names what can be
    /// asked for before it is whole.
    pub(super) fn look_ahead(&mut self, conn: usize) {
        let Some(visits) = &mut self.visits else {
            return;
        };
        // On an old connection nothing of a visitor's begins any more.
        if conn >= self.conn_count {
            return;
        }
        let visitor = conn % visits.visitor_count();
        let one = &self.conns[conn];
        let (first, step) = match &one.many {
            None => (conn, self.lanes.len()),
            Some(_) => (visitor, visits.visitor_count()),
        };
        let mut has_new = false;
        for lane in (first..self.lanes.len()).step_by(step) {
            let Some(asked) = &mut visits.asked[lane] else {
                continue;
            };
            if !asked.wanted.kind.is_scanned() {
                continue;
            }
            let coming = match &one.many {
                None => one.reader.coming(),
                Some(many) => {
                    let session = many.session.as_ref();
                    session.and_then(|session| session.coming(lane as u32))
                }
            };
            if let Some(coming) = coming {
                let of = &mut visits.visitors[visitor];
                has_new |= of.coming(&asked.wanted, &mut asked.ahead, coming);
            }
        }
        if has_new {
            self.ask(visitor, self.prepared.now());
        }
    }

    /// After something came on a connection: it may be the first byte of a document.
    pub(super) fn note_first_byte(&mut self, conn: usize) {
        let Some(visits) = &mut self.visits else {
            return;
        };
        let visitor = conn % visits.visitor_count();
        if conn >= self.conn_count || !visits.visitors[visitor].awaits_first_byte() {
            return;
        }
        // Nothing but the document is on its way, on the visitor's first lane or on this one.
        let one = &mut self.conns[conn];
        let has_come = match &one.many {
            None => one.reader.is_within_body(),
            Some(many) => {
                let session = many.session.as_ref();
                session.is_some_and(|session| session.has_head(visitor as u32))
            }
        };
        if has_come {
            visits.visitors[visitor].heard(self.prepared.now());
        }
    }
}
