//! The rounds: every cell of a row in turn, again and again, until the intervals are narrow or
//! the row's time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::account::AccountKind;
use crate::interval::{Estimate, median};
use crate::limits::{
    DOUBT_PERCENT, INTERVAL_PERCENT, REPEAT_COUNT_MAX, ROUND_COUNT_MAX, ROUND_COUNT_MIN,
    ROUND_COUNT_STEADY, STEAL_PERCENT_MAX,
};
use crate::link::LinkSettings;
use crate::progress::ProgressPrinter;
use crate::round::{ClientSetup, Length, Round};
use crate::rows::{ComparisonRow, Entrant, VISIT};
use crate::running::{RunningServer, ServerPlace};
use crate::server::{Extra, Installed};

/// What came of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowMeasurement {
    /// What was asked.
    pub(crate) row: ComparisonRow,
    /// One for each entrant of the row, in its order.
    pub(crate) cells: Vec<EntrantResult>,
    /// Rounds that the host disturbed and that were made again.
    pub(crate) repeated: usize,
    /// Rounds that were disturbed and count all the same.
    pub(crate) disturbed: usize,
}

/// What came of one entrant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EntrantResult {
    /// Who.
    pub(crate) entrant: Entrant,
    /// The rounds that count, raw.
    pub(crate) rounds: Vec<Round>,
    /// Why there are none.
    pub(crate) why_not: Option<String>,
}

/// How long it all may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// All rows together.
    pub(crate) whole: Duration,
    /// One row.
    pub(crate) row: Duration,
    /// One round, where somebody says so.
    pub(crate) round: Option<Duration>,
    /// Rounds of a cell at most.
    pub(crate) rounds: usize,
}

/// Longest and shortest round that is chosen.
const ROUND_MAX: Duration = Duration::from_secs(1);
const ROUND_MIN: Duration = Duration::from_millis(100);
/// The shortest where CPU time is counted in ticks of 10 ms.
const ROUND_MIN_TICKS: Duration = Duration::from_millis(500);
/// Requests of a round that find nothing in the kernel's memory.
const COLD_COUNT: usize = 25;
/// Rounds that a row's time is cut into.
const ROUNDS_AIMED: u32 = 6;
/// Shares of the time that a row has which a claim rests on; others have one.
const CLAIMED_SHARES: u32 = 4;

/// A comparison under way.
pub(crate) struct ComparisonRun<'a> {
    pub(crate) place: ServerPlace<'a>,
    pub(crate) client_cpu: usize,
    pub(crate) servers: &'a [Installed],
    pub(crate) is_stopped: &'a Arc<AtomicBool>,
    pub(crate) budget: Budget,
    /// The ids of rows that claims rest on.
    pub(crate) claimed: BTreeSet<&'static str>,
    pub(crate) running: BTreeMap<(String, Extra), Result<RunningServer, String>>,
    /// Servers that were started, or tried.
    pub(crate) started: usize,
    /// Configurations of all that was started, by server; how its CPU time was counted.
    pub(crate) shown: BTreeMap<String, String>,
    pub(crate) account: Option<&'static str>,
}

