//! What a thread is to send next: when the next request is due, by a rate or a log, and which kind
//! of request it is.

use super::prepared::{Choice, DueSource, PreparedRun};
use crate::draw::Draw;
use crate::limits::{LATE, LOG_LOOK_PERIOD};
use crate::random::Random;
use crate::replay::{Due, Fed};

/// The requests of an open loop that are not due yet.
pub(super) struct Coming {
    source: DueSource,
    next: NextDue,
}

enum NextDue {
    Due(Due),
    /// The log is not read that far; at that moment it is looked again.
    Look(u64),
    Nothing,
}

impl Coming {
    pub(super) fn new(source: DueSource) -> Coming {
        let next = NextDue::Look(0);
        let mut coming = Coming { source, next };
        coming.advance(0);
        coming
    }

    fn advance(&mut self, now: u64) {
        self.next = match &mut self.source {
            DueSource::Answers => NextDue::Nothing,
            DueSource::Rate(schedule) => match schedule.next() {
                Some(at_ns) => NextDue::Due(Due {
                    at_ns,
                    logged: None,
                }),
                None => NextDue::Nothing,
            },
            DueSource::Log(feed) => match feed.next() {
                Fed::Due(due) => NextDue::Due(due),
                Fed::NotYet => NextDue::Look(now + LOG_LOOK_PERIOD.as_nanos() as u64),
                Fed::End => NextDue::Nothing,
            },
        };
    }

    /// The next one that is due by now.
    pub(super) fn take(&mut self, now: u64) -> Option<Due> {
        if let NextDue::Look(at_ns) = self.next
            && at_ns <= now
        {
            self.advance(now);
        }
        match &self.next {
            NextDue::Due(due) if due.at_ns <= now => {}
            _ => return None,
        }
        let due = std::mem::replace(&mut self.next, NextDue::Nothing);
        self.advance(now);
        match due {
            NextDue::Due(due) => Some(due),
            NextDue::Look(_) | NextDue::Nothing => None,
        }
    }

    /// When there is something to be done.
    pub(super) fn next_ns(&self) -> Option<u64> {
        match &self.next {
            NextDue::Due(due) => Some(due.at_ns),
            NextDue::Look(at_ns) => Some(*at_ns),
            NextDue::Nothing => None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.next, NextDue::Nothing)
    }

    /// Nothing more is sent.
    pub(super) fn end(&mut self) {
        self.source = DueSource::Answers;
        self.next = NextDue::Nothing;
    }
}

/// Chooses the kind of each request.
pub(super) enum Chooser<'a> {
    InTurn { next: usize, count: usize },
    Drawn(&'a Draw, Random),
}

impl Chooser<'_> {
    /// That of one thread; each draws, or begins, differently.
    pub(super) fn new(prepared: &PreparedRun, number: usize) -> Chooser<'_> {
        let count = prepared.kinds.len();
        match &prepared.choice {
            Choice::InTurn => Chooser::InTurn {
                next: number % count,
                count,
            },
            Choice::Drawn(draw, seed) => {
                let own = (number as u64 + 1).wrapping_mul(0xa076_1d64_78bd_642f);
                Chooser::Drawn(draw, Random::new(seed ^ own))
            }
        }
    }

    pub(super) fn next(&mut self) -> u32 {
        let kind = match self {
            Chooser::InTurn { next, count } => {
                let kind = *next;
                *next = (kind + 1) % *count;
                kind
            }
            Chooser::Drawn(draw, random) => draw.next(random),
        };
        kind as u32
    }
}

/// Did a request that was due then not leave in time, if it leaves now?
pub(super) fn is_late(due_ns: u64, now: u64) -> bool {
    now.saturating_sub(due_ns) > LATE.as_nanos() as u64
}
