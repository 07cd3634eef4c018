//! What other programs collect: `[metrics]` and `[otlp]`.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

use super::fault::Faults;
use super::schema::METRICS;
use super::tree::Section;

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
    pub destination: MetricsDestination,
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

/// Where to send, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsDestination {
    /// An `http://` or `https://` address.
    pub url: String,
    /// Fields of each request: names and values.
    pub fields: Vec<(String, String)>,
    /// Longest time for one request, until its whole answer is there.
    pub timeout: Duration,
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
    let destination = MetricsDestination {
        url: with_path(section.text("endpoint")),
        fields: pairs
            .map(|pair| (pair.name.clone(), pair.text.clone()))
            .collect(),
        timeout: section.time("timeout"),
    };
    if !is_address(&destination.url) {
        let message = "this is no http:// or https:// address";
        let hint = "write it as `http://127.0.0.1:4318`";
        faults.error(section.spot("endpoint"), message).hint(hint);
        return None;
    }
    let mut fields = destination.fields.iter();
    if let Some((name, _)) = fields.find(|(name, value)| !is_field(name, value)) {
        let message = format!("{name:?} cannot be a field of a request, or not with its value");
        let hint = "names of fields are letters, digits and `-`; values are one line";
        faults.error(section.spot("headers"), message).hint(hint);
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

/// Whether it is an `http://` or `https://` address.
pub(crate) fn is_address(url: &str) -> bool {
    let is_known = url.starts_with("http://") || url.starts_with("https://");
    let read = Uri::try_from(url);
    is_known && read.is_ok_and(|url| url.host().is_some_and(|host| !host.is_empty()))
}

fn is_field(name: &str, value: &str) -> bool {
    HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        assert!(is_address("https://collector:4318/v1/traces"));
        for url in ["", "ftp://a/", "http://", "localhost:4318", "http:// a/"] {
            assert!(!is_address(url), "{url}");
        }
    }

    #[test]
    fn fields_cannot_begin_a_new_line() {
        assert!(is_field("Authorization", "Bearer x"));
        assert!(!is_field("A\r\nB", ""));
        assert!(!is_field("A", "x\r\nB: c"));
    }
}
