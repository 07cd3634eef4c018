//! One thread of a run: an epoll set of its own, and the decision what leaves when.
//!
//! Connections are watched edge-triggered for everything from the beginning, so a request costs
//! one `send`, one `recv` and a share of an `epoll_wait`. In a closed loop the thread waits without
//! a timeout, because a timer that is set and cleared at every wait costs more than one that ticks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use rustls::ClientConfig;

use super::acts::{ReadPace, ThreadActs};
use super::coming::{Chooser, Coming, is_late};
use super::conn::{BenchConnection, ConnectionPhase};
use super::event::AnswerEvent;
use super::gate::Gate;
use super::h3;
use super::lane::{Lane, LaneState};
use super::prepared::{PreparedRun, Share};
use super::socket::Opener;
use super::ticking::ticking;
use super::trust;
use super::visits::Visits;
use crate::limits::{BACKLOG_BYTES_MAX, BACKLOG_COUNT_MAX};
use crate::measure::{FailureKind, ReportedCounts, RequestTally, ThreadTime};
use crate::plan::Protocol;
use crate::replay::Due;

/// Events taken at once.
const EVENT_COUNT: usize = 512;
/// What is read at once; one answer of usual size with its head.
const BUFFER_BYTES: usize = 128 * 1024;
/// What is read at once of a body that nobody looks at: the kernel drops it, no page is touched.
const SKIPPED_BYTES: usize = 1024 * 1024;
/// Connections that are being opened at once, so that a listener's backlog is not overrun.
const CONNECTING_COUNT_MAX: usize = 128;
/// Arrivals between two looks at the clock.
const ARRIVAL_BATCH: usize = 64;
const TIMER: u64 = u64::MAX;

/// Has the thread that calls run on one CPU.
fn bind(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// One thread's state.
pub(crate) struct Thread<'a> {
    pub(super) prepared: &'a PreparedRun,
    pub(super) epoll: OwnedFd,
    timer: OwnedFd,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) quic: Option<quinn_proto::ClientConfig>,
    /// When connections over QUIC want to be looked at.
    pub(super) timers: BinaryHeap<Reverse<(u64, usize)>>,
    /// When connections are tried again that a Unix socket had no room for, and which.
    pub(super) knocking: BinaryHeap<Reverse<(u64, usize)>>,
    /// When connections that are read slowly are read again, and which.
    pub(super) resting: BinaryHeap<Reverse<(u64, usize)>>,
    pub(super) opener: Opener,
    pub(super) lanes: Vec<Lane>,
    /// First those that were asked for, then old ones on which nothing new begins.
    pub(super) conns: Vec<BenchConnection>,
    pub(super) conn_count: usize,
    /// Of the old ones, those that are over.
    pub(super) spare: Vec<usize>,
    /// Connections that may have something to send.
    pub(super) dirty: Vec<usize>,
    /// What came of one read; empty between two.
    pub(super) events: Vec<AnswerEvent>,
    /// Connections that were not used yet, from this one on: a closed loop begins with a few at a
    /// time.
    unstarted: usize,
    /// How many of them may begin now. Not at once where that shows: a Unix socket is open within
    /// the call, and one would begin within the other.
    pub(super) to_start: usize,
    /// Visitors, where pages are loaded and not single requests. In what follows they take the
    /// place of lanes: a page is begun, waits for a free visitor, and is followed by the next.
    pub(super) visits: Option<Box<Visits>>,
    /// Lanes without a request, in an open loop; the one that rested longest is next.
    free: VecDeque<usize>,
    /// The requests that are due and wait for a free lane, and the bytes they hold on to.
    backlog: VecDeque<Due>,
    backlog_bytes: usize,
    coming: Coming,
    /// Lanes that begin again later.
    paused: BinaryHeap<Reverse<(u64, usize)>>,
    /// Connections that had more to read than one turn takes.
    pub(super) again: Vec<(usize, EventFlags)>,
    pub(super) buffer: Box<[u8]>,
    pub(super) skipped: Box<[u8]>,
    pub(super) tally: RequestTally,
    quota: u64,
    /// Where it waits after the warm-up.
    gate: Option<Gate>,
    /// A request of a closed loop was not sent because the run is over.
    is_spent: bool,
    pub(super) chooser: Chooser<'a>,
    /// What clients do besides; none where they do nothing.
    acts: Option<Box<ThreadActs>>,
    pub(super) pace: ReadPace,
    pub(super) busy_count: usize,
    /// CPU time and moment at which the warm-up was seen to be over.
    warm: Option<(ThreadTime, u64)>,
    told: ReportedCounts,
}

