//! Numbers as Prometheus reads them: OpenMetrics text, or the older text format.
//!
//! An [`Exposition`] is filled family by family with what is so at this moment, and written once.
//! OpenMetrics is written by `prometheus-client`; the older format is made of that text, because
//! the two differ in three things only: how counters and infos are called in `# HELP` and `# TYPE`,
//! that there is no `# UNIT`, and that there is no `# EOF`.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

/// How the text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The Prometheus text format 0.0.4.
    Prometheus,
}

/// How the numbers of a family move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// They only grow.
    Counter,
    /// They go up and down.
    Gauge,
    /// Always 1; the labels say what is so.
    Info,
    /// Counts by upper bound, their number and their sum.
    Histogram,
}

/// Numbers of one meaning, told apart by labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, without `_total`, `_info` and the like; a unit is the end of it.
    pub name: Cow<'static, str>,
    /// How its numbers move.
    pub shape: Shape,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it tells, one sentence.
    pub help: Cow<'static, str>,
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleValue {
    /// A whole one.
    Whole(u64),
    /// Any.
    Real(f64),
    /// A histogram.
    Spread(Spread),
}

/// What a histogram holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Sum of all values.
    pub sum: f64,
    /// How many there are.
    pub count: u64,
    /// Upper bounds, ascending, and how many values lie between each and the one before it. What
    /// is above the last belongs to one without bound, which is written by itself.
    pub buckets: Vec<(f64, u64)>,
}

/// All numbers of one moment.
#[derive(Debug, Default)]
pub struct Exposition {
    families: Vec<FamilySamples>,
}

#[derive(Debug)]
struct FamilySamples {
    family: Family,
    samples: Vec<(Labels, SampleValue)>,
}

type Labels = Vec<(&'static str, String)>;

impl ExpositionFormat {
    /// What a scraper with this `Accept` is given: OpenMetrics if it asks for that.
    pub fn for_accept(accept: &[u8]) -> ExpositionFormat {
        const NAME: &[u8] = b"application/openmetrics-text";
        // Scrapers that know OpenMetrics list it first; nobody lists it to refuse it.
        let is_asked = |one: &[u8]| {
            let name = one.split(|byte| *byte == b';').next().unwrap_or_default();
            name.trim_ascii().eq_ignore_ascii_case(NAME)
        };
        match accept.split(|byte| *byte == b',').any(is_asked) {
            true => ExpositionFormat::OpenMetrics,
            false => ExpositionFormat::Prometheus,
        }
    }

    /// The media type.
    pub fn content_type(self) -> &'static str {
        match self {
            ExpositionFormat::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            ExpositionFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl Shape {
    /// The word of the reference page.
    pub fn word(self) -> &'static str {
        match self {
            Shape::Counter => "counter",
            Shape::Gauge => "gauge",
            Shape::Info => "info",
            Shape::Histogram => "histogram",
        }
    }

    /// What the name of a number ends in, after the family's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Shape::Counter => "_total",
            Shape::Info => "_info",
            Shape::Gauge | Shape::Histogram => "",
        }
    }

    fn of_client(self) -> MetricType {
        match self {
            Shape::Counter => MetricType::Counter,
            Shape::Gauge => MetricType::Gauge,
            Shape::Info => MetricType::Info,
            Shape::Histogram => MetricType::Histogram,
        }
    }
}

impl Family {
    /// A family of the table.
    pub const fn new(
        name: &'static str,
        shape: Shape,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Family {
        Family {
            name: Cow::Borrowed(name),
            shape,
            labels,
            help: Cow::Borrowed(help),
        }
    }

    /// The unit its name ends in.
    fn unit(&self) -> Option<Unit> {
        match self.name.rsplit('_').next() {
            Some("seconds") => Some(Unit::Seconds),
            Some("bytes") => Some(Unit::Bytes),
            _ => None,
        }
    }
}

impl Exposition {
    /// Nothing yet.
    pub fn new() -> Exposition {
        Exposition::default()
    }

    /// Adds a number to a family; numbers of one family are added one after another. As many label
    /// values as the family has labels.
    pub fn put(&mut self, family: &Family, labels: &[&str], value: SampleValue) {
        debug_assert_eq!(labels.len(), family.labels.len(), "{}", family.name);
        let is_last = self
            .families
            .last()
            .is_some_and(|last| last.family == *family);
        if !is_last {
            debug_assert!(
                !self
                    .families
                    .iter()
                    .any(|one| one.family.name == family.name),
                "{} comes in two places",
                family.name
            );
            self.families.push(FamilySamples {
                family: family.clone(),
                samples: Vec::new(),
            });
        }
        let named = family.labels.iter().zip(labels);
        let labels = named.map(|(name, value)| (*name, (*value).to_owned()));
        if let Some(last) = self.families.last_mut() {
            last.samples.push((labels.collect(), value));
        }
    }

    /// As [`Exposition::put`], a whole number.
    pub fn whole(&mut self, family: &Family, labels: &[&str], value: u64) {
        self.put(family, labels, SampleValue::Whole(value));
    }

    /// As [`Exposition::put`], any number.
    pub fn real(&mut self, family: &Family, labels: &[&str], value: f64) {
        self.put(family, labels, SampleValue::Real(value));
    }