impl ComparisonRun<'_> {
    /// Measures all rows. What was interrupted ends early.
    pub(crate) fn measure(
        &mut self,
        rows: &[ComparisonRow],
        progress: &mut ProgressPrinter,
    ) -> Vec<RowMeasurement> {
        let begun = Instant::now();
        let mut measured = vec![];
        let mut shares: u32 = rows.iter().map(|row| self.shares(row)).sum();
        for (index, row) in rows.iter().enumerate() {
            let left = self.budget.whole.saturating_sub(begun.elapsed());
            let share = (left / shares * self.shares(row)).min(self.budget.row);
            shares -= self.shares(row);
            progress.row(index, rows.len(), row);
            measured.push(self.row(row, share, progress));
            if self.is_interrupted() {
                break;
            }
            self.end_unneeded(&rows[index + 1..]);
        }
        self.again(&mut measured, begun, progress);
        self.running.clear();
        measured
    }

    /// Shares of the time that is left: rows have several that a claim rests on.
    fn shares(&self, row: &ComparisonRow) -> u32 {
        match self.claimed.contains(&*row.id) {
            true => CLAIMED_SHARES,
            false => 1,
        }
    }

    /// Rows that the machine was too busy for are measured once more, while there is time: perhaps
    /// it no longer is. Those that a claim rests on come first.
    fn again(
        &mut self,
        measured: &mut [RowMeasurement],
        begun: Instant,
        progress: &mut ProgressPrinter,
    ) {
        let mut all: Vec<&mut RowMeasurement> = measured.iter_mut().collect();
        all.sort_by_key(|one| std::cmp::Reverse(self.shares(&one.row)));
        for one in all {
            let left = self.budget.whole.saturating_sub(begun.elapsed());
            if left.is_zero() || self.is_interrupted() {
                return;
            }
            if one.wide_count() == 0 {
                continue;
            }
            progress.again(&one.row);
            let again = self.row(&one.row.clone(), left.min(self.budget.row), progress);
            if again.wide_count() <= one.wide_count() && !self.is_interrupted() {
                *one = again;
            }
            self.running.clear();
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn row(
        &mut self,
        row: &ComparisonRow,
        share: Duration,
        progress: &mut ProgressPrinter,
    ) -> RowMeasurement {
        let cell = |entrant: &Entrant| EntrantResult {
            entrant: entrant.clone(),
            rounds: vec![],
            why_not: None,
        };
        let mut measured = RowMeasurement {
            row: row.clone(),
            cells: row.entrants.iter().map(cell).collect(),
            repeated: 0,
            disturbed: 0,
        };
        let begun = Instant::now();
        for cell in &mut measured.cells {
            progress.cell(&cell.entrant.label, 0);
            if let Err(why) = self.prepare(row, &mut cell.entrant) {
                cell.why_not = Some(why);
            }
        }
        let length = self.round_length(row, &measured.cells, share.saturating_sub(begun.elapsed()));
        for count in 0.. {
            let is_enough = count >= ROUND_COUNT_STEADY.min(self.budget.rounds)
                && (begun.elapsed() >= share || measured.cells.iter().all(is_narrow));
            if is_enough || count >= self.budget.rounds || self.is_interrupted() {
                break;
            }
            // Only where as many rounds as are aimed at come all the same: a few disturbed ones of
            // many move no median.
            let due =
                share * u32::try_from(count).unwrap_or(u32::MAX).min(ROUNDS_AIMED) / ROUNDS_AIMED;
            let may_repeat = || begun.elapsed() < due;
            self.interleaved(&mut measured, length, count, &may_repeat, progress);
        }
        measured
    }

    /// One round of each cell. Where the host took CPU time from one, all are made again: rounds
    /// of one time stay beside each other.
    fn interleaved(
        &mut self,
        measured: &mut RowMeasurement,
        length: Length,
        count: usize,
        may_repeat: &dyn Fn() -> bool,
        progress: &mut ProgressPrinter,
    ) {
        loop {
            let mut rounds = vec![];
            for cell in &measured.cells {
                progress.cell(&cell.entrant.label, count + 1);
                rounds.push(match &cell.why_not {
                    Some(_) => None,
                    None => Some(self.round(&measured.row, &cell.entrant, length)),
                });
                if self.is_interrupted() {
                    return;
                }
            }
            let is_disturbed = is_disturbed(rounds.iter().flatten().flatten());
            if is_disturbed && measured.repeated < REPEAT_COUNT_MAX && may_repeat() {
                measured.repeated += 1;
                continue;
            }
            measured.disturbed += usize::from(is_disturbed);
            for (cell, round) in measured.cells.iter_mut().zip(rounds) {
                match round {
                    Some(Ok(round)) => cell.rounds.push(round),
                    Some(Err(why)) => cell.why_not = Some(why),
                    None => {}
                }
            }
            return;
        }
    }

    /// Sees to it that the server runs and answers this, and warms up what it keeps.
    fn prepare(&mut self, row: &ComparisonRow, entrant: &mut Entrant) -> Result<(), String> {
        let key = (entrant.server.clone(), entrant.extra);
        if !self.running.contains_key(&key) {
            let started = self.start(&key);
            self.running.insert(key.clone(), started);
        }
        if let Some((before, after)) = entrant.path.split_once(VISIT)
            && let Some(Ok(instance)) = self.running.get(&key)
        {
            let handle = instance.begin_visit(before)?;
            let path = format!("{before}{handle}{after}");
            entrant.path = path;
        }
        let round = self.round(row, entrant, Length::Count(1))?;
        if round.good == 0 {
            let failure = round.failure.unwrap_or_else(|| "no answer".to_owned());
            return Err(format!("{} is not answered: {failure}", entrant.path));
        }
        if row.is_single {
            return Ok(());
        }
        // What opens files, fills caches and starts workers is done before anything counts.
        let warm_up = self.budget.round.unwrap_or(ROUND_MIN);
        self.round(row, entrant, Length::Time(warm_up)).map(|_| ())
    }

    fn start(&mut self, key: &(String, Extra)) -> Result<RunningServer, String> {
        let (name, extra) = key;
        let server = self.servers.iter().find(|server| server.name == *name);
        let server = server.ok_or_else(|| format!("{name} is not there"))?;
        let folder = format!("{}-{}", name.replace(' ', "-"), self.started);
        // Also where it does not start: its folder is there then.
        self.started += 1;
        let instance = self.place.start(server, *extra, &folder)?;
        let shown = match extra {
            Extra::None => name.clone(),
            extra => format!("{name} ({extra:?})"),
        };
        self.shown.insert(shown, instance.shown().to_owned());
        self.account = Some(instance.account().name());
        Ok(instance)
    }

    fn round(
        &mut self,
        row: &ComparisonRow,
        entrant: &Entrant,
        length: Length,
    ) -> Result<Round, String> {
        let key = (entrant.server.clone(), entrant.extra);
        let client = ClientSetup {
            cpu: self.client_cpu,
            is_stopped: self.is_stopped,
        };
        match self.running.get_mut(&key) {
            Some(Ok(instance)) => client.round(row, entrant, instance, length),
            Some(Err(why)) => Err(why.clone()),
            None => Err("does not run".to_owned()),
        }
    }

    fn round_length(&self, row: &ComparisonRow, cells: &[EntrantResult], left: Duration) -> Length {
        if row.is_single {
            return Length::Count(1);
        }
        if row.is_cold {
            return Length::Cold(COLD_COUNT);
        }
        if let Some(round) = self.budget.round {
            return Length::Time(round);
        }
        let count = cells.iter().filter(|cell| cell.why_not.is_none()).count();
        let in_ticks = self.running.values().flatten();
        let in_ticks = { in_ticks }.any(|instance| instance.account() == AccountKind::Processes);
        let least = if in_ticks { ROUND_MIN_TICKS } else { ROUND_MIN };
        let round = left / (count.max(1) as u32 * ROUNDS_AIMED);
        Length::Time(round.clamp(least, ROUND_MAX))
    }

    /// Ends servers that no row to come asks.
    fn end_unneeded(&mut self, rows: &[ComparisonRow]) {
        let is_needed = |key: &(String, Extra)| {
            let all = rows.iter().flat_map(|row| &row.entrants);
            { all }.any(|entrant| (&entrant.server, entrant.extra) == (&key.0, key.1))
        };
        self.running.retain(|key, _| is_needed(key));
    }
}

/// Did the host take CPU time away from one of them?
fn is_disturbed<'a>(mut rounds: impl Iterator<Item = &'a Round>) -> bool {
    rounds.any(|round| round.steal_percent > STEAL_PERCENT_MAX)
}

