//! The loop of one thread.
//!
//! Sockets stand in this thread's own epoll set, edge-triggered, from their first wait to their
//! close. Work that could not be finished in its turn (bulk answers, wakes of handlers) is done
//! after the events, with budgets.

use std::cell::Cell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hob_trace::metric::ThreadCounters;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{TimerfdClockId, TimerfdFlags, Timespec};

use crate::date::DateLine;
use crate::h3::quic::Datagram;
use crate::h3::quic::id::Home;
use crate::limits::{Limits, READ_BYTES_PER_TURN};
use crate::reactor::wake::{Here, KeyWaker};
use crate::reactor::{REACTOR, Reactor};
use crate::request::{ReadyList, Request};
use crate::response::Answer;
use crate::thread::accept::{Accepts, Listening};
use crate::thread::bulk::Bulk;
use crate::thread::conn::{Conn, Counted};
use crate::thread::drain::Draining;
use crate::thread::drive::Fate;
use crate::thread::ending::Why;
use crate::thread::give_way::GiveWay;
use crate::thread::h3::{QUIC, Quic};
use crate::thread::seal::Batch;
use crate::thread::shared::{Crew, Letter, Mailbox};
use crate::thread::wheel::{TICK_MS, Wheel};
use crate::tls::failure::HandshakeFailure;

/// One server thread and everything on it.
pub struct Thread<A: Answer> {
    pub(crate) answer: A,
    pub(crate) crew: Arc<Crew>,
    pub(crate) index: usize,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) limits: Rc<Limits>,
    pub(crate) counters: Arc<ThreadCounters>,
    pub(crate) epoll: Rc<OwnedFd>,
    pub(crate) timer: OwnedFd,
    pub(crate) timer_ms: Cell<u64>,
    pub(crate) wheel: Wheel,
    pub(crate) slots: Vec<Slot>,
    pub(crate) free: Vec<u32>,
    pub(crate) listeners: Vec<Listening>,
    /// Bytes as they come from a socket; empty between reads.
    pub(crate) input: Box<[u8]>,
    /// Bytes on their way to the socket of the connection being driven; empty between connections.
    pub(crate) output: Vec<u8>,
    /// Sealed bytes on their way to the socket of the connection being driven.
    pub(crate) batch: Batch,
    /// Requests whose answer ends in `output`.
    pub(crate) finishing: Vec<Request>,
    pub(crate) pool: Vec<Request>,
    pub(crate) reactor: Reactor,
    pub(crate) ready: Rc<ReadyList>,
    pub(crate) bulk: Bulk,
    /// Each pipe that was made larger holds a count of it.
    pub(crate) large_pipes: Rc<()>,
    pub(crate) now_us: u64,
    pub(crate) now_ms: u64,
    pub(crate) unix_offset_ms: u64,
    pub(crate) date: DateLine,
    pub(crate) next_date_ms: u64,
    pub(crate) draining: Option<Draining>,
    /// Connections there was no room for, being told so.
    pub(crate) refused_count: usize,
    pub(crate) accepts: Accepts,
    pub(crate) guest: Option<Box<dyn Guest>>,
    pub(crate) give_way: GiveWay,
    pub(crate) must_stop: bool,
    /// Sockets and connections of HTTP/3.
    pub(crate) quic: Quic,
    /// Datagrams as they come; empty between reads.
    pub(crate) datagrams: Vec<Datagram>,
}

/// A place for a connection; its generation tells late events of an earlier one.
pub(crate) struct Slot {
    pub(crate) generation: u32,
    pub(crate) conn: Option<Box<Conn>>,
}

/// Another event source that lives on this thread, such as an async runtime whose tasks handlers
/// wait for.
pub trait Guest {
    /// Readable when the guest has work.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Does the work there is, without waiting.
    fn turn(&mut self);
    /// When the guest wants a turn even if its descriptor says nothing, in milliseconds on the
    /// monotonic clock. Asked before each wait.
    fn next_deadline_ms(&self) -> Option<u64> {
        None
    }
}

/// Keys of things in the epoll set that are no connections have this generation.
const SPECIAL: u64 = 0x7fff_ffff << 32;
const BELL: u64 = SPECIAL | 0xffff_ffff;
const TIMER: u64 = SPECIAL | 0xffff_fffe;
const GUEST: u64 = SPECIAL | 0xffff_fffd;
/// Sockets for QUIC, by their place.
pub(crate) const SOCKETS: u64 = SPECIAL | 0x1_0000;
/// The last two are not those of slots: the one above, and that of connections over QUIC.
const GENERATION_MAX: u32 = 0x7fff_fffd;
const _: () = assert!(QUIC >> 32 == GENERATION_MAX as u64 + 1);
const EVENTS_PER_TURN: usize = 256;

