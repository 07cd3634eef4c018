//! What is made ready before anything is measured: which servers there are, what they serve, which
//! rows that gives; on which CPUs; and who ends what is left.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::set_child_subreaper;
use rustix::thread::sched_getaffinity;

use crate::account::ServerCgroup;
use crate::error::CompareError;
use crate::machine::Machine;
use crate::plan::ComparisonPlan;
use crate::rows::{ComparisonRow, Scope, chosen, rows, sweep};
use crate::server::{Installed, Missing, ServerSoftware, find, names};
use crate::site::{ComparisonSite, ScratchFolder, SearchPaths, Wants};
use crate::tree;

/// Everything that rows need, in a folder that goes with this.
pub(crate) struct Preparation {
    pub(crate) servers: Vec<Installed>,
    pub(crate) missing: Vec<Missing>,
    pub(crate) rows: Vec<ComparisonRow>,
    pub(crate) site: ComparisonSite,
    pub(crate) folder: ScratchFolder,
}

impl Preparation {
    /// Looks for servers, writes what they serve, and chooses rows.
    ///
    /// # Errors
    /// There is nothing to compare, or the system refused something.
    pub(crate) fn make(plan: &ComparisonPlan) -> Result<Preparation, CompareError> {
        let (servers, missing) = found(plan)?;
        let folder = ScratchFolder::make(&plan.temporary)?;
        let site = ComparisonSite::write(folder.path(), &around(plan), wants(plan))?;
        let rows = chosen(all(plan, &servers, &site), plan.scope, &plan.only);
        match rows.is_empty() {
            true => Err(no_rows(plan)),
            false => Ok(Preparation {
                servers,
                missing,
                rows,
                site,
                folder,
            }),
        }
    }
}

/// Should a supervisor be killed, what it held comes to this process.
pub(crate) fn become_subreaper() -> Result<(), CompareError> {
    set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| CompareError::system("cannot become a subreaper")(error.into()))
}

/// The rows among which is chosen.
pub(crate) fn all(
    plan: &ComparisonPlan,
    servers: &[Installed],
    site: &ComparisonSite,
) -> Vec<ComparisonRow> {
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
pub(crate) fn found(plan: &ComparisonPlan) -> Result<(Vec<Installed>, Vec<Missing>), CompareError> {
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
pub(crate) fn wants(plan: &ComparisonPlan) -> Wants {
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
        programs: only.is_empty() || only.iter().any(|words| !has(words, &FILE_ROWS)),
        compiled: only.is_empty()
            || only
                .iter()
                .any(|words| !has(words, &FILE_ROWS) && !has(words, &SCRIPT_ROWS)),
    }
}

/// Words of rows that need no program.
const FILE_ROWS: [&str; 8] = [
    "file", "large", "part", "many", "cost", "gzip", "store", "flow",
];
/// Words of rows whose programs need not be built.
const SCRIPT_ROWS: [&str; 7] = ["upload", "sh", "perl", "python", "wsgi", "asgi", "php"];

pub(crate) fn around(plan: &ComparisonPlan) -> SearchPaths<'_> {
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

/// A flag that SIGINT and SIGTERM set.
pub(crate) fn listen() -> Result<Arc<AtomicBool>, CompareError> {
    hob_load::stop_at_signals().map_err(|error| {
        let error = std::io::Error::other(error.to_string());
        CompareError::system("cannot listen for signals")(error)
    })
}

/// Which CPU does what: the first ones that this process may use.
pub(crate) struct ComparisonCpus {
    pub(crate) server: usize,
    /// The same, where there is but one.
    pub(crate) client: usize,
    /// Of a link: the client's, where there are but two.
    pub(crate) link: usize,
}

impl ComparisonCpus {
    pub(crate) fn find() -> Result<ComparisonCpus, CompareError> {
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

    pub(crate) fn tell(&self, machine: &mut Machine) {
        machine.add("server's CPU", self.server.to_string());
        machine.add("client's CPU", self.client.to_string());
    }
}

/// Ends what is left below this process when it is dropped, also by a panic. There is something
/// only where a supervisor was killed.
#[derive(Default)]
pub(crate) struct EndAll {
    /// Control groups that were made.
    pub(crate) groups: RefCell<Vec<ServerCgroup>>,
}

impl Drop for EndAll {
    fn drop(&mut self) {
        tree::end_all_below();
        for group in self.groups.borrow().iter() {
            group.remove_empty();
        }
    }
}
