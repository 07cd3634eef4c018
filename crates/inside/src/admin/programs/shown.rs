//! What is told of programs: those that stay with their workers, and routes with a process for each
//! request with their scripts, what those use, and what one rung up the ladder would save.

use hob_http::unix_ms;
use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::Admin;
use super::super::routes::rounded;
use crate::activity::processes::cpu_us_of;
use crate::advice::runner::Runner;
use crate::advice::sentence::{Case, RUNS_MIN, Saving, cpus};
use crate::advice::trend::UsageWindow;
use crate::advice::{Inventory, KeptPool, Lately, Learned, RunRoute, ScriptRef};
use crate::api::{
    AllPrograms, Program, ProgramRoute, ProgramWorker, RecentUse, ScriptSaving, ScriptUse, SpanUse,
    Worker,
};
use hob_server::handle::cgi::Runs;
use hob_server::handle::script::used::ScriptTally;
use hob_server::handle::warm::status::hosts;
use hob_server::serve::fleet::now_ms;

/// Scripts of a route that are told, those that used most.
const SCRIPTS_TOLD_MAX: usize = 50;

/// All programs. Reads `/proc`: not for a thread that serves.
pub(in crate::admin) fn told(admin: &Admin) -> Value {
    let shared = &admin.shared;
    let inventory = Inventory::of(shared);
    let requests = shared.series.requests();
    let pools = inventory.pools.iter();
    let pools = pools.map(|one| kept(admin, one, &requests));
    let moment = ProgramsReportContext::now(admin);
    let routes = inventory.routes.iter();
    let routes = routes.map(|route| moment.route(route));
    let (workers, workers_max) = shared.fleet.load();
    json!(AllPrograms {
        programs: pools.chain(routes).collect(),
        visits: shared.all_visits(),
        hosts: hosts(&shared.hosts),
        upstreams: shared.upstreams(),
        offers: shared.sites().offered(),
        workers,
        // No limit is no number.
        workers_max: Some(workers_max).filter(|most| *most != usize::MAX),
        today_since_unix_ms: shared.scripts.since_unix_ms(),
    })
}

/// A program that stays.
fn kept(admin: &Admin, one: &KeptPool, requests: &HashMap<u16, u64>) -> Program {
    let pool = one.pool.told();
    let (_, lately) = admin.advice.look_at_pool(one, requests, uptime_s(admin));
    let is_busy = |one: &&Worker| one.state == "busy";
    let busy = pool.workers.iter().filter(is_busy).count();
    let carrier = pool.workers.iter().find_map(|one| one.carrier.clone());
    let routes = one.routes.iter().map(|(site, route, _)| ProgramRoute {
        site: site.clone(),
        route: route.clone(),
    });
    let routes: Vec<ProgramRoute> = routes.collect();
    let first = routes.first().cloned();
    Program {
        name: pool.name,
        site: first.as_ref().map(|first| first.site.clone()),
        route: first.map(|first| first.route),
        routes: Some(routes),
        runs: pool.runs,
        handler: "resident".to_owned(),
        carrier,
        workers: pool.workers.into_iter().map(worker).collect(),
        min: Some(pool.min),
        max: pool.max,
        queued: pool.waiting,
        busy,
        restarts: Some(pool.crashed),
        started: Some(pool.started),
        growth: Some(pool.growth),
        last_error: Some(pool.last_failure).filter(|text| !text.is_empty()),
        cpu: used(&lately),
        // There is no rung above.
        advice: None,
        ..Program::default()
    }
}

fn worker(one: Worker) -> ProgramWorker {
    ProgramWorker {
        pid: one.pid,
        state: one.state,
        requests: one.served,
        age_s: one.age_s,
        memory_bytes: one.memory_bytes,
        cpu_us: one.pid.and_then(cpu_us_of),
        running: one.requests,
    }
}

/// When all of it is told.
struct ProgramsReportContext<'a> {
    admin: &'a Admin,
    now_unix_ms: u64,
    /// Loop time.
    now_ms: u64,
    /// Since the count of today began.
    today_s: f64,
}

