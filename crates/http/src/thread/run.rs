//! The loop of one thread.
//!
//! Sockets stand in this thread's own epoll set, edge-triggered, from their first wait to their
//! close. Work that could not be finished in its turn (bulk answers, wakes of handlers) is done
//! after the events, with budgets.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_trace::metric::ThreadCounters;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;

use crate::clock::clock_us;
use crate::h3::quic::id::ConnectionHome;
use crate::limits::{HttpLimits, READ_BYTES_PER_TURN};
use crate::reactor::ready::ReadyList;
use crate::reactor::wake::{Here, KeyWaker};
use crate::reactor::{REACTOR, Reactor};
use crate::request::Request;
use crate::response::Responder;
use crate::splice_pipe::SplicePipes;
use crate::thread::accept::{Accepting, Listening};
use crate::thread::bulk::Bulk;
use crate::thread::clock::{LoopTurn, Timer};
use crate::thread::conn::{CountedLimits, SocketConnection};
use crate::thread::drain::Draining;
use crate::thread::drive::Fate;
use crate::thread::ending::Why;
use crate::thread::give_way::GiveWay;
use crate::thread::h3::{QUIC, Quic};
use crate::thread::seal::Batch;
use crate::thread::seats::Seats;
use crate::thread::shared::{Crew, Letter, ThreadMailbox};
use crate::tls::failure::HandshakeFailure;

/// One server thread and everything on it.
pub struct Thread<A: Responder> {
    /// Whoever answers: the request path.
    pub(crate) answer: A,
    /// All threads: a connection may go to another one, and letters come from them.
    pub(crate) crew: Arc<Crew>,
    /// The number of this thread in the crew.
    pub(crate) index: usize,
    /// What others want done on this thread; its bell stands in the epoll set.
    pub(crate) mailbox: Arc<ThreadMailbox>,
    /// Of the config in force, for connections that are accepted from now on.
    pub(crate) limits: Rc<HttpLimits>,
    /// Written by this thread alone, read by any.
    pub(crate) counters: Arc<ThreadCounters>,
    /// Sockets, the bell, the timer, and whatever handlers wait for.
    pub(crate) epoll: Arc<OwnedFd>,
    /// Wakes the thread for the next tick of the wheel in which a deadline is due.
    pub(crate) timer: Timer,
    /// Connections by their keys.
    pub(crate) seats: Seats,
    /// Listening sockets, and whether connections are accepted from them now.
    pub(crate) accepting: Accepting,
    /// Bytes as they come from a socket; empty between reads.
    pub(crate) input: Box<[u8]>,
    /// Bytes on their way to the socket of the connection being driven; empty between connections.
    pub(crate) output: Vec<u8>,
    /// Sealed bytes on their way to the socket of the connection being driven.
    pub(crate) batch: Batch,
    /// Requests whose answer ends in `output`.
    pub(crate) finishing: Vec<Request>,
    /// Requests that are over: the next ones take their memory.
    pub(crate) pool: Vec<Request>,
    /// What handlers wait with: tasks, timers, descriptors of theirs.
    pub(crate) reactor: Reactor,
    /// Keys of connections and tasks that were woken, to be driven in this turn.
    pub(crate) ready: Rc<ReadyList>,
    /// Long answers take turns, so that short ones are not behind them.
    pub(crate) bulk: Bulk,
    /// Each pipe that was made larger holds a count of it.
    pub(crate) large_pipes: Rc<()>,
    /// Pipes for bytes that go from one socket to another.
    pub(crate) splice_pipes: Rc<SplicePipes>,
    /// When this turn began: all that happens in it happens then.
    pub(crate) turn: LoopTurn,
    /// Set once the thread takes no further connections and ends with its last.
    pub(crate) draining: Option<Draining>,
    /// Whether letting others run before sleeping has been worth it.
    pub(crate) give_way: GiveWay,
    /// The drain is over, or its time is: the loop ends.
    pub(crate) must_stop: bool,
    /// Sockets and connections of HTTP/3.
    pub(crate) quic: Quic,
}

/// Keys of things in the epoll set that are no connections have this generation.
pub(super) const SPECIAL: u64 = 0x7fff_ffff << 32;
const BELL: u64 = SPECIAL | 0xffff_ffff;
const TIMER: u64 = SPECIAL | 0xffff_fffe;
/// Sockets for QUIC, by their place.
pub(crate) const SOCKETS: u64 = SPECIAL | 0x1_0000;
const EVENTS_PER_TURN: usize = 256;

