//! `GET /v1/status`, which `hob status` shows.

use std::collections::BTreeMap;

use hob_keeper::acme::CertificateState;
use hob_trace::calendar::UtcDateTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a server.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// Counts loads of the config, from 1.
    pub generation: u64,
    /// The config that is served, without symbolic links; null where a folder is.
    pub config: Option<String>,
    /// Addresses listened on.
    pub listening: Vec<String>,
    /// Names of the sites, the default site as `*`.
    pub sites: Vec<String>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// Certificates that come from an authority.
    pub certificates: Vec<Order>,
    /// The keeper.
    pub keeper: KeeperProcess,
    /// The server.
    pub server: ServerProcess,
    /// The spawner; null where there is none.
    pub spawner: Option<SpawnerProcess>,
    /// The cache.
    pub cache: Cache,
    /// The threads that ask file systems.
    pub file_pool: Threads,
    /// Names of clients.
    pub names: Names,
    /// Programs that stay, and interpreters that are kept.
    pub programs: Programs,
    /// The admin pages; null without them.
    pub admin: Option<AdminPages>,
    /// Every counter by its name, as the reference of metrics has them.
    pub counters: BTreeMap<String, u64>,
}

/// The keeper.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KeeperProcess {
    /// Its process id.
    pub pid: u32,
    /// When it first started, in seconds since 1970.
    pub started_unix: u64,
    /// Servers that it has started so far.
    pub servers_started: u64,
}

/// The server.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerProcess {
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Its user.
    pub user_id: u32,
    /// Programs have another user than it.
    pub scripts_separated: bool,
    /// Its threads that serve.
    pub threads: usize,
    /// Open connections of each.
    pub connections_by_thread: Vec<usize>,
}

/// The spawner.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SpawnerProcess {
    /// Its process id.
    pub pid: u32,
}

/// A certificate that comes from an authority.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Order {
    /// Its names; the first one names it.
    pub names: Vec<String>,
    /// How they are proved.
    pub challenge: String,
    /// `ordering`, `failed`, `served` or `waiting`.
    pub state: String,
    /// Until when the one that is served is good; null while there is none.
    pub until: Option<String>,
    /// The same in seconds since 1970.
    pub until_unix: Option<i64>,
    /// When the next one is asked for.
    pub next_try: Option<String>,
    /// The same in seconds since 1970.
    pub next_try_unix: Option<i64>,
    /// What went wrong last time, with what to do.
    pub error: Option<String>,
}

impl From<&CertificateState> for Order {
    fn from(certificate: &CertificateState) -> Order {
        let state = match (
            certificate.is_ordering,
            certificate.until_unix_s,
            &certificate.error,
        ) {
            (true, _, _) => "ordering",
            (false, _, Some(_)) => "failed",
            (false, Some(_), None) => "served",
            (false, None, None) => "waiting",
        };
        Order {
            names: certificate.names.clone(),
            challenge: certificate.method.name().to_owned(),
            state: state.to_owned(),
            until: certificate.until_unix_s.map(moment),
            until_unix: certificate.until_unix_s,
            next_try: certificate.next_unix_s.map(moment),
            next_try_unix: certificate.next_unix_s,
            error: certificate.error.clone(),
        }
    }
}

/// A moment for people.
fn moment(unix_s: i64) -> String {
    let moment = UtcDateTime::from_unix_s(unix_s);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02} UTC",
        moment.year, moment.month, moment.day, moment.hour, moment.minute
    )
}

/// The cache.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cache {
    /// Files in it.
    pub entries: usize,
    /// Bytes counted for them.
    pub bytes: u64,
    /// Most bytes.
    pub bytes_max: u64,
    /// Bytes of files that answers hold at this moment.
    pub pinned_bytes: u64,
    /// Requests that it answered.
    pub hits: u64,
    /// Requests that it did not.
    pub misses: u64,
    /// Files that were looked at again.
    pub revalidations: u64,
    /// Files thrown out to make room.
    pub evictions: u64,
}

/// The threads that ask file systems.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Threads {
    /// Threads there are.
    pub threads: usize,
    /// Those of them that wait for work.
    pub idle: usize,
    /// Jobs that wait for a thread.
    pub queued: usize,
    /// Threads besides whose jobs hang.
    pub left: usize,
}

/// Names of clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Names {
    /// They are looked up.
    pub on: bool,
    /// Addresses that are known or waited for.
    pub entries: usize,
    /// Most of them.
    pub entries_max: usize,
    /// Those that are waited for.
    pub waiting: usize,
    /// Most of them.
    pub waiting_max: usize,
}

