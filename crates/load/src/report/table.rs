//! The result as plain text.

use std::fmt::Write;

use super::BenchReport;
use super::pages;
use super::verdict;
use crate::arrive::Arrivals;
use crate::measure::{Latency, PartTally};
use crate::page::{bytes, count, rate, time};
use crate::plan::{LoadModel, Reuse};

/// The percentiles a table shows.
const PERCENTILES: &[f64] = &[50.0, 90.0, 99.0, 99.9];
/// URLs a table lists; JSON has all.
const CLASS_COUNT_MAX: usize = 20;

/// Writes the whole.
pub(super) fn write(report: &BenchReport) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = setting(&mut text, report);
    let _ = totals(&mut text, report);
    let _ = times(&mut text, report);
    let _ = parts(&mut text, report);
    let _ = failures(&mut text, report);
    let _ = costs(&mut text, report);
    let _ = verdicts(&mut text, report);
    text
}

fn setting(text: &mut String, report: &BenchReport) -> std::fmt::Result {
    let plan = &report.plan;
    let more = match plan.entries.len() {
        1 => String::new(),
        _ if report.log.is_some() => String::new(),
        urls => format!(" and {} more", urls - 1),
    };
    let first = &plan.entries[0].url.text;
    writeln!(text, "{first}{more} at {}", report.address)?;
    let pace = match &plan.pace {
        LoadModel::Closed { think } if think.is_zero() => "closed loop".to_owned(),
        LoadModel::Closed { think } => {
            format!("closed loop, {} to think", time(think.as_nanos() as f64))
        }
        LoadModel::Open {
            rate,
            arrivals: Arrivals::Constant,
            ..
        } => format!("open loop, {} {}/s", rate.text(), report.plan.noun()),
        LoadModel::Open { rate, .. } => {
            let noun = report.plan.noun();
            format!("open loop, {} {noun}/s (Poisson)", rate.text())
        }
        LoadModel::Log(replay) => format!("open loop, {}", replay.title()),
    };
    let (maker, reuse) = match (plan.page, plan.reuse) {
        (Some(visit), _) => ("visitor", visit.name()),
        (None, Reuse::KeepAlive) => ("connection", "kept"),
        (None, Reuse::PerRequest) => ("connection", "one per request"),
    };
    let streams = match plan.streams {
        1 => String::new(),
        streams => format!(" with {streams} streams each"),
    };
    writeln!(
        text,
        "{}, {pace}, {} ({reuse}){streams}, {}{}",
        plan.protocol.title(),
        plural(plan.connections as u64, maker),
        plural(plan.threads as u64, "thread"),
        match plan.cpus.is_empty() {
            true => String::new(),
            false => format!(" on CPU {:?}", plan.cpus),
        },
    )?;
    let interrupted = match (report.is_interrupted, &report.stopped) {
        (true, _) => ", then interrupted",
        (false, Some(_)) => ", then ended early",
        (false, None) => "",
    };
    writeln!(
        text,
        "measured for {:.2} s after a warm-up of {:.2} s{interrupted}\n",
        report.elapsed(),
        report.warm_ns as f64 / 1e9
    )
}

