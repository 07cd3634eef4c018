//! The system's clocks.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The monotonic clock, in microseconds.
pub(crate) fn clock_us() -> u64 {
    micros(clock_gettime(ClockId::Monotonic))
}

/// The time since the Unix epoch, in milliseconds.
pub fn unix_ms() -> u64 {
    micros(clock_gettime(ClockId::Realtime)) / 1000
}

fn micros(time: Timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1000
}
