//! What each of several client addresses got, of one result or of several together.

use serde_json::{Value, json};

use super::SavedResult;
use crate::page::{PageCell, PageTable, ReportPage, count};
use crate::report::fairness_over;

/// Adds the addresses of all results, each once, and says how fairly they were answered. Shards
/// have the same addresses, each on its own machine or all on one.
pub(super) fn merge(value: &mut Value, all: &[SavedResult]) {
    let mut found: Vec<Value> = Vec::new();
    for entry in all.iter().flat_map(|one| one.list("addresses")) {
        let known = found
            .iter_mut()
            .find(|known| known["address"] == entry["address"]);
        match known {
            Some(known) => {
                for field in ["connections", "answered"] {
                    let sum = number(known, field).saturating_add(number(entry, field));
                    known[field] = json!(sum);
                }
            }
            None => found.push(entry.clone()),
        }
    }
    let shares = found
        .iter()
        .map(|one| (number(one, "connections"), number(one, "answered")));
    value["fairness_addresses"] = json!(fairness_over(shares));
    value["addresses"] = found.into();
}

fn number(entry: &Value, field: &str) -> u64 {
    entry[field].as_u64().unwrap_or(0)
}

impl SavedResult {
    /// A table of the addresses, that which got least first.
    pub(super) fn push_addresses(&self, page: &mut ReportPage) {
        let mut all: Vec<&Value> = self.list("addresses").iter().collect();
        if all.is_empty() {
            return;
        }
        all.sort_by_key(|one| number(one, "answered"));
        let mut table = PageTable::new("By client address")
            .text("address")
            .number(self.makers())
            .number("answered");
        for one in all {
            let cell = |field: &str| PageCell::new(count(number(one, field)));
            table = table.row([
                PageCell::new(one["address"].as_str().unwrap_or_default()),
                cell("connections"),
                cell("answered"),
            ]);
        }
        page.push(table);
    }
}
