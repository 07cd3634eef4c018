//! Who owns a request that was handed over: one word per slot.
//!
//! ```text
//! bits 31..2 generation    bits 1..0 state
//!
//!   Free --hand--> Handed --start--> Started --release--> Free
//!                    |                                     ^
//!                    +--take back--> Withdrawn --hand------+ (as the next generation)
//! ```
//!
//! The server stores Handed and Free; the worker turns Handed into Started, the server Handed into
//! Withdrawn, each by one compare-and-swap of the whole word: exactly one of them wins, and a
//! worker killed before its swap has not started. The generation tells a request's message in the
//! ring from an older one of the same slot. The server keeps generations of its own and believes
//! none that it reads.

use std::sync::atomic::Ordering;

use super::word::Word;

/// Nobody's.
pub const FREE: u32 = 0;
/// In the ring; both sides may take it.
pub const HANDED: u32 = 1;
/// The worker's.
pub const STARTED: u32 = 2;
/// The server took it back; the worker passes over its message.
pub const WITHDRAWN: u32 = 3;

/// The largest generation; 0 follows.
pub const GENERATION_MAX: u32 = u32::MAX >> 2;

/// The word for a generation and a state.
pub const fn word(generation: u32, state: u32) -> u32 {
    generation << 2 | state
}

/// The server hands a request over. It is the worker's to start once its message is published.
pub fn hand<W: Word>(slot: &W, generation: u32) {
    slot.store(word(generation, HANDED), Ordering::Release);
}

/// The worker starts a request; false when the server has taken it back.
#[must_use]
pub fn start<W: Word>(slot: &W, generation: u32) -> bool {
    slot.replace(word(generation, HANDED), word(generation, STARTED))
}

/// The server takes a request back; false when the worker has started it.
#[must_use]
pub fn take_back<W: Word>(slot: &W, generation: u32) -> bool {
    slot.replace(word(generation, HANDED), word(generation, WITHDRAWN))
}

/// True unless the request still waits in the ring.
pub fn is_started<W: Word>(slot: &W, generation: u32) -> bool {
    slot.load(Ordering::Acquire) != word(generation, HANDED)
}

/// The server has the whole answer, or never will.
pub fn release<W: Word>(slot: &W, generation: u32) {
    slot.store(word(generation, FREE), Ordering::Release);
}
