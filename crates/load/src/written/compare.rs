//! How two results differ, and by how much that is certain.

use std::fmt::Write;
use std::str::FromStr;

use serde_json::{Value, json};

use super::SavedResult;
use super::merge::differences;
use super::sample::{
    CONFIDENCE_PERCENT, Drawn, RUN_COUNT_MIN, Ratio, STRETCH_COUNT_MIN, Stretches, of_draws,
    of_runs,
};
use crate::page::{rate, time};
use crate::report::{Compared, Crossed, Figure};
use crate::threshold::{Metric, Unit};

/// What a figure is better for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
}

/// A figure that is compared.
struct FigureKind {
    name: &'static str,
    metric: Metric,
    unit: Unit,
    better: Better,
    /// Words for after being better and worse.
    words: (&'static str, &'static str),
}

const SPEED: (&str, &str) = ("faster", "slower");

const fn times(name: &'static str, metric: Metric) -> FigureKind {
    FigureKind {
        name,
        metric,
        unit: Unit::Nanoseconds,
        better: Better::Lower,
        words: SPEED,
    }
}

const KINDS: &[FigureKind] = &[
    FigureKind {
        name: "rate",
        metric: Metric::Rate,
        unit: Unit::Count,
        better: Better::Higher,
        words: SPEED,
    },
    times("mean", Metric::Mean),
    times("p50", Metric::Percentile(50.0)),
    times("p90", Metric::Percentile(90.0)),
    times("p99", Metric::Percentile(99.0)),
    times("p99.9", Metric::Percentile(99.9)),
    FigureKind {
        name: "errors",
        metric: Metric::Errors,
        unit: Unit::Percent,
        better: Better::Lower,
        words: ("fewer", "more"),
    },
    FigureKind {
        name: "cpu",
        metric: Metric::ServerCpu,
        unit: Unit::Nanoseconds,
        better: Better::Lower,
        words: ("cheaper", "dearer"),
    },
    FigureKind {
        name: "fairness",
        metric: Metric::Fairness,
        unit: Unit::Index,
        better: Better::Higher,
        words: ("fairer", "less fair"),
    },
];

/// A change that must not be, such as `p99>10%` or `rate<-5%`.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeLimit {
    text: String,
    name: String,
    is_above: bool,
    percent: f64,
}

impl FromStr for ChangeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<ChangeLimit, String> {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let wrong = || {
            format!(
                "{text:?} is no change; write a figure ({}), < or >, and a percentage, such as \
                 'p99>10%' or 'rate<-5%'",
                names.join(", ")
            )
        };
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, limit) = (text[..at].trim(), text[at + 1..].trim());
        let limit = limit.strip_suffix('%').ok_or_else(wrong)?.trim();
        let percent: f64 = limit.parse().map_err(|_| wrong())?;
        if !names.contains(&name) || !percent.is_finite() {
            return Err(wrong());
        }
        Ok(ChangeLimit {
            text: text.to_owned(),
            name: name.to_owned(),
            is_above: text.as_bytes()[at] == b'>',
            percent,
        })
    }
}

/// One figure of both results.
struct FigureComparison {
    kind: &'static FigureKind,
    before: f64,
    after: f64,
    ratio: Option<Ratio>,
    verdict: &'static str,
}

/// The verdict where the interval holds no difference too.
const SAME: &str = "cannot be told apart";
/// The verdict where there is no interval.
const UNJUDGED: &str = "not judged";

impl FigureComparison {
    fn is_apart(&self) -> bool {
        self.verdict != SAME && self.verdict != UNJUDGED
    }
}

/// How two results differ.
pub struct ResultComparison {
    rows: Vec<FigureComparison>,
    method: String,
    notes: Vec<String>,
    /// Each limit, and whether it was crossed.
    limits: Vec<(ChangeLimit, bool)>,
}

impl ResultComparison {
    /// Compares one run or several with one or several others.
    pub fn of(
        before: &[SavedResult],
        after: &[SavedResult],
        limits: &[ChangeLimit],
    ) -> Result<ResultComparison, String> {
        if before.is_empty() || after.is_empty() {
            return Err("there is nothing to compare".to_owned());
        }
        let is_repeated = before.len() >= RUN_COUNT_MIN && after.len() >= RUN_COUNT_MIN;
        let (rows, method) = match is_repeated {
            true => (
                repeated(before, after),
                format!(
                    "{} and {} runs, Welch's interval of the ratio of the means of logarithms",
                    before.len(),
                    after.len()
                ),
            ),
            false => single(before, after)?,
        };
        let limits = limits.iter().map(|limit| {
            let row = rows.iter().find(|row| row.kind.name == limit.name);
            (limit.clone(), is_crossed(limit, row))
        });
        Ok(ResultComparison {
            limits: limits.collect(),
            notes: notes(before, after),
            rows,
            method,
        })
    }