/// Is a cell measured as exactly as it should be, or not at all?
fn is_narrow(cell: &EntrantResult) -> bool {
    let percent = cell.cpu().and_then(|cpu| cpu.percent());
    cell.why_not.is_some() || percent.is_some_and(|percent| percent < INTERVAL_PERCENT)
}

impl RowMeasurement {
    fn wide_count(&self) -> usize {
        let wide = self
            .cells
            .iter()
            .filter(|cell| cell.wide_percent().is_some());
        wide.count()
    }
}

impl EntrantResult {
    fn values(&self, value: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(value).collect()
    }

    /// Microseconds of CPU time per request or megabyte.
    pub(crate) fn cpu(&self) -> Option<Estimate> {
        Estimate::of(&self.values(|round| round.cpu_us))
    }

    /// Half of its interval in percent, where that is so much that there is no figure: the machine
    /// was busy with something else.
    pub(crate) fn wide_percent(&self) -> Option<f64> {
        let cpu = self.cpu().filter(|cpu| cpu.n >= ROUND_COUNT_MIN)?;
        cpu.percent().filter(|percent| *percent > DOUBT_PERCENT)
    }

    /// Its ratio to another cell of the same row, round by round; none where one is no figure.
    pub(crate) fn ratio_to(&self, base: &EntrantResult) -> Option<Estimate> {
        if self.wide_percent().or(base.wide_percent()).is_some() {
            return None;
        }
        let values = self.values(|round| round.cpu_us);
        Estimate::ratio(&values, &base.values(|round| round.cpu_us))
    }

