//! What a result is in JSON. Its schema and the page about it in the docs are made of these types
//! and of what is said of each field.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Serialize;

use crate::environment::Environment;

/// Grows when a field changes its meaning or goes; fields may be added without it.
pub(crate) const FORMAT: u32 = 1;

/// Result of `hob bench --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BenchResult {
    /// Version of this layout: 1.
    pub(crate) format: u32,
    /// What was asked for.
    pub(crate) plan: Plan,
    /// When the run began, in seconds since 1970.
    pub(crate) begun_at: u64,
    /// The same in milliseconds.
    pub(crate) begun_at_ms: u64,
    /// Measured time, until the last answer where that came later.
    pub(crate) elapsed_s: f64,
    /// The run was ended by a signal.
    pub(crate) interrupted: bool,
    /// The condition of `--stop-if` that ended the run, and what was so.
    pub(crate) stopped: Option<String>,
    /// Which part of the plan was carried out: `1/3`, or `3 of 3` where parts were merged.
    pub(crate) shard: Option<String>,
    /// The command line.
    pub(crate) command: Vec<String>,
    /// The machine of the load generator; null where several were.
    pub(crate) environment: Option<Environment>,
    /// Measured requests.
    pub(crate) requests: Requests,
    /// What there was in the log that was replayed, as far as it was read; null without one.
    pub(crate) replay: Option<Log>,
    /// Connections.
    pub(crate) connections: Connections,
    /// What was agreed on.
    pub(crate) tls: Tls,
    /// Requests per second.
    pub(crate) rate: Rate,
    /// Bytes of the measured requests.
    pub(crate) bytes: Bytes,
    /// Answers by status.
    pub(crate) status: Vec<StatusCount>,
    /// Failures by kind; only kinds that occurred.
    pub(crate) failures: Vec<Failure>,
    /// Histograms of times, in microseconds.
    pub(crate) latency: Latencies,
    /// What pages took, with `--page`.
    pub(crate) page: Option<PageResult>,
    /// What happened when, by stretches of the measured time; requests belong to where they ended.
    pub(crate) series: Stretches,
    /// By URL, or by name in a list; empty where there is one.
    pub(crate) urls: Vec<Url>,
    /// By step of the rate; empty where there is one.
    pub(crate) steps: Vec<Part>,
    /// Evenness of answers over connections, by Jain's index: 1 is even, 1/n all to one.
    pub(crate) fairness: Option<f64>,
    /// The same over `urls`, of answers beside weights; null where there is one, in replays and in
    /// merged results.
    pub(crate) fairness_urls: Option<f64>,
    /// The same over `addresses`, of answers beside connections; null without `--sources`.
    pub(crate) fairness_addresses: Option<f64>,
    /// The client addresses of `--sources`; empty without.
    pub(crate) addresses: Vec<Address>,
    /// The load generator.
    pub(crate) client: Client,
    /// The process of `--pid` and those below it.
    pub(crate) server: Server,
    /// The machine of the load generator.
    pub(crate) machine: Machine,
    /// Something else than the server may have been the limit.
    pub(crate) doubtful: bool,
    /// Why, and what else is to be known.
    pub(crate) notes: Vec<String>,
    /// The conditions of `--fail-if`.
    pub(crate) thresholds: Vec<Judged>,
}

