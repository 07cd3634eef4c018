//! What a result is in JSON. Its schema and the page about it in the docs are made of these types
//! and of what is said of each field.

use std::collections::BTreeMap;

use hob_load::{Environment, layout};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::load::ResponseTimes;
use crate::stages::{Nested, Stage};

/// Grows when a field changes its meaning or goes; fields may be added without it.
pub(super) const FORMAT: u32 = 1;

/// The JSON schema of a result.
pub fn schema() -> Value {
    layout::schema::<CostResult>("result of `hob cost --json`")
}

/// The reference page, in Markdown.
pub fn reference() -> String {
    format!(
        "# The result of a cost study\n\n\
         `hob cost --json` prints one JSON object with these fields; `hob cost --schema` prints \
         its JSON schema. Every field is always there; those marked *or null* hold null where \
         there is nothing to tell. New fields may be added; `format` grows when one changes its \
         meaning.\n\n\
         {}\n## Times\n\nOf many requests, in microseconds.\n\n{}\n\
         ## CPU times\n\nOf one request, in microseconds.\n\n{}",
        layout::table::<CostResult>(),
        layout::table::<ResponseTimes>(),
        layout::table::<CpuTimes>()
    )
}

/// Result of `hob cost --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CostResult {
    /// Version of this layout: 1.
    pub(crate) format: u32,
    /// The script, the URL or the built-in echo.
    pub(crate) subject: String,
    /// What was asked, again and again.
    pub(crate) request: Request,
    /// Requests of each kind.
    pub(crate) count: u64,
    /// Requests per second for which savings are told.
    pub(crate) rate_per_s: f64,
    /// What clock ticks leave open of the CPU time of a request, microseconds.
    pub(crate) cpu_resolution_us: f64,
    /// The ways of running the script; empty where they were not asked for.
    pub(crate) rungs: Vec<RungCost>,
    /// Where one request as `cgi` goes; null where that was not measured.
    pub(crate) stages: Option<StageTable>,
    /// Processes made with no server around them; empty where not asked for.
    pub(crate) bare: Vec<BareStart>,
    /// The script as `cgi` with a server that has grown; empty where not asked for.
    pub(crate) growth: Vec<Growth>,
    /// Many starts at once; empty where not asked for.
    pub(crate) burst: Vec<BurstCost>,
    /// What goes between client and server; null where it was not asked for.
    pub(crate) wire: Option<WireResult>,
    /// Parts that failed after another was finished.
    pub(crate) failed: Vec<Failed>,
    /// What a move would save; empty where there is nothing to compare.
    pub(crate) sentence: String,
    /// The machine.
    pub(crate) environment: Environment,
}

/// What was asked, again and again.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Request {
    /// Its method.
    pub(crate) method: String,
    /// Length of its body; 0 without one.
    pub(crate) body_bytes: usize,
}

/// A way of running the script.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RungCost {
    /// `cgi`, `warm` or `resident`.
    pub(crate) handler: &'static str,
    /// How a resident program is spoken to; null for others.
    pub(crate) carrier: Option<&'static str>,
    /// `script`, or `echo` for the built-in one in its place.
    pub(crate) program: &'static str,
    /// What it is written in, as far as it is known.
    pub(crate) language: &'static str,
    /// Until the answer; null where it was not possible.
    pub(crate) wall: Option<ResponseTimes>,
    /// CPU time of a request.
    pub(crate) cpu_us: Option<CpuTimes>,
    /// Why the script cannot be run so.
    pub(crate) not_possible: Option<String>,
}

/// Where one request as `cgi` goes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StageTable {
    /// The script.
    pub(crate) script: String,
    /// The stages in their order.
    pub(crate) rows: Vec<Stage>,
    /// What the stages together are less than the whole; more, where it is negative.
    pub(crate) unexplained_us: f64,
    /// After the answer: from the end of the output until the process was waited for.
    pub(crate) reap_us: f64,
    /// The whole request, over a connection of its own.
    pub(crate) total: ResponseTimes,
    /// CPU time of the whole.
    pub(crate) cpu_us: CpuTimes,
    /// The totals that stages are differences of.
    pub(crate) nested: Vec<Nested>,
    /// The whole in 1995, milliseconds.
    pub(crate) in_1995_ms: In1995,
}

