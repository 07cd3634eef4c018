//! What a sweep says: whether the default is about as good as the best.

use crate::interval::Mean;
use crate::measure::{Cell, Measured};
use crate::rows::Group;

/// How far the default may be from the best.
const NEAR_PERCENT: f64 = 5.0;

/// What a row of a sweep says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// What stands for the default.
    pub(super) default: String,
    /// What took least CPU time.
    pub(super) best: String,
    /// The default in times of the best.
    pub(super) ratio: Mean,
    pub(super) distance: Distance,
}

/// How far the default is from the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distance {
    /// Within 5 %.
    Near,
    /// Further away.
    Far,
    /// The rounds differ too much to tell.
    Unknown,
}

impl Verdict {
    /// What a row says, where it is one of a sweep and enough of it was measured.
    pub(super) fn of(measured: &Measured) -> Option<Verdict> {
        if measured.row.group != Group::Sweep {
            return None;
        }
        let sound = |cell: &&Cell| cell.doubt().is_none() && cell.cpu().is_some();
        let default = measured.cells.first().filter(sound)?;
        let cells = measured.cells.iter().filter(sound);
        let cpu = |cell: &Cell| cell.cpu().map_or(f64::INFINITY, |cpu| cpu.mean);
        let best = cells.min_by(|one, other| cpu(one).total_cmp(&cpu(other)))?;
        let ratio = default.ratio_to(best)?;
        let limit = 1.0 + NEAR_PERCENT / 100.0;
        let distance = match ratio.ratio_bounds() {
            _ if default.entrant == best.entrant => Distance::Near,
            Some((_, high)) if high <= limit => Distance::Near,
            Some((low, _)) if low > limit => Distance::Far,
            _ => Distance::Unknown,
        };
        Some(Verdict {
            default: default.entrant.label.clone(),
            best: best.entrant.label.clone(),
            ratio,
            distance,
        })
    }

    /// The same in a sentence.
    pub(super) fn text(&self) -> String {
        let Verdict { default, best, .. } = self;
        if default == best {
            return format!("{default} takes least CPU time");
        }
        let more = (self.ratio.mean - 1.0) * 100.0;
        let beside = format!("{default} takes {more:.1} % more CPU time than the best, {best}");
        match self.distance {
            Distance::Near => format!("{beside}: within {NEAR_PERCENT} %"),
            Distance::Far => format!("{beside}: not within {NEAR_PERCENT} %"),
            Distance::Unknown => format!(
                "{beside}, but the rounds differ too much to say whether that is within {NEAR_PERCENT} %"
            ),
        }
    }
}