/// What was asked for.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Plan {
    /// The URLs, in turn or by weight.
    pub(crate) urls: Vec<String>,
    /// How often each is asked for beside the others; in turn where all are alike.
    pub(crate) weights: Vec<f64>,
    /// Number that random gaps and draws followed from.
    pub(crate) seed: u64,
    /// Of the requests with GET, how many in a hundred were made with HEAD instead: what stands in
    /// `urls` then is all of them, each of these beside its GET.
    pub(crate) head_percent: f64,
    /// How many requests in a hundred were to be broken off.
    pub(crate) break_percent: f64,
    /// Bytes per second that were read of each connection at most; null for all that came.
    pub(crate) read_rate: Option<NonZeroU64>,
    /// Whether every read took another number of bytes at most.
    pub(crate) vary: bool,
    /// Where the server was found.
    pub(crate) address: String,
    /// `h1`, `h2` or `h3`.
    pub(crate) protocol: &'static str,
    /// With `--page`, `cold` or `warm`: wherever requests are spoken of, a page with its assets is
    /// one, and a connection is a visitor.
    pub(crate) page: Option<&'static str>,
    /// Requests at once on a connection.
    pub(crate) streams: usize,
    /// Method of requests without one of their own.
    pub(crate) method: String,
    /// Header fields of every request, as `NAME: VALUE`.
    pub(crate) headers: Vec<String>,
    /// Length of the body of `--body`; null without one.
    pub(crate) body_bytes: Option<usize>,
    /// Its SHA-256 in hexadecimal digits.
    pub(crate) body_sha256: Option<String>,
    /// SHA-256 over what requests of a list have of their own: names, methods, bodies,
    /// expectations; null where they have nothing.
    pub(crate) list_sha256: Option<String>,
    /// `full` or `resumed`: how connections shake hands; null in clear text.
    pub(crate) tls: Option<&'static str>,
    /// `closed` or `open`.
    #[serde(rename = "loop")]
    pub(crate) loop_kind: &'static str,
    /// Requests per second as given, in an open loop.
    pub(crate) rate: Option<String>,
    /// `constant` or `poisson`, in an open loop.
    pub(crate) arrivals: Option<&'static str>,
    /// Pause between answer and next request, in a closed loop.
    pub(crate) think_s: Option<f64>,
    /// The log that was replayed; null without one.
    pub(crate) replay: Option<Replayed>,
    /// Connections, over all threads.
    pub(crate) connections: usize,
    /// Client addresses of `--sources`; 1 for the system's choice.
    pub(crate) sources: usize,
    /// False: one connection per request.
    pub(crate) keep_alive: bool,
    /// Threads of the load generator.
    pub(crate) threads: usize,
    /// Time before anything counts.
    pub(crate) warm_up_s: f64,
    /// Measured time asked for.
    pub(crate) duration_s: Option<f64>,
    /// Measured requests asked for.
    pub(crate) count: Option<u64>,
    /// Longest wait for an answer.
    pub(crate) timeout_s: f64,
    /// Process that was watched, with those below it.
    pub(crate) pid: Option<u32>,
    /// What answers had to be.
    pub(crate) expectations: Vec<String>,
}

/// The log that was replayed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Replayed {
    /// Its file.
    pub(crate) file: String,
    /// What gaps between its requests were divided by.
    pub(crate) speed_up: f64,
    /// Methods that were sent.
    pub(crate) methods: Vec<String>,
}

/// Measured requests.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Requests {
    /// Requests that were due.
    pub(crate) due: u64,
    /// Those with a complete answer, expected or not.
    pub(crate) answered: u64,
    /// Those answered as expected.
    pub(crate) good: u64,
    /// Those that failed, in whatever way.
    pub(crate) failed: u64,
    /// Those that the client broke off within their answers, as `--break` had it: neither answered
    /// nor failed, and in no histogram.
    pub(crate) broken_off: u64,
    /// Those on their way when the run was interrupted.
    pub(crate) unfinished: u64,
    /// Sent more than 1 ms late though a connection was free.
    pub(crate) late: u64,
    /// Sent more than 1 ms late because no connection, or no stream on one, was free.
    pub(crate) waited: u64,
    /// Sent again because the server refused to begin them.
    pub(crate) again: u64,
}

/// What there was in the log that was replayed, as far as it was read.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Log {
    /// Lines.
    pub(crate) lines: u64,
    /// Those that are requests to send, of all shards.
    pub(crate) requests: u64,
    /// Those with a method that is not sent.
    pub(crate) other_methods: u64,
    /// Those that are no line of an access log.
    pub(crate) unreadable: u64,
    /// Those whose target no request can say.
    pub(crate) unsendable: u64,
    /// The first line of these two kinds, and why.
    pub(crate) first: Option<String>,
    /// Requests up to a minute older than one before them, sent as if they were not.
    pub(crate) back: u64,
    /// Requests older than that, or more than a day younger than the one before, from which on
    /// another log was taken to begin.
    pub(crate) jumps: u64,
    /// Time from the first request to the last, by the log's own clock.
    pub(crate) span_s: f64,
    /// Why it was not read to its end.
    pub(crate) error: Option<String>,
}

/// Connections.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Connections {
    /// Opened for measured requests, handshake included.
    pub(crate) opened: u64,
}

/// What was agreed on.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tls {
    /// Version, suite and group of the key exchange; null in clear text.
    pub(crate) terms: Option<String>,
    /// Full handshakes.
    pub(crate) full: u64,
    /// Handshakes that resumed a session.
    pub(crate) resumed: u64,
}

/// Requests per second.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rate {
    /// Requests due per second, in an open loop.
    pub(crate) offered_per_s: Option<f64>,
    /// Answers per second.
    pub(crate) answered_per_s: f64,
}