    /// The median of something else.
    pub(crate) fn median(&self, value: impl Fn(&Round) -> f64) -> Option<f64> {
        median(&self.values(value))
    }

    /// The share of a link's bandwidth that its bodies took, in percent.
    pub(crate) fn link_percent(&self, link: Option<LinkSettings>) -> Option<f64> {
        link?.percent(self.median(|round| round.bytes_per_second)?)
    }

    /// Requests without an expected answer.
    pub(crate) fn failed(&self) -> u64 {
        self.rounds.iter().map(|round| round.failed).sum()
    }

    /// Why its figures, where there are any, are not to be compared with others.
    pub(crate) fn doubt(&self) -> Option<String> {
        if self.rounds.is_empty() {
            return None;
        }
        let mut doubts = vec![];
        if self.failed() > 0 {
            let mut failures = self.rounds.iter().filter_map(|round| round.failure.clone());
            let good: u64 = self.rounds.iter().map(|round| round.good).sum();
            let (failed, first) = (self.failed(), failures.next().unwrap_or_default());
            doubts.push(format!(
                "{failed} of {} requests FAILED ({first})",
                good + failed
            ));
        }
        if let Some(percent) = self.wide_percent() {
            doubts.push(format!("no figure: the machine was busy, ±{percent:.0} %"));
        }
        // One round with some is told, too.
        let strays: f64 = self.values(|round| round.stray_percent).iter().sum();
        let strays = strays / self.rounds.len() as f64;
        if strays > 0.0 {
            doubts.push(format!(
                "{strays:.0} % of its CPU time is taken from what its CPU did besides: programs of its \
                 that nobody waits for are not counted here, and other work there is taken for \
                 theirs; as root a control group counts them"
            ));
        }
        if let Some(why) = &self.why_not {
            doubts.push(format!(
                "not measured any more after {} rounds: {why}",
                self.rounds.len()
            ));
        }
        (!doubts.is_empty()).then(|| doubts.join("; "))
    }
}

