//! What the servers' side does for one client, from what it wants to measure to its end.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::line::{LineEnd, LineStream};
use super::serve::{ConnectionEnds, ServePlan};
use super::words::{DistantAnswer, DistantAsk, DistantMachine, DistantPlan, Prepared, Started};
use crate::error::CompareError;
use crate::forget::forget;
use crate::instance::{Instance, LaunchContext};
use crate::limits::{DISTANT_SERVER_COUNT_MAX, DISTANT_SILENCE};
use crate::machine::Machine;
use crate::plan::ComparisonPlan;
use crate::preparation::{ComparisonCpus, EndAll, Preparation};

/// Answers until the client is gone or does not keep to what can be said. What was started for it
/// ends before this does, and its folder goes.
pub(super) fn session(
    line: &mut LineStream,
    plan: &ServePlan,
    ends: ConnectionEnds,
    is_stopped: &Arc<AtomicBool>,
) -> LineEnd {
    loop {
        let answer = match line.hear(DISTANT_SILENCE, is_stopped) {
            Ok(DistantAsk::Prepare(wanted)) => {
                let plan = plan.with(&wanted);
                match answer_all(line, &plan, ends, is_stopped) {
                    Ok(end) => return end,
                    Err(error) => DistantAnswer::of_error(&error),
                }
            }
            Ok(DistantAsk::Ping) => DistantAnswer::Done,
            Ok(_) => DistantAnswer::refused("first it must be said what is to be measured"),
            Err(end) => return end,
        };
        if let Err(end) = line.say(&answer) {
            return end;
        }
    }
}

impl ServePlan {
    /// Together with what a client wants.
    fn with(&self, wanted: &DistantPlan) -> ComparisonPlan {
        ComparisonPlan {
            scope: wanted.scope,
            only: wanted.only.clone(),
            servers: wanted.servers.clone(),
            rivals: self.rivals.clone(),
            settings: wanted.settings,
            program: self.program.clone(),
            folders: self.folders.clone(),
            temporary: self.temporary.clone(),
            round: None,
            rounds: None,
            is_sweep: wanted.is_sweep,
            is_of_releases: false,
            link: None,
            target: None,
        }
    }
}

/// Makes everything ready, says what there is, and answers from then on.
fn answer_all(
    line: &mut LineStream,
    plan: &ComparisonPlan,
    ends: ConnectionEnds,
    is_stopped: &Arc<AtomicBool>,
) -> Result<LineEnd, CompareError> {
    let mut machine = Machine::look();
    let cpus = ComparisonCpus::find()?;
    machine.add("server's CPU", cpus.server.to_string());
    // In this order: servers end first, then what is left of them, then the folder goes.
    let preparation = Preparation::make(plan)?;
    let ended = EndAll::default();
    let mut running = RunningServers {
        place: LaunchContext {
            program: &plan.program,
            folder: preparation.folder.path(),
            site: &preparation.site,
            settings: plan.settings,
            address: ends.own,
            cpu: cpus.server,
            link_cpu: cpus.link,
            link: None,
            is_stopped,
            groups: &ended.groups,
        },
        preparation: &preparation,
        all: BTreeMap::new(),
        started: 0,
    };
    let prepared = DistantAnswer::Prepared(Box::new(Prepared {
        servers: preparation.servers.clone(),
        missing: preparation.missing.clone(),
        rows: preparation.rows.clone(),
        lacks: preparation.site.lacks.clone(),
        machine: DistantMachine::look(&machine, ends.peer),
    }));
    let mut answer = prepared;
    loop {
        if let Err(end) = line.say(&answer) {
            return Ok(end);
        }
        answer = match line.hear(DISTANT_SILENCE, is_stopped) {
            Ok(ask) => running.answer(ask).unwrap_or_else(DistantAnswer::refused),
            Err(end) => return Ok(end),
        };
    }
}

/// Servers that were started for a client, by their numbers.
struct RunningServers<'a> {
    place: LaunchContext<'a>,
    preparation: &'a Preparation,
    all: BTreeMap<u64, Instance>,
    started: u64,
}

impl RunningServers<'_> {
    /// What is answered, or why not.
    fn answer(&mut self, ask: DistantAsk) -> Result<DistantAnswer, String> {
        match ask {
            DistantAsk::Ping => {}
            DistantAsk::Start { server, extra } => {
                if self.all.len() >= DISTANT_SERVER_COUNT_MAX {
                    return Err(format!(
                        "{DISTANT_SERVER_COUNT_MAX} servers run, which is the most"
                    ));
                }
                let servers = &self.preparation.servers;
                let server = servers.iter().find(|one| one.name == server);
                let server = server.ok_or("no server of that name is there")?;
                self.started += 1;
                let name = format!("{}-{}", server.name.replace(' ', "-"), self.started);
                let instance = Instance::start(&self.place, server, extra, &name)?;
                let started = Started {
                    server: self.started,
                    ports: instance.ports,
                    shown: instance.shown.clone(),
                    account: instance.account.kind(),
                };
                self.all.insert(self.started, instance);
                return Ok(DistantAnswer::Started(started));
            }
            DistantAsk::Usage { server } => {
                let instance = self.all.get_mut(&server);
                let usage = instance.ok_or("no such server runs")?.usage()?;
                return Ok(DistantAnswer::Usage(usage.with_machine()));
            }
            DistantAsk::Forget { path } => forget(&self.file(&path)?)?,
            DistantAsk::End { server } => {
                self.all.remove(&server).ok_or("no such server runs")?;
            }
            DistantAsk::Hello(_) | DistantAsk::Prepare(_) => {
                return Err("that is said once".to_owned());
            }
        }
        Ok(DistantAnswer::Done)
    }

    /// A file below the root of all servers, and nothing beside it.
    fn file(&self, path: &str) -> Result<std::path::PathBuf, String> {
        let path = Path::new(path.trim_start_matches('/'));
        let is_below = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        match is_below {
            true => Ok(self.preparation.site.root.join(path)),
            false => Err(format!("{} is no file of these servers", path.display())),
        }
    }
}
