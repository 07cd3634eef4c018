//! What a result must not be: `p99>50ms`, `errors>0.1%`, `rate<5000`. Kept as written, because that
//! is what a report repeats.

use std::fmt;
use std::str::FromStr;

use crate::page::time;
use crate::quantity::{parse_duration, plain_number};

/// A figure a threshold can be set on: how it is written and what it is.
pub(crate) const METRICS: &[(&str, Metric, &str)] = &[
    ("min", Metric::Min, "shortest response time"),
    ("mean", Metric::Mean, "mean response time"),
    ("max", Metric::Max, "longest response time"),
    (
        "connect",
        Metric::Connect,
        "99th percentile of the time a connection takes to open",
    ),
    (
        "errors",
        Metric::Errors,
        "failed requests, as a count or in % of all",
    ),
    ("rate", Metric::Rate, "good answers per second"),
    (
        "late",
        Metric::Late,
        "requests sent late, as a count or in % of all",
    ),
    ("cpu", Metric::ServerCpu, "CPU time of --pid per answer"),
    (
        "fairness",
        Metric::Fairness,
        "Jain's index of answers, from 0 to 1: over client addresses with --sources, else over \
         connections",
    ),
];

/// Which figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Metric {
    /// A percentile of the response times.
    Percentile(f64),
    Min,
    Mean,
    Max,
    Connect,
    Errors,
    Rate,
    Late,
    ServerCpu,
    Fairness,
}

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Nanoseconds,
    Count,
    Percent,
    /// From 0 to 1.
    Index,
}

/// One condition under which a run has failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    pub(crate) metric: Metric,
    is_above: bool,
    limit: f64,
    pub(crate) unit: Unit,
}

impl Threshold {
    /// Has a run with this figure failed?
    pub(crate) fn is_crossed(&self, value: f64) -> bool {
        if self.is_above {
            value > self.limit
        } else {
            value < self.limit
        }
    }

    /// The limit in nanoseconds, where it is one of a percentile or of the longest time.
    pub(crate) fn percentile_limit(&self) -> Option<f64> {
        let is_time = matches!(self.metric, Metric::Percentile(_) | Metric::Max);
        is_time.then_some(self.limit)
    }

    /// A figure in the threshold's unit, for people.
    pub(crate) fn shown(&self, value: Option<f64>) -> String {
        match (value, self.unit) {
            (None, _) => "not measured".to_owned(),
            (Some(ns), Unit::Nanoseconds) => time(ns),
            (Some(percent), Unit::Percent) => format!("{percent:.3} %"),
            (Some(count), Unit::Count) => format!("{count:.0}"),
            (Some(index), Unit::Index) => format!("{index:.3}"),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let wrong = || {
            let names: Vec<&str> = METRICS.iter().map(|(name, ..)| *name).collect();
            format!(
                "{text:?} is no threshold; write a figure (p50, p99, p99.9, {}), < or >, and a \
                 limit, such as 'p99>50ms', 'errors>0.1%' or 'rate<5000'",
                names.join(", ")
            )
        };
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, limit) = (text[..at].trim(), text[at + 1..].trim());
        let metric = metric(name).ok_or_else(wrong)?;
        let (limit, unit) = match metric {
            Metric::Rate => (plain_number(limit), Unit::Count),
            Metric::Fairness => (
                plain_number(limit).filter(|index| *index <= 1.0),
                Unit::Index,
            ),
            Metric::Errors | Metric::Late => match limit.strip_suffix('%') {
                Some(share) => (plain_number(share.trim()), Unit::Percent),
                None => (plain_number(limit), Unit::Count),
            },
            _ => {
                let time = parse_duration(limit).ok();
                (time.map(|time| time.as_nanos() as f64), Unit::Nanoseconds)
            }
        };
        Ok(Threshold {
            text: text.to_owned(),
            metric,
            is_above: text.as_bytes()[at] == b'>',
            limit: limit.ok_or_else(wrong)?,
            unit,
        })
    }
}

fn metric(name: &str) -> Option<Metric> {
    if let Some(percent) = name.strip_prefix('p') {
        let percent = plain_number(percent)?;
        return (percent > 0.0 && percent <= 100.0).then_some(Metric::Percentile(percent));
    }
    let found = METRICS.iter().find(|(known, ..)| *known == name);
    found.map(|(_, metric, _)| *metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_has_a_figure_a_side_and_a_limit() {
        let threshold: Threshold = "p99>50ms".parse().unwrap();
        assert_eq!(threshold.metric, Metric::Percentile(99.0));
        assert!(threshold.is_crossed(50_000_001.0) && !threshold.is_crossed(50_000_000.0));
        let threshold: Threshold = "rate<5000".parse().unwrap();
        assert!(threshold.is_crossed(4999.9) && !threshold.is_crossed(5000.0));
        let threshold: Threshold = "errors > 0.1%".parse().unwrap();
        assert_eq!((threshold.unit, threshold.limit), (Unit::Percent, 0.1));
        assert_eq!(threshold.to_string(), "errors > 0.1%");
    }

    #[test]
    fn threshold_that_makes_no_sense_is_refused() {
        for wrong in [
            "",
            "p99",
            "p99>",
            "p0>1s",
            "p101>1s",
            "p99>5",
            "rate<5s",
            "foo>1",
            "mean>1%",
            "fairness<2",
            "fairness<90%",
            "fairness<1s",
        ] {
            assert!(wrong.parse::<Threshold>().is_err(), "{wrong}");
        }
    }
}
