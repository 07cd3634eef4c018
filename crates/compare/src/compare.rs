//! One comparison from plan to report.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::set_child_subreaper;
use rustix::thread::sched_getaffinity;

use crate::account::ServerCgroup;
use crate::error::CompareError;
use crate::instance::LaunchContext;
use crate::link::{ComparisonLink, LinkSettings};
use crate::machine::Machine;
use crate::measure::{Budget, ComparisonRun};
use crate::progress::ProgressPrinter;
use crate::report::ComparisonReport;
use crate::rows::{ComparisonRow, Scope, chosen, rows, sweep};
use crate::server::{Installed, Missing, ServerSoftware, ServerTuning, find, names};
use crate::site::{ComparisonSite, ScratchFolder, SearchPaths, Wants};
use crate::tree;

/// What is compared, and how long it may take.
#[derive(Debug, Clone)]
pub struct ComparisonPlan {
    /// Which rows.
    pub scope: Scope,
    /// Rows whose id has the words of one of these beside each other, in whatever scope; all of the
    /// scope for none.
    pub only: Vec<String>,
    /// Servers with one of these names; all for none. hob is always there.
    pub servers: Vec<String>,
    /// Other builds of hob, and servers that are taken instead of those in `folders`.
    pub rivals: Vec<PathBuf>,
    /// Out of the box or tuned.
    pub settings: ServerTuning,
    /// hob itself.
    pub program: PathBuf,
    /// Where programs are looked for, in this order.
    pub folders: Vec<PathBuf>,
    /// Where the temporary folder is made.
    pub temporary: PathBuf,
    /// Length of a round instead of what the scope's time gives.
    pub round: Option<Duration>,
    /// Rounds of a cell at most.
    pub rounds: Option<usize>,
    /// Other sizes of what carries answers, instead of other servers.
    pub is_sweep: bool,
    /// Builds of hob alone, of which there must be two, in rows that all of them have.
    pub is_of_releases: bool,
    /// What client and servers are joined by; the loopback for none.
    pub link: Option<LinkSettings>,
}

/// Time for all rows, with what starting and warming up takes kept back, and for one.
const QUICK: (Duration, Duration) = (Duration::from_secs(95), Duration::from_secs(10));
const USUAL: (Duration, Duration) = (Duration::from_secs(9 * 60), Duration::from_secs(20));
const FULL: (Duration, Duration) = (Duration::from_secs(27 * 60), Duration::from_secs(40));

fn times(scope: Scope) -> (Duration, Duration) {
    match scope {
        Scope::Quick => QUICK,
        Scope::Usual => USUAL,
        Scope::Full => FULL,
    }
}

/// Makes a comparison. Interrupted by SIGINT or SIGTERM, it reports what there is so far; whatever
/// happens, what it started ends with it, and its folder goes.
pub fn compare(plan: &ComparisonPlan) -> Result<ComparisonReport, CompareError> {
    let is_stopped = listen()?;
    // Should a supervisor be killed, what it held comes to this process.
    set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| CompareError::system("cannot become a subreaper")(error.into()))?;
    let begun = (SystemTime::now(), Instant::now());
    let (servers, missing) = found(plan)?;
    let folder = ScratchFolder::make(&plan.temporary)?;
    // Dropped before the folder: then nobody writes into it any more.
    let ended = EndAll::default();
    let site = ComparisonSite::write(folder.path(), &around(plan), wants(plan))?;
    let rows = chosen(all(plan, &servers, &site), plan.scope, &plan.only);
    if rows.is_empty() {
        return Err(no_rows(plan));
    }
    let cpus = ComparisonCpus::find()?;
    let link = plan.link;
    let link = link.map(|link| ComparisonLink::make(link, cpus.link));
    let link = link.transpose().map_err(CompareError::Link)?;
    let mut machine = Machine::look();
    cpus.tell(&mut machine);
    machine.add(
        "link",
        plan.link.map_or(String::new(), |link| link.to_string()),
    );
    let mut progress = ProgressPrinter::new();
    let mut comparison = ComparisonRun {
        place: LaunchContext {
            program: &plan.program,
            folder: folder.path(),
            site: &site,
            settings: plan.settings,
            cpu: cpus.server,
            client_cpu: cpus.client,
            link_cpu: cpus.link,
            link: link.as_ref(),
            is_stopped: &is_stopped,
            groups: &ended.groups,
        },
        servers: &servers,
        is_stopped: &is_stopped,
        budget: Budget::new(times(plan.scope), plan.round, plan.rounds),
        running: BTreeMap::new(),
        started: 0,
        shown: BTreeMap::new(),
        account: None,
    };
    let measured = comparison.measure(&rows, &mut progress);
    progress.clear();
    machine.add(
        "CPU time from",
        comparison.account.unwrap_or("nothing").to_owned(),
    );
    let report = ComparisonReport {
        begun_at: begun.0,
        elapsed: begun.1.elapsed(),
        scope: plan.scope,
        settings: plan.settings,
        is_interrupted: is_stopped.load(Ordering::Relaxed),
        load_before: machine.load_before,
        machine,
        configurations: std::mem::take(&mut comparison.shown),
        lacks: site.lacks.clone(),
        servers: servers.clone(),
        missing,
        rows: measured,
        has_one_cpu: cpus.server == cpus.client,
        link: plan.link,
    };
    Ok(report)
}

