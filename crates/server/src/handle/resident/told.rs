//! What is told of a program that stays and of its workers, in `GET /v1/status` among others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