/// Bytes of the measured requests.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Bytes {
    /// Received, heads included.
    pub(crate) received: u64,
    /// Bodies received, without what frames them.
    pub(crate) bodies: u64,
    /// Sent.
    pub(crate) sent: u64,
}

/// Answers with a status.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StatusCount {
    /// The status.
    pub(crate) code: u16,
    /// Answers with it.
    pub(crate) count: u64,
}

/// Failures of a kind.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Failure {
    /// One of the kinds below.
    pub kind: &'static str,
    /// How many.
    pub count: u64,
    /// What the first one was.
    pub first: String,
}

/// Histograms of times, in microseconds.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Latencies {
    /// From when a request was due; requests without an answer in time with what they waited.
    pub(crate) response: Option<LatencySummary>,
    /// From when it was sent, answered requests only.
    pub(crate) service: Option<LatencySummary>,
    /// From the beginning of a connection until it was open.
    pub(crate) connect: Option<LatencySummary>,
}

/// What pages took, with `--page`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PageResult {
    /// From when a page was due to the first byte of its document.
    pub(crate) first_byte: Option<LatencySummary>,
    /// What one page took, on average.
    pub(crate) per_page: PerPage,
    /// Requests of all pages.
    pub(crate) requests: u64,
    /// Answers that said that nothing has changed.
    pub(crate) not_modified: u64,
    /// Assets that were fresh and not asked for.
    pub(crate) from_cache: u64,
    /// Assets of other servers, which are not loaded.
    pub(crate) elsewhere: u64,
    /// Assets beyond the most that one page may have, not loaded.
    pub(crate) left_out: u64,
    /// Documents and stylesheets that were longer than is looked at.
    pub(crate) cut: u64,
    /// The assets, the slowest first.
    pub(crate) assets: Vec<Asset>,
    /// The other servers that pages name.
    pub(crate) origins: Vec<Origin>,
}

/// What one page took, on average.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PerPage {
    /// Requests.
    pub(crate) requests: Option<f64>,
    /// Bytes received, heads included.
    pub(crate) received_bytes: Option<f64>,
    /// Answers that said that nothing has changed.
    pub(crate) not_modified: Option<f64>,
    /// Assets that were fresh and not asked for.
    pub(crate) from_cache: Option<f64>,
    /// Connections that were opened.
    pub(crate) connections: Option<f64>,
}

/// What came of an asset of pages.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Asset {
    /// Path and query.
    pub(crate) url: String,
    /// `document`, `frame`, `style`, `script`, `font`, `image`, `icon` or `other`.
    pub(crate) kind: &'static str,
    /// Complete answers.
    pub(crate) count: u64,
    /// Those answered as expected.
    pub(crate) good: u64,
    /// Failures.
    pub(crate) failed: u64,
    /// Answers that said that nothing has changed.
    pub(crate) not_modified: u64,
    /// Bodies received.
    pub(crate) body_bytes: u64,
    /// Median time from when it was asked for until it was there, right to a hundredth.
    pub(crate) p50_us: Option<f64>,
    /// 99 %.
    pub(crate) p99_us: Option<f64>,
    /// The longest.
    pub(crate) max_us: Option<f64>,
    /// The times, as `histogram` below.
    pub(crate) histogram: String,
}

/// Another server that pages name.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Origin {
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// Assets there.
    pub(crate) count: u64,
}

/// What happened when, by stretches of the measured time; requests belong to where they ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stretches {
    /// Length of a stretch: a second, in long runs more.
    pub(crate) interval_s: f64,
    /// Complete answers, by stretch.
    pub(crate) answered: Vec<u64>,
    /// Those answered as expected.
    pub(crate) good: Vec<u64>,
    /// Failures.
    pub(crate) failed: Vec<u64>,
    /// Median response time, right to a hundredth; null without one.
    pub(crate) p50_us: Vec<Option<f64>>,
    /// 99 %.
    pub(crate) p99_us: Vec<Option<f64>>,
    /// The longest.
    pub(crate) max_us: Vec<Option<f64>>,
    /// The times of each stretch, as `histogram` below.
    pub(crate) histograms: Vec<String>,
}

