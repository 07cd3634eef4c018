//! The thread's time: what it is now, and what happens when some of it has passed.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::clock::{clock_us, unix_ms};
use crate::date::DateLine;
use crate::response::Responder;
use crate::thread::drive::Fate;
use crate::thread::run::Thread;

/// A turn of the loop: when it has begun, by the monotonic clock. What happens in it happens then.
pub(crate) struct LoopTurn {
    pub(crate) now_us: u64,
    pub(crate) now_ms: u64,
    /// From the monotonic clock to the time since the Unix epoch.
    pub(crate) unix_offset_ms: u64,
    /// The date of this second.
    pub(crate) date: DateLine,
    next_date_ms: u64,
}

impl Default for LoopTurn {
    /// None yet; [`LoopTurn::begin`] makes it one.
    fn default() -> LoopTurn {
        LoopTurn {
            now_us: 0,
            now_ms: 0,
            unix_offset_ms: 0,
            date: DateLine::new(Duration::ZERO),
            next_date_ms: 0,
        }
    }
}

impl LoopTurn {
    fn begin(&mut self) {
        self.now_us = clock_us();
        self.now_ms = self.now_us / 1000;
        if self.now_ms >= self.next_date_ms {
            let unix_ms = unix_ms();
            self.unix_offset_ms = unix_ms.wrapping_sub(self.now_ms);
            self.date = DateLine::new(Duration::from_millis(unix_ms));
            self.next_date_ms = self.now_ms + 1000 - unix_ms % 1000;
        }
    }
}

/// What wakes a thread for its next deadline.
pub(crate) struct Timer {
    descriptor: OwnedFd,
    /// When it will; `u64::MAX` is never.
    at_ms: Cell<u64>,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer {
            descriptor: rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?,
            at_ms: Cell::new(u64::MAX),
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Wakes the thread then, if it would not be woken before.
    pub(crate) fn arm(&self, at_ms: u64) {
        if at_ms >= self.at_ms.get() {
            return;
        }
        self.at_ms.set(at_ms);
        let at = Timespec {
            tv_sec: (at_ms / 1000) as i64,
            tv_nsec: (at_ms % 1000 * 1_000_000) as i64,
        };
        let once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spec = Itimerspec {
            it_interval: once,
            it_value: at,
        };
        let flags = TimerfdTimerFlags::ABSTIME;
        if let Err(error) = rustix::time::timerfd_settime(&self.descriptor, flags, &spec) {
            tracing::error!(%error, "the timer of a server thread could not be set");
        }
    }

    /// It has woken the thread.
    fn take(&self) {
        let _ = rustix::io::read(&self.descriptor, &mut [0u8; 8]);
        self.at_ms.set(u64::MAX);
    }
}

impl<A: Responder + 'static> Thread<A> {
    pub(crate) fn begin_turn(&mut self) {
        self.turn.begin();
        self.reactor.begin_turn(self.turn.now_us);
        self.answer.begin_turn(self.turn.now_ms);
    }

    pub(crate) fn run_timer(&mut self) {
        self.timer.take();
        while let Some((tick, keys)) = self.seats.take_due(self.turn.now_ms) {
            for key in keys {
                self.check_deadline(key, tick);
            }
        }
        if let Some(next_ms) = self.seats.next_ms() {
            self.timer.arm(next_ms);
        }
        self.reactor.run_timers();
        if let Err(error) = self.resume_accepting(self.turn.now_ms) {
            tracing::error!(%error, "listeners cannot be watched again");
        }
    }

    fn check_deadline(&mut self, key: u64, tick: u64) {
        let seat = self.seats.find(key);
        let Some(mut conn) = seat.and_then(|seat| seat.take_if(|conn| conn.tick == tick)) else {
            return;
        };
        conn.tick = 0;
        let (deadline_ms, deadline) = conn.deadline();
        if deadline_ms > self.turn.now_ms {
            return self.keep(conn);
        }
        match self.time_out(&mut conn, deadline) {
            Fate::Keep => self.keep(conn),
            Fate::Close => self.close(conn),
        }
    }
}
