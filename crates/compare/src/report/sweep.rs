//! What a sweep says: whether the default is about as good as the best.

use crate::interval::Estimate;
use crate::measure::{EntrantResult, RowMeasurement};
use crate::rows::RowGroup;

/// How far the default may be from the best.
const NEAR_PERCENT: f64 = 5.0;

/// What a row of a sweep says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SweepVerdict {
    /// What stands for the default.
    pub(super) default: String,
    /// What took least CPU time.
    pub(super) best: String,
    /// The default in times of the best.
    pub(super) ratio: Estimate,
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

impl SweepVerdict {
    /// What a row says, where it is one of a sweep and enough of it was measured.
    pub(super) fn of(measured: &RowMeasurement) -> Option<SweepVerdict> {
        if measured.row.group != RowGroup::Sweep {
            return None;
        }
        let sound = |cell: &&EntrantResult| cell.doubt().is_none() && cell.cpu().is_some();
        let default = measured.cells.first().filter(sound)?;
        let cells = measured.cells.iter().filter(sound);
        let cpu = |cell: &EntrantResult| cell.cpu().map_or(f64::INFINITY, |cpu| cpu.median);
        let best = cells.min_by(|one, other| cpu(one).total_cmp(&cpu(other)))?;
        let ratio = default.ratio_to(best)?;
        let limit = 1.0 + NEAR_PERCENT / 100.0;
        let distance = match ratio.bounds() {
            _ if default.entrant == best.entrant => Distance::Near,
            Some((_, high)) if high <= limit => Distance::Near,
            Some((low, _)) if low > limit => Distance::Far,
            _ => Distance::Unknown,
        };
        Some(SweepVerdict {
            default: default.entrant.label.clone(),
            best: best.entrant.label.clone(),
            ratio,
            distance,
        })
    }

    /// The same in a sentence.
    pub(super) fn text(&self) -> String {
        let SweepVerdict { default, best, .. } = self;
        if default == best {
            return format!("{default} takes least CPU time");
        }
        let more = (self.ratio.median - 1.0).max(0.0) * 100.0;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::Round;
    use crate::rows::{ComparisonRow, Entrant};
    use crate::server::Extra;

    fn cell(label: &str, rounds: &[f64]) -> EntrantResult {
        let round = |cpu_us: &f64| Round {
            cpu_us: *cpu_us,
            good: 1,
            body_bytes: 1.0,
            ..Round::default()
        };
        EntrantResult {
            entrant: Entrant {
                label: label.to_owned(),
                server: "hob".to_owned(),
                extra: Extra::None,
                path: format!("/{label}"),
                bytes: 1,
            },
            rounds: rounds.iter().map(round).collect(),
            why_not: None,
        }
    }

    fn verdict(default: &[f64], other: &[f64]) -> SweepVerdict {
        let row = ComparisonRow::new(String::new(), String::new(), RowGroup::Sweep, 1);
        let cells = vec![cell("64 KiB", default), cell("16 KiB", other)];
        SweepVerdict::of(&RowMeasurement {
            row,
            cells,
            repeated: 0,
            disturbed: 0,
        })
        .unwrap()
    }

    #[test]
    fn default_is_near_the_best_far_from_it_or_nobody_knows() {
        let near = verdict(&[102.0, 103.0, 102.0, 103.0], &[100.0, 101.0, 100.0, 101.0]);
        assert_eq!(near.distance, Distance::Near);
        let text = "64 KiB takes 2.0 % more CPU time than the best, 16 KiB: within 5 %";
        assert_eq!(near.text(), text);
        let far = verdict(&[120.0, 121.0, 120.0, 121.0], &[100.0, 101.0, 100.0, 101.0]);
        assert_eq!(far.distance, Distance::Far);
        assert!(far.text().ends_with("16 KiB: not within 5 %"));
        let noise = verdict(&[101.0, 125.0, 90.0], &[100.0, 95.0, 110.0]);
        assert_eq!(noise.distance, Distance::Unknown);
        let best = verdict(&[99.0, 99.0], &[100.0, 100.0]);
        assert_eq!(best.distance, Distance::Near);
        assert_eq!(best.text(), "64 KiB takes least CPU time");
    }

    #[test]
    fn only_a_sweep_has_a_verdict() {
        let row = ComparisonRow::new(String::new(), String::new(), RowGroup::Cost, 1);
        let measured = RowMeasurement {
            row,
            cells: vec![cell("a", &[1.0, 1.0]), cell("b", &[2.0, 2.0])],
            repeated: 0,
            disturbed: 0,
        };
        assert_eq!(SweepVerdict::of(&measured), None);
    }
}
