//! A result as it is written down in JSON, and what can be made of it afterwards: a page, a log of
//! histograms, one result of several, the difference between two.

mod compare;
mod figure;
mod hdr;
mod merge;
mod page;
mod parts;
mod sample;
mod words;

use serde_json::Value;

use crate::limits::{DURATION_MAX, INTERVAL_COUNT_MAX};
use crate::measure::{Interval, Latency, Series};

pub use compare::{Change, Comparison};

/// A result that was written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    value: Value,
}

impl Written {
    pub(crate) fn of(value: Value) -> Written {
        Written { value }
    }

    /// Reads all results of a text: one, or several one after the other.
    pub fn read(text: &str) -> Result<Vec<Written>, String> {
        let mut all = Vec::new();
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let value = value.map_err(|error| format!("this is no JSON: {error}"))?;
            let known = u64::from(crate::report::FORMAT);
            match value["format"].as_u64() {
                Some(format) if format == known && value["series"].is_object() => {}
                Some(format) if format > known => {
                    return Err(format!(
                        "its format {format} is newer than {known}, which this hob reads"
                    ));
                }
                _ => return Err("it is no result of `hob bench --json`".to_owned()),
            }
            crate::report::check(&value)?;
            all.push(Written { value });
        }
        if all.is_empty() {
            return Err("it is empty".to_owned());
        }
        Ok(all)
    }

    /// The result in JSON.
    pub fn json(&self) -> &Value {
        &self.value
    }

    /// The field at a path of names with dots; null where there is none.
    fn at(&self, path: &str) -> &Value {
        let pointer = format!("/{}", path.replace('.', "/"));
        self.value.pointer(&pointer).unwrap_or(&Value::Null)
    }

    fn number(&self, path: &str) -> Option<f64> {
        self.at(path).as_f64()
    }

    fn count(&self, path: &str) -> u64 {
        self.at(path).as_u64().unwrap_or(0)
    }

    fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_default()
    }

    /// The texts of a list.
    fn texts(&self, path: &str) -> impl Iterator<Item = &str> {
        self.list(path).iter().filter_map(Value::as_str)
    }

    fn list(&self, path: &str) -> &[Value] {
        self.at(path).as_array().map_or(&[], Vec::as_slice)
    }

    fn is(&self, path: &str) -> bool {
        self.at(path).as_bool().unwrap_or(false)
    }

    fn is_open(&self) -> bool {
        self.text("plan.loop") == "open"
    }

    /// The times at a path; empty where there are none.
    fn times(&self, path: &str) -> Result<Latency, String> {
        times_of(self.at(path)).ok_or_else(|| format!("{path} has no histogram that can be read"))
    }

    fn series(&self) -> Result<Series, String> {
        let width = self.number("series.interval_s").unwrap_or(1.0);
        let is_width = (1.0..=DURATION_MAX.as_secs_f64()).contains(&width)
            && width.fract() == 0.0
            && (width as u64).is_power_of_two();
        if !is_width {
            return Err(format!(
                "series.interval_s is {width}, and not a power of two"
            ));
        }
        let counts = |path| {
            self.list(path)
                .iter()
                .map(|count| count.as_u64().unwrap_or(0))
        };
        let histograms = self.list("series.histograms");
        if histograms.len() > INTERVAL_COUNT_MAX {
            return Err(format!(
                "series has more than {INTERVAL_COUNT_MAX} stretches"
            ));
        }
        let all = counts("series.answered")
            .zip(counts("series.good"))
            .zip(counts("series.failed"))
            .zip(histograms.iter());
        let read = all.map(|(((answered, good), failed), histogram)| {
            let histogram = histogram.as_str().unwrap_or_default();
            Interval::read([answered, good, failed], histogram)
        });
        let intervals: Option<Vec<Interval>> = read.collect();
        let intervals = intervals.ok_or("series.histograms has one that cannot be read")?;
        Ok(Series::of((width * 1e9) as u64, intervals))
    }
}

/// The histogram of an object of times; empty where that is null.
fn times_of(value: &Value) -> Option<Latency> {
    let mut times = Latency::new();
    if !value.is_null() {
        times.add_text(value["histogram"].as_str()?)?;
    }
    Some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_result_is_refused_with_what_is_wrong() {
        for (text, says) in [
            ("", "it is empty"),
            ("{", "this is no JSON"),
            ("[1]", "no result of `hob bench --json`"),
            (r#"{"format":1}"#, "no result of `hob bench --json`"),
            (r#"{"format":2,"series":{}}"#, "format 2 is newer than 1"),
            (
                r#"{"format":1,"series":{},"failures":["x"]}"#,
                "failures is not as it must be: array of objects",
            ),
            (
                r#"{"format":1,"series":{},"tls":7}"#,
                "tls is not as it must be: object",
            ),
            (
                r#"{"format":1,"series":{},"requests":{"due":18446744073709551615}}"#,
                "requests.due is not as it must be: integer",
            ),
        ] {
            let why = Written::read(text).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn series_that_is_longer_than_any_is_refused() {
        let histograms = vec!["x"; INTERVAL_COUNT_MAX + 1];
        let value = serde_json::json!({ "format": 1, "series": { "histograms": histograms } });
        let read = Written::read(&value.to_string()).unwrap();
        assert!(read[0].hdr_log().unwrap_err().contains("more than 600"));
    }
}
