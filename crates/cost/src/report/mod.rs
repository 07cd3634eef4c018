//! What a study tells: tables for people, JSON for machines.

mod columns;
mod json;
mod page;
mod result;
mod section;
mod table;

use hob_load::Environment;
use hob_load::page::count;

use crate::experiment::ExperimentRow;
use crate::growth::{Burst, Grown};
use crate::ladder::RungMeasurement;
use crate::load::MeasuredRequest;
use crate::stages::Stages;
use crate::wire::WireCosts;

pub use result::{reference, schema};

/// The result of a study.
#[derive(Debug)]
pub struct StudyReport {
    /// What was measured: the script's path, or the built-in echo.
    pub(crate) subject: String,
    pub(crate) asked: MeasuredRequest,
    pub(crate) count: u64,
    pub(crate) rate: f64,
    pub(crate) rungs: Vec<RungMeasurement>,
    pub(crate) stages: Option<Stages>,
    pub(crate) exchanges: Vec<ExperimentRow>,
    pub(crate) grown: Vec<Grown>,
    pub(crate) bursts: Vec<Burst>,
    pub(crate) wire: Option<WireCosts>,
    /// Parts that failed after another was finished, and why.
    pub(crate) failed: Vec<(&'static str, String)>,
    pub(crate) environment: Environment,
    /// Empty where there is nothing to compare.
    pub(crate) sentence: String,
}

impl StudyReport {
    /// The result for people.
    pub fn table(&self) -> String {
        table::write(self)
    }

    /// The result for machines.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!(json::result(self))
    }

    /// The result as a page of HTML that needs nothing else.
    pub fn html(&self) -> String {
        page::write(self)
    }

    /// Says which parts could not be measured, where there are any, and why.
    pub fn failure(&self) -> Option<String> {
        let one = |(part, why): &(&str, String)| format!("{part} is not measured: {why}");
        let all: Vec<String> = self.failed.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn asked_in_words(&self) -> String {
        let body = match self.asked.body.as_ref().map_or(0, Vec::len) {
            0 => "no body".to_owned(),
            bytes => format!("{} bytes", count(bytes as u64)),
        };
        format!(
            "{} of {body}, {} requests of each kind, one after the other",
            self.asked.method,
            count(self.count),
        )
    }
}
