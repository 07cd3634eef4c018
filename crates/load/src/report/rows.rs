//! The rows of a result: what was asked for under each name, and how it was shared out.

use aws_lc_rs::digest::{Context, SHA256};

use super::BenchReport;
use crate::entry::ResultRows;
use crate::expect::hex;

/// A row: requests that have a name together.
pub(super) struct ResultRow<'a> {
    /// The name, or the URL with its method where that is not GET.
    pub(super) name: String,
    /// The first URL, and how many there are.
    pub(super) url: &'a str,
    pub(super) url_count: usize,
    pub(super) method: &'a str,
    /// The sum of the weights.
    pub(super) weight: f64,
}

impl BenchReport {
    /// The rows, in the order of what was counted.
    pub(super) fn rows(&self) -> Vec<ResultRow<'_>> {
        let plan = &self.plan;
        let rows = ResultRows::of(&plan.entries);
        let row = |first: &usize| {
            let entry = &plan.entries[*first];
            let (url, method) = (entry.url.text.as_str(), plan.method_of(entry));
            let name = match &entry.name {
                Some(name) => name.clone(),
                None if method == "GET" => url.to_owned(),
                None => format!("{method} {url}"),
            };
            ResultRow {
                name,
                url,
                url_count: 0,
                method,
                weight: 0.0,
            }
        };
        let mut all: Vec<ResultRow<'_>> = rows.first.iter().map(row).collect();
        for (entry, row) in plan.entries.iter().zip(&rows.of_entry) {
            let row = &mut all[*row as usize];
            row.url_count += 1;
            row.weight += entry.weight;
        }
        all
    }

    /// Jain's index over the rows, of their answers beside their weights.
    pub(super) fn fairness_by_weight(&self) -> Option<f64> {
        if self.log.is_some() {
            // How often which method comes is the log's doing.
            return None;
        }
        let weights: Vec<f64> = self.rows().iter().map(|row| row.weight).collect();
        self.tally.fairness_by_weight(&weights)
    }

    /// A hash of what requests have of their own besides URL and weight, by which two plans can be
    /// told apart; none where they have nothing.
    pub(super) fn list_hash(&self) -> Option<String> {
        let mut hash = Context::new(&SHA256);
        let mut is_special = false;
        for entry in &self.plan.entries {
            is_special |= entry.name.is_some()
                || entry.method.is_some()
                || !entry.fields.is_empty()
                || entry.body.is_some()
                || !entry.expectations.is_empty();
            let expectations = entry.expectations.iter().map(ToString::to_string);
            let told = format!(
                "{:?} {:?} {:?} {:?} {:?}\n",
                entry.name,
                entry.method,
                entry.fields,
                entry.body.as_ref().map(|body| body.len()),
                expectations.collect::<Vec<_>>(),
            );
            hash.update(told.as_bytes());
            hash.update(entry.body.as_deref().unwrap_or_default());
        }
        is_special.then(|| hex(hash.finish().as_ref()))
    }

    /// How connections shake hands; none in clear text.
    pub(super) fn tls_mode(&self) -> Option<&'static str> {
        let is_secure = self
            .plan
            .entries
            .first()
            .is_some_and(|entry| entry.url.is_secure);
        is_secure.then_some(match self.plan.is_resumption_off {
            true => "full",
            false => "resumed",
        })
    }
}
