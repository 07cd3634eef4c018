//! Requests one after the other, or many at once, by the load generator; what of its report a study
//! needs.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use hob_load::{BenchPlan, ClientActs, ClientTlsOffer, LoadModel, Protocol, Reuse, Url};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::error::CostError;
use crate::limits::ANSWER_TIME_MAX;
use crate::stop::InterruptFlag;

/// What is asked, again and again.
#[derive(Debug, Clone)]
pub struct MeasuredRequest {
    /// Its method.
    pub method: String,
    /// Header fields besides those that follow from the rest.
    pub fields: Vec<(String, String)>,
    /// Query, without its question mark.
    pub query: Option<String>,
    /// The body; none for a request without.
    pub body: Option<Vec<u8>>,
    /// Any certificate is taken; that of a server on this machine is not checked anyway.
    pub is_insecure: bool,
}

impl MeasuredRequest {
    /// A plain GET.
    pub fn get() -> MeasuredRequest {
        MeasuredRequest {
            method: "GET".to_owned(),
            fields: Vec::new(),
            query: None,
            body: None,
            is_insecure: false,
        }
    }
}

/// How connections are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionReuse {
    /// One for each request.
    Close,
    /// One for all requests.
    Keep,
    /// One for each request, with a full TLS handshake.
    CloseFull,
}

/// Times of many requests, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "times", title = "times")]
pub(crate) struct ResponseTimes {
    /// Median.
    pub(crate) p50_us: f64,
    /// 99 %; the longest of fewer than 100.
    pub(crate) p99_us: f64,
    /// Mean.
    pub(crate) mean_us: f64,
}

impl ResponseTimes {
    /// Of times in nanoseconds.
    pub(crate) fn of(mut all: Vec<u64>) -> ResponseTimes {
        all.sort_unstable();
        // The smallest value that so many percent are not above.
        let at = |percent: usize| {
            let index = (all.len() * percent).div_ceil(100).saturating_sub(1);
            all.get(index).copied().unwrap_or(0) as f64 / 1e3
        };
        let sum: u64 = all.iter().sum();
        ResponseTimes {
            p50_us: at(50),
            p99_us: at(99),
            mean_us: sum as f64 / 1e3 / all.len().max(1) as f64,
        }
    }

    fn read(value: &Value) -> Option<ResponseTimes> {
        let figure = |name: &str| value.get(name).and_then(Value::as_f64);
        Some(ResponseTimes {
            p50_us: figure("p50_us")?,
            p99_us: figure("p99_us")?,
            mean_us: figure("mean_us")?,
        })
    }
}

/// What came of a series of requests.
#[derive(Debug, Clone)]
pub(crate) struct RequestSeries {
    pub(crate) times: ResponseTimes,
    pub(crate) answered: u64,
    pub(crate) handshakes_resumed: u64,
    pub(crate) tls: Option<String>,
}

/// So many requests over so many connections at a time; any that fails makes the whole fail.
pub(crate) fn series(
    url: &str,
    asked: &MeasuredRequest,
    connection: ConnectionReuse,
    connections: usize,
    count: u64,
    stop: &InterruptFlag,
) -> Result<RequestSeries, CostError> {
    let line = RequestTransport::direct(Protocol::H1);
    run(url, asked, connection, connections, count, line, stop)
}

/// What requests go over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestTransport<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) way: ConnectTarget<'a>,
    /// Longest wait for an answer.
    pub(crate) timeout: Duration,
}

/// Where connections are made to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConnectTarget<'a> {
    /// The host of the URL.
    Direct,
    /// A Unix socket.
    Socket(&'a Path),
    /// Another address, over TCP or UDP.
    Address(SocketAddr),
}

impl RequestTransport<'_> {
    pub(crate) fn direct(protocol: Protocol) -> RequestTransport<'static> {
        RequestTransport {
            protocol,
            way: ConnectTarget::Direct,
            timeout: ANSWER_TIME_MAX,
        }
    }
}

/// The same, one at a time, over this.
pub(crate) fn series_over(
    url: &str,
    asked: &MeasuredRequest,
    connection: ConnectionReuse,
    count: u64,
    line: RequestTransport<'_>,
    stop: &InterruptFlag,
) -> Result<RequestSeries, CostError> {
    run(url, asked, connection, 1, count, line, stop)
}

fn run(
    url: &str,
    asked: &MeasuredRequest,
    connection: ConnectionReuse,
    connections: usize,
    count: u64,
    line: RequestTransport<'_>,
    stop: &InterruptFlag,
) -> Result<RequestSeries, CostError> {
    stop.check()?;
    let url: Url = with_query(url, asked)
        .parse()
        .map_err(CostError::Arguments)?;
    let plan = BenchPlan {
        entries: vec![url.into()],
        seed: 1,
        acts: ClientActs::default(),
        page: None,
        unix: match line.way {
            ConnectTarget::Socket(path) => Some(path.to_owned()),
            ConnectTarget::Direct | ConnectTarget::Address(_) => None,
        },
        pace: LoadModel::Closed {
            think: Duration::ZERO,
        },
        connections,
        sources: 1,
        protocol: line.protocol,
        streams: 1,
        reuse: match connection {
            ConnectionReuse::Keep => Reuse::KeepAlive,
            ConnectionReuse::Close | ConnectionReuse::CloseFull => Reuse::PerRequest,
        },
        is_insecure: asked.is_insecure,
        terms: ClientTlsOffer::default(),
        is_resumption_off: connection == ConnectionReuse::CloseFull,
        threads: 1,
        cpus: Vec::new(),
        warm_up: Duration::ZERO,
        duration: None,
        count: Some(count),
        timeout: line.timeout,
        method: asked.method.clone(),
        fields: asked.fields.clone(),
        body: asked.body.clone(),
        expectations: Vec::new(),
        thresholds: Vec::new(),
        pid: None,
    };
    // Signals are listened to once for the whole study.
    let report = match line.way {
        ConnectTarget::Address(address) => hob_load::run_through(plan, address, stop.flag()),
        ConnectTarget::Direct | ConnectTarget::Socket(_) => hob_load::run_until(plan, stop.flag()),
    }?;
    let result = report.json();
    if result["interrupted"] == true {
        return Err(CostError::Interrupted);
    }
    if let Some(failure) = result["failures"].get(0) {
        return Err(CostError::Server(format!(
            "of {count} requests {} failed: {} ({})",
            result["requests"]["failed"],
            failure["first"].as_str().unwrap_or_default(),
            failure["kind"].as_str().unwrap_or_default(),
        )));
    }
    let number = |part: &str, name: &str| result[part][name].as_u64().unwrap_or(0);
    Ok(RequestSeries {
        times: ResponseTimes::read(&result["latency"]["response"]).unwrap_or_default(),
        answered: number("requests", "answered"),
        handshakes_resumed: number("tls", "resumed"),
        tls: result["tls"]["terms"].as_str().map(str::to_owned),
    })
}

/// The URL with the query that was asked for.
pub(crate) fn with_query(url: &str, asked: &MeasuredRequest) -> String {
    match &asked.query {
        Some(query) if !query.is_empty() => format!("{url}?{query}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let times = ResponseTimes::of((1..=200).rev().map(|us| us * 1000).collect());
        assert_eq!((times.p50_us, times.p99_us), (100.0, 198.0));
        assert_eq!(times.mean_us, 100.5);
        assert_eq!(ResponseTimes::of(vec![]).p99_us, 0.0);
        assert_eq!(ResponseTimes::of(vec![7000]).p50_us, 7.0);
    }
}
