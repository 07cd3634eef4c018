//! Memory that is free goes back to the kernel: the C library keeps what a burst of requests has
//! used, in case another one comes. Once the server has fallen quiet it is asked to let it go.
//!
//! Asking takes the locks of all heaps for as long as it takes to walk them, so it is done when few
//! requests come, when there is something to gain, and not often. No serving thread does it.

use hob_keeper::heap::give_back;
use hob_machine::process::Memory;

/// Seconds with few requests before memory is given back.
const QUIET_S: u32 = 5;
/// So many requests a second are few.
const QUIET_REQUESTS: u64 = 20;
/// Less memory than this is not worth it.
const HELD_BYTES_MIN: u64 = 16 << 20;
/// Seconds between two times.
const PAUSE_S: u32 = 60;

/// When memory is given back.
#[derive(Default)]
pub(super) struct Trim {
    requests: u64,
    quiet_s: u32,
    pause_s: u32,
    /// What had ended the last time: nothing is free that was not then, while this stays.
    ended: u64,
    /// Readings of a config by then.
    readings: u64,
}

impl Trim {
    /// To be called every second, with the requests, with the connections that have ended and with
    /// the configs that were read so far.
    pub(super) fn look(&mut self, requests: u64, connections: u64, readings: u64) {
        if !self.is_time(requests, connections, readings) {
            return;
        }
        let Some(held_bytes) = held_bytes().filter(|bytes| *bytes >= HELD_BYTES_MIN) else {
            return;
        };
        give_back();
        let left_bytes = self::held_bytes();
        tracing::debug!(held_bytes, left_bytes, "free memory was given back");
    }

    fn is_time(&mut self, requests: u64, connections: u64, readings: u64) -> bool {
        let is_quiet = requests.saturating_sub(self.requests) <= QUIET_REQUESTS;
        self.requests = requests;
        self.quiet_s = if is_quiet { self.quiet_s + 1 } else { 0 };
        self.pause_s = self.pause_s.saturating_sub(1);
        let ended = requests.wrapping_add(connections);
        if self.quiet_s < QUIET_S {
            return false;
        }
        if readings != self.readings {
            // That takes much memory, and is seldom.
            self.readings = readings;
            return true;
        }
        if self.pause_s > 0 || ended == self.ended {
            return false;
        }
        (self.pause_s, self.ended) = (PAUSE_S, ended);
        true
    }
}

/// Memory that is this process' own and no file's.
fn held_bytes() -> Option<u64> {
    let memory = Memory::of("self")?;
    Some(memory.resident_bytes.saturating_sub(memory.shared_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_behind_a_burst_and_not_amid_it() {
        let mut trim = Trim::default();
        let (mut requests, mut connections) = (0, 0);
        let mut second = |asked: u64, left: u64| {
            requests += asked;
            connections += left;
            trim.is_time(requests, connections, 0)
        };
        let nothing = |_| second(0, 0);
        assert!(!(0..100).any(nothing));
        assert!(!(0..100).any(|_| second(10_000, 10)));
        let behind: Vec<bool> = (0..6).map(|_| second(20, 0)).collect();
        assert_eq!(behind, [false, false, false, false, true, false]);
        // Connections end without a request, and memory is given back again, not too soon.
        let waited = (0..1000).take_while(|_| !second(0, 1)).count();
        assert_eq!(waited, PAUSE_S as usize - 2);
        assert_eq!((0..=PAUSE_S * 3).filter(|_| second(0, 1)).count(), 3);
        // Once more for the one that has ended since.
        assert_eq!((0..PAUSE_S * 3).filter(|_| second(0, 0)).count(), 1);
        assert!(!(0..1000).any(|_| second(0, 0)));
    }

    #[test]
    fn memory_is_given_back_behind_each_reading_of_a_config() {
        let mut trim = Trim::default();
        let mut seconds = |readings: u64| (0..100).position(|_| trim.is_time(0, 0, readings));
        assert_eq!(seconds(1), Some(QUIET_S as usize - 1));
        assert_eq!(seconds(1), None);
        // It is quiet already.
        assert_eq!(seconds(2), Some(0));
    }

    #[test]
    fn what_is_held_is_known_and_can_be_given_back() {
        give_back();
        assert!(held_bytes().is_some_and(|bytes| bytes > 0));
    }
}