    /// Was a limit crossed?
    pub fn has_failed(&self) -> bool {
        self.limits.iter().any(|(_, is_crossed)| *is_crossed)
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<8} {:>10} {:>10} {:>9}  {:<20} after is\n",
            "",
            "before",
            "after",
            "change",
            format!("{CONFIDENCE_PERCENT} % interval")
        );
        for row in &self.rows {
            let change = row
                .ratio
                .map_or_else(String::new, |ratio| signed(ratio.estimate));
            let interval = row.ratio.and_then(|ratio| ratio.interval);
            let interval = interval.map_or_else(String::new, |(low, high)| {
                format!("{} to {}", signed(low), signed(high))
            });
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{:<8} {:>10} {:>10} {change:>9}  {interval:<20} {}",
                row.kind.name,
                shown(row.kind, row.before),
                shown(row.kind, row.after),
                row.verdict
            );
        }
        let _ = writeln!(text, "\nmethod: {}", self.method);
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        for (limit, is_crossed) in &self.limits {
            let outcome = if *is_crossed { "FAILED" } else { "passed" };
            let _ = writeln!(text, "{outcome}: {}", limit.text);
        }
        text
    }

    /// For machines.
    pub fn json(&self) -> Value {
        let percent = |factor: f64| (factor - 1.0) * 100.0;
        let figures = self.rows.iter().map(|row| {
            let interval = row.ratio.and_then(|ratio| ratio.interval).unzip();
            Figure {
                name: row.kind.name,
                before: row.before,
                after: row.after,
                change_percent: row.ratio.map(|ratio| percent(ratio.estimate)),
                low_percent: interval.0.map(percent),
                high_percent: interval.1.map(percent),
                verdict: row.verdict,
            }
        });
        let thresholds = self.limits.iter().map(|(limit, crossed)| Crossed {
            text: limit.text.clone(),
            crossed: *crossed,
        });
        json!(Compared {
            format: 1,
            confidence_percent: CONFIDENCE_PERCENT,
            method: self.method.clone(),
            figures: figures.collect(),
            notes: self.notes.clone(),
            thresholds: thresholds.collect(),
        })
    }
}

/// A change counts when it is certain that there is one; what was not measured does not hold.
fn is_crossed(limit: &ChangeLimit, row: Option<&FigureComparison>) -> bool {
    // Nothing before and nothing after has no ratio.
    if row.is_some_and(|row| row.before == 0.0 && row.after == 0.0) {
        return false;
    }
    let Some((row, ratio)) = row.and_then(|row| Some((row, row.ratio?))) else {
        return true;
    };
    let change = (ratio.estimate - 1.0) * 100.0;
    let is_beyond = match limit.is_above {
        true => change > limit.percent,
        false => change < limit.percent,
    };
    is_beyond && row.is_apart()
}

/// Rows of runs that were repeated.
fn repeated(before: &[SavedResult], after: &[SavedResult]) -> Vec<FigureComparison> {
    let mut rows = Vec::new();
    for kind in KINDS {
        let all = |runs: &[SavedResult]| -> Option<Vec<f64>> {
            runs.iter()
                .map(|run| run.figure(kind.metric, kind.unit))
                .collect()
        };
        if let (Some(before), Some(after)) = (all(before), all(after)) {
            let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
            let ratio = of_runs(&before, &after);
            rows.push(row(kind, mean(&before), mean(&after), ratio));
        }
    }
    rows
}

/// Rows of few runs, of whose stretches samples are drawn.
fn single(
    before: &[SavedResult],
    after: &[SavedResult],
) -> Result<(Vec<FigureComparison>, String), String> {
    let stretches = |runs: &[SavedResult]| -> Result<Stretches, String> {
        let series = runs.iter().map(|run| {
            let elapsed = run.number("elapsed_s").unwrap_or(0.0);
            Ok((run.series()?, elapsed))
        });
        Ok(Stretches::of(series.collect::<Result<_, String>>()?))
    };
    let (first, second) = (stretches(before)?, stretches(after)?);
    let least = first.count().min(second.count());
    let is_enough = least >= STRETCH_COUNT_MIN;
    let draws = match is_enough {
        true => (first.draw(1), second.draw(2)),
        false => (Vec::new(), Vec::new()),
    };
    let whole = (first.whole(), second.whole());
    let mut rows = Vec::new();
    for kind in KINDS {
        let figure = |runs: &[SavedResult]| {
            let all: Option<Vec<f64>> = runs
                .iter()
                .map(|run| run.figure(kind.metric, kind.unit))
                .collect();
            all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
        };
        let (Some(one), Some(other)) = (figure(before), figure(after)) else {
            continue;
        };
        let ratio = drawn(kind.metric)
            .and_then(|figure| of_draws((&whole.0, &whole.1), (&draws.0, &draws.1), figure))
            .filter(|_| is_enough);
        let plain = (one > 0.0).then(|| Ratio {
            estimate: other / one,
            interval: None,
        });
        rows.push(row(kind, one, other, ratio.or(plain)));
    }
    let method = match is_enough {
        true => format!(
            "{} and {} stretches of the runs, bootstrap of blocks (1,000 samples)",
            first.count(),
            second.count()
        ),
        false => format!(
            "none: {least} whole seconds are too few for an interval; {STRETCH_COUNT_MIN} seconds or \
             {RUN_COUNT_MIN} runs on each side are needed"
        ),
    };
    Ok((rows, method))
}

