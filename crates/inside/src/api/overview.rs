//! `GET /v1/overview`, and what other answers share with it: columns over time, alerts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantiles;

/// The numbers of the moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Overview {
    /// The server's clock, in milliseconds since 1970.
    pub now_unix_ms: u64,
    /// Version of the program.
    pub version: String,
    /// Seconds since the server started.
    pub uptime_s: u64,
    /// Counts loads of the config, from 1.
    pub generation: u64,
    /// Name of the machine.
    pub hostname: String,
    /// What came and went each second, over the last ten.
    pub rate: Rates,
    /// Response times of the last minute.
    pub latency: Quantiles,
    /// Requests under way.
    pub running: u64,
    /// Open connections.
    pub connections_open: usize,
    /// Workers of programs that stay, and who waits for one.
    pub workers: WorkersUse,
    /// The cache.
    pub cache: CacheUse,
    /// Memory in use.
    pub memory: MemoryUse,
    /// CPUs in use.
    pub cpu: CpuUse,
    /// What to look at.
    pub alerts: Vec<Alert>,
    /// The last two minutes, by second.
    pub seconds: Series,
}

/// What came and went each second.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rates {
    /// Requests.
    pub requests_s: f64,
    /// Requests that failed.
    pub errors_s: f64,
    /// Bytes received.
    pub bytes_in_s: f64,
    /// Bytes sent.
    pub bytes_out_s: f64,
}

/// Workers of programs that stay, and who waits for one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkersUse {
    /// Those that have a request.
    pub busy: usize,
    /// Those that have none.
    pub idle: usize,
    /// Those that are not ready yet.
    pub starting: usize,
    /// Most there may be.
    pub max: usize,
    /// Requests that wait.
    pub queued: usize,
    /// What 99 % of requests waited at most, in the last minute.
    pub queue_wait_p99_us: u64,
}

/// The cache.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CacheUse {
    /// Files in it.
    pub entries: usize,
    /// Bytes counted for them.
    pub bytes: u64,
    /// Most bytes.
    pub bytes_max: u64,
    /// Share of requests that it answered, of 1; null where it was not asked.
    pub hit_ratio: Option<f64>,
}

/// Memory in use.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemoryUse {
    /// The server's.
    pub server_bytes: u64,
    /// That of programs.
    pub programs_bytes: u64,
}

/// CPUs in use.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuUse {
    /// By the server.
    pub server_cores: f64,
    /// By programs.
    pub programs_cores: f64,
    /// CPUs that may be used.
    pub machine_cores: usize,
}

/// How much an alert matters.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    #[default]
    Notice,
    /// It should be seen to.
    Warning,
    /// Somebody is not served.
    Bad,
}

/// Something an operator should know, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Alert {
    /// How much it matters.
    pub level: Level,
    /// What it is.
    pub text: String,
    /// Since when it is so.
    pub since_unix_ms: u64,
    /// The page that tells more.
    pub page: String,
}

/// Columns over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Series {
    /// Seconds of a row.
    pub step_s: u64,
    /// When the first row begins.
    pub from_unix_s: u64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows; null where nothing was recorded.
    pub rows: Vec<Option<Vec<u64>>>,
}
