//! One round: a while of requests to one server, with the CPU time it took there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Serialize;

use hob_load::{
    BenchPlan, ClientActs, ClientTlsOffer, Expectation, LoadError, LoadModel, RequestSpec, Reuse,
    Url,
};
use hob_machine::tick_ns;
use serde_json::Value;

use crate::account::AccountKind;
use crate::copies::DOCUMENT_BYTES;
use crate::flow::Flow;
use crate::instance::Usage;
use crate::interval::median;
use crate::limits::{
    ANSWER, STRAY_SHARE_MIN, STRAY_TICKS_MIN, WARM_UP_MAX, WARM_UP_MIN, WARM_UP_SHARE,
};
use crate::link::FrameCount;
use crate::noise::cpu_mhz;
use crate::rows::{ComparisonRow, Entrant, Per, RowRequest};
use crate::running::RunningServer;
use crate::server::{CREDENTIALS, TOKEN};
use crate::site::MANY;

/// What came of a round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Round {
    // Of the server and its programs, per request or per megabyte.
    /// CPU time, microseconds.
    pub(crate) cpu_us: f64,
    /// Time in which its threads were ready to run and waited for a CPU, microseconds: those that
    /// were there when the round ended; null where the kernel does not count it, and of servers on
    /// another machine.
    pub(crate) waited_us: Option<f64>,
    /// Answers per second.
    pub(crate) per_second: f64,
    /// Bytes of bodies per second.
    pub(crate) bytes_per_second: f64,
    /// Answers as expected.
    pub(crate) good: u64,
    /// Requests without.
    pub(crate) failed: u64,
    /// The first failure.
    pub(crate) failure: Option<String>,
    /// Median of the response times, microseconds.
    pub(crate) p50_us: f64,
    /// 99 %.
    pub(crate) p99_us: f64,
    /// CPU time of the load generator per request.
    #[serde(rename = "client_cpu_us")]
    pub(crate) client_us: f64,
    /// Time in which its threads were ready to run and waited for a CPU, per request; null where
    /// the kernel does not count it.
    pub(crate) client_waited_us: Option<f64>,
    /// Share of all CPU time that the host took.
    pub(crate) steal_percent: f64,
    /// How fast the server's CPU ran at the end, as its driver or `/proc/cpuinfo` says; null where
    /// neither does, and of another machine.
    pub(crate) cpu_mhz: Option<f64>,
    /// Share of the CPU time that is of programs nobody waits for, taken from what the CPU did
    /// besides; 0 where all was counted.
    pub(crate) stray_percent: f64,
    /// Version, suite and group of the key exchange.
    pub(crate) tls: Option<String>,
    /// Bytes of the body of an answer, as they came over the wire; a mean.
    pub(crate) body_bytes: f64,
    /// Who got how much, in a row of many clients.
    pub(crate) flow: Option<Flow>,
    /// Frames of the link between client and server; null without one.
    pub(crate) link_frames: Option<FrameCount>,
}

/// How long a round is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Time(Duration),
    Count(u64),
    /// So many requests one after the other, the file thrown out of the kernel's memory before
    /// each.
    Cold(usize),
}

/// Where the client runs, and what ends it early.
pub(crate) struct ClientSetup<'a> {
    pub(crate) cpu: usize,
    pub(crate) is_stopped: &'a Arc<AtomicBool>,
}

