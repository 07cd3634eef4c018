//! A line on standard error every so often, for logs and for terminals that know no more.

use std::io::{self, Write};
use std::time::Duration;

use super::Glance;
use crate::page::{count, rate, time};

/// From when on a time without an answer that is over, or not as long as a line, is told.
const STALLED: Duration = Duration::from_millis(500);

/// Writes one line; no answer came for so long since the last one.
pub(super) fn write(glance: &Glance<'_>, stalled: Duration) {
    // Nobody who reads is no reason to end the run.
    let _ = writeln!(io::stderr(), "{}", line(glance, stalled));
}

fn line(glance: &Glance<'_>, stalled: Duration) -> String {
    let passed = glance.passed.as_secs_f64();
    let counts = glance.live.counts();
    let whole = glance.plan.duration;
    let whole = whole.map(|duration| (duration + glance.plan.warm_up).as_secs_f64());
    let mut text = match whole {
        Some(whole) => format!("{passed:.0} of {whole:.0} s"),
        None => format!("{passed:.0} s"),
    };
    if glance.passed < glance.plan.warm_up {
        text.push_str(", warming up");
        return text;
    }
    text.push_str(&format!(
        ", {} answered, {} failed",
        count(counts.answered),
        count(counts.failed)
    ));
    if counts.backlog > 0 {
        text.push_str(&format!(", {} wait", count(counts.backlog)));
    }
    if let Some(silence) = glance.silence() {
        text.push_str(&format!(", {silence}"));
        return text;
    }
    let series = glance.live.series();
    let last = series.as_ref().and_then(|series| series.intervals().last());
    if let (Some(last), Some(series)) = (last, &series) {
        let per_second = last.answered as f64 * 1e9 / series.width_ns() as f64;
        text.push_str(&format!(", {}/s", rate(per_second)));
        if let (Some(p50), Some(p99)) = (last.percentile(50.0), last.percentile(99.0)) {
            let (p50, p99) = (time(p50 as f64), time(p99 as f64));
            text.push_str(&format!(", p50 {p50}, p99 {p99}"));
        }
    }
    // Else a second with few answers looks as if few requests had been sent.
    if stalled >= STALLED {
        let seconds = stalled.as_secs_f64();
        text.push_str(&format!(", no answer for {seconds:.1} s meanwhile"));
    }
    text
}