/// How a figure is had of stretches.
type Draw = Box<dyn Fn(&Drawn) -> f64>;

/// How a figure is had of stretches; none for what they do not have.
fn drawn(metric: Metric) -> Option<Draw> {
    Some(match metric {
        Metric::Rate => Box::new(|drawn| drawn.rate),
        Metric::Mean => Box::new(|drawn| drawn.mean_ns),
        Metric::Percentile(percent) => Box::new(move |drawn| drawn.percentile(percent)),
        Metric::Errors => Box::new(|drawn| drawn.failed_percent),
        _ => return None,
    })
}

fn row(
    kind: &'static FigureKind,
    before: f64,
    after: f64,
    ratio: Option<Ratio>,
) -> FigureComparison {
    let verdict = match ratio.and_then(|ratio| ratio.interval) {
        _ if before == after && before == 0.0 => SAME,
        None => UNJUDGED,
        Some((low, high)) if low <= 1.0 && high >= 1.0 => SAME,
        Some((low, _)) => match (low > 1.0, kind.better) {
            (true, Better::Higher) | (false, Better::Lower) => kind.words.0,
            (false, Better::Higher) | (true, Better::Lower) => kind.words.1,
        },
    };
    FigureComparison {
        kind,
        before,
        after,
        ratio,
        verdict,
    }
}

fn notes(before: &[SavedResult], after: &[SavedResult]) -> Vec<String> {
    let mut notes = Vec::new();
    let all = || before.iter().chain(after);
    let plan = &before[0].value["plan"];
    let mut names: Vec<String> = all()
        .flat_map(|run| differences(plan, &run.value["plan"]))
        .collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        notes.push(format!(
            "the runs are of different plans: {} not the same",
            match names.as_slice() {
                [one] => format!("{one} is"),
                several => format!("{} are", several.join(", ")),
            }
        ));
    }
    let programs = |runs: &[SavedResult]| runs[0].text("environment.cpu").to_owned();
    if programs(before) != programs(after) {
        notes.push("the runs were made on different machines".to_owned());
    }
    for (name, runs) in [("before", before), ("after", after)] {
        if runs.iter().any(|run| run.is("doubtful")) {
            notes.push(format!(
                "something else than the server may have been the limit {name}"
            ));
        }
    }
    notes
}

fn shown(kind: &FigureKind, value: f64) -> String {
    match kind.unit {
        Unit::Nanoseconds => time(value),
        Unit::Percent => format!("{value:.2} %"),
        Unit::Count => format!("{}/s", rate(value)),
        Unit::Index => format!("{value:.3}"),
    }
}

/// A factor as a change: `+12.3 %`.
fn signed(factor: f64) -> String {
    format!("{:+.1} %", (factor - 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_has_a_figure_a_side_and_a_percentage() {
        let change: ChangeLimit = "rate < -5%".parse().unwrap();
        assert_eq!(
            (change.name.as_str(), change.is_above, change.percent),
            ("rate", false, -5.0)
        );
        for wrong in ["", "p99", "p99>5", "p98>5%", "p99>x%", "rate<5ms"] {
            assert!(wrong.parse::<ChangeLimit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn verdict_is_in_words_of_the_figure() {
        let ratio = |low, high| {
            Some(Ratio {
                estimate: (low + high) / 2.0,
                interval: Some((low, high)),
            })
        };
        let verdict = |index: usize, ratio| row(&KINDS[index], 1.0, 2.0, ratio).verdict;
        assert_eq!(verdict(0, ratio(1.1, 1.2)), "faster");
        assert_eq!(verdict(1, ratio(1.1, 1.2)), "slower");
        assert_eq!(verdict(6, ratio(0.5, 0.9)), "fewer");
        assert_eq!(verdict(0, ratio(0.9, 1.2)), SAME);
        assert_eq!(verdict(7, None), UNJUDGED);
    }

    #[test]
    fn limit_is_crossed_by_a_change_that_is_certain() {
        let limit: ChangeLimit = "p99>10%".parse().unwrap();
        let with = |interval| {
            let ratio = Ratio {
                estimate: 1.2,
                interval,
            };
            is_crossed(&limit, Some(&row(&KINDS[4], 1.0, 1.2, Some(ratio))))
        };
        assert!(with(Some((1.1, 1.3))));
        assert!(!with(Some((0.9, 1.5))));
        assert!(!with(None));
        assert!(is_crossed(&limit, None));
        // No errors before and none after.
        assert!(!is_crossed(&limit, Some(&row(&KINDS[4], 0.0, 0.0, None))));
        assert!(is_crossed(&limit, Some(&row(&KINDS[4], 0.0, 1.0, None))));
    }
}
