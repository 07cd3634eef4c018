//! `GET /v1/statistics`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests told apart by what they were, in three spans of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Statistics {
    /// The server's clock, in milliseconds since 1970.
    pub now_unix_ms: u64,
    /// Since the server started.
    pub start: SpanCounts,
    /// Since the day began (UTC).
    pub today: SpanCounts,
    /// Since somebody set the counts to zero.
    pub zero: SpanCounts,
}

/// What was counted in a span of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SpanCounts {
    /// When it began, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// Requests.
    pub requests: u64,
    /// The same by method; `other` is every other one.
    pub methods: BTreeMap<String, u64>,
    /// By protocol.
    pub protocols: BTreeMap<String, u64>,
    /// By who answered.
    pub handlers: BTreeMap<String, u64>,
    /// Answers by class of status: `1xx` to `5xx`.
    pub status_classes: BTreeMap<String, u64>,
    /// By status, those that were sent.
    pub statuses: BTreeMap<String, u64>,
    /// By what the cache did.
    pub cache: BTreeMap<String, u64>,
    /// By how they ended.
    pub outcomes: BTreeMap<String, u64>,
    /// By whose fault it was where they failed.
    pub faults: BTreeMap<String, u64>,
    /// Workers and programs.
    pub workers: WorkerCounts,
    /// Bytes.
    pub bytes: ByteCounts,
    /// TLS handshakes.
    pub tls: HandshakeCounts,
    /// Connections.
    pub connections: ConnectionCounts,
}

/// Workers and programs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkerCounts {
    /// Workers started.
    pub started: u64,
    /// Requests answered by a worker that had answered one before.
    pub reused: u64,
    /// Workers that ended unasked.
    pub crashed: u64,
    /// Scripts given to an interpreter that is kept.
    pub forked_warm: u64,
    /// Programs that ran and ended.
    pub programs_ended: u64,
}

/// Bytes of requests and answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ByteCounts {
    /// Received.
    #[serde(rename = "in")]
    pub received: u64,
    /// Sent.
    #[serde(rename = "out")]
    pub sent: u64,
}

/// TLS handshakes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HandshakeCounts {
    /// Full ones.
    pub full: u64,
    /// Those that resumed a session.
    pub resumed: u64,
    /// Those that failed.
    pub failed: u64,
}

/// Connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConnectionCounts {
    /// Accepted.
    pub accepted: u64,
    /// Those that spoke HTTP/2.
    pub h2: u64,
    /// Those that spoke HTTP/3.
    pub h3: u64,
}
