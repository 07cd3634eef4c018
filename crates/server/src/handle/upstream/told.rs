//! What is told of an upstream, in `GET /v1/status` among others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::handle::upstream::run::told::RunReport;

/// Servers of other people that answer for a route.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UpstreamReport {
    /// What the config calls them, else their site, where it has a name, route and handler.
    pub name: String,
    /// Its members.
    pub members: Vec<MemberReport>,
    /// Services whose servers are members.
    pub services: Vec<ServiceReport>,
}

/// A service (`srv:`), whose servers name servers have.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServiceReport {
    /// As `to` has it.
    pub name: String,
    /// How many servers of it are members.
    pub servers: usize,
    /// So many more were named; `service_members` says how many may be members.
    pub surplus: usize,
    /// Seconds until it is looked up again.
    pub again_in_s: u64,
    /// Why it was not looked up last, so that those known before are asked; null where it was.
    pub why: Option<String>,
}

/// One of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemberReport {
    /// Where it is.
    pub address: String,
    /// `in` while it is asked, `out` while it is left out, `draining` while it gets no new
    /// requests because an operator wants that, or because its service has it no more.
    pub state: String,
    /// Seconds until it is tried again, while it is out.
    pub out_for_s: Option<u64>,
    /// Why it is left out; null where it is not.
    pub why: Option<String>,
    /// Its share of the requests beside those of others; where there is a service, in hundredths.
    pub weight: u32,
    /// It is asked where all others are left out, or those of lower priorities of its service.
    pub is_backup: bool,
    /// Requests that it has at once, where that is limited.
    pub requests_max: Option<usize>,
    /// Requests that it has now.
    pub requests: usize,
    /// Connections that rest.
    pub resting: usize,
    /// How long its answers took to begin, lately; null where nothing is known.
    pub latency_ms: Option<f64>,
    /// Answers that it has begun.
    pub answers: u64,
    /// How often it failed.
    pub failures: u64,
    /// The program that hob runs there; null where others do.
    pub run: Option<RunReport>,
}
