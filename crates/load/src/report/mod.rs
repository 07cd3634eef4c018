//! What a run tells: a table for people, JSON for machines, and whether to believe it.

mod fields;
mod figures;
mod json;
mod table;
mod verdict;

use std::time::SystemTime;

use crate::measure::{Passed, Tally};
use crate::plan::Plan;

pub use fields::{reference, schema};

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    pub(crate) plan: Plan,
    /// Where the server was found.
    pub(crate) address: String,
    pub(crate) tally: Tally,
    pub(crate) machine: Passed,
    pub(crate) warm_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) is_interrupted: bool,
    pub(crate) begun_at: SystemTime,
}

impl Report {
    /// The result for people.
    pub fn table(&self) -> String {
        table::write(self)
    }

    /// The result for machines, as [`schema`] describes it.
    pub fn json(&self) -> serde_json::Value {
        json::write(self)
    }

    /// Was a threshold crossed?
    pub fn has_failed(&self) -> bool {
        verdict::thresholds(self)
            .iter()
            .any(|judged| judged.is_crossed)
    }
}
