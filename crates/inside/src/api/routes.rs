//! `GET /v1/routes`, and how times are told everywhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What each route has had.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Routes {
    /// The routes, or what they are put together by.
    pub routes: Vec<Route>,
    /// There are more.
    pub more: bool,
}

/// One route and how it does; with `by`, all that have a word in common.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Route {
    /// Its site; `other` where none was chosen.
    pub site: Option<String>,
    /// Its path.
    pub route: Option<String>,
    /// Who answers.
    pub handler: Option<String>,
    /// Requests that cost alike: `static`, `short`, or the handler of a program.
    pub class: Option<String>,
    /// The program.
    pub program: Option<String>,
    /// Requests since the server started.
    pub requests: u64,
    /// Those that failed.
    pub errors: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Requests per second, in the last minute.
    pub rate_s: f64,
    /// When the last one ended.
    pub last_unix_ms: u64,
    /// Time that the server took, in all.
    pub server_us: u64,
    /// Time that programs took.
    pub program_us: u64,
    /// Time that clients took.
    pub client_us: u64,
    /// From the request to the end of its answer.
    pub total: Quantiles,
    /// Until the first byte of the answer.
    pub first_byte: Quantiles,
    /// In a queue.
    pub queue: Quantiles,
    /// Until a program had started.
    pub start: Quantiles,
    /// CPU time of programs.
    pub cpu: Quantiles,
}

/// How times are spread, in microseconds; null, all but the count, where there are none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Quantiles {
    /// The median.
    pub p50_us: Option<u64>,
    /// 90 %.
    pub p90_us: Option<u64>,
    /// 99 %.
    pub p99_us: Option<u64>,
    /// The longest.
    pub max_us: Option<u64>,
    /// The mean.
    pub mean_us: Option<u64>,
    /// How many.
    pub count: u64,
}
