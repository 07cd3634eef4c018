//! One comparison from plan to report.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::address::TargetAddress;
use crate::distant::TargetMachine;
use crate::error::CompareError;
use crate::instance::LaunchContext;
use crate::link::ComparisonLink;
use crate::machine::Machine;
use crate::measure::{Budget, ComparisonRun, RowMeasurement};
use crate::plan::ComparisonPlan;
use crate::preparation::{
    ComparisonCpus, EndAll, Preparation, all, around, become_subreaper, found, listen, wants,
};
use crate::progress::ProgressPrinter;
use crate::report::{ComparisonReport, TargetFacts, claimed_cells};
use crate::rows::{ComparisonRow, Scope, chosen};
use crate::running::ServerPlace;
use crate::server::{Installed, Missing};
use crate::site::{ComparisonSite, ScratchFolder};

/// Time for all rows, with what starting and warming up takes kept back, and for one.
const QUICK: (Duration, Duration) = (Duration::from_secs(95), Duration::from_secs(10));
const USUAL: (Duration, Duration) = (Duration::from_secs(9 * 60), Duration::from_secs(20));
const FULL: (Duration, Duration) = (Duration::from_secs(27 * 60), Duration::from_secs(40));

/// Makes a comparison. Interrupted by SIGINT or SIGTERM, it reports what there is so far; whatever
/// happens, what it started ends with it, and its folder goes.
///
/// # Errors
/// Nothing can be compared, and whose fault that is.
pub fn compare(plan: &ComparisonPlan) -> Result<ComparisonReport, CompareError> {
    let is_stopped = listen()?;
    let begun = (SystemTime::now(), Instant::now());
    let report = match &plan.target {
        Some(address) => there(plan, address, &is_stopped)?,
        None => here(plan, &is_stopped)?,
    };
    Ok(ComparisonReport {
        begun_at: begun.0,
        elapsed: begun.1.elapsed(),
        is_interrupted: is_stopped.load(Ordering::Relaxed),
        ..report
    })
}

/// With servers on this machine.
fn here(
    plan: &ComparisonPlan,
    is_stopped: &Arc<AtomicBool>,
) -> Result<ComparisonReport, CompareError> {
    become_subreaper()?;
    let preparation = Preparation::make(plan)?;
    // Dropped before the folder: then nobody writes into it any more.
    let ended = EndAll::default();
    let cpus = ComparisonCpus::find()?;
    let link = plan.link;
    let link = link.map(|link| ComparisonLink::make(link, cpus.link));
    let link = link.transpose().map_err(CompareError::Link)?;
    let mut machine = Machine::look();
    cpus.tell(&mut machine);
    let told = plan.link.map_or(String::new(), |link| link.to_string());
    machine.add("link", told);
    let place = ServerPlace::Here(LaunchContext {
        program: &plan.program,
        folder: preparation.folder.path(),
        site: &preparation.site,
        settings: plan.settings,
        address: Ipv4Addr::LOCALHOST,
        cpu: cpus.server,
        link_cpu: cpus.link,
        link: link.as_ref(),
        is_stopped,
        groups: &ended.groups,
    });
    let (servers, rows) = (&preparation.servers, &preparation.rows);
    let mut comparison = run(plan, is_stopped, place, (cpus.client, servers));
    let measured = measured(&mut comparison, rows, &mut machine);
    Ok(ComparisonReport {
        configurations: std::mem::take(&mut comparison.shown),
        lacks: preparation.site.lacks.clone(),
        servers: servers.clone(),
        missing: preparation.missing.clone(),
        rows: measured,
        has_one_cpu: cpus.server == cpus.client,
        link: plan.link,
        ..ComparisonReport::new(plan, machine)
    })
}

