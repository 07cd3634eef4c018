//! `GET /v1/status`, which `hob status` shows.

use std::collections::BTreeMap;

use hob_keeper::acme::CertificateState;
use hob_server::handle::resident::told::Pool;
use hob_server::handle::script::visits::told::ProgramVisits;
use hob_server::handle::upstream::told::UpstreamReport;
use hob_server::handle::warm::told::Host;
use hob_server::serve::offers::OfferReport;
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
    /// Clients that are banned.
    pub bans: usize,
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
    /// Programs that stay for one visitor, and their visits.
    pub visits: Vec<ProgramVisits>,
    /// Interpreters that are kept.
    pub hosts: Vec<Host>,
    /// Servers of other people that answer for routes.
    pub upstreams: Vec<UpstreamReport>,
    /// Programs that hobs of other machines may ask for.
    pub offers: Vec<OfferReport>,
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
