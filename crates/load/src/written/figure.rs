//! The figures of a result that thresholds and comparisons look at.

use super::SavedResult;
use crate::threshold::{Metric, Threshold, Unit};

impl SavedResult {
    /// A figure in the unit of a threshold; none where it was not measured.
    pub(super) fn figure(&self, metric: Metric, unit: Unit) -> Option<f64> {
        let share = |count: u64| match unit {
            Unit::Percent => Some(count as f64 * 100.0 / self.count("requests.due").max(1) as f64),
            _ => Some(count as f64),
        };
        let ns = |path: &str| self.number(path).map(|us| us * 1e3);
        let percentile = |path: &str, percent: f64| {
            let times = self.times(path).ok().filter(|times| times.count() > 0)?;
            Some(times.percentile(percent) as f64)
        };
        match metric {
            Metric::Percentile(percent) => percentile("latency.response", percent),
            Metric::Min => ns("latency.response.min_us"),
            Metric::Mean => ns("latency.response.mean_us"),
            Metric::Max => ns("latency.response.max_us"),
            Metric::Connect => percentile("latency.connect", 99.0),
            Metric::Errors => share(self.count("requests.failed")),
            Metric::Late => share(self.count("requests.late")),
            Metric::Rate => {
                let elapsed = self.number("elapsed_s").filter(|elapsed| *elapsed > 0.0)?;
                Some(self.count("requests.good") as f64 / elapsed)
            }
            Metric::Fairness => {
                let addresses = self.number("fairness_addresses");
                addresses.or_else(|| self.number("fairness"))
            }
            Metric::ServerCpu => {
                let process = ns("server.cpu_us_per_request");
                process.or_else(|| ns("server.cgroup_cpu_us_per_request"))
            }
        }
    }

    /// A threshold's figure, and whether the result has failed it.
    pub(super) fn judged(&self, threshold: &Threshold) -> (Option<f64>, bool) {
        let value = self.figure(threshold.metric, threshold.unit);
        // What could not be measured cannot be said to hold.
        (value, value.is_none_or(|value| threshold.is_crossed(value)))
    }

    /// Was a threshold crossed?
    pub fn has_failed(&self) -> bool {
        let all = self.list("thresholds").iter();
        all.into_iter().any(|one| one["crossed"] != false)
    }
}