impl Budget {
    /// A budget, within what rounds may be at all.
    pub(crate) fn new(
        (whole, row): (Duration, Duration),
        round: Option<Duration>,
        rounds: Option<usize>,
    ) -> Budget {
        Budget {
            whole,
            row,
            round,
            rounds: rounds.unwrap_or(ROUND_COUNT_MAX).clamp(1, ROUND_COUNT_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(failed: u64, why_not: Option<&str>) -> EntrantResult {
        let round = Round {
            cpu_us: 1.0,
            good: 8,
            failed,
            failure: (failed > 0).then(|| "status: 503".to_owned()),
            body_bytes: 1.0,
            ..Round::default()
        };
        EntrantResult {
            entrant: Entrant {
                label: "hob".to_owned(),
                server: "hob".to_owned(),
                extra: Extra::None,
                path: "/".to_owned(),
                bytes: 1,
            },
            rounds: vec![round],
            why_not: why_not.map(str::to_owned),
        }
    }

    #[test]
    fn steal_in_one_round_disturbs_all_beside_it() {
        let quiet = cell(0, None).rounds.remove(0);
        let mut stolen = quiet.clone();
        stolen.steal_percent = STEAL_PERCENT_MAX;
        assert!(!is_disturbed([&quiet, &stolen].into_iter()));
        stolen.steal_percent += 0.1;
        assert!(is_disturbed([&quiet, &stolen].into_iter()));
    }

    #[test]
    fn one_bad_round_leaves_figure_and_ratio_of_a_cell_where_they_were() {
        let of = |times: [f64; 5]| {
            let mut cell = cell(0, None);
            let like = cell.rounds.remove(0);
            let rounds = times.map(|cpu_us| Round {
                cpu_us,
                ..like.clone()
            });
            cell.rounds.extend(rounds);
            cell
        };
        let base = of([10.0, 10.1, 9.9, 10.2, 9.8]);
        let bad = of([20.0, 20.3, 199.0, 20.2, 19.7]);
        assert_eq!((bad.wide_percent(), bad.doubt()), (None, None));
        let figure = bad.cpu().unwrap().median;
        assert!((19.7..=20.3).contains(&figure), "{figure}");
        let ratio = bad.ratio_to(&base).unwrap();
        assert!((1.98..=2.02).contains(&ratio.median), "{ratio:?}");
        let inverse = base.ratio_to(&bad).unwrap();
        assert!((inverse.median * ratio.median - 1.0).abs() < 1e-12);
        // Rounds that differ from each other altogether are no figure.
        assert!(of([10.0, 20.0, 40.0, 80.0, 160.0]).wide_percent().is_some());
    }

    #[test]
    fn failures_and_a_late_end_make_a_cell_doubtful() {
        assert_eq!(cell(0, None).doubt(), None);
        let failed = cell(2, None).doubt();
        assert_eq!(
            failed.as_deref(),
            Some("2 of 10 requests FAILED (status: 503)")
        );
        let late = cell(0, Some("it ended")).doubt();
        assert_eq!(
            late.as_deref(),
            Some("not measured any more after 1 rounds: it ended")
        );
        let mut wide = cell(0, None);
        for cpu_us in [1.0, 4.0] {
            // Two rounds have no interval worth a word.
            assert_eq!(wide.doubt(), None);
            let like = wide.rounds[0].clone();
            wide.rounds.push(Round { cpu_us, ..like });
        }
        assert_eq!(
            wide.doubt().as_deref(),
            Some("no figure: the machine was busy, ±251 %")
        );
        // Nothing is compared with what is no figure.
        let sound = cell(0, None);
        assert_eq!(wide.ratio_to(&sound), None);
        assert_eq!(sound.ratio_to(&wide), None);
        assert!(sound.ratio_to(&sound).is_some());
        let mut strays = cell(0, None);
        strays.rounds[0].stray_percent = 80.0;
        let told = strays.doubt().unwrap();
        assert!(
            told.starts_with("80 % of its CPU time is taken from"),
            "{told}"
        );
        let mut none = cell(0, Some("it ended"));
        none.rounds.clear();
        assert_eq!(none.doubt(), None);
    }
}
