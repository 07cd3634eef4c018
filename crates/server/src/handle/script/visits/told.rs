//! What is told of visits, in `GET /v1/status` among others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The visits of a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramVisits {
    /// The route and what runs.
    pub name: String,
    /// Most at once.
    pub max: usize,
    /// Most at once so far.
    pub peak: usize,
    /// Those that are there, the oldest first, up to a hundred.
    pub visits: Vec<ToldVisit>,
    /// How many there are.
    pub count: usize,
    /// The server that keeps them, where that is one from before an upgrade.
    pub server_pid: Option<u32>,
}

/// One visit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToldVisit {
    /// Its number, by which it can be ended.
    pub number: u64,
    /// The first characters of its handle.
    pub handle: String,
    /// The client that began it: an address, or the network of one.
    pub client: String,
    /// `starting`, `idle`, `busy` or `leaving`.
    pub state: String,
    /// Its process, once that is known.
    pub pid: Option<u32>,
    /// Seconds since it began.
    pub age_s: u64,
    /// Seconds since its last request was answered; null while it has one.
    pub idle_s: Option<u64>,
    /// Seconds that its visitor's next request is waited for.
    pub wait_s: u64,
    /// Answers that have kept it.
    pub answers: u64,
    /// Its memory, where that is known.
    pub memory_bytes: Option<u64>,
}
