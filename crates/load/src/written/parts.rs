//! The part of a page that has a row for each URL, name or method, and for each step of the rate.

use serde_json::Value;

use super::SavedResult;
use crate::page::{PageCell, PageTable, ReportPage, Unit, count};

impl SavedResult {
    pub(super) fn push_parts(&self, page: &mut ReportPage) {
        let is_open = self.is_open();
        let part = |table: PageTable, name: String, value: &Value| {
            let us = |kind: &str, field: &str| {
                let us = value[kind][field].as_f64().unwrap_or(f64::NAN);
                PageCell::new(Unit::Nanoseconds.text(us * 1e3))
            };
            let number = |field: &str| PageCell::new(count(value[field].as_u64().unwrap_or(0)));
            let mut cells = vec![
                PageCell::new(name),
                number("answered"),
                number("failed").small(kinds_of(&value["failures"])),
                us("response", "p50_us"),
                us("response", "p99_us"),
                us("response", "max_us"),
            ];
            if is_open {
                cells.extend([us("service", "p50_us"), us("service", "p99_us")]);
            }
            table.row(cells)
        };
        let columns = |table: PageTable| {
            let table = table.number("answered").number("failed");
            let table = table.number("50 %").number("99 %").number("max");
            match is_open {
                true => table.number("service 50 %").number("service 99 %"),
                false => table,
            }
        };
        let steps = self.list("steps");
        if !steps.is_empty() {
            let rates: Vec<&str> = self.text("plan.rate").split(',').collect();
            let mut table = columns(PageTable::new("By step of the rate").text("requests/s"));
            for (index, step) in steps.iter().enumerate() {
                let name = rates
                    .get(index)
                    .map_or_else(|| format!("{}", index + 1), |rate| (*rate).to_owned());
                table = part(table, name, step);
            }
            page.push(table);
        }
        let urls = self.list("urls");
        if !urls.is_empty() {
            let what = match self.at("replay").is_object() {
                true => "method",
                false => "URL",
            };
            let mut table = columns(PageTable::new(format!("By {what}")).text(what));
            for url in urls {
                // Results that are older have no name.
                let name = url["name"].as_str().or_else(|| url["url"].as_str());
                table = part(table, name.unwrap_or_default().to_owned(), url);
            }
            page.push(table);
        }
    }
}

/// Failures of a part, each kind with its number.
fn kinds_of(failures: &Value) -> String {
    let all = failures.as_array().into_iter().flatten();
    let kinds = all.map(|failure| {
        let number = count(failure["count"].as_u64().unwrap_or(0));
        format!("{} {number}", failure["kind"].as_str().unwrap_or_default())
    });
    kinds.collect::<Vec<_>>().join(", ")
}
