//! The histograms of a result: times of the whole run, and what happened when.

use serde_json::Value;

use super::SavedResult;
use crate::limits::{DURATION_MAX, INTERVAL_COUNT_MAX};
use crate::measure::{Interval, IntervalSeries, Latency};

impl SavedResult {
    /// The times at a path; empty where there are none.
    pub(super) fn times(&self, path: &str) -> Result<Latency, String> {
        times_of(self.at(path)).ok_or_else(|| format!("{path} has no histogram that can be read"))
    }

    pub(super) fn series(&self) -> Result<IntervalSeries, String> {
        let width = self.number("series.interval_s").unwrap_or(1.0);
        let is_width = (1.0..=DURATION_MAX.as_secs_f64()).contains(&width)
            && width.fract() == 0.0
            && (width as u64).is_power_of_two();
        if !is_width {
            return Err(format!(
                "series.interval_s is {width}, and not a power of two"
            ));
        }
        let counts = |path| {
            self.list(path)
                .iter()
                .map(|count| count.as_u64().unwrap_or(0))
        };
        let histograms = self.list("series.histograms");
        if histograms.len() > INTERVAL_COUNT_MAX {
            return Err(format!(
                "series has more than {INTERVAL_COUNT_MAX} stretches"
            ));
        }
        let all = counts("series.answered")
            .zip(counts("series.good"))
            .zip(counts("series.failed"))
            .zip(histograms.iter());
        let read = all.map(|(((answered, good), failed), histogram)| {
            let histogram = histogram.as_str().unwrap_or_default();
            Interval::read([answered, good, failed], histogram)
        });
        let intervals: Option<Vec<Interval>> = read.collect();
        let intervals = intervals.ok_or("series.histograms has one that cannot be read")?;
        Ok(IntervalSeries::of((width * 1e9) as u64, intervals))
    }
}

/// The histogram of an object of times; empty where that is null.
pub(super) fn times_of(value: &Value) -> Option<Latency> {
    let mut times = Latency::new();
    if !value.is_null() {
        times.add_text(value["histogram"].as_str()?)?;
    }
    Some(times)
}