impl<A: Responder + 'static> Thread<A> {
    /// A thread of the crew, ready to run.
    pub fn new(
        crew: &Arc<Crew>,
        index: usize,
        limits: HttpLimits,
        counters: Arc<ThreadCounters>,
        answer: A,
    ) -> io::Result<Thread<A>> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let timer = Timer::new()?;
        let mailbox = Arc::clone(crew.mailbox(index));
        epoll::add(
            &epoll,
            mailbox.bell(),
            EventData::new_u64(BELL),
            EventFlags::IN,
        )?;
        epoll::add(
            &epoll,
            timer.fd(),
            EventData::new_u64(TIMER),
            EventFlags::IN,
        )?;
        let reactor = Reactor::new(&epoll, mailbox.clone(), crew.files_beside.clone());
        let home = ConnectionHome {
            generation: crew.generation.load(Ordering::Relaxed),
            // Those beyond have no sockets for QUIC.
            thread: u8::try_from(index).unwrap_or(u8::MAX),
        };
        let mut thread = Thread {
            answer,
            crew: Arc::clone(crew),
            index,
            mailbox,
            limits: Rc::new(limits),
            counters,
            epoll,
            timer,
            seats: Seats::default(),
            accepting: Accepting::default(),
            input: vec![0; READ_BYTES_PER_TURN].into_boxed_slice(),
            output: Vec::with_capacity(16 * 1024),
            batch: Batch::default(),
            finishing: Vec::new(),
            pool: Vec::new(),
            ready: Rc::clone(reactor.ready()),
            reactor,
            bulk: Bulk::default(),
            large_pipes: Rc::default(),
            splice_pipes: SplicePipes::new(crew.files_beside.clone()),
            turn: LoopTurn::default(),
            draining: None,
            give_way: GiveWay::default(),
            must_stop: false,
            quic: Quic::new(home),
        };
        thread.begin_turn();
        Ok(thread)
    }

    /// The answers this thread gives.
    pub fn answer(&self) -> &A {
        &self.answer
    }

    /// The same, to be changed.
    pub fn answer_mut(&mut self) -> &mut A {
        &mut self.answer
    }

    /// The loop's own reactor, for jobs of [`Handle::run`](crate::thread::Handle::run).
    pub fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// Sets the limits for connections accepted from now on.
    pub fn set_limits(&mut self, limits: HttpLimits) {
        self.limits = Rc::new(limits);
    }

    /// Watches exactly these listening sockets from now on; all threads watch the same ones.
    pub fn set_listeners(&mut self, listeners: Vec<Listening>) -> io::Result<()> {
        self.resume_accepting(u64::MAX)?;
        let has = |list: &[Listening], one: &Listening| list.iter().any(|l| l.is_same(one));
        for old in self
            .accepting
            .listeners
            .iter()
            .filter(|old| !has(&listeners, old))
        {
            epoll::delete(&self.epoll, &old.socket)?;
        }
        for new in listeners
            .iter()
            .filter(|new| !has(&self.accepting.listeners, new))
        {
            self.watch_listener(new)?;
        }
        self.set_sockets(&listeners)?;
        self.accepting.listeners = listeners;
        Ok(())
    }

    /// Runs until drained.
    pub fn run(&mut self) -> io::Result<()> {
        let _here = Here::enter(&self.reactor);
        self.answer.start(&self.reactor);
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        let mut keys = Vec::new();
        let mut letters = Vec::new();
        while !self.must_stop {
            events.clear();
            self.wait(&mut events)?;
            self.begin_turn();
            for event in &events {
                self.dispatch(event.data.u64(), event.flags);
            }
            self.reactor.run_precise_timers();
            if self.mailbox.has_mail() {
                self.mailbox.take(&mut letters);
                for letter in letters.drain(..) {
                    self.open_letter(letter);
                }
            }
            self.reactor.look_at_standbys();
            self.reactor.run_tasks();
            self.ready.take(&mut keys);
            for key in keys.drain(..) {
                self.drive_key(key, |_| {});
            }
            self.drive_marked();
            self.run_bulk();
            if self.draining.is_some() {
                self.end_when_drained();
            }
        }
        Ok(())
    }

    /// Waits for events, unless there is work already.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        self.timer.arm(self.reactor.next_timer_ms());
        let mut has_work =
            !self.bulk.is_empty() || !self.ready.is_empty() || self.reactor.has_woken_tasks();
        has_work |= self.quic.has_work();
        if self.reactor.flush_standbys() && !has_work && self.give_way.is_due() {
            has_work = self.give_way();
        }
        let is_awake =
            has_work || self.mailbox.fall_asleep() || self.reactor.standbys_fall_asleep();
        let wait_ms_max = match is_awake {
            true => Some(0),
            false => self.wait_ms_max(),
        };
        let timeout = wait_ms_max.map(|ms| Timespec {
            tv_sec: (ms / 1000) as i64,
            tv_nsec: (ms % 1000 * 1_000_000) as i64,
        });
        let spare = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.mailbox.wake_up();
        if !is_awake {
            self.reactor.wake_standbys();
        }
        Ok(())
    }

    /// How long the thread may wait for events; `None` is for ever.
    fn wait_ms_max(&self) -> Option<u64> {
        let quic_ms = self.quic.next_ms();
        let quic_ms = quic_ms.map(|at_ms| at_ms.saturating_sub(self.turn.now_ms));
        match (self.reactor.wait_ms_max(), quic_ms) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Lets those have the processor who were just handed work. True when they have answered.
    fn give_way(&mut self) -> bool {
        self.reactor.look_at_standbys();
        if !self.reactor.has_woken_tasks() {
            let begun_us = clock_us();
            rustix::thread::sched_yield();
            self.reactor.look_at_standbys();
            let has_come = self.reactor.has_woken_tasks();
            let taken_us = clock_us().saturating_sub(begun_us);
            self.give_way.note(has_come, taken_us);
            self.counters.ways_given.add(1);
            self.counters.ways_given_in_vain.add(u64::from(!has_come));
        }
        self.reactor.has_woken_tasks()
    }

    fn dispatch(&mut self, key: u64, flags: EventFlags) {
        if key & SPECIAL != SPECIAL {
            if key & REACTOR != 0 {
                return self.reactor.note_events(key, flags);
            }
            return self.note_events(key, flags);
        }
        match key {
            BELL => self.mailbox.silence(),
            TIMER => self.run_timer(),
            _ if key & SOCKETS == SOCKETS => self.note_socket(key & 0xffff, flags),
            _ => self.accept((key & 0xffff) as u16),
        }
    }

    fn open_letter(&mut self, letter: Letter) {
        match letter {
            Letter::Connection(accepted) => self.adopt(accepted),
            Letter::Datagram(forwarded) => self.take_forwarded(*forwarded),
            Letter::Wake(key) if key & REACTOR != 0 => self.reactor.wake_task(key),
            Letter::Wake(key) => self.drive_key(key, |_| {}),
            Letter::Job(job) => job(self),
        }
    }

    /// Lets a connection go on. Keys of connections that are gone do nothing.
    pub(crate) fn drive_key(&mut self, key: u64, note: impl FnOnce(&mut SocketConnection)) {
        if key & QUIC == QUIC {
            return self.quic.mark((key & 0xffff_ffff) as u32);
        }
        let Some(mut conn) = self.take_conn(key) else {
            return;
        };
        note(&mut conn);
        self.drive_and_keep(conn);
    }

    /// Takes a connection out of its slot; who takes it puts it back or closes it.
    pub(crate) fn take_conn(&mut self, key: u64) -> Option<Box<SocketConnection>> {
        self.seats.find(key)?.take()
    }

    pub(crate) fn drive_and_keep(&mut self, mut conn: Box<SocketConnection>) {
        match self.drive(&mut conn) {
            Fate::Keep => self.keep(conn),
            Fate::Close => self.close(conn),
        }
    }

    /// Puts a driven connection back and sees to its deadline.
    pub(crate) fn keep(&mut self, conn: Box<SocketConnection>) {
        if let Some(at_ms) = self.seats.keep(conn) {
            self.timer.arm(at_ms);
        }
    }

    /// Ends a connection; whoever waits for it is told.
    pub(crate) fn close(&mut self, conn: Box<SocketConnection>) {
        self.close_because(conn, Why::ClientLeft);
    }

    pub(crate) fn close_because(&mut self, mut conn: Box<SocketConnection>, why: Why) {
        let failure = match why {
            Why::ClientLeft => HandshakeFailure::Left,
            Why::ServerStops => HandshakeFailure::Stopped,
        };
        self.fail_handshake(&mut conn, failure);
        if conn.request.is_some() && conn.core.ends_by_close() {
            // A plain close would say that the answer is whole.
            conn.close_with_reset();
        }
        if !conn.is_reset && !conn.must_reset && conn.out.is_empty() {
            conn.end_session();
        }
        self.abandon(&mut conn, why);
        self.mailbox.conn_count.fetch_sub(1, Ordering::Relaxed);
        self.crew.leave(conn.counted, conn.facts.peer);
        if conn.counted == CountedLimits::Refused {
            self.accepting.refused_count -= 1;
        }
        self.seats.leave(conn.key);
        self.counters.connections_closed.add(1);
    }

    pub(crate) fn watch(&self, conn: &mut SocketConnection) -> io::Result<()> {
        if conn.is_watched {
            return Ok(());
        }
        conn.is_watched = true;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(
            &self.epoll,
            &conn.socket,
            EventData::new_u64(conn.key),
            flags,
        )?;
        Ok(())
    }

    pub(crate) fn waker_of(&self, conn: &mut SocketConnection) -> std::task::Waker {
        conn.waker
            .get_or_insert_with(|| KeyWaker::new(self.mailbox.clone(), conn.key))
            .waker()
    }
}

impl<A: Responder> Drop for Thread<A> {
    /// However the thread ends, by a panic too: nobody gives it another connection.
    fn drop(&mut self) {
        self.mailbox.shut();
        self.reactor.shut();
    }
}