impl ClientSetup<'_> {
    /// Makes a round. The error says what the server did not do.
    pub(crate) fn round(
        &self,
        row: &ComparisonRow,
        entrant: &Entrant,
        instance: &mut RunningServer,
        length: Length,
    ) -> Result<Round, String> {
        if let Length::Cold(count) = length {
            return self.cold(row, entrant, instance, count);
        }
        let plan = self.plan(row, entrant, instance, length)?;
        // Where clients have one address, each connection is one of them.
        let clients = match plan.sources {
            1 => plan.connections,
            sources => sources,
        };
        let mut waits = instance.waits();
        let mut before = (instance.usage(), instance.frames());
        let is_stopped = self.is_stopped.clone();
        let report = match length {
            // Connections that are kept are open and known before anything counts; what the client
            // itself needs to begin is none of the measured time.
            Length::Time(_) => hob_load::run_rested(plan, is_stopped, &mut || {
                waits = instance.waits();
                before = (instance.usage(), instance.frames());
            }),
            Length::Count(_) | Length::Cold(_) => hob_load::run_until(plan, is_stopped),
        };
        let (before, frames_before) = (before.0?, before.1);
        let report = report.map_err(|error| match error {
            LoadError::Server(text) | LoadError::Arguments(text) => text,
            error @ LoadError::System { .. } => error.to_string(),
        })?;
        let now = instance.usage()?;
        let (cpu_ns, stray_percent) = used_since(before, now);
        let used = ServerUse {
            cpu_ns,
            waited_ns: instance.waits().since(&waits),
        };
        let figures = figures(&report.json(), used, row);
        let round = Round {
            stray_percent,
            client_waited_us: report.client_waited_us(),
            cpu_mhz: instance.cpu().and_then(cpu_mhz),
            link_frames: { instance.frames() }
                .zip(frames_before)
                .map(|(now, before)| now.since(before)),
            steal_percent: figures.steal_percent.max(now.steal_percent_since(&before)),
            flow: (row.sources > 1)
                .then(|| Flow::of(report.answered_by_connection(), entrant.bytes, clients))
                .flatten(),
            ..figures
        };
        match round.good + round.failed == 0 && !self.is_stopped.load(Ordering::Relaxed) {
            true => Err("no request was made in time".to_owned()),
            false => Ok(round),
        }
    }

    /// Requests one by one, of which each finds the file on the disk.
    fn cold(
        &self,
        row: &ComparisonRow,
        entrant: &Entrant,
        instance: &mut RunningServer,
        count: usize,
    ) -> Result<Round, String> {
        if instance.account() == AccountKind::Processes {
            return Err(format!(
                "CPU time comes from {} here, which one request does not show: it needs a control \
                 group, which root can make",
                instance.account().name()
            ));
        }
        let mut rounds = vec![];
        for _ in 0..count {
            instance.forget(&entrant.path)?;
            rounds.push(self.round(row, entrant, instance, Length::Count(1))?);
            if self.is_stopped.load(Ordering::Relaxed) {
                break;
            }
        }
        let times: Vec<f64> = rounds.iter().map(|round| round.p50_us).collect();
        let mean = |value: fn(&Round) -> f64| {
            rounds.iter().map(value).sum::<f64>() / rounds.len().max(1) as f64
        };
        let mean_of_known = |value: fn(&Round) -> Option<f64>| {
            let known: Option<Vec<f64>> = rounds.iter().map(value).collect();
            known.map(|known| known.iter().sum::<f64>() / known.len().max(1) as f64)
        };
        let last = rounds.last().cloned().ok_or("no request was made")?;
        Ok(Round {
            cpu_us: mean(|round| round.cpu_us),
            per_second: mean(|round| round.per_second),
            bytes_per_second: mean(|round| round.bytes_per_second),
            good: rounds.iter().map(|round| round.good).sum(),
            failed: rounds.iter().map(|round| round.failed).sum(),
            link_frames: FrameCount::sum(rounds.iter().filter_map(|round| round.link_frames)),
            p50_us: median(&times).unwrap_or_default(),
            p99_us: times.iter().copied().fold(0.0, f64::max),
            client_us: mean(|round| round.client_us),
            waited_us: mean_of_known(|round| round.waited_us),
            client_waited_us: mean_of_known(|round| round.client_waited_us),
            steal_percent: mean(|round| round.steal_percent),
            body_bytes: mean(|round| round.body_bytes),
            ..last
        })
    }

    fn plan(
        &self,
        row: &ComparisonRow,
        entrant: &Entrant,
        instance: &RunningServer,
        length: Length,
    ) -> Result<BenchPlan, String> {
        let (scheme, port) = match row.is_secure {
            true => ("https", instance.ports().secure),
            false => ("http", instance.ports().clear),
        };
        let url = format!("{scheme}://{}:{port}{}", instance.host(), entrant.path);
        let entries = match row.request {
            RowRequest::AnyFile => any_of(&url)?,
            _ => vec![url.parse::<Url>()?.into()],
        };
        let (method, body) = match row.request {
            RowRequest::Upload(bytes) => ("POST", Some(vec![b'x'; bytes as usize])),
            _ => ("GET", None),
        };
        let (duration, count) = match length {
            Length::Time(time) => (Some(time), None),
            Length::Count(count) => (None, Some(count)),
            Length::Cold(_) => (None, Some(1)),
        };
        let connections =
            count.map_or(row.connections, |count| row.connections.min(count as usize));
        Ok(BenchPlan {
            entries,
            seed: any_seed(),
            acts: ClientActs::default(),
            page: None,
            unix: None,
            pace: LoadModel::Closed {
                think: Duration::ZERO,
            },
            connections,
            // Other addresses than one's own are there in 127.0.0.0/8 alone.
            sources: match instance.host().is_loopback() {
                true => row.sources.min(connections),
                false => 1,
            },
            protocol: row.protocol,
            streams: row.streams,
            reuse: row.reuse,
            is_insecure: true,
            // Nobody may be asked for more than the others, or choose for itself.
            terms: ClientTlsOffer {
                suite: Some("TLS_AES_256_GCM_SHA384".to_owned()),
                group: Some("X25519".to_owned()),
            },
            // What a session costs depends on who keeps it; a full handshake is the same for all.
            is_resumption_off: true,
            threads: 1,
            cpus: vec![self.cpu],
            warm_up: match (row.reuse, length) {
                (Reuse::KeepAlive, Length::Time(time)) => {
                    (time / WARM_UP_SHARE).clamp(WARM_UP_MIN, WARM_UP_MAX)
                }
                // The connection is a part of what is measured, or nothing beside it.
                _ => Duration::ZERO,
            },
            duration,
            count,
            timeout: ANSWER,
            method: method.to_owned(),
            fields: fields(row.request, entrant.bytes),
            body,
            expectations: expectations(row.request, entrant.bytes)?,
            thresholds: vec![],
            pid: None,
        })
    }
}