/// What came of the requests of a URL or a name.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Url {
    /// The name in the list, else the URL, with its method where that is not GET.
    pub(crate) name: String,
    /// The URL, the first of the name.
    pub(crate) url: String,
    /// URLs that have the name.
    pub(crate) url_count: usize,
    /// The method of the first.
    pub(crate) method: String,
    /// The sum of their weights.
    pub(crate) weight: f64,
    /// As `fairness`, of its answers over connections; null where there are too many to tell apart,
    /// and in merged results.
    pub(crate) fairness: Option<f64>,
    #[serde(flatten)]
    pub(crate) part: Part,
}

/// What came of the requests of a URL, a name or a step of the rate.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Part {
    /// Complete answers.
    pub(crate) answered: u64,
    /// Failures.
    pub(crate) failed: u64,
    /// As `failures`.
    pub(crate) failures: Vec<Failure>,
    /// As `latency.response`.
    pub(crate) response: Option<LatencySummary>,
    /// As `latency.service`.
    pub(crate) service: Option<LatencySummary>,
}

/// A client address.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Address {
    /// The address.
    pub(crate) address: String,
    /// Connections that it had at once.
    pub(crate) connections: u64,
    /// Complete answers that it got.
    pub(crate) answered: u64,
}

/// The load generator.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Client {
    /// Its own CPU time per answer, microseconds.
    pub(crate) cpu_us_per_request: Option<f64>,
    /// Time in which its busiest thread was busy.
    pub(crate) busy_percent: f64,
}

/// The process of `--pid` and those below it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Server {
    /// Their CPU time per answer, microseconds.
    pub(crate) cpu_us_per_request: Option<f64>,
    /// Their memory at the end, shared pages by share.
    pub(crate) memory_bytes: Option<u64>,
    /// CPU time of the control group of `--cgroup` per answer, microseconds.
    pub(crate) cgroup_cpu_us_per_request: Option<f64>,
    /// Its memory at the end, page cache included.
    pub(crate) cgroup_memory_bytes: Option<u64>,
}

/// The machine of the load generator.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Machine {
    /// CPU time in use, of all CPUs.
    pub(crate) busy_percent: f64,
    /// CPU time the host gave to others.
    pub(crate) steal_percent: f64,
}

/// A condition of `--fail-if`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Judged {
    /// As it was written.
    pub(crate) text: String,
    /// The figure: nanoseconds, a count, % or an index; null where it was not measured.
    pub(crate) value: Option<f64>,
    /// The run has failed it.
    pub(crate) crossed: bool,
}

/// Times in microseconds, right to a thousandth.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "times", title = "times")]
pub struct LatencySummary {
    /// Times recorded.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// The shortest.
    pub min_us: f64,
    /// Half of them are at most this.
    pub p50_us: f64,
    /// 75 %.
    pub p75_us: f64,
    /// 90 %.
    pub p90_us: f64,
    /// 95 %.
    pub p95_us: f64,
    /// 99 %.
    pub p99_us: f64,
    /// 99.9 %.
    pub p99_9_us: f64,
    /// 99.99 %.
    pub p99_99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// All of them in nanoseconds: HdrHistogram's compressed V2 layout in base64.
    pub histogram: String,
}

/// Result of `hob bench --compare --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(
    rename = "comparison",
    title = "result of `hob bench --compare --json`"
)]
pub(crate) struct Compared {
    /// Version of this layout: 1.
    pub(crate) format: u32,
    /// Share of cases in which an interval holds the true change.
    pub(crate) confidence_percent: f64,
    /// How intervals were made.
    pub(crate) method: String,
    /// The figures both sides have.
    pub(crate) figures: Vec<Figure>,
    /// What else is to be known.
    pub(crate) notes: Vec<String>,
    /// The conditions of `--fail-if`.
    pub(crate) thresholds: Vec<Crossed>,
}

/// A figure that both sides have.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Figure {
    /// As thresholds name it.
    pub(crate) name: &'static str,
    /// Nanoseconds, answers per second, % or an index.
    pub(crate) before: f64,
    /// The same afterwards.
    pub(crate) after: f64,
    /// The change; null where it was 0 before.
    pub(crate) change_percent: Option<f64>,
    /// Lower end of its interval; null without one.
    pub(crate) low_percent: Option<f64>,
    /// Upper end.
    pub(crate) high_percent: Option<f64>,
    /// `faster`, `slower`, `fewer`, `more`, `cheaper`, `dearer`, `fairer`, `less fair`, `cannot be
    /// told apart` or `not judged`.
    pub(crate) verdict: &'static str,
}

/// A condition of `--fail-if` on a change.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Crossed {
    /// As it was written.
    pub(crate) text: String,
    /// The change is beyond it and certain.
    pub(crate) crossed: bool,
}
