//! A timer that ticks by itself: cheaper than one that is set and cleared at every wait.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::limits::TICK;

/// A descriptor that can be read at every tick.
pub(super) fn ticking() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: TICK.as_nanos() as i64,
    };
    let times = Itimerspec {
        it_interval: tick,
        it_value: tick,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
    Ok(timer)
}
