//! Rows by the second and the minute, in memory.

use super::row::ActivityRow;

use crate::mutex::Mutex;

/// Seconds that are kept.
pub const SECONDS_KEPT: u64 = 3600;
/// Minutes that are kept: 28 days.
pub const MINUTES_KEPT: u64 = 28 * 24 * 60;
/// Most rows of one answer.
pub const ROWS_MAX: u64 = 2000;

/// What a server did, second by second.
#[derive(Debug)]
pub struct Activity {
    pub(super) rows: Mutex<ActivityRows>,
}

#[derive(Debug)]
pub(super) struct ActivityRows {
    pub(super) seconds: ActivityRing,
    pub(super) minutes: ActivityRing,
}

/// Rows by time.
#[derive(Debug)]
pub(super) struct ActivityRing {
    /// Seconds of a row.
    step_s: u64,
    /// How many there are.
    pub(super) count: u64,
    /// Time of each row in steps since 1970, 0 where there is none, and the row. A piece has memory
    /// once it has a row.
    pub(super) pieces: Vec<Vec<(u64, ActivityRow)>>,
}

/// Rows of a piece.
const PIECE_ROWS: u64 = 360;
const _: () = assert!(SECONDS_KEPT.is_multiple_of(PIECE_ROWS));
const _: () = assert!(MINUTES_KEPT.is_multiple_of(PIECE_ROWS));

impl ActivityRing {
    fn new(step_s: u64, count: u64) -> ActivityRing {
        ActivityRing {
            step_s,
            count,
            pieces: vec![Vec::new(); (count / PIECE_ROWS) as usize],
        }
    }

    fn at(&self, time: u64) -> Option<&ActivityRow> {
        let (of, row) = self.recorded(time % self.count)?;
        (*of == time).then_some(row)
    }

    pub(super) fn place(&mut self, time: u64) -> &mut (u64, ActivityRow) {
        let place = time % self.count;
        let piece = &mut self.pieces[(place / PIECE_ROWS) as usize];
        if piece.is_empty() {
            *piece = vec![(0, ActivityRow::default()); PIECE_ROWS as usize];
        }
        &mut piece[(place % PIECE_ROWS) as usize]
    }

    /// Takes over the row that a server before this one recorded: true where this one has recorded
    /// the same time, which is the sum then, or a later one, which stays.
    pub(super) fn take_over(&mut self, time: u64, row: &ActivityRow) -> bool {
        let sum = self.with(time, row);
        let place = self.place(time);
        let is_recorded = place.0 >= time;
        if place.0 <= time {
            *place = (time, sum);
        }
        is_recorded
    }

    /// The row at a place, with its time.
    pub(super) fn recorded(&self, place: u64) -> Option<&(u64, ActivityRow)> {
        let piece = &self.pieces[(place / PIECE_ROWS) as usize];
        let slot = piece.get((place % PIECE_ROWS) as usize)?;
        (slot.0 != 0).then_some(slot)
    }

    /// The row of a time with another added to it.
    fn with(&self, time: u64, row: &ActivityRow) -> ActivityRow {
        let Some(mut sum) = self.at(time).copied() else {
            return *row;
        };
        sum.absorb(row);
        sum
    }
}

/// Rows of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Seconds of a row.
    pub step_s: u64,
    /// When the first row begins, in Unix seconds.
    pub from_unix_s: u64,
    /// The rows; `None` where nothing was recorded.
    pub rows: Vec<Option<ActivityRow>>,
}

/// A second's rows as they are with it, see [`Activity::with`]: for the file, then for readers.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    /// The second, in Unix seconds, and its row.
    pub second: (u64, ActivityRow),
    /// The minute, in Unix minutes, and its row so far.
    pub minute: (u64, ActivityRow),
}

impl Default for Activity {
    fn default() -> Activity {
        Activity {
            rows: Mutex::new(ActivityRows {
                seconds: ActivityRing::new(1, SECONDS_KEPT),
                minutes: ActivityRing::new(60, MINUTES_KEPT),
            }),
        }
    }
}

impl Activity {
    /// Nothing recorded.
    pub fn new() -> Activity {
        Activity::default()
    }

    /// What a second makes of the rows; [`Activity::record`] has readers see it. `minute` has the
    /// percentiles (50, 90, 99) of its whole minute so far, where they are known; else they follow
    /// from those of its seconds.
    pub fn with(&self, unix_s: u64, row: &ActivityRow, minute: Option<[u32; 3]>) -> Changed {
        let rows = self.rows.lock();
        let second = rows.seconds.with(unix_s, row);
        let mut whole = rows.minutes.with(unix_s / 60, row);
        if let Some(percentiles) = minute {
            [whole.p50_us, whole.p90_us, whole.p99_us] = percentiles;
        }
        Changed {
            second: (unix_s, second),
            minute: (unix_s / 60, whole),
        }
    }

    /// Records a second.
    pub fn record(&self, changed: &Changed) {
        let mut rows = self.rows.lock();
        *rows.seconds.place(changed.second.0) = changed.second;
        *rows.minutes.place(changed.minute.0) = changed.minute;
    }

    /// Rows from one time up to another, both in Unix seconds, in steps of so many seconds: those
    /// of seconds while they are kept and asked for, else those of minutes. The step is raised to
    /// fit [`ROWS_MAX`].
    pub fn stretch(
        &self,
        from_unix_s: u64,
        to_unix_s: u64,
        step_s: u64,
        now_unix_s: u64,
    ) -> Stretch {
        let rows = self.rows.lock();
        let kept_s = now_unix_s.saturating_sub(MINUTES_KEPT * 60);
        let to_s = to_unix_s.min(now_unix_s);
        let from_s = from_unix_s.clamp(kept_s.min(to_s), to_s);
        let step_s = step_s.clamp(1, MINUTES_KEPT * 60);
        let step_s = step_s.max((to_s - from_s).div_ceil(ROWS_MAX));
        let is_recent = from_s >= now_unix_s.saturating_sub(SECONDS_KEPT);
        let (ring, step_s) = match is_recent && step_s < 60 {
            true => (&rows.seconds, step_s),
            false => (&rows.minutes, step_s.next_multiple_of(60)),
        };
        let from_s = from_s - from_s % step_s;
        let count = (to_s - from_s).div_ceil(step_s).min(ROWS_MAX);
        let row_at = |index: u64| {
            let first = (from_s + index * step_s) / ring.step_s;
            let parts = (first..first + step_s / ring.step_s).filter_map(|time| ring.at(time));
            parts.copied().reduce(|mut row, next| {
                row.absorb(&next);
                row
            })
        };
        Stretch {
            step_s,
            from_unix_s: from_s,
            rows: (0..count).map(row_at).collect(),
        }
    }

    /// The newest `count` seconds before a moment, oldest first.
    pub fn last_seconds(&self, count: u64, now_unix_s: u64) -> Stretch {
        let from_s = now_unix_s.saturating_sub(count);
        self.stretch(from_s, now_unix_s, 1, now_unix_s)
    }
}