/// All of the many files below a URL. Weights that differ a little have them drawn at random: those
/// that weigh the same would come in turn.
fn any_of(url: &str) -> Result<Vec<RequestSpec>, String> {
    let entry = |(number, path): (usize, String)| {
        let url: Url = format!("{url}/{path}").parse()?;
        Ok(RequestSpec {
            name: Some(MANY.folder.to_owned()),
            weight: 1.0 + (number % 2) as f64 / 10_000.0,
            ..url.into()
        })
    };
    MANY.paths().enumerate().map(entry).collect()
}

/// Draws begin elsewhere in each round.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |time| time.as_nanos() as u64)
}

/// What an answer must be.
fn expectations(request: RowRequest, bytes: u64) -> Result<Vec<Expectation>, String> {
    let status = match request {
        RowRequest::Part => 206,
        _ => 200,
    };
    let mut all = vec![Expectation::Status(vec![(status, status)])];
    if request == RowRequest::Gzip && bytes != DOCUMENT_BYTES {
        all.push("header=Content-Encoding:gzip".parse()?);
    }
    // How short a server makes it is its own affair.
    if request != RowRequest::Gzip || bytes > 0 {
        all.push(Expectation::Size(bytes));
    }
    Ok(all)
}

/// Fields of each request.
fn fields(request: RowRequest, bytes: u64) -> Vec<(String, String)> {
    let field = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    match request {
        RowRequest::Part => vec![first_bytes(bytes)],
        RowRequest::Gzip => field("Accept-Encoding", "gzip"),
        RowRequest::SignedIn => field("Authorization", CREDENTIALS),
        RowRequest::Token => field("Authorization", TOKEN),
        RowRequest::Whole | RowRequest::Upload(_) | RowRequest::AnyFile => vec![],
    }
}

/// The field that asks for the first bytes of a file.
fn first_bytes(count: u64) -> (String, String) {
    ("Range".to_owned(), format!("bytes=0-{}", count - 1))
}