/// Programs that stay, and interpreters that are kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Programs {
    /// Workers of all pools.
    pub workers: usize,
    /// Most of them; null for no limit.
    pub workers_max: Option<usize>,
    /// Programs that stay.
    pub pools: Vec<Pool>,
    /// Interpreters that are kept.
    pub hosts: Vec<Host>,
}

/// A program that stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pool {
    /// The route and what runs.
    pub name: String,
    /// What is started.
    pub runs: String,
    /// Fewest workers.
    pub min: usize,
    /// Most workers.
    pub max: usize,
    /// Requests at once that a worker gets.
    pub concurrency: u16,
    /// Requests that wait for a worker.
    pub waiting: usize,
    /// Workers started so far.
    pub started: u64,
    /// Those of them that ended unasked.
    pub crashed: u64,
    /// Those of them that others took the place of.
    pub replaced: u64,
    /// How often files that it watches have changed.
    pub changes: u64,
    /// Whether it grows, or why not; empty where there is nothing to say.
    pub growth: String,
    /// Why a worker ended or did not start, the last time; empty where none did.
    pub last_failure: String,
    /// Its workers.
    pub workers: Vec<Worker>,
}

/// A process of a program that stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Worker {
    /// Its process id, once it has one.
    pub pid: Option<u32>,
    /// The thread that it belongs to.
    pub thread: usize,
    /// `starting`, `idle`, `busy` or `leaving`.
    pub state: String,
    /// How it is spoken to, `shm` or `stream`, once it has greeted; null for lines.
    pub carrier: Option<String>,
    /// Name and version of its library, once it has greeted.
    pub library: Option<String>,
    /// Seconds since it was started.
    pub age_s: u64,
    /// Requests that it has answered.
    pub served: u64,
    /// Its memory, where that is known.
    pub memory_bytes: Option<u64>,
    /// What it has now.
    pub requests: Vec<WorkerRequest>,
}

/// A request that a worker has.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkerRequest {
    /// Its id.
    pub id: String,
    /// Method and path.
    pub request: String,
    /// Milliseconds since it was given to the worker.
    pub ms: u64,
}

/// An interpreter that is kept, from which scripts are forked.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Host {
    /// Its program.
    pub interpreter: String,
    /// `python` or `perl`.
    pub language: String,
    /// What it says it is, once it has started.
    pub version: Option<String>,
    /// What it has loaded.
    pub preload: Vec<String>,
    /// Scripts are compiled ahead.
    pub compile: bool,
    /// The folder it works in.
    pub dir: String,
    /// `off`, `starting`, `ready`, `failed` or `restarting`.
    pub state: String,
    /// Its process id; null while it does not run.
    pub pid: Option<u32>,
    /// Seconds since it was ready.
    pub age_s: Option<u64>,
    /// Runs that have ended.
    pub served: u64,
    /// Runs under way.
    pub running: usize,
    /// Its memory, where that is known.
    pub memory_bytes: Option<u64>,
    /// How often it was started.
    pub starts: u64,
    /// How often that failed.
    pub failures: u64,
    /// How often it ended unasked.
    pub crashes: u64,
    /// Why it did, the last time.
    pub last_failure: Option<String>,
}

/// The admin pages.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AdminPages {
    /// Their URLs.
    pub pages: Vec<String>,
    /// Visitors who are logged in.
    pub sessions: usize,
    /// Logins.
    pub logins: u64,
    /// Logins that were refused.
    pub logins_failed: u64,
    /// Logins put off because there were too many.
    pub limit_logins: u64,
    /// Sessions that ended because there were too many.
    pub limit_sessions: u64,
    /// Requests that were refused at the door.
    pub refused: u64,
    /// Readers of events at this moment.
    pub readers: usize,
    /// Readers refused because there were too many.
    pub limit_readers: u64,
}

#[cfg(test)]
mod tests {
    use hob_http::acme::ChallengeMethod;

    use super::*;

    #[test]
    fn certificate_says_how_it_stands_and_until_when() {
        let mut certificate = CertificateState {
            names: vec!["example.org".to_owned()],
            method: ChallengeMethod::Dns,
            until_unix_s: Some(1_800_000_000),
            next_unix_s: Some(-5),
            is_ordering: false,
            error: None,
        };
        let told = |certificate: &CertificateState| {
            let order = Order::from(certificate);
            (order.state, order.until)
        };
        let until = Some("2027-01-15 08:00 UTC".to_owned());
        assert_eq!(told(&certificate), ("served".to_owned(), until.clone()));
        certificate.error = Some("no answer".to_owned());
        assert_eq!(told(&certificate), ("failed".to_owned(), until));
        certificate.is_ordering = true;
        assert_eq!(told(&certificate).0, "ordering");
        (certificate.is_ordering, certificate.error) = (false, None);
        certificate.until_unix_s = None;
        assert_eq!(told(&certificate), ("waiting".to_owned(), None));
    }
}