/// The whole in 1995, in milliseconds.
#[derive(Serialize, JsonSchema)]
pub(crate) struct In1995 {
    /// All of it.
    pub(crate) total: f64,
    /// Blocked on a socket, which nobody explained.
    pub(crate) blocked: f64,
}

/// Processes made in one way, with no server around them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BareStart {
    /// `fork`, `posix_spawn` or `vfork`.
    pub(crate) made_by: &'static str,
    /// The process becomes another program.
    pub(crate) exec: bool,
    /// Memory of the process that makes it.
    pub(crate) parent_bytes: usize,
    /// How many were made.
    pub(crate) count: u64,
    /// Until it had ended and was waited for; null where not possible.
    pub(crate) wall: Option<ResponseTimes>,
    /// Until the call that makes it was back.
    pub(crate) call: Option<ResponseTimes>,
    /// Mean CPU time of both, microseconds.
    pub(crate) cpu_us: Option<f64>,
    /// Why it was not measured.
    pub(crate) not_possible: Option<String>,
}

/// The script as `cgi` with a server that has grown.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Growth {
    /// Memory the server was to have.
    pub(crate) wanted_bytes: usize,
    /// What it had.
    pub(crate) server_bytes: u64,
    /// Until the answer; null where not possible.
    pub(crate) wall: Option<ResponseTimes>,
    /// CPU time of a request.
    pub(crate) cpu_us: Option<CpuTimes>,
    /// Why it was not measured.
    pub(crate) not_possible: Option<String>,
}

/// Many starts at once.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BurstCost {
    /// Requests at once.
    pub(crate) starts: usize,
    /// How many may run at a time; null for all of them.
    pub(crate) limit: Option<usize>,
    /// Until the answer.
    pub(crate) wall: ResponseTimes,
    /// CPU time of a request.
    pub(crate) cpu_us: CpuTimes,
}

/// What goes between client and server.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WireResult {
    /// Every way of connecting.
    pub(crate) ways: Vec<WayCost>,
    /// Bytes of the longest packet on the way to the server; null where the kernel does not say.
    pub(crate) mtu: Option<u32>,
    /// Why there are no system calls.
    pub(crate) no_calls: Option<String>,
}

/// A way of connecting.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WayCost {
    /// Protocol and what becomes of connections.
    pub(crate) name: &'static str,
    /// Until the answer, connecting included; null where not measured.
    pub(crate) wall: Option<ResponseTimes>,
    /// Packets to the server for each request, datagrams over HTTP/3; null where the kernel does
    /// not count.
    pub(crate) packets_out: Option<f64>,
    /// Those from it.
    pub(crate) packets_in: Option<f64>,
    /// Bytes to the server, without headers of TCP, UDP and IP.
    pub(crate) bytes_out: Option<f64>,
    /// Those from it.
    pub(crate) bytes_in: Option<f64>,
    /// Round trips of a request, those of connecting included.
    pub(crate) round_trips: Option<f64>,
    /// Version and suite of TLS.
    pub(crate) tls: Option<String>,
    /// System calls of the server for each request.
    pub(crate) calls: Option<CallCounts>,
    /// Why there are no figures.
    pub(crate) not_measured: Option<String>,
}

/// System calls of the server for each request.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CallCounts {
    /// All of them.
    pub(crate) total: f64,
    /// Each by its name.
    pub(crate) by_name: BTreeMap<String, f64>,
}

/// A part that failed after another was finished.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Failed {
    /// As `--part` names it.
    pub(crate) part: &'static str,
    /// Why.
    pub(crate) why: String,
}

/// CPU time of a request in microseconds.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "cpu", title = "CPU times")]
pub(crate) struct CpuTimes {
    /// The process that answers.
    pub(crate) server: f64,
    /// The one that starts programs, and the keeper.
    pub(crate) spawner: f64,
    /// The programs.
    pub(crate) program: f64,
    /// All of them.
    pub(crate) total: f64,
}