/// CPU time between two moments in nanoseconds, and how many percent of it are of programs that
/// nobody waited for: what is left over on the CPU, where it is too much to be chance.
fn used_since(before: Usage, now: Usage) -> (u64, f64) {
    let counted = now.counted_ns.saturating_sub(before.counted_ns);
    let left_over = u64::try_from(now.left_over_ns - before.left_over_ns).unwrap_or(0);
    let is_chance =
        left_over <= counted / STRAY_SHARE_MIN || left_over <= STRAY_TICKS_MIN * tick_ns();
    match is_chance {
        true => (counted, 0.0),
        false => {
            let all = counted + left_over;
            (all, left_over as f64 * 100.0 / all as f64)
        }
    }
}

/// What the server had of a CPU in a round, and how long it waited for one, where that is counted.
struct ServerUse {
    cpu_ns: u64,
    waited_ns: Option<u64>,
}

/// Takes what is needed out of a report of the load generator.
fn figures(report: &Value, used: ServerUse, row: &ComparisonRow) -> Round {
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    let whole = |path: &str| report.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let seconds = number("/elapsed_s");
    let answered = number("/requests/answered");
    let bodies = match row.request {
        RowRequest::Upload(bytes) => number("/requests/good") * bytes as f64,
        _ => number("/bytes/bodies"),
    };
    let units = match row.per {
        Per::Request => number("/requests/good"),
        Per::Megabyte => bodies / 1e6,
    };
    let over = |value: f64, base: f64| if base > 0.0 { value / base } else { 0.0 };
    let failure = report.pointer("/failures/0").map(|failure| {
        let text = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("kind"), text("first"))
    });
    Round {
        cpu_us: over(used.cpu_ns as f64 / 1e3, units),
        waited_us: used.waited_ns.map(|ns| over(ns as f64 / 1e3, units)),
        per_second: over(answered, seconds),
        bytes_per_second: over(bodies, seconds),
        good: whole("/requests/good"),
        failed: whole("/requests/failed"),
        failure,
        p50_us: number("/latency/response/p50_us"),
        p99_us: number("/latency/response/p99_us"),
        client_us: number("/client/cpu_us_per_request"),
        steal_percent: number("/machine/steal_percent"),
        tls: report
            .pointer("/tls/terms")
            .and_then(Value::as_str)
            .map(str::to_owned),
        body_bytes: over(number("/bytes/bodies"), answered),
        ..Round::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rows::RowGroup;

    #[test]
    fn what_is_left_over_counts_where_it_is_too_much_to_be_chance() {
        let usage = |counted_ticks: u64, left_over_ticks: i64| Usage {
            counted_ns: counted_ticks * tick_ns(),
            left_over_ns: left_over_ticks * tick_ns() as i64,
            machine: None,
        };
        let since = |now| {
            let (used_ns, percent) = used_since(usage(10, -5), now);
            (used_ns / tick_ns(), percent)
        };
        assert_eq!(since(usage(30, -5)), (20, 0.0));
        // Below nothing, and within chance.
        assert_eq!(since(usage(30, -9)), (20, 0.0));
        assert_eq!(since(usage(110, 0)), (100, 0.0));
        assert_eq!(since(usage(10, -3)), (0, 0.0));
        assert_eq!(since(usage(30, 55)), (80, 75.0));
    }

    #[test]
    fn cpu_time_is_divided_by_what_was_answered_as_expected() {
        let report = json!({
            "elapsed_s": 2.0,
            "requests": { "answered": 10, "good": 4, "failed": 6 },
            "bytes": { "bodies": 2e6 },
            "failures": [{ "kind": "status", "first": "503" }],
        });
        let used = || ServerUse {
            cpu_ns: 8_000_000,
            waited_ns: Some(400_000),
        };
        let mut row = ComparisonRow::new(String::new(), String::new(), RowGroup::Stream, 1);
        let round = figures(&report, used(), &row);
        assert_eq!((round.cpu_us, round.per_second), (2000.0, 5.0));
        assert_eq!(round.waited_us, Some(100.0));
        assert_eq!((round.good, round.failed), (4, 6));
        assert_eq!(round.failure.as_deref(), Some("status: 503"));
        row.per = Per::Megabyte;
        assert_eq!(figures(&report, used(), &row).cpu_us, 4000.0);
        row.request = RowRequest::Upload(500_000);
        let round = figures(&report, used(), &row);
        assert_eq!((round.cpu_us, round.bytes_per_second), (4000.0, 1e6));
    }
}
