//! Folders and files of the server itself, logs and the control socket that it opens, and limits
//! that the system may not give.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use rustix::io::Errno;
use rustix::process::{Resource, getpriority_process, getrlimit};
use rustix::thread::{CapabilitySet, CpuSet, capabilities, sched_getaffinity, sched_setaffinity};

use super::sight::{AccountAccess, Denied, Want};
use super::told::PreflightReport;
use crate::servers::folder_fault;
use hob_config::{Built, Config, Handlers, LimitSettings, LogTarget, Spot, Spots};

pub(super) fn look<H: Handlers>(
    built: &Built<H>,
    opens_control: bool,
    told: &mut PreflightReport<'_, '_>,
) {
    let Built { config, spots } = built;
    logs(config, spots, told);
    if let (true, Some(path)) = (opens_control, &config.control) {
        let folder = path.parent().unwrap_or(Path::new("/"));
        if let Some(why) = control_fault(folder) {
            let message = format!("no control socket at {}: {why}", path.display());
            told.sentence(spots.own.control, &message);
        }
    }
    if let (_, Some(text)) = connections_possible(&config.limits) {
        told.warn(spots.own.connections, &text, "");
    }
    cpus(&config.cpus, spots.own.cpus, told);
    // At 0 the server stays as nice as it was started.
    let may_be_nicer = config.nice == 0
        || config.nice >= getpriority_process(None).unwrap_or(0)
        || may(CapabilitySet::SYS_NICE)
        || getrlimit(Resource::Nice)
            .current
            .is_none_or(|limit| limit as i64 >= 20 - i64::from(config.nice));
    if !may_be_nicer {
        let (nice, denied) = (config.nice, Errno::ACCESS);
        let message = format!("cannot set nice = {nice}: {denied}; below 0 needs root");
        told.sentence(spots.own.nice, &message);
    }
}

/// CPUs that a process of this machine would not run on. Only the kernel knows: of those that are
/// there the control group may have taken some. A thread of its own asks, and changes nobody else.
pub(super) fn cpus(wanted: &[usize], spot: Spot, told: &mut PreflightReport<'_, '_>) {
    if wanted.is_empty() {
        return;
    }
    let mut set = CpuSet::new();
    let known = wanted.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU);
    known.for_each(|cpu| set.set(*cpu));
    let asked =
        thread::spawn(move || sched_setaffinity(None, &set).and_then(|()| sched_getaffinity(None)));
    let given = match asked.join() {
        Ok(Ok(given)) => given,
        // None of them can be had.
        Ok(Err(Errno::INVAL)) => CpuSet::new(),
        // Who may not ask may not be told.
        Ok(Err(_)) | Err(_) => return,
    };
    let has = |cpu: &usize| *cpu < CpuSet::MAX_CPU && given.is_set(*cpu);
    let missing: Vec<String> = wanted
        .iter()
        .filter(|cpu| !has(cpu))
        .map(usize::to_string)
        .collect();
    let message = format!("CPUs that hob cannot run on here: {}", missing.join(", "));
    let hint = "name CPUs that `nproc --all` counts, from 0, and that the control group allows";
    let is_refused = wanted.iter().any(|cpu| *cpu >= CpuSet::MAX_CPU) || given.count() == 0;
    match (missing.is_empty(), is_refused) {
        (true, _) => {}
        (false, true) => told.error(spot, &message, hint),
        (false, false) => told.warn(spot, &message, hint),
    }
}

/// Whoever runs this has the capability.
pub(super) fn may(capability: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(capability))
}

/// Why a folder cannot be entered; what is no folder is told already.
pub(super) fn entering(sight: &AccountAccess<'_>, folder: &Path) -> Option<Denied> {
    let is_folder = folder.is_dir();
    is_folder.then(|| sight.denied(folder, Want::Enter))?
}

/// Logs are opened by who starts hob.
fn logs<H: Handlers>(config: &Config<H>, spots: &Spots<H>, told: &mut PreflightReport<'_, '_>) {
    let own = AccountAccess::of(None);
    for (log, spot) in config.logs.iter().zip(&spots.logs) {
        let LogTarget::File(path) = &log.target else {
            continue;
        };
        let place = match path.exists() {
            true => path,
            false => path.parent().unwrap_or(Path::new("/")),
        };
        if let Some((why, hint)) = own.denied(place, Want::Write) {
            let message = format!("cannot open the access log {}: {why}", path.display());
            told.error(*spot, &message, &hint);
        }
    }
}

/// Why there can be no control socket in a folder, which need not be there yet.
fn control_fault(folder: &Path) -> Option<String> {
    match fs::symlink_metadata(folder) {
        Ok(facts) if !facts.is_dir() => Some(format!("{} is no folder", folder.display())),
        Ok(facts) => folder_fault(folder, facts.uid(), facts.mode() & 0o777),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = folder.parent().unwrap_or(Path::new("/"));
            let why = match fs::metadata(above) {
                Err(error) => error,
                Ok(_) if AccountAccess::of(None).denied(above, Want::Write).is_none() => {
                    return None;
                }
                Ok(_) => Errno::ACCESS.into(),
            };
            Some(format!(
                "cannot make the folder {}: {why}",
                folder.display()
            ))
        }
        Err(error) => Some(error.to_string()),
    }
}

/// How many open files connections may have, those to servers elsewhere too: half of what a process
/// may have. The cache has a quarter, and the rest is for programs, logs and what else there is.
pub fn connection_files() -> usize {
    usize::try_from(open_files_max() / 2).unwrap_or(usize::MAX)
}

fn open_files_max() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// How many connections may be open, and why it is fewer than the config says, if it is.
pub fn connections_possible(limits: &LimitSettings) -> (usize, Option<String>) {
    let (possible, open_files) = (connection_files(), open_files_max());
    let wanted = limits.connections;
    let warning = (wanted > possible).then(|| {
        format!(
            "limits.connections: {possible} connections may be open, not {wanted}: the \
             hard limit of open files is {open_files} (LimitNOFILE= of a service, `ulimit -Hn`)"
        )
    });
    (wanted.min(possible), warning)
}
