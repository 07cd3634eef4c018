//! Whether a result can be believed, and whether it is good enough.

use super::BenchReport;
use crate::limits::{ASSET_COUNT_MAX, DOCUMENT_BYTES_MAX};
use crate::measure::PageCount;
use crate::threshold::{Metric, Threshold, Unit};

/// A thread that is busy for more of its time may have been the limit itself.
const BUSY_SHARE_MAX: f64 = 0.9;
/// Percent of requests that may be sent late.
const LATE_PERCENT_MAX: f64 = 0.1;
/// Percent of the CPU time that the host may give to others.
const STEAL_PERCENT_MAX: f64 = 1.0;
/// Percent of the CPU time of the machine that may be used.
const BUSY_PERCENT_MAX: f64 = 95.0;
/// Percent of the rate asked for that must be reached.
const RATE_PERCENT_MIN: f64 = 99.0;

/// What is to be said about a result.
pub(super) struct Note {
    /// The figures tell of the load generator or the machine more than of the server.
    pub(super) is_doubt: bool,
    pub(super) text: String,
}

/// A threshold and what came of it.
pub(super) struct Judged<'a> {
    pub(super) threshold: &'a Threshold,
    /// The figure, in the threshold's unit; none when it was not measured.
    pub(super) value: Option<f64>,
    pub(super) is_crossed: bool,
}

/// Looks for what else than the server may have been the limit.
pub(super) fn notes(report: &BenchReport) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut doubt = |text: String| {
        notes.push(Note {
            is_doubt: true,
            text,
        });
    };
    let tally = &report.tally;
    if tally.busy_share > BUSY_SHARE_MAX {
        doubt(format!(
            "a thread of the load generator was busy for {:.0} % of its time and may have been the \
             limit; try more --threads, or a lower --rate",
            tally.busy_share * 100.0
        ));
    }
    let late = report.percent_of_due(tally.late);
    let (noun, maker) = (
        report.plan.noun(),
        report.plan.makers().trim_end_matches('s'),
    );
    if late > LATE_PERCENT_MAX {
        doubt(format!(
            "{late:.1} % of the {noun} were sent more than 1 ms late, with a {maker} free: the \
             load generator did not get the CPU in time"
        ));
    }
    if report.machine.steal_percent > STEAL_PERCENT_MAX {
        doubt(format!(
            "the host kept {:.1} % of the CPU time for others (steal); repeat when it is quieter",
            report.machine.steal_percent
        ));
    }
    if report.machine.busy_percent > BUSY_PERCENT_MAX {
        doubt(format!(
            "all CPUs of this machine were busy ({:.0} %): load generator and server may have \
             competed; compare CPU time per request (--pid), not rates",
            report.machine.busy_percent
        ));
    }
    if let Some(error) = report.log.as_ref().and_then(|log| log.error.as_ref())
        && report.has_log_ended()
    {
        doubt(format!("the log breaks off: {error}"));
    }
    if let Some(page) = &tally.page {
        page_doubts(page).for_each(&mut doubt);
    }
    let mut remark = |text: String| {
        notes.push(Note {
            is_doubt: false,
            text,
        });
    };
    remarks(report).into_iter().for_each(&mut remark);
    notes
}

/// What of pages was not looked at.
fn page_doubts(page: &PageCount) -> impl Iterator<Item = String> {
    let all = [
        (
            page.left_out,
            "assets beyond what is loaded of one page were left out",
        ),
        (
            page.cut,
            "documents or stylesheets were longer than is looked at",
        ),
    ];
    let all = all.into_iter().filter(|(number, _)| *number > 0);
    all.map(|(number, what)| {
        format!(
            "{number} {what} (at most {ASSET_COUNT_MAX} assets, {} MiB of a text)",
            DOCUMENT_BYTES_MAX >> 20
        )
    })
}

/// What is to be known besides.
fn remarks(report: &BenchReport) -> Vec<String> {
    let tally = &report.tally;
    let mut remarks = Vec::new();
    if let Some(stopped) = &report.stopped {
        remarks.push(format!("the run was ended early: {stopped}"));
    }
    if let Some(log) = &report.log {
        remarks.extend(log.notes());
        let unread = log.error.iter().filter(|_| !report.has_log_ended());
        remarks.extend(unread.map(|error| format!("the log was not read to its end: {error}")));
    }
    let waited = report.percent_of_due(tally.waited);
    let (noun, maker) = (
        report.plan.noun(),
        report.plan.makers().trim_end_matches('s'),
    );
    if waited > LATE_PERCENT_MAX {
        remarks.push(format!(
            "{waited:.1} % of the {noun} waited more than 1 ms for a {maker}: the server was \
             slower than the rate, or more --connections are needed; their response times count"
        ));
    }
    if let Some(offered) = report.offered() {
        let reached = report.per_second(tally.answered) * 100.0 / offered.max(f64::MIN_POSITIVE);
        if reached < RATE_PERCENT_MIN && !report.is_cut_short() {
            remarks.push(format!("{reached:.1} % of the rate asked for was answered"));
        }
    }
    if report.conduct.cgroup.is_some() && report.machine.cgroup_cpu_ns.is_none() {
        remarks.push("the control group could not be watched from beginning to end".to_owned());
    }
    if report.plan.pid.is_some() && report.machine.cpu_ns.is_none() {
        remarks.push("the process of --pid could not be watched from beginning to end".to_owned());
    }
    remarks
}

/// Holds the result against the thresholds.
pub(super) fn thresholds(report: &BenchReport) -> Vec<Judged<'_>> {
    let judge = |threshold| {
        let value = value(report, threshold);
        Judged {
            threshold,
            value,
            // What could not be measured cannot be said to hold.
            is_crossed: value.is_none_or(|value| threshold.is_crossed(value)),
        }
    };
    report.plan.thresholds.iter().map(judge).collect()
}

/// The figure of a judged threshold for people.
pub(super) fn shown(judged: &Judged<'_>) -> String {
    judged.threshold.shown(judged.value)
}

fn value(report: &BenchReport, threshold: &Threshold) -> Option<f64> {
    let tally = &report.tally;
    let response = Some(&tally.response).filter(|response| response.count() > 0);
    let share = |count: u64| match threshold.unit {
        Unit::Percent => report.percent_of_due(count),
        _ => count as f64,
    };
    match threshold.metric {
        Metric::Percentile(percent) => response.map(|times| times.percentile(percent) as f64),
        Metric::Min => response.map(|times| times.min() as f64),
        Metric::Mean => response.map(|times| times.mean()),
        Metric::Max => response.map(|times| times.max() as f64),
        Metric::Connect => {
            (tally.connect.count() > 0).then(|| tally.connect.percentile(99.0) as f64)
        }
        Metric::Errors => Some(share(report.failed())),
        Metric::Rate => Some(report.per_second(tally.good)),
        Metric::Late => Some(share(tally.late)),
        Metric::Fairness => report
            .fairness_over_addresses()
            .or_else(|| tally.fairness()),
        Metric::ServerCpu => {
            let cpu = report.server_cpu_us().or(report.cgroup_cpu_us());
            cpu.map(|us| us * 1e3)
        }
    }
}