    /// The text.
    pub fn write(self, format: ExpositionFormat) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut page = String::new();
        // Writing to a String cannot fail, and no encoder of ours does.
        let _ = text::encode(&mut page, &registry);
        match format {
            ExpositionFormat::OpenMetrics => page,
            ExpositionFormat::Prometheus => older(&page),
        }
    }
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for filled in &self.families {
            let family = &filled.family;
            let unit = family.unit();
            let base = match &unit {
                Some(unit) => family.name.trim_end_matches(unit.as_str()),
                None => &family.name,
            };
            let base = base.trim_end_matches('_');
            let kind = family.shape.of_client();
            let mut metric = encoder.encode_descriptor(base, &family.help, unit.as_ref(), kind)?;
            for (labels, value) in &filled.samples {
                match (family.shape, labels.is_empty()) {
                    (Shape::Info, _) => metric.encode_info(labels)?,
                    (shape, true) => value.encode(shape, &mut metric)?,
                    (shape, false) => value.encode(shape, &mut metric.encode_family(labels)?)?,
                }
            }
        }
        Ok(())
    }
}

impl SampleValue {
    fn encode(&self, shape: Shape, metric: &mut MetricEncoder<'_>) -> fmt::Result {
        match (self, shape) {
            (SampleValue::Whole(value), Shape::Counter) => {
                metric.encode_counter::<NoLabelSet, u64, f64>(value, None)
            }
            (SampleValue::Real(value), Shape::Counter) => {
                metric.encode_counter::<NoLabelSet, f64, f64>(value, None)
            }
            (SampleValue::Whole(value), _) => {
                metric.encode_gauge(&i64::try_from(*value).unwrap_or(i64::MAX))
            }
            (SampleValue::Real(value), _) => metric.encode_gauge(value),
            (SampleValue::Spread(spread), _) => {
                let bounded: u64 = spread.buckets.iter().map(|(_, count)| count).sum();
                let above = spread.count.saturating_sub(bounded);
                let mut buckets = spread.buckets.clone();
                buckets.push((f64::INFINITY, above));
                // All bounds are of one moment: what was counted meanwhile does not show.
                let count = bounded + above;
                metric.encode_histogram::<NoLabelSet>(spread.sum, count, &buckets, None)
            }
        }
    }
}

/// The older format, made of OpenMetrics as it is written here: `# HELP` stands right before
/// `# TYPE`.
fn older(page: &str) -> String {
    let mut older = String::with_capacity(page.len());
    let mut help = "";
    for line in page.lines() {
        if let Some(told) = line.strip_prefix("# HELP ") {
            help = told.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = typed(line) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            older.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            older.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            older.push_str(line);
            older.push('\n');
        }
    }
    older
}

fn typed(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("# TYPE ")?.split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: Family = Family::new("x_requests", Shape::Counter, &["site"], "Requests.");
    const BYTES: Family = Family::new("x_cache_bytes", Shape::Gauge, &[], "Bytes kept.");
    const BUILD: Family = Family::new("x_build", Shape::Info, &["version"], "What runs.");
    const TIME: Family = Family::new("x_time_seconds", Shape::Histogram, &["site"], "Times.");

    fn exposition() -> Exposition {
        let mut all = Exposition::new();
        all.whole(&REQUESTS, &["a\"b\\c\nd"], 7);
        all.whole(&REQUESTS, &["*"], 8);
        all.whole(&BYTES, &[], 4096);
        all.whole(&BUILD, &["1.2"], 1);
        let spread = Spread {
            sum: 2.5,
            count: 4,
            buckets: vec![(0.1, 1), (1.0, 2)],
        };
        all.put(&TIME, &["*"], SampleValue::Spread(spread));
        all
    }

    #[test]
    fn openmetrics_has_units_and_an_end() {
        let wanted = "\
# HELP x_requests Requests.
# TYPE x_requests counter
x_requests_total{site=\"a\\\"b\\\\c\\nd\"} 7
x_requests_total{site=\"*\"} 8
# HELP x_cache_bytes Bytes kept.
# TYPE x_cache_bytes gauge
# UNIT x_cache_bytes bytes
x_cache_bytes 4096
# HELP x_build What runs.
# TYPE x_build info
x_build_info{version=\"1.2\"} 1
# HELP x_time_seconds Times.
# TYPE x_time_seconds histogram
# UNIT x_time_seconds seconds
x_time_seconds_sum{site=\"*\"} 2.5
x_time_seconds_count{site=\"*\"} 4
x_time_seconds_bucket{le=\"0.1\",site=\"*\"} 1
x_time_seconds_bucket{le=\"1.0\",site=\"*\"} 3
x_time_seconds_bucket{le=\"+Inf\",site=\"*\"} 4
# EOF
";
        assert_eq!(exposition().write(ExpositionFormat::OpenMetrics), wanted);
    }

    #[test]
    fn older_format_names_counters_as_they_are_written() {
        let page = exposition().write(ExpositionFormat::Prometheus);
        assert!(
            page.starts_with(
                "# HELP x_requests_total Requests.\n# TYPE x_requests_total counter\n"
            )
        );
        assert!(page.contains("# TYPE x_build_info gauge\nx_build_info{"));
        assert!(!page.contains("# UNIT") && !page.contains("# EOF"));
    }

    #[test]
    fn openmetrics_is_for_who_asks_for_it() {
        for (accept, format) in [
            ("", ExpositionFormat::Prometheus),
            ("*/*", ExpositionFormat::Prometheus),
            ("text/plain;version=0.0.4", ExpositionFormat::Prometheus),
            (
                "Application/OpenMetrics-Text; version=1.0.0,text/plain;q=0.5",
                ExpositionFormat::OpenMetrics,
            ),
            (
                "text/plain, application/openmetrics-text",
                ExpositionFormat::OpenMetrics,
            ),
            (
                "application/openmetrics-textual",
                ExpositionFormat::Prometheus,
            ),
        ] {
            assert_eq!(
                ExpositionFormat::for_accept(accept.as_bytes()),
                format,
                "{accept}"
            );
        }
    }
}