/// With servers on another machine.
fn there(
    plan: &ComparisonPlan,
    address: &TargetAddress,
    is_stopped: &Arc<AtomicBool>,
) -> Result<ComparisonReport, CompareError> {
    let cpus = ComparisonCpus::find()?;
    let mut target = TargetMachine::connect(address, is_stopped)?;
    let prepared = target.prepare(plan)?;
    let facts = TargetFacts {
        address: address.to_string(),
        round_trip: target.round_trip().unwrap_or_default(),
        card_bits_per_second: target.card_bits_per_second(prepared.machine.card_bits_per_second),
        lost: None,
    };
    let mut machine = Machine::look();
    machine.add("client's CPU", cpus.client.to_string());
    machine.add("servers' machine", prepared.machine.text());
    let target = Rc::new(RefCell::new(target));
    let place = ServerPlace::There(Rc::clone(&target));
    let mut comparison = run(plan, is_stopped, place, (cpus.client, &prepared.servers));
    let measured = measured(&mut comparison, &prepared.rows, &mut machine);
    machine.load_before = machine.load_before.max(prepared.machine.load_before);
    Ok(ComparisonReport {
        configurations: std::mem::take(&mut comparison.shown),
        lacks: prepared.lacks,
        servers: prepared.servers.clone(),
        missing: prepared.missing,
        rows: measured,
        target: Some(TargetFacts {
            lost: target.borrow().lost(),
            ..facts
        }),
        ..ComparisonReport::new(plan, machine)
    })
}

/// A comparison that has not begun.
fn run<'a>(
    plan: &ComparisonPlan,
    is_stopped: &'a Arc<AtomicBool>,
    place: ServerPlace<'a>,
    (client_cpu, servers): (usize, &'a [Installed]),
) -> ComparisonRun<'a> {
    ComparisonRun {
        place,
        client_cpu,
        servers,
        is_stopped,
        budget: Budget::new(times(plan.scope), plan.round, plan.rounds),
        claimed: match plan.scope {
            Scope::Full => claimed_cells().into_iter().map(|(row, _)| row).collect(),
            Scope::Quick | Scope::Usual => BTreeSet::new(),
        },
        running: BTreeMap::new(),
        started: 0,
        shown: BTreeMap::new(),
        account: None,
    }
}

fn measured(
    comparison: &mut ComparisonRun<'_>,
    rows: &[ComparisonRow],
    machine: &mut Machine,
) -> Vec<RowMeasurement> {
    let mut progress = ProgressPrinter::new();
    let measured = comparison.measure(rows, &mut progress);
    progress.clear();
    let account = comparison.account.unwrap_or("nothing");
    machine.add("CPU time from", account.to_owned());
    measured
}

fn times(scope: Scope) -> (Duration, Duration) {
    match scope {
        Scope::Quick => QUICK,
        Scope::Usual => USUAL,
        Scope::Full => FULL,
    }
}

/// The rows there are, a line each, with the smallest scope that has them. Interrupted by SIGINT
/// or SIGTERM, it takes its folder away all the same.
pub fn list(plan: &ComparisonPlan) -> Result<String, CompareError> {
    let is_stopped = listen()?;
    let (servers, missing) = found(plan)?;
    let folder = ScratchFolder::make(&plan.temporary)?;
    let site = ComparisonSite::write(folder.path(), &around(plan), wants(plan))?;
    if is_stopped.load(Ordering::Relaxed) {
        return Err(CompareError::Interrupted);
    }
    let mut text = String::new();
    let rows = chosen(all(plan, &servers, &site), Scope::Full, &plan.only);
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
    for row in rows {
        let scope = row.scope.name();
        // Writing into a string does not go wrong.
        let _ = writeln!(text, "{scope:5}  {:width$}  {}", row.id, row.title);
    }
    let _ = writeln!(text);
    for server in servers {
        let _ = writeln!(
            text,
            "{} {} ({})",
            server.name,
            server.version,
            server.program.display()
        );
    }
    for Missing { name, why, .. } in missing {
        let _ = writeln!(text, "{name} is not compared: {why}");
    }
    Ok(text)
}
