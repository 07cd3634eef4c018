//! Histograms as files that HdrHistogram's own tools read: a log (`.hlog`) or percentiles
//! (`.hgrm`).

use super::SavedResult;
use crate::measure::Latency;

/// Lines of percentiles from one halving of what is left to the next.
const TICKS_PER_HALVING: u32 = 5;

/// The times that a result has, by name.
const KINDS: &[&str] = &["response", "service", "connect"];

impl SavedResult {
    /// A log of histograms in nanoseconds: one over the whole run for each kind of time, with its
    /// name as a tag, and the response times of each stretch with the tag `interval`.
    pub fn hdr_log(&self) -> Result<String, String> {
        let begun =
            self.count("begun_at_ms") as f64 / 1e3 + self.number("plan.warm_up_s").unwrap_or(0.0);
        let elapsed = self.number("elapsed_s").unwrap_or(0.0);
        let mut log = format!(
            "#[Histogram log format version 1.3]\n#[StartTime: {begun:.3} (seconds since epoch)]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        );
        let mut line = |tag: &str, from: f64, length: f64, max_ns: f64, histogram: &str| {
            let max_ms = max_ns / 1e6;
            log.push_str(&format!(
                "Tag={tag},{from:.3},{length:.3},{max_ms:.3},{histogram}\n"
            ));
        };
        for kind in KINDS {
            let times = self.at(&format!("latency.{kind}"));
            if let (Some(max), Some(histogram)) =
                (times["max_us"].as_f64(), times["histogram"].as_str())
            {
                line(kind, begun, elapsed, max * 1e3, histogram);
            }
        }
        let series = self.series()?;
        let width = series.width_ns() as f64 / 1e9;
        for (index, interval) in series.intervals().iter().enumerate() {
            let from = begun + index as f64 * width;
            let max = interval.percentile(100.0).unwrap_or(0) as f64;
            line("interval", from, width, max, &interval.histogram());
        }
        Ok(log)
    }

    /// Percentiles of the response times in milliseconds, as HdrHistogram prints them.
    pub fn hdr_percentiles(&self) -> Result<String, String> {
        Ok(percentiles(&self.times("latency.response")?))
    }
}

fn percentiles(times: &Latency) -> String {
    let ms = |ns: f64| ns / 1e6;
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for (share, ns, count) in times.steps(TICKS_PER_HALVING) {
        text.push_str(&format!("{:12.3} {share:2.12} {count:10}", ms(ns)));
        if share < 1.0 {
            text.push_str(&format!(" {:14.2}", 1.0 / (1.0 - share)));
        }
        text.push('\n');
    }
    text.push_str(&format!(
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n\
         #[Max     = {:12.3}, Total count    = {:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]\n",
        ms(times.mean()),
        ms(times.deviation()),
        ms(times.max() as f64),
        times.count(),
        times.buckets().0,
        times.buckets().1
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_end_with_the_longest() {
        let mut times = Latency::new();
        for ms in 1..=1000 {
            times.record(ms * 1_000_000);
        }
        let text = percentiles(&times);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].trim().starts_with("1.000 0.0000"), "{text}");
        let last = lines.iter().rfind(|line| !line.starts_with('#')).unwrap();
        assert_eq!(
            last.split_whitespace().nth(1),
            Some("1.000000000000"),
            "{text}"
        );
        assert_eq!(last.split_whitespace().nth(2), Some("1000"), "{text}");
        assert!(text.contains("Total count    =         1000]"), "{text}");
    }
}
