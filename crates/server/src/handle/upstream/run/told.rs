//! What is told of a program that hob runs and asks, in `GET /v1/status` among others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program that hob runs and asks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunReport {
    /// Its route and its name, by which it is told from others.
    pub name: String,
    /// Its name.
    pub program: String,
    /// `starting`, `ready` or `failed`; `recycling` while others start that take its place.
    pub state: String,
    /// Processes that answer requests, each one at a time, as the config says.
    pub children: usize,
    /// Its processes that hob started; those they started are not among them.
    pub pids: Vec<u32>,
    /// How often one was started.
    pub starts: u64,
    /// How often one ended unasked, or could not start.
    pub deaths: u64,
    /// Why it did, the last time.
    pub last_failure: Option<String>,
}
