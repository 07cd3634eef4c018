//! One round: a while of requests to one server, with the CPU time it took there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hob_load::{Expectation, LoadError, Pace, Plan, Url};
use serde_json::Value;

use crate::instance::Instance;
use crate::limits::ANSWER;
use crate::rows::{Entrant, Per, Row};

/// What came of a round.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Round {
    /// Microseconds of CPU time of the server and its programs, per request or per megabyte.
    pub(crate) cpu_us: f64,
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
    /// Response times in microseconds.
    pub(crate) p50_us: f64,
    /// The same.
    pub(crate) p99_us: f64,
    /// The load generator's own CPU time per request.
    pub(crate) client_us: f64,
    /// Percent of all CPU time that the host gave to others.
    pub(crate) steal_percent: f64,
    /// Version and suite, over TLS.
    pub(crate) tls: Option<String>,
}

/// How long a round is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Time(Duration),
    Count(u64),
}

/// Where the client runs, and what ends it early.
pub(crate) struct Client<'a> {
    pub(crate) cpu: usize,
    pub(crate) is_stopped: &'a Arc<AtomicBool>,
}

impl Client<'_> {
    /// Makes a round. The error says what the server did not do.
    pub(crate) fn round(
        &self,
        row: &Row,
        entrant: &Entrant,
        instance: &mut Instance,
        length: Length,
    ) -> Result<Round, String> {
        let plan = self.plan(row, entrant, instance, length)?;
        let before = instance.usage_ns()?;
        let report = hob_load::run_until(plan, self.is_stopped.clone());
        let report = report.map_err(|error| match error {
            LoadError::Server(text) | LoadError::Arguments(text) => text,
            error @ LoadError::System { .. } => error.to_string(),
        })?;
        let used = instance.usage_ns()?.saturating_sub(before);
        Ok(figures(&report.json(), used, row.per))
    }

    fn plan(
        &self,
        row: &Row,
        entrant: &Entrant,
        instance: &Instance,
        length: Length,
    ) -> Result<Plan, String> {
        let (scheme, port) = match row.is_secure {
            true => ("https", instance.ports.secure),
            false => ("http", instance.ports.clear),
        };
        let url = format!("{scheme}://127.0.0.1:{port}{}", entrant.path);
        let url: Url = url.parse()?;
        let (duration, count) = match length {
            Length::Time(time) => (Some(time), None),
            Length::Count(count) => (None, Some(count)),
        };
        let connections =
            count.map_or(row.connections, |count| row.connections.min(count as usize));
        Ok(Plan {
            urls: vec![url],
            unix: None,
            pace: Pace::Closed {
                think: Duration::ZERO,
            },
            connections,
            reuse: row.reuse,
            is_insecure: true,
            // What a session costs depends on who keeps it; a full handshake is the same for all.
            is_resumption_off: true,
            threads: 1,
            cpus: vec![self.cpu],
            warm_up: Duration::ZERO,
            duration,
            count,
            timeout: ANSWER,
            method: "GET".to_owned(),
            fields: vec![],
            body: None,
            expectations: vec![
                Expectation::Status(vec![(200, 200)]),
                Expectation::Size(entrant.bytes),
            ],
            thresholds: vec![],
            pid: None,
        })
    }
}

/// Takes what is needed out of a report of the load generator.
fn figures(report: &Value, used_ns: u64, per: Per) -> Round {
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    let whole = |path: &str| report.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let seconds = number("/elapsed_s");
    let bodies = number("/bytes/bodies");
    let answered = number("/requests/answered");
    let units = match per {
        Per::Request => answered,
        Per::Megabyte => bodies / 1e6,
    };
    let over = |value: f64, base: f64| if base > 0.0 { value / base } else { 0.0 };
    let failure = report.pointer("/failures/0").map(|failure| {
        let text = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("kind"), text("first"))
    });
    Round {
        cpu_us: over(used_ns as f64 / 1e3, units),
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
    }
}
