//! `GET /v1/programs`: programs that stay with their workers, and routes with a process for each
//! request with their scripts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hob_server::handle::upstream::told::UpstreamReport;
use hob_server::serve::offers::OfferReport;

use super::{Host, ProgramVisits, WorkerRequest};

/// Programs, and what they use.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AllPrograms {
    /// Programs that stay, then routes with a process for each request.
    pub programs: Vec<Program>,
    /// Programs that stay for one visitor, and their visits.
    pub visits: Vec<ProgramVisits>,
    /// Interpreters that are kept.
    pub hosts: Vec<Host>,
    /// Servers of other people that answer for routes.
    pub upstreams: Vec<UpstreamReport>,
    /// Programs that hobs of other machines may ask for.
    pub offers: Vec<OfferReport>,
    /// Workers of all programs that stay.
    pub workers: usize,
    /// Most of them; null for no limit.
    pub workers_max: Option<usize>,
    /// Since when requests of today are counted, in milliseconds since 1970.
    pub today_since_unix_ms: u64,
}

/// A program that stays, or a route with a process for each request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Program {
    /// The route and what runs.
    pub name: String,
    /// Site of its route, the first where it has more; null where no route leads to it any more.
    pub site: Option<String>,
    /// Path of that route.
    pub route: Option<String>,
    /// Every route of a program that stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<ProgramRoute>>,
    /// What is started: a program, or the folder of the scripts.
    pub runs: String,
    /// `resident`, `warm` or `cgi`.
    pub handler: String,
    /// How workers are spoken to, `shm` or `stream`, once one has greeted; null for lines, and
    /// where none stays.
    pub carrier: Option<String>,
    /// Its workers; none of a route.
    pub workers: Vec<ProgramWorker>,
    /// Fewest workers; null of a route.
    pub min: Option<usize>,
    /// Most workers; of a route, most processes at a time.
    pub max: usize,
    /// Requests that wait.
    pub queued: usize,
    /// Workers that have a request; of a route, processes that run.
    pub busy: usize,
    /// Workers that ended unasked; null of a route.
    pub restarts: Option<u64>,
    /// Workers started so far, of a program that stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Whether a program that stays grows, or why not; empty where there is nothing to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth: Option<String>,
    /// Why a worker ended or did not start, the last time; null where none did.
    pub last_error: Option<String>,
    /// What it used of late.
    pub cpu: RecentUse,
    /// Requests of today (UTC) to a route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_today: Option<u64>,
    /// The same per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_today_s: Option<f64>,
    /// Scripts of a route that ran today, those first that used most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<ScriptUse>>,
    /// Scripts of a route that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scripts_more: Option<usize>,
    /// Requests of today to scripts of a route that are not told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_others: Option<u64>,
    /// What one rung up the ladder would save, in words; null where nothing is advised.
    pub advice: Option<String>,
}

/// A route that leads to a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramRoute {
    /// Its site.
    pub site: String,
    /// Its path.
    pub route: String,
}

/// One process of a program that stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramWorker {
    /// Its process id, once it has one.
    pub pid: Option<u32>,
    /// `starting`, `idle`, `busy` or `leaving`.
    pub state: String,
    /// Requests that it has answered.
    pub requests: u64,
    /// Seconds since it was started.
    pub age_s: u64,
    /// Its memory, where that is known.
    pub memory_bytes: Option<u64>,
    /// CPU time of it and what it started, where that is known.
    pub cpu_us: Option<u64>,
    /// What it has now, and for how long.
    pub running: Vec<WorkerRequest>,
}

/// What a program used of late.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecentUse {
    /// In the last minute.
    pub minute: SpanUse,
    /// In the last hour.
    pub hour: SpanUse,
}

/// What a program used in a span of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SpanUse {
    /// Seconds of the span.
    pub seconds: u64,
    /// Requests in it.
    pub requests: u64,
    /// CPU time of all of them.
    pub used_us: u64,
    /// CPU time of one, on the average; null without any.
    pub request_us: Option<u64>,
}

/// A script that is started or forked for each request, as it ran today.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScriptUse {
    /// Its file.
    pub file: String,
    /// What runs it, once that is known.
    pub interpreter: Option<String>,
    /// Runs of today.
    pub requests: u64,
    /// The same per second.
    pub rate_s: f64,
    /// CPU time of a run, on the average.
    pub cpu_us: u64,
    /// CPU time of all of them.
    pub used_us: u64,
    /// CPU time of a bare start of its interpreter, once that is measured.
    pub start_cpu_us: Option<u64>,
    /// When the last run ended, in milliseconds since 1970.
    pub last_unix_ms: u64,
    /// What one rung up the ladder would save; null where nothing is advised.
    pub saves: Option<ScriptSaving>,
    /// The same in words.
    pub advice: Option<String>,
    /// Why nothing is advised.
    pub why_not: Option<String>,
}

/// What a script would save on another rung of the ladder.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScriptSaving {
    /// The rung: `warm` or `resident`.
    pub to: String,
    /// CPU time of a request.
    pub cpu_us: u64,
    /// CPUs, at the rate of today.
    pub cores: f64,
}

/// `POST /v1/upstreams/drain` and `/resume`: a member gets no new requests, or gets them again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemberOutcome {
    /// It in words.
    pub text: String,
}

/// `POST /v1/programs/recycle`, `/stop` and `/stack`: workers were told.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OperationOutcome {
    /// It in words.
    pub text: String,
    /// Process ids of the workers.
    pub pids: Vec<u32>,
}