/// A flag that SIGINT and SIGTERM set.
fn listen() -> Result<Arc<AtomicBool>, CompareError> {
    hob_load::stop_at_signals().map_err(|error| {
        let error = std::io::Error::other(error.to_string());
        CompareError::system("cannot listen for signals")(error)
    })
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
        let scope = match row.scope {
            Scope::Quick => "quick",
            Scope::Usual => "usual",
            Scope::Full => "full",
        };
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

/// The rows among which is chosen.
fn all(plan: &ComparisonPlan, servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    let mut rows = match plan.is_sweep {
        true => sweep(servers, site),
        false => rows(servers, site),
    };
    if plan.is_of_releases {
        let is_of = |row: &ComparisonRow, server: &Installed| {
            let mut entrants = row.entrants.iter();
            entrants.any(|entrant| entrant.server == server.name)
        };
        rows.retain(|row| servers.iter().all(|server| is_of(row, server)));
    }
    rows
}

/// The servers that are to be compared, hob first, and those that cannot be.
fn found(plan: &ComparisonPlan) -> Result<(Vec<Installed>, Vec<Missing>), CompareError> {
    let wrong = |name: &&String| !names().any(|known| known == *name);
    if let Some(name) = plan.servers.iter().find(wrong) {
        let known: Vec<&str> = names().collect();
        return Err(CompareError::Arguments(format!(
            "--servers {name}: no server of that name is known; known are {}",
            known.join(", ")
        )));
    }
    let (mut servers, mut missing) = find(&plan.program, &plan.rivals, &plan.folders);
    let is_asked = |name: &str, is_named: bool| {
        let is_known = name == "hob" || is_named || plan.servers.is_empty();
        is_known || plan.servers.iter().any(|asked| asked == name)
    };
    if plan.is_sweep {
        servers.retain(|server| server.name == "hob");
        missing.retain(|missing| missing.name == "hob");
    }
    if plan.is_of_releases {
        servers.retain(|server| server.kind == ServerSoftware::Hob);
        missing.retain(|missing| missing.name == "hob" || missing.is_named);
    }
    servers.retain(|server| is_asked(&server.name, server.is_named));
    missing.retain(|missing| is_asked(&missing.name, missing.is_named));
    if let Some(missing) = missing.iter().find(|missing| missing.name == "hob") {
        return Err(CompareError::Subject(missing.why.clone()));
    }
    if let Some(missing) = missing.iter().find(|missing| missing.is_named) {
        return Err(CompareError::Arguments(format!("--rival {}", missing.why)));
    }
    if plan.is_of_releases && servers.len() < 2 {
        let text = "--releases: there is no other build of hob; name one with --rival";
        return Err(CompareError::Arguments(text.to_owned()));
    }
    Ok((servers, missing))
}

/// What rows that may be asked for need.
fn wants(plan: &ComparisonPlan) -> Wants {
    let words = |only: &String| -> Vec<String> {
        let words = only.split('.').filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    if plan.is_sweep {
        return Wants {
            tls: false,
            many: false,
            programs: true,
            compiled: true,
        };
    }
    let only: Vec<Vec<String>> = plan.only.iter().map(words).collect();
    let has =
        |words: &[String], these: &[&str]| words.iter().any(|word| these.contains(&word.as_str()));
    Wants {
        tls: only.is_empty() || only.iter().any(|words| !has(words, &["clear", "cost"])),
        many: match only.is_empty() {
            true => plan.scope == Scope::Full,
            false => only.iter().any(|words| has(words, &["many"])),
        },
        programs: only.is_empty()
            || only
                .iter()
                .any(|words| !has(words, &["file", "large", "part", "many", "cost"])),
        compiled: only.is_empty()
            || only.iter().any(|words| {
                let others = [
                    "file", "large", "part", "many", "upload", "cost", "sh", "perl", "python",
                    "wsgi", "asgi", "php",
                ];
                !has(words, &others)
            }),
    }
}

fn around(plan: &ComparisonPlan) -> SearchPaths<'_> {
    SearchPaths {
        program: &plan.program,
        folders: &plan.folders,
    }
}

fn no_rows(plan: &ComparisonPlan) -> CompareError {
    CompareError::Arguments(format!(
        "no row has {} in its id; `hob compare --list` names them",
        plan.only.join(" or ")
    ))
}

/// Which CPU does what: the first ones that this process may use.
struct ComparisonCpus {
    server: usize,
    /// The same, where there is but one.
    client: usize,
    /// Of a link: the client's, where there are but two.
    link: usize,
}

impl ComparisonCpus {
    fn find() -> Result<ComparisonCpus, CompareError> {
        let set = sched_getaffinity(None)
            .map_err(|error| CompareError::system("cannot ask for usable CPUs")(error.into()))?;
        let mut usable = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        let server = usable.next().unwrap_or(0);
        let client = usable.next().unwrap_or(server);
        Ok(ComparisonCpus {
            server,
            client,
            link: usable.next().unwrap_or(client),
        })
    }

    fn tell(&self, machine: &mut Machine) {
        machine.add("server's CPU", self.server.to_string());
        machine.add("client's CPU", self.client.to_string());
    }
}

/// Ends what is left below this process when it is dropped, also by a panic. There is something
/// only where a supervisor was killed.
#[derive(Default)]
struct EndAll {
    /// Control groups that were made.
    groups: RefCell<Vec<ServerCgroup>>,
}

impl Drop for EndAll {
    fn drop(&mut self) {
        tree::end_all_below();
        for group in self.groups.borrow().iter() {
            group.remove_empty();
        }
    }
}
