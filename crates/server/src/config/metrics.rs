//! What other programs collect: `[metrics]`, `[otlp]` and routes with `metrics`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hob_http::post::{self, Destination};

use super::fault::Faults;
use super::normal::quoted;
use super::schema::METRICS;
use super::tree::Section;
use super::units::{duration_text, size_text};

/// What is counted for Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Sites with numbers of their own.
    pub sites: usize,
    /// Programs with numbers of their own.
    pub programs: usize,
}

/// Where traces are sent, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// The collector.
    pub destination: Destination,
    /// File with authorities of whom one may have signed the collector's certificate.
    pub ca: Option<PathBuf>,
    /// One in so many requests is sampled; 0 is none.
    pub one_in: u32,
    /// What a `traceparent` means.
    pub parent: Parent,
    /// The server's name among traces.
    pub service: String,
    /// Memory of each thread for requests that wait to be sent, in bytes.
    pub queue_bytes: usize,
    /// Most requests sent together.
    pub batch: usize,
    /// How long a request waits at most until a batch is sent.
    pub interval: Duration,
}

/// What a request that comes with a `traceparent` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// It belongs to that trace, whose caller says whether it is sampled.
    Follow,
    /// It belongs to that trace.
    Join,
    /// Nothing.
    Ignore,
}

/// A route with the server's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMetrics {
    /// File with the token of scrapers.
    pub token_file: PathBuf,
}

pub(crate) fn build_metrics(root: &Section) -> Metrics {
    let default = Section::new(&METRICS, root.header);
    let section = root.section("metrics").unwrap_or(&default);
    Metrics {
        sites: section.number("sites"),
        programs: section.number("programs"),
    }
}

pub(crate) fn build_otlp(root: &Section, faults: &mut Faults<'_>) -> Option<Otlp> {
    let section = root.section("otlp")?;
    // What is missing is told already.
    section.given("endpoint")?;
    let pairs = section.map("headers").iter();
    let destination = Destination {
        url: with_path(section.text("endpoint")),
        fields: pairs
            .map(|pair| (pair.name.clone(), pair.text.clone()))
            .collect(),
        timeout: section.time("timeout"),
    };
    if let Err(wrong) = post::check(&destination) {
        let is_address = wrong.contains("address");
        let key = if is_address { "endpoint" } else { "headers" };
        let hint = match is_address {
            true => "write it as `http://127.0.0.1:4318`",
            false => "names of fields are letters, digits and `-`; values are one line",
        };
        faults.error(section.spot(key), wrong).hint(hint);
        return None;
    }
    let ca = section.optional_path("ca").cloned();
    if ca.is_some() && destination.url.starts_with("http:") {
        faults
            .error(
                section.spot("ca"),
                "`ca` without a collector that speaks TLS",
            )
            .hint("begin `endpoint` with `https://`, or remove `ca`");
    }
    Some(Otlp {
        destination,
        ca,
        one_in: section.number("one_in"),
        parent: match section.word("parent") {
            "join" => Parent::Join,
            "ignore" => Parent::Ignore,
            _ => Parent::Follow,
        },
        service: section.text("service").to_owned(),
        queue_bytes: section.size_usize("queue"),
        batch: section.number("batch"),
        interval: section.time("interval"),
    })
}

/// The address of traces below a collector's.
fn with_path(endpoint: &str) -> String {
    let host = endpoint.split_once("://").map_or("", |(_, rest)| rest);
    match host.split_once('/') {
        None => format!("{endpoint}/v1/traces"),
        Some((_, "")) => format!("{endpoint}v1/traces"),
        Some(_) => endpoint.to_owned(),
    }
}

impl Metrics {
    pub(super) fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n[metrics]\nsites = {}", self.sites)?;
        writeln!(f, "programs = {}", self.programs)
    }
}

impl Otlp {
    pub(super) fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n[otlp]\nendpoint = {}", quoted(&self.destination.url))?;
        if let Some(ca) = &self.ca {
            writeln!(f, "ca = {}", quoted(ca.display()))?;
        }
        writeln!(f, "one_in = {}", self.one_in)?;
        let parent = match self.parent {
            Parent::Follow => "follow",
            Parent::Join => "join",
            Parent::Ignore => "ignore",
        };
        writeln!(f, "parent = \"{parent}\"")?;
        writeln!(f, "service = {}", quoted(&self.service))?;
        for (name, _) in &self.destination.fields {
            // Its value may be a key: what prints a config must not tell it.
            writeln!(f, "headers.{name} = \"...\"")?;
        }
        writeln!(f, "queue = {}", size_text(self.queue_bytes as u64))?;
        writeln!(f, "batch = {}", self.batch)?;
        writeln!(f, "interval = {}", duration_text(self.interval))?;
        let timeout = duration_text(self.destination.timeout);
        writeln!(f, "timeout = {timeout}")
    }
}

impl RouteMetrics {
    pub(super) fn build(section: &Section) -> RouteMetrics {
        // What is missing is told already.
        let given = section.given("token_file");
        let file = given.and_then(|_| section.optional_path("token_file"));
        RouteMetrics {
            token_file: file.cloned().unwrap_or_default(),
        }
    }

    pub(super) fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = quoted(self.token_file.display());
        writeln!(f, "metrics.token_file = {file}")
    }
}
