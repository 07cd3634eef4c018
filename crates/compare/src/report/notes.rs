//! What must be known beside the figures: why they are doubtful, what was left out, what is not
//! equal.

use std::collections::BTreeMap;

use super::ComparisonReport;
use crate::limits::LOAD_MAX;
use crate::measure::{EntrantResult, RowMeasurement};

impl ComparisonReport {
    /// Why all figures are doubtful.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let mut doubts = vec![];
        doubts.extend(hob_load::Environment::doubt().map(str::to_owned));
        if self.load_before > LOAD_MAX {
            doubts.push(format!(
                "this machine was busy: {:.1} processes wanted to run in the minute before",
                self.load_before
            ));
        }
        let disturbed: usize = self.rows.iter().map(|row| row.disturbed).sum();
        if disturbed > 0 {
            doubts.push(format!(
                "{disturbed} rounds count although the host took CPU time from this machine \
                 meanwhile: it did so again and again"
            ));
        }
        doubts
    }

    /// What a reader must know before the figures: why they are doubtful, what was left out, what
    /// disturbed, what is not equal.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec![];
        if self.is_interrupted {
            notes.push("interrupted: rows at the end are missing or have few rounds".to_owned());
        }
        notes.extend(self.lost().map(str::to_owned));
        notes.extend(self.doubts());
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
        if repeated > 0 {
            notes.push(format!(
                "{repeated} rounds were made again: the host took CPU time from this machine meanwhile"
            ));
        }
        notes.extend(self.unequal_tls());
        notes
    }

    /// Servers that did not speak TLS as hob did.
    fn unequal_tls(&self) -> Option<String> {
        let terms = |cell: &EntrantResult| cell.rounds.first()?.tls.clone();
        let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        // Over QUIC suite and group are not seen.
        let is_seen = |row: &&RowMeasurement| row.row.protocol != hob_load::Protocol::H3;
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
