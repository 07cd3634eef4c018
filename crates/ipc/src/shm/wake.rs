//! Sleeping and waking: a side is woken only if it sleeps, and never misses what came meanwhile.
//!
//! ```text
//! sleeper                                 waker
//!   word := how it sleeps                   publish (tail, head or chunk)
//!   fence                                   fence
//!   nothing published? then sleep           word != 0? then word := 0 if still so, and wake
//!   word := 0
//! ```
//!
//! Of the two loads behind the fences at least one sees the other side's store, so either the
//! sleeper stays awake or the waker wakes it. The compare-and-swap lets one of several wakers do
//! it.
//!
//! Words: 0 awake. A worker's: 1 sleeps on the word itself (futex), 2 on its bell (poll), and 4
//! beside one of them when it waits for room, too, in its ring or for a chunk. The server's: 1
//! sleeps in its loop, which watches its bell.

use std::sync::atomic::Ordering;

use super::word::Word;

/// Awake.
pub const AWAKE: u32 = 0;
/// Asleep: a worker on the word itself, the server in its loop.
pub const ASLEEP: u32 = 1;
/// A worker sleeps on its bell.
pub const ON_BELL: u32 = 2;
/// A worker wants to be woken when there is room, too.
pub const WANTS_ROOM: u32 = 4;

/// How often a waker tries again when the word changes under its hands.
const ATTEMPTS_MAX: u32 = 8;

/// Says that this side is about to sleep. If `has_news` then says that there is something, the
/// word is taken back and the answer is false: do not sleep.
#[must_use]
pub fn fall_asleep<W: Word>(word: &W, how: u32, mut has_news: impl FnMut() -> bool) -> bool {
    word.store(how, Ordering::Relaxed);
    W::fence();
    if has_news() {
        word.store(AWAKE, Ordering::Relaxed);
        return false;
    }
    true
}

/// Asks whether the other side must be woken now, after something was published. Where the answer
/// is not [`AWAKE`] it is for the caller to do it, in the way the answer says.
///
/// `only` picks sleepers that have one of these bits.
#[must_use]
pub fn must_wake<W: Word>(word: &W, only: u32) -> u32 {
    W::fence();
    let mut how = word.load(Ordering::Relaxed);
    for _ in 0..ATTEMPTS_MAX {
        if how & only == 0 {
            return AWAKE;
        }
        if word.replace(how, AWAKE) {
            return how;
        }
        how = word.load(Ordering::Relaxed);
    }
    // Somebody plays with the word. Waking once too often does no harm.
    how
}
