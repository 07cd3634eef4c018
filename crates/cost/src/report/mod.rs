//! What a study tells: tables for people, JSON for machines.

pub(crate) mod figures;
mod json;
mod table;

use crate::ladder::Measured;
use crate::load::Asked;
use crate::stages::Stages;

/// The result of a study.
#[derive(Debug)]
pub struct Report {
    /// What was measured: the script's path, or the built-in echo.
    pub(crate) subject: String,
    pub(crate) asked: Asked,
    pub(crate) count: u64,
    pub(crate) rate: f64,
    pub(crate) rungs: Vec<Measured>,
    pub(crate) stages: Option<Stages>,
    pub(crate) sentence: String,
}

impl Report {
    /// The result for people.
    pub fn table(&self) -> String {
        table::write(self)
    }

    /// The result for machines.
    pub fn json(&self) -> serde_json::Value {
        json::write(self)
    }
}
