//! What a run tells: a table for people, JSON for machines, and whether to believe it.

mod addresses;
mod figures;
mod json;
pub(crate) mod pages;
mod result;
mod rows;
mod schema;
mod table;
mod verdict;

use std::time::SystemTime;

use crate::conduct::Conduct;
use crate::environment::Environment;
use crate::measure::{Passed, RequestTally};
use crate::plan::BenchPlan;
use crate::replay::Counts;
use crate::written::SavedResult;

pub(crate) use addresses::fairness_over;
pub(crate) use json::series;
pub use json::{failures, times};
pub(crate) use result::{Compared, Crossed, FORMAT, Figure};
pub use result::{Failure, LatencySummary};
pub(crate) use schema::check;
pub use schema::{reference, schema};

/// The result of a run.
#[derive(Debug)]
pub struct BenchReport {
    pub(crate) plan: BenchPlan,
    pub(crate) conduct: Conduct,
    pub(crate) environment: Environment,
    /// The condition that ended the run early, and what was so.
    pub(crate) stopped: Option<String>,
    /// Where the server was found.
    pub(crate) address: String,
    /// What was counted.
    pub tally: RequestTally,
    pub(crate) machine: Passed,
    /// What there was in the log that was replayed.
    pub(crate) log: Option<Counts>,
    pub(crate) warm_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) is_interrupted: bool,
    pub(crate) begun_at: SystemTime,
}

impl BenchReport {
    /// The result for people.
    pub fn table(&self) -> String {
        table::write(self)
    }

    /// The result for machines, as [`schema`] describes it.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!(json::result(self))
    }

    /// The result as it is written down, from which pages and logs are made.
    pub fn written(&self) -> SavedResult {
        SavedResult::of(self.json())
    }

    /// Was the run ended early by a condition?
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Was a threshold crossed?
    pub fn has_failed(&self) -> bool {
        verdict::thresholds(self)
            .iter()
            .any(|judged| judged.is_crossed)
    }
}