impl<'a> Thread<'a> {
    /// Opens what the thread needs, on the thread itself.
    pub(crate) fn new(
        prepared: &'a PreparedRun,
        share: Share,
        gate: Option<Gate>,
    ) -> io::Result<Thread<'a>> {
        share.cpu.map(bind).transpose()?;
        // Waits end when they should and not up to 50 us later.
        set_current_timer_slack(NonZeroU64::new(1))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = ticking()?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        let tls = prepared
            .tls
            .as_ref()
            .map(|(config, _)| trust::for_thread(config, prepared.has_resumption));
        let quic = match (&tls, prepared.protocol) {
            (Some(tls), Protocol::H3) => Some(h3::config(tls.clone()).map_err(io::Error::other)?),
            _ => None,
        };
        let conn_count = share.connections * prepared.conns_per_visitor();
        let lane_count = conn_count * prepared.streams;
        let visits = prepared.pages.as_ref().map(|pages| {
            let visits = Visits::new(pages, share.connections, lane_count);
            Box::new(visits)
        });
        let unit_count = match &prepared.pages {
            None => lane_count,
            Some(pages) if pages.has_cache => 0,
            Some(_) => share.connections,
        };
        Ok(Thread {
            prepared,
            epoll,
            timer,
            tls,
            quic,
            timers: BinaryHeap::new(),
            knocking: BinaryHeap::new(),
            resting: BinaryHeap::new(),
            opener: prepared.opener(share.sources),
            lanes: (0..lane_count).map(|_| Lane::new()).collect(),
            conns: (0..conn_count)
                .map(|_| BenchConnection::new(prepared.protocol != Protocol::H1))
                .collect(),
            conn_count,
            spare: Vec::new(),
            dirty: Vec::new(),
            events: Vec::new(),
            unstarted: 0,
            to_start: CONNECTING_COUNT_MAX,
            visits,
            free: (0..unit_count).collect(),
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            coming: Coming::new(share.source),
            paused: BinaryHeap::new(),
            again: Vec::new(),
            buffer: vec![0; BUFFER_BYTES].into(),
            skipped: vec![0; SKIPPED_BYTES].into(),
            tally: RequestTally::new(
                prepared.class_count,
                prepared.step_count(),
                share.connections,
            )
            .beginning(prepared.warm_ns()),
            quota: share.quota,
            gate,
            is_spent: false,
            chooser: Chooser::new(prepared, share.number),
            acts: ThreadActs::new(&prepared.acts, prepared.seed, share.number),
            pace: ReadPace::new(&prepared.acts, prepared.seed, share.number),
            busy_count: 0,
            warm: None,
            told: ReportedCounts::default(),
        })
    }

    /// Runs until everything is sent and answered, or the run is stopped.
    pub(crate) fn run(mut self) -> io::Result<RequestTally> {
        self.turn()?;
        if let Some(gate) = self.gate.take() {
            gate.pass();
            self.begin_measured();
            self.turn()?;
        }
        Ok(self.finish())
    }

    /// After a warm-up that was waited for to be over: every lane begins again, at least once.
    fn begin_measured(&mut self) {
        let now = self.prepared.begin();
        let tally = RequestTally::new(
            self.prepared.class_count,
            self.prepared.step_count(),
            self.conn_count,
        );
        let warm_up = std::mem::replace(&mut self.tally, tally.beginning(self.prepared.warm_ns()));
        // What was agreed on holds for the connections that there are.
        self.tally.tls = warm_up.tls;
        self.paused.clear();
        for lane in 0..self.lanes.len() {
            self.lanes[lane].state = LaneState::Idle;
            self.next_request(lane, now);
        }
    }

    /// Goes on until nothing is on its way and nothing will be.
    fn turn(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENT_COUNT);
        let mut now = self.prepared.now();
        self.tick(now);
        self.start_more();
        self.prime(now);
        self.flush_dirty();
        while !self.is_over(now) {
            let timeout = self.timeout(now);
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    TIMER => {
                        now = self.prepared.now();
                        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
                        self.tick(now);
                    }
                    conn => self.handle_event(conn as usize, event.flags),
                }
            }
            for (conn, flags) in std::mem::take(&mut self.again) {
                self.handle_event(conn, flags);
            }
            self.start_more();
            if self.needs_clock() {
                now = self.prepared.now();
                self.wake(now);
                self.wake_quic(now);
                self.knock_again(now);
                self.read_rested(now);
                now = self.issue(now);
            }
            self.go_on_visiting();
            self.flush_dirty();
            if self.prepared.is_stopped.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// In a closed loop without pauses only ticks and answers matter.
    fn needs_clock(&self) -> bool {
        let has_times = !self.paused.is_empty() || !self.timers.is_empty();
        let has_conns = !self.knocking.is_empty() || !self.resting.is_empty();
        self.prepared.is_open || has_times || has_conns
    }

    /// How long to wait for events.
    fn timeout(&self, now: u64) -> Option<Timespec> {
        let pause = self.paused.peek().map(|Reverse((until, _))| *until);
        let timer = self.timers.peek().map(|Reverse((until, _))| *until);
        let knock = self.knocking.peek().map(|Reverse((until, _))| *until);
        let read = self.resting.peek().map(|Reverse((until, _))| *until);
        let times = [pause, self.coming.next_ns(), timer, knock, read];
        let next = times.into_iter().flatten().min();
        let left = if self.again.is_empty() && !self.has_settled() {
            next?.saturating_sub(now)
        } else {
            0
        };
        Some(Timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as i64,
        })
    }

    /// Nothing is on its way and nothing will be.
    fn is_over(&self, now: u64) -> bool {
        let has_more = if self.prepared.is_open {
            !self.coming.is_over() || !self.backlog.is_empty()
        } else {
            !self.is_spent && self.may_send(now)
        };
        self.busy_count == 0 && !has_more && !self.has_settled()
    }

    fn has_settled(&self) -> bool {
        let visits = self.visits.as_ref();
        visits.is_some_and(|visits| visits.has_settled())
    }

    fn may_send(&self, now: u64) -> bool {
        if self.gate.is_some() {
            // Every connection is to be open by then.
            return now < self.prepared.warm_up_ns || self.unstarted < self.conn_count;
        }
        now < self.prepared.end_ns() && self.quota > 0
    }

    /// Takes up lanes whose pause is over.
    fn wake(&mut self, now: u64) {
        while let Some(Reverse((until, lane))) = self.paused.peek().copied() {
            if until > now {
                break;
            }
            self.paused.pop();
            if self.visits.is_none() {
                self.lanes[lane].state = LaneState::Idle;
            }
            self.next_request(lane, now);
        }
    }

    /// Tries connections again that the server had no room for.
    fn knock_again(&mut self, now: u64) {
        while let Some(Reverse((until, conn))) = self.knocking.peek().copied() {
            if until > now {
                break;
            }
            self.knocking.pop();
            let one = &self.conns[conn];
            if one.phase == ConnectionPhase::Connecting && one.socket.is_none() {
                self.knock(conn, now);
            }
        }
    }

    /// Begins with connections that were not used yet, in a closed loop.
    fn start_more(&mut self) {
        let to_start = std::mem::take(&mut self.to_start);
        if self.prepared.is_open {
            return;
        }
        let mut left = to_start;
        let visitor_count = self.visits.as_ref().map(|visits| visits.visitor_count());
        while left > 0 && self.unstarted < visitor_count.unwrap_or(self.conn_count) {
            let now = self.prepared.now();
            let end = visitor_count.map_or(self.lanes.len(), |_| self.unstarted + 1);
            for lane in (self.unstarted..end).step_by(self.conn_count) {
                self.next_request(lane, now);
            }
            self.unstarted += 1;
            left = left - 1 + std::mem::take(&mut self.to_start);
        }
    }

    /// Sends what is due on free lanes; what finds none waits. Returns the time it has become.
    fn issue(&mut self, mut now: u64) -> u64 {
        let mut count = 0;
        while let Some(due) = self.coming.take(now) {
            if due.at_ns >= self.prepared.end_ns() || self.quota == 0 {
                self.coming.end();
                break;
            }
            self.count_due(due.at_ns);
            let has_room =
                self.backlog.len() < BACKLOG_COUNT_MAX && self.backlog_bytes < BACKLOG_BYTES_MAX;
            match self.free.pop_front() {
                Some(lane) => {
                    let is_counted =
                        due.at_ns >= self.prepared.warm_ns() && is_late(due.at_ns, now);
                    self.tally.late += u64::from(is_counted);
                    self.begin(lane, due, now);
                }
                None if has_room => {
                    self.backlog_bytes += due.bytes();
                    self.backlog.push_back(due);
                }
                None => self.unsent(&due, now),
            }
            count += 1;
            if count % ARRIVAL_BATCH == 0 {
                now = self.prepared.now();
            }
        }
        // Whatever was due before is taken, as far as a log has told it; it may tell no more.
        if now >= self.prepared.end_ns() {
            self.coming.end();
        }
        now
    }

    /// A lane is free: the next request of a closed loop, or one that waits in an open one.
    pub(super) fn next_request(&mut self, lane: usize, now: u64) {
        let must_prime = self.must_prime(lane);
        if !self.prepared.is_open || must_prime {
            self.is_spent = !self.may_send(now);
            if !self.is_spent {
                if !must_prime {
                    self.count_due(now);
                }
                let logged = None;
                self.begin(lane, Due { at_ns: now, logged }, now);
            }
            return;
        }
        while let Some(due) = self.backlog.pop_front() {
            self.backlog_bytes -= due.bytes();
            if now - due.at_ns >= self.prepared.timeout_ns {
                self.failed_before_sending(FailureKind::Timeout, &due, now);
                continue;
            }
            let is_counted = due.at_ns >= self.prepared.warm_ns() && is_late(due.at_ns, now);
            self.tally.waited += u64::from(is_counted);
            return self.begin(lane, due, now);
        }
        self.free.push_back(lane);
    }

    /// A lane that rests between two requests; in an open loop it only rests after a failure.
    pub(super) fn pause(&mut self, lane: usize, until: u64) {
        if self.visits.is_none() {
            self.lanes[lane].state = LaneState::Paused;
        }
        self.paused.push(Reverse((until, lane)));
    }

    fn count_due(&mut self, due: u64) {
        if due >= self.prepared.warm_ns() {
            self.tally.due += 1;
            self.quota -= 1;
        }
    }

    /// Gives a request to a lane.
    fn begin(&mut self, lane: usize, due: Due, now: u64) {
        if self.visits.is_some() {
            return self.begin_view(lane, due.at_ns, now);
        }
        let kind = match &due.logged {
            Some(logged) => logged.kind,
            None => self.chooser.next(),
        };
        let intended_ns = due.at_ns;
        let one = &mut self.lanes[lane];
        one.kind = kind;
        if let (Some(logged), Protocol::H1) = (&due.logged, self.prepared.protocol) {
            let request = &self.prepared.requests[kind as usize];
            request.write_to(&logged.target, &mut one.bytes);
        }
        one.logged = due.logged;
        one.intended_ns = intended_ns;
        one.begun_ns = now;
        one.is_measured = intended_ns >= self.prepared.warm_ns();
        one.is_delayed = is_late(intended_ns, now);
        if let Some(acts) = &mut self.acts {
            one.break_at = acts.break_at();
        }
        self.launch(lane, now);
    }

    /// Sends the request of a lane, or has it wait for its connection.
    pub(super) fn launch(&mut self, lane: usize, now: u64) {
        self.busy_count += 1;
        if self.prepared.protocol != Protocol::H1 {
            return self.begin_many(lane, now);
        }
        let one = &mut self.lanes[lane];
        let conn = &mut self.conns[lane];
        conn.sent_bytes = 0;
        if conn.phase == ConnectionPhase::Open {
            one.state = LaneState::Sending;
            self.send(lane);
        } else {
            one.state = LaneState::Opening;
            // One that was begun for another request of a visitor is waited for.
            if conn.phase == ConnectionPhase::Closed {
                let is_measured = one.is_measured;
                self.connect(lane, is_measured, now);
            }
        }
    }

    /// A request that is not sent any more.
    fn unsent(&mut self, due: &Due, now: u64) {
        self.failed_before_sending(FailureKind::Unsent, due, now);
    }

    fn failed_before_sending(&mut self, kind: FailureKind, due: &Due, now: u64) {
        let asked = match &due.logged {
            Some(logged) => logged.kind,
            None => self.chooser.next(),
        };
        let due = due.at_ns;
        if due >= self.prepared.warm_ns() {
            let class = self.prepared.kind(asked).class;
            let place = (class as usize, self.prepared.step(due));
            let text = || "all connections were in use; more --connections may help".to_owned();
            self.tally.now_ns = now;
            self.tally.failed(kind, place, now - due, text);
        }
    }

    /// What is looked at now and then: the end of the warm-up and of the run, requests whose time
    /// is up.
    fn tick(&mut self, now: u64) {
        if self.warm.is_none() && now >= self.prepared.warm_ns() {
            self.warm = Some((ThreadTime::now(), now));
            self.tally.answers_since_warm_up = 0;
        }
        if now >= self.prepared.end_ns() {
            self.backlog_bytes = 0;
            for due in std::mem::take(&mut self.backlog) {
                self.unsent(&due, now);
            }
            self.give_up_queued(now);
        }
        for lane in 0..self.lanes.len() {
            let is_up = now.saturating_sub(self.lanes[lane].begun_ns) >= self.prepared.timeout_ns;
            if is_up && self.lanes[lane].is_busy() {
                self.timed_out(lane, now);
            }
        }
        let backlog = self.backlog.len() + self.queued_count();
        let live = &self.prepared.live;
        live.tell(&mut self.told, &self.tally, backlog, now);
    }

    /// No complete answer came in time.
    fn timed_out(&mut self, lane: usize, now: u64) {
        let text = format!("{} ms", self.prepared.timeout_ns / 1_000_000);
        if self.prepared.protocol != Protocol::H1 {
            return self.timed_out_many(lane, &text, now);
        }
        self.to_start += usize::from(self.conns[lane].phase != ConnectionPhase::Open);
        self.fail(lane, FailureKind::Timeout, now, || text);
    }

    /// Do bytes of a connection count? Over HTTP/1 those of requests that do.
    pub(super) fn counts_bytes(&self, conn: usize) -> bool {
        match self.prepared.protocol {
            Protocol::H1 => self.lanes[conn].is_measured,
            _ => self.warm.is_some(),
        }
    }

    fn finish(mut self) -> RequestTally {
        self.close_quic();
        let now = self.prepared.now();
        let (before, since) = self.warm.unwrap_or((ThreadTime::default(), now));
        self.tally.wall_ns = now - since;
        if self.warm.is_some() {
            let time = ThreadTime::now();
            self.tally.cpu_ns = time.cpu_ns - before.cpu_ns;
            self.tally.waited_cpu_ns = time.waited_ns - before.waited_ns;
            self.tally.busy_share = self.tally.cpu_ns as f64 / self.tally.wall_ns.max(1) as f64;
        }
        if let Some(visits) = self.visits.take() {
            let (by_visitor, count) = visits.finish();
            self.tally.by_connection = by_visitor;
            self.tally.page = Some(count);
            return self.tally;
        }
        for lanes in self.lanes.chunks(self.conn_count) {
            for (count, lane) in self.tally.by_connection.iter_mut().zip(lanes) {
                *count += lane.answered;
            }
        }
        self.tally
    }
}
