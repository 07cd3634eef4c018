//! What is told of an interpreter that is kept, in `GET /v1/status` among others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
