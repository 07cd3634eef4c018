//! What a comparison tells: a table and a page for people, JSON for machines.

mod besides;
mod claims;
mod era;
mod facts;
mod json;
mod notes;
mod page;
mod releases;
mod result;
mod standing;
mod sweep;
mod table;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::link::LinkSettings;
use crate::machine::Machine;
use crate::measure::{EntrantResult, RowMeasurement};
use crate::rows::Scope;
use crate::server::{Installed, Missing, ServerTuning};

pub(crate) use facts::TargetFacts;
pub use releases::release_table;
#[cfg(test)]
pub(crate) use releases::{CLASSES, class_of};
pub use result::{reference, schema};

/// The result of a comparison.
#[derive(Debug)]
pub struct ComparisonReport {
    pub(crate) begun_at: SystemTime,
    pub(crate) elapsed: Duration,
    pub(crate) scope: Scope,
    pub(crate) settings: ServerTuning,
    pub(crate) is_interrupted: bool,
    pub(crate) machine: Machine,
    /// How many processes wanted to run in the minute before.
    pub(crate) load_before: f64,
    /// What each server was told, by its name.
    pub(crate) configurations: BTreeMap<String, String>,
    /// What was left out, and why.
    pub(crate) lacks: Vec<String>,
    pub(crate) servers: Vec<Installed>,
    pub(crate) missing: Vec<Missing>,
    pub(crate) rows: Vec<RowMeasurement>,
    pub(crate) has_one_cpu: bool,
    /// What client and servers were joined by, where that was not the loopback.
    pub(crate) link: Option<LinkSettings>,
    /// The machine of the servers, where that was another one.
    pub(crate) target: Option<TargetFacts>,
}

impl ComparisonReport {
    /// The result for people.
    pub fn table(&self) -> String {
        table::write(self)
    }

    /// The result for machines, with every round.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!(json::result(self))
    }

    /// The result as one page of HTML that needs nothing else.
    pub fn html(&self) -> String {
        page::write(self)
    }
}

/// The ids of figures that stand in ratios or claims, and need no row beside them.
#[cfg(test)]
pub(crate) fn told_ids() -> Vec<String> {
    let claims = claims::CLAIMS.iter().flat_map(claims::Claim::ids);
    era::ids().chain(claims.map(str::to_owned)).collect()
}

/// The cells in which claims look: the ids of their rows, and the labels there without hob's name.
pub(crate) fn claimed_cells() -> Vec<(&'static str, &'static str)> {
    let claims = claims::CLAIMS.iter();
    claims.flat_map(claims::Claim::cells).collect()
}

/// A label and the CPU time over TLS in times of that in clear text.
type Ratios<'a> = Vec<(&'a str, f64)>;

impl ComparisonReport {
    /// For each row over TLS that has a twin in clear text: who was asked both ways.
    pub(crate) fn secure_to_plain(&self) -> Vec<(&str, Ratios<'_>)> {
        let mut all = vec![];
        for secure in self.rows.iter().filter(|row| row.row.is_secure) {
            let id = secure.row.id.replacen(".tls.", ".clear.", 1);
            let Some(plain) = self.rows.iter().find(|row| row.row.id == id) else {
                continue;
            };
            let ratios: Ratios<'_> = secure
                .cells
                .iter()
                .filter_map(|cell| {
                    let is_twin = |twin: &&EntrantResult| twin.entrant == cell.entrant;
                    let twin = plain.cells.iter().find(is_twin)?;
                    if cell.doubt().or(twin.doubt()).is_some() {
                        return None;
                    }
                    let ratio = cell.cpu()?.median / twin.cpu()?.median;
                    Some((cell.entrant.label.as_str(), ratio))
                })
                .collect();
            if !ratios.is_empty() {
                all.push((secure.row.id.as_str(), ratios));
            }
        }
        all
    }
}
