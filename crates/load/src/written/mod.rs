//! A result as it is written down in JSON, and what can be made of it afterwards: a page, a log of
//! histograms, one result of several, the difference between two.

mod addresses;
mod compare;
mod curve;
mod figure;
mod hdr;
mod histograms;
mod merge;
mod page;
mod pages;
mod parts;
mod sample;
mod words;

use serde_json::Value;

pub use compare::{ChangeLimit, ResultComparison};
use histograms::times_of;
pub use words::moment;

/// A result that was written down.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedResult {
    value: Value,
}

impl SavedResult {
    pub(crate) fn of(value: Value) -> SavedResult {
        SavedResult { value }
    }

    /// Reads all results of a text: one, or several one after the other.
    pub fn read(text: &str) -> Result<Vec<SavedResult>, String> {
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
            all.push(SavedResult { value });
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
}

#[cfg(test)]
mod tests;