fn totals(text: &mut String, report: &BenchReport) -> std::fmt::Result {
    let tally = &report.tally;
    if let Some(log) = &report.log {
        writeln!(text, "log        {}", log.told())?;
    }
    write!(
        text,
        "{:<10} {}, {} answered, {} failed",
        report.plan.noun(),
        count(tally.due),
        count(tally.answered),
        count(report.failed())
    )?;
    if tally.broken_off > 0 {
        write!(text, ", {} broken off", count(tally.broken_off))?;
    }
    if report.unfinished() > 0 {
        write!(text, ", {} unfinished", count(report.unfinished()))?;
    }
    write!(
        text,
        "\nrate       {}/s",
        rate(report.per_second(tally.answered))
    )?;
    if let Some(offered) = report.offered() {
        write!(text, " of {}/s due", rate(offered))?;
    }
    writeln!(
        text,
        "\nreceived   {} ({}/s), bodies {}",
        bytes(tally.received_bytes as f64),
        bytes(report.per_second(tally.received_bytes)),
        bytes(tally.body_bytes as f64)
    )?;
    if let Some(terms) = &tally.tls {
        let (full, resumed) = (
            count(tally.handshakes_full),
            count(tally.handshakes_resumed),
        );
        writeln!(
            text,
            "TLS        {terms}, handshakes: {full} full, {resumed} resumed"
        )?;
    }
    let statuses = tally
        .statuses
        .iter()
        .zip(100..)
        .filter(|(count, _)| **count > 0);
    let statuses: Vec<String> = statuses
        .map(|(number, status): (&u64, u16)| format!("{status}: {}", count(*number)))
        .collect();
    if !statuses.is_empty() {
        writeln!(text, "status     {}", statuses.join(", "))?;
    }
    Ok(())
}

fn times(text: &mut String, report: &BenchReport) -> std::fmt::Result {
    let tally = &report.tally;
    write!(text, "\n{:<10} {:>9} {:>9}", "", "mean", "min")?;
    for percent in PERCENTILES {
        write!(text, " {:>9}", format!("p{percent}"))?;
    }
    writeln!(text, " {:>9}", "max")?;
    row(text, "response", &tally.response)?;
    row(text, "service", &tally.service)?;
    row(text, "connect", &tally.connect)?;
    match &tally.page {
        None => Ok(()),
        Some(all) => {
            row(text, "first byte", &all.first_byte)?;
            pages::table(text, all, report.page_totals())
        }
    }
}

/// One line of times; none where there are no times.
fn row(text: &mut String, name: &str, times: &Latency) -> std::fmt::Result {
    if times.count() == 0 {
        return Ok(());
    }
    write!(
        text,
        "{name:<10} {:>9} {:>9}",
        time(times.mean()),
        time(times.min() as f64)
    )?;
    for percent in PERCENTILES {
        write!(text, " {:>9}", time(times.percentile(*percent) as f64))?;
    }
    writeln!(text, " {:>9}", time(times.max() as f64))
}

fn parts(text: &mut String, report: &BenchReport) -> std::fmt::Result {
    let tally = &report.tally;
    if !tally.steps.is_empty() {
        writeln!(text, "\nby step of the rate: answered, failed, and times")?;
    }
    for (number, step) in tally.steps.iter().enumerate() {
        part(text, &format!("step {}", number + 1), step)?;
    }
    if !tally.classes.is_empty() {
        let what = if report.log.is_some() {
            "method"
        } else {
            "URL"
        };
        writeln!(text, "\nby {what}: answered, failed, and times")?;
    }
    let rows = report.rows();
    for (class, row) in tally.classes.iter().zip(&rows).take(CLASS_COUNT_MAX) {
        part(text, &row.name, class)?;
    }
    if tally.classes.len() > CLASS_COUNT_MAX {
        let more = tally.classes.len() - CLASS_COUNT_MAX;
        writeln!(text, "... and {more} more; --json has all")?;
    }
    Ok(())
}

/// A part of the requests: how many, what failed, and how long they took.
fn part(text: &mut String, name: &str, part: &PartTally) -> std::fmt::Result {
    let failed = part.failures.count();
    write!(text, "{name}: {} {}", count(part.answered), count(failed))?;
    let kinds = part.failures.all();
    let kinds: Vec<String> = kinds
        .map(|(kind, number, _)| format!("{kind} {}", count(number)))
        .collect();
    match kinds.is_empty() {
        true => writeln!(text)?,
        false => writeln!(text, " ({})", kinds.join(", "))?,
    }
    row(text, "response", &part.response)?;
    row(text, "service", &part.service)?;
    match part.fairness() {
        Some(fairness) => writeln!(text, "{:<10} {fairness:.3} over connections", "fairness"),
        None => Ok(()),
    }
}

