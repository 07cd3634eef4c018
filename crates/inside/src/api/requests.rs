//! Requests, running or finished, and connections: `GET /v1/running`, `/v1/history` and
//! `/v1/connections`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests under way.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Running {
    /// Requests under way, the oldest first.
    pub requests: Vec<Request>,
    /// There are more.
    pub more: bool,
}

/// One request, running or finished. What is not known of it, or is not so, is left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Request {
    /// Server, connection and request, by number.
    pub id: String,
    /// When it came, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Address of the client; none over a Unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Its port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_port: Option<u16>,
    /// Its name, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// What it speaks.
    pub protocol: String,
    /// Version of TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_version: Option<String>,
    /// Cipher suite of TLS, by its IANA name, of a finished one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_suite: Option<String>,
    /// `full` or `resumed`, for the first request of a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_handshake: Option<String>,
    /// Its method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// What was asked for, secrets hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The host that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The page that led to it, secrets hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referer: Option<String>,
    /// What the client calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// Who is logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What is to be said beside the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Its site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Path of its route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Who answers.
    pub handler: String,
    /// Why it was not answered well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What else is to be known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The status, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What came of the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// Whose fault it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes of the answer's head.
    pub head_bytes_out: u64,
    /// Bytes of its body.
    pub body_bytes_out: u64,
    /// Time in a queue.
    pub queue_us: u64,
    /// Time until a program had started, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_us: Option<u64>,
    /// Time of the program.
    pub program_us: u64,
    /// CPU time of the program.
    pub cpu_us: u64,
    /// Time that file systems were waited for.
    pub disk_wait_us: u64,
    /// Time that the client was waited for, to take the answer.
    pub client_take_us: u64,
    /// Time that the client was waited for, to send its body.
    pub client_body_us: u64,
    /// Time of the TLS handshake.
    pub handshake_us: u64,
    /// Process of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// How its process ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_end: Option<String>,
    /// With which code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// By which signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// Round-trip time, as the kernel measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u32>,
    /// Segments sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u32>,
    /// The congestion window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// Id of its trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// How a finished one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Until the first byte of the answer of a finished one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_us: Option<u64>,
    /// How long a finished one took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_us: Option<u64>,
    /// What of that is the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_us: Option<u64>,
    /// What took most of the time of a slow one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// What one under way is at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How long it has been under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_us: Option<u64>,
    /// The worker that has one under way; null where none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_pid: Option<Option<u32>>,
}

/// Finished requests that are kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct History {
    /// Finished requests that were asked for.
    pub requests: Vec<Request>,
    /// Requests that are kept.
    pub kept: u64,
    /// Bytes that they take.
    pub kept_bytes: u64,
    /// When the oldest of them ended, in milliseconds since 1970.
    pub oldest_unix_ms: Option<u64>,
    /// Requests that were looked at.
    pub scanned: u64,
    /// There are more.
    pub more: bool,
    /// What to ask for the next ones before.
    pub next: Option<String>,
    /// The search ended before it had looked at everything.
    pub cut: bool,
    /// Some that came in between are no longer kept.
    pub gap: bool,
}

/// Open connections.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connections {
    /// Open connections, the oldest first.
    pub connections: Vec<Connection>,
    /// There are more.
    pub more: bool,
}

/// One open connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connection {
    /// Its number, unique in the server.
    pub number: u64,
    /// Address of the client; null over a Unix socket.
    pub client: Option<String>,
    /// Its port.
    pub client_port: Option<u16>,
    /// Its name, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// What it speaks.
    pub protocol: String,
    /// Version of TLS; null in clear text.
    pub tls_version: Option<String>,
    /// Its cipher suite, by its IANA name.
    pub tls_suite: Option<String>,
    /// The server's address that it came to; null over a Unix socket.
    pub listener: Option<String>,
    /// When it was opened, in milliseconds since 1970.
    pub opened_unix_ms: u64,
    /// Requests that have come over it.
    pub requests: u32,
    /// Bytes received; null over a Unix socket.
    pub bytes_in: Option<u64>,
    /// Bytes sent.
    pub bytes_out: Option<u64>,
    /// `handshake`, `idle`, `active` or `closing`.
    pub state: String,
    /// Round-trip time, as the kernel measured it.
    pub rtt_us: Option<u32>,
    /// Segments sent again.
    pub retransmits: Option<u32>,
    /// The congestion window.
    pub window_bytes: Option<u32>,
}
