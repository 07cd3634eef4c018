//! The thread's time: what it is now, and what happens when some of it has passed.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::time::{ClockId, Itimerspec, TimerfdTimerFlags, Timespec, clock_gettime};

use crate::date::DateLine;
use crate::response::Answer;
use crate::thread::drive::Fate;
use crate::thread::run::Thread;

impl<A: Answer + 'static> Thread<A> {
    pub(crate) fn begin_turn(&mut self) {
        let now = clock_gettime(ClockId::Monotonic);
        self.now_us = micros(now);
        self.now_ms = self.now_us / 1000;
        self.reactor.begin_turn(self.now_us);
        if self.now_ms >= self.next_date_ms {
            let unix_ms = micros(clock_gettime(ClockId::Realtime)) / 1000;
            self.unix_offset_ms = unix_ms.wrapping_sub(self.now_ms);
            self.date = DateLine::new(Duration::from_millis(unix_ms));
            self.next_date_ms = self.now_ms + 1000 - unix_ms % 1000;
        }
        self.answer.begin_turn(self.now_ms);
    }

    /// Reads the clock again, after work.
    pub(crate) fn clock_us() -> u64 {
        micros(clock_gettime(ClockId::Monotonic))
    }

    pub(crate) fn arm_timer(&self, at_ms: u64) {
        if at_ms >= self.timer_ms.get() {
            return;
        }
        self.timer_ms.set(at_ms);
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
        let armed =
            rustix::time::timerfd_settime(self.timer.as_fd(), TimerfdTimerFlags::ABSTIME, &spec);
        if let Err(error) = armed {
            tracing::error!(%error, "the timer of a server thread could not be set");
        }
    }

    pub(crate) fn run_timer(&mut self) {
        let _ = rustix::io::read(&self.timer, &mut [0u8; 8]);
        self.timer_ms.set(u64::MAX);
        let guest = self.guest.as_mut();
        if let Some(guest) =
            guest.filter(|g| g.next_deadline_ms().is_some_and(|at| at <= self.now_ms))
        {
            guest.turn();
        }
        while let Some((tick, keys)) = self.wheel.take_due(self.now_ms) {
            for key in keys {
                self.check_deadline(key, tick);
            }
        }
        if let Some(next_ms) = self.wheel.next_ms() {
            self.arm_timer(next_ms);
        }
        self.reactor.run_timers();
    }

    fn check_deadline(&mut self, key: u64, tick: u64) {
        let index = (key & 0xffff_ffff) as usize;
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        if u64::from(slot.generation) != key >> 32 {
            return;
        }
        let Some(mut conn) = slot.conn.take_if(|conn| conn.tick == tick) else {
            return;
        };
        conn.tick = 0;
        let (deadline_ms, deadline) = conn.deadline();
        if deadline_ms > self.now_ms {
            return self.keep(conn);
        }
        match self.time_out(&mut conn, deadline) {
            Fate::Keep => self.keep(conn),
            Fate::Close => self.close(conn),
        }
    }
}

fn micros(time: Timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1000
}