fn failures(text: &mut String, report: &BenchReport) -> std::fmt::Result {
    if report.failed() > 0 {
        writeln!(text, "\nfailures")?;
    }
    for (kind, number, example) in report.tally.failures.all() {
        writeln!(text, "{kind:<10} {:>9}  first: {example}", count(number))?;
    }
    Ok(())
}

fn costs(text: &mut String, report: &BenchReport) -> std::fmt::Result {
    let machine = &report.machine;
    let client = report.client_cpu_us();
    if let Some(client) = client {
        let each = match report.plan.page {
            None => "CPU/request ",
            Some(_) => "CPU/page    ",
        };
        write!(text, "\n{each} {client:.2} us here")?;
        if let (Some(server), Some(pid)) = (report.server_cpu_us(), report.plan.pid) {
            write!(text, ", {server:.2} us of process {pid} and below")?;
            let memory = machine.memory_bytes.map(|memory| bytes(memory as f64));
            write!(
                text,
                "{}",
                memory.map_or(String::new(), |memory| format!(" ({memory})"))
            )?;
        }
        if let Some(cgroup) = report.cgroup_cpu_us() {
            write!(text, ", {cgroup:.2} us of the control group")?;
            if let Some(memory) = machine.cgroup_memory_bytes {
                write!(text, " ({})", bytes(memory as f64))?;
            }
        }
        writeln!(text)?;
    }
    writeln!(
        text,
        "CPU busy     {:.0} % of the busiest thread here, {:.0} % of the machine, {:.1} % stolen",
        report.tally.busy_share * 100.0,
        machine.busy_percent,
        machine.steal_percent
    )?;
    if report.is_open() {
        writeln!(
            text,
            "on time      {} sent late here, {} waited for a connection",
            count(report.tally.late),
            count(report.tally.waited)
        )?;
    }
    if let Some(fairness) = report
        .tally
        .fairness()
        .filter(|_| report.plan.connections > 1)
    {
        writeln!(
            text,
            "fairness     {fairness:.3} over {} (Jain; 1 is even)",
            report.plan.makers()
        )?;
    }
    addresses(text, report)?;
    match report.fairness_by_weight() {
        Some(fairness) => writeln!(
            text,
            "fairness     {fairness:.3} over URLs, answers beside weights (Jain; 1 is even)"
        ),
        None => Ok(()),
    }
}

/// How evenly client addresses were answered, where there are several.
fn addresses(text: &mut String, report: &BenchReport) -> std::fmt::Result {
    let all = report.addresses();
    let (Some(least), Some(most)) = (
        all.iter().min_by_key(|one| one.answered),
        all.iter().max_by_key(|one| one.answered),
    ) else {
        return Ok(());
    };
    let fairness = report.fairness_over_addresses();
    let fairness = fairness.map_or_else(|| "none".to_owned(), |index| format!("{index:.3}"));
    writeln!(
        text,
        "fairness     {fairness} over {} client addresses: {} got {}, {} got {}",
        all.len(),
        least.address,
        count(least.answered),
        most.address,
        count(most.answered)
    )
}

fn verdicts(text: &mut String, report: &BenchReport) -> std::fmt::Result {
    let notes = verdict::notes(report);
    let thresholds = verdict::thresholds(report);
    if !notes.is_empty() || !thresholds.is_empty() {
        writeln!(text)?;
    }
    for note in &notes {
        let kind = if note.is_doubt { "doubtful" } else { "note" };
        writeln!(text, "{kind}: {}", note.text)?;
    }
    for judged in &thresholds {
        let outcome = if judged.is_crossed {
            "FAILED"
        } else {
            "passed"
        };
        writeln!(
            text,
            "{outcome}: {} is {}",
            judged.threshold,
            verdict::shown(judged)
        )?;
    }
    Ok(())
}

fn plural(number: u64, word: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{} {word}{end}", count(number))
}
