//! What a comparison tells: a table and a page for people, JSON for machines.

mod json;
mod layout;
mod page;
mod sweep;
mod table;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::machine::Machine;
use crate::measure::{Cell, Measured};
use crate::rows::Scope;
use crate::server::{Installed, Missing, Settings};

pub use layout::{reference, schema};

/// The result of a comparison.
#[derive(Debug)]
pub struct Report {
    pub(crate) begun_at: SystemTime,
    pub(crate) elapsed: Duration,
    pub(crate) scope: Scope,
    pub(crate) settings: Settings,
    pub(crate) is_interrupted: bool,
    pub(crate) machine: Machine,
    /// What each server was told, by its name.
    pub(crate) configurations: BTreeMap<String, String>,
    /// What was left out, and why.
    pub(crate) lacks: Vec<String>,
    pub(crate) servers: Vec<Installed>,
    pub(crate) missing: Vec<Missing>,
    pub(crate) rows: Vec<Measured>,
    pub(crate) has_one_cpu: bool,
}

impl Report {
    /// The result for people.
    pub fn table(&self) -> String {
        table::write(self)
    }

    /// The result for machines, with every round.
    pub fn json(&self) -> serde_json::Value {
        json::write(self)
    }

    /// The result as one page of HTML that needs nothing else.
    pub fn html(&self) -> String {
        page::write(self)
    }

    /// What a reader must know before the figures: what was left out, what disturbed, what is not
    /// equal.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec![];
        if self.is_interrupted {
            notes.push("interrupted: rows at the end are missing or have few rounds".to_owned());
        }
        notes.extend(hob_load::Environment::doubt().map(str::to_owned));
        if self.has_one_cpu {
            notes.push(
                "only one CPU may be used here: client and servers shared it, so rates and times \
                 say little; CPU time per request does"
                    .to_owned(),
            );
        }
        let missing = self.missing.iter();
        notes.extend(missing.map(|one| format!("{} is not compared: {}", one.name, one.why)));
        notes.extend(self.lacks.iter().cloned());
        let repeated: usize = self.rows.iter().map(|row| row.repeated).sum();
        let disturbed: usize = self.rows.iter().map(|row| row.disturbed).sum();
        if repeated > 0 {
            notes.push(format!(
                "{repeated} rounds were made again: the host took CPU time from this machine meanwhile"
            ));
        }
        if disturbed > 0 {
            notes.push(format!(
                "{disturbed} rounds count although the host took CPU time from this machine meanwhile: \
                 it did so again and again"
            ));
        }
        notes.extend(self.unequal_tls());
        notes
    }

    /// Servers that did not speak TLS as hob did.
    fn unequal_tls(&self) -> Option<String> {
        let terms = |cell: &Cell| cell.rounds.first()?.tls.clone();
        let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        // Over QUIC suite and group are not seen.
        let is_seen = |row: &&Measured| row.row.protocol != hob_load::Protocol::H3;
        for cell in self.rows.iter().filter(is_seen).flat_map(|row| &row.cells) {
            if let Some(terms) = terms(cell) {
                let labels = all.entry(terms).or_default();
                if !labels.contains(&cell.entrant.label.as_str()) {
                    labels.push(&cell.entrant.label);
                }
            }
        }
        if all.len() < 2 {
            return None;
        }
        let parts: Vec<String> = all
            .iter()
            .map(|(terms, labels)| format!("{terms} ({})", labels.join(", ")))
            .collect();
        Some(format!(
            "TLS was not the same everywhere: {}",
            parts.join("; ")
        ))
    }
}

/// A label and the CPU time over TLS in times of that in clear text.
type Ratios<'a> = Vec<(&'a str, f64)>;

impl Report {
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
                    let is_twin = |twin: &&Cell| twin.entrant == cell.entrant;
                    let twin = plain.cells.iter().find(is_twin)?;
                    if cell.doubt().or(twin.doubt()).is_some() {
                        return None;
                    }
                    let ratio = cell.cpu()?.mean / twin.cpu()?.mean;
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