impl<'a> ProgramsReportContext<'a> {
    fn now(admin: &'a Admin) -> ProgramsReportContext<'a> {
        let now_unix_ms = unix_ms();
        let since_ms = now_unix_ms.saturating_sub(admin.shared.scripts.since_unix_ms());
        ProgramsReportContext {
            admin,
            now_unix_ms,
            now_ms: now_ms(),
            today_s: (since_ms as f64 / 1000.0).max(1.0),
        }
    }

    /// A route with a process for each request.
    fn route(&self, route: &RunRoute) -> Program {
        let told = route.cgi.scripts.told();
        let advice = &self.admin.advice;
        let lately = advice.look(&route.key(), route.cgi.scripts.ever(), uptime_s(self.admin));
        let scripts: Vec<ScriptAdvice> = told
            .scripts
            .iter()
            .map(|(file, tally)| self.script(route, file, *tally))
            .collect();
        let others = told.others.used.requests;
        let told_apart = scripts.iter().map(|one| one.tally.used.requests);
        let requests = others + told_apart.sum::<u64>();
        let shown = scripts.iter().take(SCRIPTS_TOLD_MAX);
        let shown = shown.map(|script| self.script_told(script));
        let (busy, queued) = route.cgi.gate.load();
        Program {
            name: format!("{} {}", route.route, route.handler.word()),
            site: Some(route.site.clone()),
            route: Some(route.route.clone()),
            runs: runs(&route.cgi.runs),
            handler: route.handler.word().to_owned(),
            max: route.cgi.gate.running_max(),
            queued,
            busy,
            cpu: used(&lately),
            requests_today: Some(requests),
            rate_today_s: Some(rounded(requests as f64 / self.today_s)),
            scripts: Some(shown.collect()),
            scripts_more: Some(scripts.len().saturating_sub(SCRIPTS_TOLD_MAX)),
            requests_others: Some(others),
            advice: all_in_all(route, &scripts),
            ..Program::default()
        }
    }

    fn script(&self, route: &RunRoute, file: &[u8], tally: ScriptTally) -> ScriptAdvice {
        let name = String::from_utf8_lossy(file).into_owned();
        if tally.used.requests < RUNS_MIN {
            let saving = Err(format!("fewer than {RUNS_MIN} requests today"));
            return ScriptAdvice::new(name, tally, None, saving);
        }
        let subject = ScriptRef {
            cgi: std::sync::Arc::clone(&route.cgi),
            file: file.into(),
        };
        let admin = self.admin;
        let Some(learned) = admin.advice.learner.ask(&subject, &admin.crew) else {
            let saving = Err("the start of its interpreter is being measured".to_owned());
            return ScriptAdvice::new(name, tally, None, saving);
        };
        let saving = self.saving(&name, tally, &learned);
        ScriptAdvice::new(name, tally, Some(learned), saving)
    }

    fn saving(&self, name: &str, tally: ScriptTally, learned: &Learned) -> Result<Saving, String> {
        let runner = learned.runner.as_ref().map_err(String::clone)?;
        let start_us = learned.start_us.clone()?;
        let case = Case {
            name: name.rsplit('/').next().unwrap_or(name).to_owned(),
            is_warm: matches!(runner, Runner::Forked(_)),
            runs: tally.used.requests,
            run_us: each_us(tally),
            rate_s: tally.used.requests as f64 / self.today_s,
            runner: match runner {
                Runner::Interpreter(_) | Runner::Forked(_) | Runner::WithOptions(_) => {
                    runner.name()
                }
                Runner::Itself => "a program that does nothing".to_owned(),
            },
            language: runner.language(),
            start_us,
        };
        case.saving()
    }

    fn script_told(&self, script: &ScriptAdvice) -> ScriptUse {
        let used = script.tally.used;
        let learned = script.learned.as_ref();
        let runner = learned.and_then(|learned| learned.runner.as_ref().ok());
        let start_us = learned.and_then(|learned| learned.start_us.as_ref().ok());
        let saving = script.saving.as_ref();
        let age_ms = self.now_ms.saturating_sub(script.tally.last_ms);
        ScriptUse {
            file: script.name.clone(),
            interpreter: runner.map(Runner::name),
            requests: used.requests,
            rate_s: rounded(used.requests as f64 / self.today_s),
            cpu_us: each_us(script.tally),
            used_us: used.cpu_us,
            start_cpu_us: start_us.copied(),
            last_unix_ms: self.now_unix_ms.saturating_sub(age_ms),
            saves: saving.ok().map(|saving| ScriptSaving {
                to: saving.to.to_owned(),
                cpu_us: saving.saved_us,
                cores: saving.cores,
            }),
            advice: saving.ok().map(|saving| saving.text.clone()),
            why_not: saving.err().cloned(),
        }
    }
}

/// A script, what is known of it, and what is advised, or why nothing is.
struct ScriptAdvice {
    name: String,
    tally: ScriptTally,
    learned: Option<Learned>,
    saving: Result<Saving, String>,
}

impl ScriptAdvice {
    fn new(
        name: String,
        tally: ScriptTally,
        learned: Option<Learned>,
        saving: Result<Saving, String>,
    ) -> ScriptAdvice {
        ScriptAdvice {
            name,
            tally,
            learned,
            saving,
        }
    }
}

/// What is advised for a route as a whole: the sentence of its script that would save most.
fn all_in_all(route: &RunRoute, scripts: &[ScriptAdvice]) -> Option<String> {
    let savings = scripts.iter().filter_map(|one| one.saving.as_ref().ok());
    let savings: Vec<&Saving> = savings.collect();
    let best = savings
        .iter()
        .max_by(|one, other| one.cores.total_cmp(&other.cores))?;
    Some(match savings.len() {
        1 => best.text.clone(),
        count => {
            let cores: f64 = savings.iter().map(|saving| saving.cores).sum();
            let all = cpus(cores);
            let path = &route.route;
            format!(
                "{count} scripts of {path} could move, which would save {all} of a CPU in all. The \
                 first: {}",
                best.text
            )
        }
    })
}

/// CPU time of a run, on the average, in whole microseconds.
fn each_us(tally: ScriptTally) -> u64 {
    tally.used.each_us().map_or(0, |us| us.round() as u64)
}

/// What a route runs.
fn runs(runs: &Runs) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match runs {
        Runs::Captured(captured) => captured.shown(),
        Runs::Folder(folder) => folder.root.path().display().to_string(),
        Runs::Script(script) => text(&script.file),
        Runs::Command(command) => text(&command.program),
    }
}

fn used(lately: &Lately) -> RecentUse {
    let span = |span: &UsageWindow| SpanUse {
        seconds: span.seconds,
        requests: span.used.requests,
        used_us: span.used.cpu_us,
        request_us: span.used.each_us().map(|us| us.round() as u64),
    };
    RecentUse {
        minute: span(&lately.minute),
        hour: span(&lately.hour),
    }
}

fn uptime_s(admin: &Admin) -> u64 {
    admin.started.elapsed().as_secs()
}
