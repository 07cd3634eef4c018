//! What clocks on the wall say where this machine is, for pages.

use hob_page::host::CivilTime;
use jiff::Zoned;

/// The time of now, in the zone of this machine.
pub fn civil() -> CivilTime {
    let now = Zoned::now();
    // None of them is below zero.
    let small = i8::unsigned_abs;
    CivilTime {
        year: now.year().unsigned_abs(),
        month: small(now.month()),
        day: small(now.day()),
        hour: small(now.hour()),
        minute: small(now.minute()),
        second: small(now.second()),
        micros: now.subsec_nanosecond().unsigned_abs() / 1_000,
    }
}
