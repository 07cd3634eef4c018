//! How many visits there may be where a config does not say it: as many as half of the memory has
//! room for that was free when it was first asked for. What one takes is what nearly all of those
//! take that are there, once there are some.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Fewest visits whose sizes say what one takes.
const KNOWN_MIN: usize = 20;
/// Visits that are looked at, the newest.
pub(super) const LOOKED_AT_MAX: usize = 64;
/// How often they are.
const LOOK_MS_EVERY: u64 = 10_000;
/// What one takes at least, in bytes.
const EACH_BYTES_MIN: u64 = 64 << 10;

/// The room that visits of a program, or of the pages of a route, have.
pub(crate) struct VisitRoom {
    /// What the config says.
    said: Option<usize>,
    /// Memory for all of them, in bytes.
    bytes: u64,
    /// What one is taken to take, in bytes.
    each_bytes: AtomicU64,
    /// When they are looked at next, in loop time.
    look_ms: AtomicU64,
    /// Most of them, however much memory there is.
    most: AtomicUsize,
}

impl VisitRoom {
    /// What a config says, or room for visits that usually take so much, up to this many.
    pub(super) fn new(said: Option<usize>, usual_bytes: u64, most: usize) -> VisitRoom {
        VisitRoom::within(memory_share(), said, usual_bytes, most)
    }

    fn within(bytes: u64, said: Option<usize>, usual_bytes: u64, most: usize) -> VisitRoom {
        VisitRoom {
            said,
            bytes,
            each_bytes: AtomicU64::new(usual_bytes),
            look_ms: AtomicU64::new(0),
            most: AtomicUsize::new(most),
        }
    }

    /// From now on there are no more than this, unless the config says it.
    pub(super) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Most visits at once.
    pub(super) fn count_max(&self) -> usize {
        self.said.unwrap_or_else(|| {
            let fit = self.bytes / self.each_bytes.load(Ordering::Relaxed).max(1);
            let fit = usize::try_from(fit).unwrap_or(usize::MAX);
            fit.min(self.most.load(Ordering::Relaxed)).max(1)
        })
    }

    /// Looks at what visits take, if it is time.
    pub(super) fn look(&self, now_ms: u64, sizes: impl FnOnce() -> Vec<u64>) {
        let due_ms = self.look_ms.load(Ordering::Relaxed);
        if self.said.is_some() || now_ms < due_ms {
            return;
        }
        let next_ms = now_ms + LOOK_MS_EVERY;
        let order = Ordering::Relaxed;
        let is_first = self.look_ms.compare_exchange(due_ms, next_ms, order, order);
        if is_first.is_ok()
            && let Some(each) = nearly_largest(sizes())
        {
            self.each_bytes.store(each.max(EACH_BYTES_MIN), order);
        }
    }

    /// The same in words, and where it is from.
    pub(super) fn words(&self) -> String {
        let count = self.count_max();
        match self.said {
            Some(_) => format!("at most {count} visits at once"),
            None => {
                let mib = |bytes: u64| bytes >> 20;
                let each_kib = self.each_bytes.load(Ordering::Relaxed) >> 10;
                let (all, most) = (mib(self.bytes), self.most.load(Ordering::Relaxed));
                format!(
                    "at most {count} visits at once: `visits.max` is not set, half of the free \
                     memory is {all} MiB, one is taken to take {each_kib} KiB, and there are never \
                     more than {most}"
                )
            }
        }
    }
}

/// What 95 of 100 do not exceed; `None` where too few are known.
fn nearly_largest(mut sizes: Vec<u64>) -> Option<u64> {
    if sizes.len() < KNOWN_MIN {
        return None;
    }
    sizes.sort_unstable();
    let at = (sizes.len() * 95).div_ceil(100) - 1;
    sizes.get(at).copied()
}

/// Half of what was free when this was first asked for, so that visits do not count twice.
fn memory_share() -> u64 {
    static SHARE: OnceLock<u64> = OnceLock::new();
    *SHARE.get_or_init(|| {
        let free = hob_machine::hardware::memory_available_bytes().unwrap_or(u64::MAX);
        free.min(hob_machine::usable_memory_bytes()) / 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn config_says_how_many_and_else_memory_does_up_to_a_bound() {
        let said = VisitRoom::within(MIB, Some(7), MIB, 3);
        assert_eq!(said.count_max(), 7);
        said.look(0, || panic!("nobody asks what they take"));
        let room = |bytes: u64| VisitRoom::within(bytes, None, 16 * MIB, 256).count_max();
        assert_eq!([0, 160 * MIB, 1 << 50].map(room), [1, 10, 256]);
    }

    #[test]
    fn what_nearly_all_take_counts_once_some_are_known_and_is_looked_at_now_and_then() {
        let room = VisitRoom::within(1000 * MIB, None, 10 * MIB, 5000);
        room.look(1, || vec![MIB; KNOWN_MIN - 1]);
        assert_eq!(room.count_max(), 100);
        room.look(2, || panic!("it is too early"));
        let mut sizes = vec![2 * MIB; 95];
        sizes.extend([900 * MIB; 5]);
        room.look(1 + LOOK_MS_EVERY, || sizes);
        assert_eq!(room.count_max(), 500);
        room.look(2 + 2 * LOOK_MS_EVERY, || vec![1; KNOWN_MIN]);
        room.set_most(300);
        assert_eq!(room.count_max(), 300, "they are taken to take something");
    }
}
