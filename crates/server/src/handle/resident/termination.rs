//! How a worker is ended, step by step.
//!
//! ```text
//! serves --drain--> finishes what it has --------.
//!    |                                           v
//!    '-- a request that nobody waits for,   (ends by itself)
//!        its time up --> SIGTERM --grace--> SIGKILL
//! ```
//!
//! SIGTERM is where a program says what it was doing: hosts of ours print their stacks then.

use std::time::Duration;

use hob_keeper::process::{Child, EndSignal};

/// How far a worker is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Termination {
    /// Not at all.
    Serves,
    /// It was told to finish and go; by then it is to be gone, once it has nothing under way.
    Drains {
        /// In loop time.
        until_ms: u64,
    },
    /// SIGTERM was sent.
    Asked {
        /// In loop time.
        until_ms: u64,
    },
    /// SIGKILL was sent.
    Killed,
}

/// The signal that a step sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalSent {
    None,
    Term,
    Kill,
}

impl Termination {
    /// When the next step is due, in loop time.
    pub(super) fn due_ms(self, is_idle: bool) -> u64 {
        match self {
            Termination::Drains { until_ms } if is_idle => until_ms,
            Termination::Asked { until_ms } => until_ms,
            _ => u64::MAX,
        }
    }

    /// Sends SIGTERM, if no signal was sent yet.
    pub(super) fn ask(&mut self, child: &Child, now_ms: u64, grace: Duration) -> SignalSent {
        if !matches!(self, Termination::Serves | Termination::Drains { .. }) {
            return SignalSent::None;
        }
        child.end(EndSignal::Term);
        *self = Termination::Asked {
            until_ms: after(now_ms, grace),
        };
        SignalSent::Term
    }

    /// By this moment it is to be gone, or by an earlier one that it had. A signal that was sent
    /// stays sent.
    pub(super) fn hasten(&mut self, by_ms: u64) {
        *self = match *self {
            Termination::Serves => Termination::Drains { until_ms: by_ms },
            Termination::Drains { until_ms } => Termination::Drains {
                until_ms: until_ms.min(by_ms),
            },
            sent => sent,
        };
    }

    /// Takes the step that is due.
    pub(super) fn take_due_step(
        &mut self,
        child: &Child,
        now_ms: u64,
        is_idle: bool,
        grace: Duration,
    ) -> SignalSent {
        if now_ms < self.due_ms(is_idle) {
            return SignalSent::None;
        }
        match self {
            Termination::Drains { .. } => self.ask(child, now_ms, grace),
            _ => self.kill(child),
        }
    }

    /// Sends SIGKILL.
    pub(super) fn kill(&mut self, child: &Child) -> SignalSent {
        if *self == Termination::Killed {
            return SignalSent::None;
        }
        child.end(EndSignal::Kill);
        *self = Termination::Killed;
        SignalSent::Kill
    }
}

/// A moment so long after another, in loop time.
pub(super) fn after(now_ms: u64, time: Duration) -> u64 {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    now_ms.saturating_add(ms)
}

/// The same, where zero means never.
pub(super) fn limit(now_ms: u64, time: Duration) -> u64 {
    match time.is_zero() {
        true => u64::MAX,
        false => after(now_ms, time),
    }
}

/// What an age or a count of requests at which workers go is multiplied with: a tenth more or less,
/// so that workers that were started together do not go together.
pub(super) fn jitter(number: u64, now_ms: u64) -> f64 {
    let mixed = (number ^ now_ms << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    0.9 + 0.2 * mixed as f64 / (1u64 << 24) as f64
}

#[cfg(test)]
mod tests {
    use super::jitter;

    #[test]
    fn workers_that_start_together_go_a_tenth_earlier_or_later() {
        let all: Vec<f64> = (1..=32).map(|number| jitter(number, 1_000)).collect();
        assert!(all.iter().all(|one| (0.9..1.1).contains(one)), "{all:?}");
        let spread =
            all.iter().copied().fold(0.0, f64::max) - all.iter().copied().fold(2.0, f64::min);
        assert!(spread > 0.15, "{all:?}");
        assert_ne!(jitter(1, 1_000), jitter(1, 1_001));
    }
}