impl<A: Answer + 'static> Thread<A> {
    /// A thread of the crew, ready to run.
    pub fn new(
        crew: &Arc<Crew>,
        index: usize,
        limits: Limits,
        counters: Arc<ThreadCounters>,
        answer: A,
    ) -> io::Result<Thread<A>> {
        let epoll = Rc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let mailbox = Arc::clone(crew.mailbox(index));
        epoll::add(
            &epoll,
            mailbox.bell(),
            EventData::new_u64(BELL),
            EventFlags::IN,
        )?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        let reactor = Reactor::new(&epoll, &mailbox);
        let home = Home {
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
            timer_ms: Cell::new(u64::MAX),
            wheel: Wheel::default(),
            slots: Vec::new(),
            free: Vec::new(),
            listeners: Vec::new(),
            input: vec![0; READ_BYTES_PER_TURN].into_boxed_slice(),
            output: Vec::with_capacity(16 * 1024),
            batch: Batch::default(),
            finishing: Vec::new(),
            pool: Vec::new(),
            ready: Rc::clone(reactor.ready()),
            reactor,
            bulk: Bulk::default(),
            large_pipes: Rc::default(),
            now_us: 0,
            now_ms: 0,
            unix_offset_ms: 0,
            date: DateLine::new(Duration::ZERO),
            next_date_ms: 0,
            draining: None,
            refused_count: 0,
            accepts: Accepts::default(),
            guest: None,
            give_way: GiveWay::default(),
            must_stop: false,
            quic: Quic::new(home),
            datagrams: Vec::new(),
        };
        thread.begin_turn();
        Ok(thread)
    }

    /// Takes a guest in; handlers on this thread may wait for what it drives.
    pub fn set_guest(&mut self, guest: Box<dyn Guest>) -> io::Result<()> {
        epoll::add(
            &self.epoll,
            guest.fd(),
            EventData::new_u64(GUEST),
            EventFlags::IN,
        )?;
        self.guest = Some(guest);
        Ok(())
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
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = Rc::new(limits);
    }

    /// Watches exactly these listening sockets from now on; all threads watch the same ones.
    pub fn set_listeners(&mut self, listeners: Vec<Listening>) -> io::Result<()> {
        let has = |list: &[Listening], one: &Listening| list.iter().any(|l| l.is_same(one));
        for old in self.listeners.iter().filter(|old| !has(&listeners, old)) {
            epoll::delete(&self.epoll, &old.socket)?;
        }
        for new in listeners.iter().filter(|new| !has(&self.listeners, new)) {
            let key = EventData::new_u64(SPECIAL | u64::from(new.number));
            let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
            epoll::add(&self.epoll, &new.socket, key, flags)?;
        }
        self.set_sockets(&listeners)?;
        self.listeners = listeners;
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
        if let Some(deadline_ms) = self.guest.as_ref().and_then(|g| g.next_deadline_ms()) {
            self.arm_timer(deadline_ms);
        }
        self.arm_timer(self.reactor.next_timer_ms());
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
        let quic_ms = quic_ms.map(|at_ms| at_ms.saturating_sub(self.now_ms));
        match (self.reactor.wait_ms_max(), quic_ms) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Lets those have the processor who were just handed work. True when they have answered.
    fn give_way(&mut self) -> bool {
        self.reactor.look_at_standbys();
        if !self.reactor.has_woken_tasks() {
            let begun_us = Self::clock_us();
            rustix::thread::sched_yield();
            self.reactor.look_at_standbys();
            let has_come = self.reactor.has_woken_tasks();
            let taken_us = Self::clock_us().saturating_sub(begun_us);
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
            GUEST => {
                if let Some(guest) = &mut self.guest {
                    guest.turn();
                }
            }
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
    pub(crate) fn drive_key(&mut self, key: u64, note: impl FnOnce(&mut Conn)) {
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
    pub(crate) fn take_conn(&mut self, key: u64) -> Option<Box<Conn>> {
        let slot = self.slots.get_mut((key & 0xffff_ffff) as usize)?;
        if u64::from(slot.generation) != key >> 32 {
            return None;
        }
        slot.conn.take()
    }

    pub(crate) fn drive_and_keep(&mut self, mut conn: Box<Conn>) {
        match self.drive(&mut conn) {
            Fate::Keep => self.keep(conn),
            Fate::Close => self.close(conn),
        }
    }

    /// Puts a driven connection back and sees to its deadline.
    pub(crate) fn keep(&mut self, mut conn: Box<Conn>) {
        let (deadline_ms, _) = conn.deadline();
        let is_earlier = conn.tick == 0 || Wheel::tick_of(deadline_ms) < conn.tick;
        if is_earlier && deadline_ms != u64::MAX {
            conn.tick = Wheel::tick_of(deadline_ms);
            self.wheel.add(conn.key, conn.tick);
            self.arm_timer(conn.tick * TICK_MS);
        }
        let index = (conn.key & 0xffff_ffff) as usize;
        self.slots[index].conn = Some(conn);
    }

    /// Gives a new connection a slot; returns its key.
    pub(crate) fn seat(&mut self) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                conn: None,
            });
            (self.slots.len() - 1) as u32
        });
        u64::from(self.slots[index as usize].generation) << 32 | u64::from(index)
    }

    /// Ends a connection; whoever waits for it is told.
    pub(crate) fn close(&mut self, conn: Box<Conn>) {
        self.close_because(conn, Why::ClientLeft);
    }

    pub(crate) fn close_because(&mut self, mut conn: Box<Conn>, why: Why) {
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
        if conn.counted == Counted::Refused {
            self.refused_count -= 1;
        }
        let index = (conn.key & 0xffff_ffff) as u32;
        let slot = &mut self.slots[index as usize];
        slot.generation = if slot.generation >= GENERATION_MAX {
            0
        } else {
            slot.generation + 1
        };
        self.free.push(index);
        self.counters.connections_closed.add(1);
    }

    pub(crate) fn watch(&self, conn: &mut Conn) -> io::Result<()> {
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

    pub(crate) fn waker_of(&self, conn: &mut Conn) -> std::task::Waker {
        conn.waker
            .get_or_insert_with(|| KeyWaker::new(&self.mailbox, conn.key))
            .waker()
    }
}

impl<A: Answer> Drop for Thread<A> {
    /// However the thread ends, by a panic too: nobody gives it another connection.
    fn drop(&mut self) {
        self.mailbox.shut();
        self.reactor.shut();
    }
}
