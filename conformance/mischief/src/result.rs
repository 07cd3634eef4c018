//! What mischief comes to in JSON; the JSON schema is made of these types and of what is said of
//! each field.

use hob_load::layout;
use hob_load::parts::{FailureCount, LatencySummary};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The version of the layout.
pub(crate) const FORMAT: u32 = 1;

/// The JSON schema of a result.
pub fn schema() -> Value {
    layout::schema::<MischiefResult>("result of `mischief --json`")
}

/// Result of `mischief --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MischiefResult {
    /// Version of this layout: 1.
    pub(crate) format: u32,
    /// What was exercised.
    pub(crate) url: String,
    /// Where the server was found.
    pub(crate) address: String,
    /// `h1`, `h2` or `h3`.
    pub(crate) protocol: &'static str,
    /// What all acts follow from.
    pub(crate) seed: u64,
    /// The act that was repeated alone.
    pub(crate) act: Option<u64>,
    /// Two runs in which this is the same made the same acts.
    pub(crate) sequence: String,
    /// What requests that behave are answered with.
    pub(crate) usual_status: u16,
    /// Time of all acts.
    pub(crate) elapsed_s: f64,
    /// The run was ended by a signal.
    pub(crate) interrupted: bool,
    /// Every act, in order of their numbers.
    pub(crate) acts: Vec<ActResult>,
    /// How often each kind of act had each outcome.
    pub(crate) outcomes: Vec<OutcomeCount>,
    /// Acts with an outcome that is not allowed.
    pub(crate) unexpected: u64,
    /// Requests that behaved, beside the acts.
    pub(crate) beside: Beside,
    /// The status when all was over; null for no answer.
    pub(crate) afterwards: Option<u16>,
    /// Nothing was unexpected, nothing failed beside, and the server answers as before.
    pub(crate) passed: bool,
}

/// An act, and what came of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ActResult {
    /// Its number, from 0.
    pub(crate) number: u64,
    /// Its kind.
    pub(crate) name: &'static str,
    /// What is special about this one.
    pub(crate) detail: String,
    /// Statuses, resets and GOAWAY that came, else how it ended: `left` (by the act), `closed`,
    /// `reset`, `no TLS`, `hung`, `no connection` or `malformed answer`.
    pub(crate) outcome: String,
    /// What is wrong with that; null for an outcome that is allowed.
    pub(crate) fault: Option<String>,
    /// How long it took.
    pub(crate) took_ms: f64,
    /// The command that repeats it.
    pub(crate) repeat: String,
}

/// How often a kind of act had an outcome.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OutcomeCount {
    /// The kind.
    pub(crate) act: &'static str,
    /// The outcome, with `x n` for however many alike.
    pub(crate) outcome: String,
    /// How often.
    pub(crate) count: u64,
    /// How often of these it was not allowed.
    pub(crate) unexpected: u64,
}

/// Requests that behaved, beside the acts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Beside {
    /// Requests that were due.
    pub(crate) due: u64,
    /// Those answered as usual.
    pub(crate) good: u64,
    /// Those that were not.
    pub(crate) failed: u64,
    /// By kind.
    pub(crate) failures: Vec<FailureCount>,
    /// Their response times.
    pub(crate) response: Option<LatencySummary>,
    /// Why they ended before the acts did; null where they did not.
    pub(crate) fault: Option<String>,
}
