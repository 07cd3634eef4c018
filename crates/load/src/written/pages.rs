//! Pages in what is written down of a run: put together of several machines, and told to people.

use serde_json::{Value, json};

use super::SavedResult;
use crate::measure::PageCount;
use crate::page::{PageCell, PageTable, ReportPage, Unit, bytes, count};
use crate::report::pages::{self, Totals};

/// Assets a page lists; JSON has all.
const ASSET_COUNT_MAX: usize = 50;

impl SavedResult {
    /// What a request is: one, or a page with its assets.
    pub(super) fn noun(&self) -> &'static str {
        match self.at("page").is_null() {
            true => "requests",
            false => "pages",
        }
    }

    /// One of them.
    pub(super) fn one(&self) -> &'static str {
        match self.at("page").is_null() {
            true => "request",
            false => "page",
        }
    }

    /// What makes them: connections, or visitors with connections of their own.
    pub(super) fn makers(&self) -> &'static str {
        match self.at("page").is_null() {
            true => "connections",
            false => "visitors",
        }
    }

    pub(super) fn push_pages(&self, page: &mut ReportPage) {
        let value = self.at("page");
        if value.is_null() {
            return;
        }
        page.section("What a page takes");
        let number = |field: &str| value["per_page"][field].as_f64().unwrap_or(0.0);
        let count_of = |field: &str| format!("{:.1}", number(field));
        let mut table = PageTable::new("One page").text("what").text("on average");
        for (title, text) in [
            ("requests", count_of("requests")),
            ("new connections", count_of("connections")),
            ("received", bytes(number("received_bytes"))),
            ("answers that nothing has changed", count_of("not_modified")),
            (
                "not asked for, because it was fresh",
                count_of("from_cache"),
            ),
        ] {
            table = table.row([title, &text]);
        }
        page.push(table);
        let us = |asset: &Value, field: &str| {
            let us = asset[field].as_f64().unwrap_or(f64::NAN);
            PageCell::new(Unit::Nanoseconds.text(us * 1e3))
        };
        let whole =
            |asset: &Value, field: &str| PageCell::new(count(asset[field].as_u64().unwrap_or(0)));
        let mut table =
            PageTable::new("The slowest assets, by their 99th percentile").text("asset");
        table = table.text("kind").number("answered").number("failed");
        table = table.number("50 %").number("99 %").number("max");
        for asset in self.list("page.assets").iter().take(ASSET_COUNT_MAX) {
            table = table.row([
                PageCell::new(asset["url"].as_str().unwrap_or_default()),
                PageCell::new(asset["kind"].as_str().unwrap_or_default()),
                whole(asset, "count"),
                whole(asset, "failed"),
                us(asset, "p50_us"),
                us(asset, "p99_us"),
                us(asset, "max_us"),
            ]);
        }
        page.push(table);
        let origins = self.list("page.origins");
        if !origins.is_empty() {
            let mut table = PageTable::new("At other servers, not loaded").text("server");
            table = table.number("assets");
            for origin in origins {
                let name = origin["origin"].as_str().unwrap_or_default();
                table = table.row([PageCell::new(name), whole(origin, "count")]);
            }
            page.push(table);
        }
    }
}

/// What the pages of several machines came to together; null where none loaded pages.
pub(super) fn merged(all: &[SavedResult], whole: &Value) -> Result<Value, String> {
    if all.iter().all(|one| one.at("page").is_null()) {
        return Ok(Value::Null);
    }
    let mut together = PageCount::new();
    for one in all {
        let part = pages::read(one.at("page"));
        together.merge(part.ok_or("what pages came to cannot be read in one of the results")?);
    }
    let number = |group: &str, field: &str| whole[group][field].as_u64().unwrap_or(0);
    let totals = Totals {
        pages: number("requests", "answered"),
        received_bytes: number("bytes", "received"),
        connections: number("connections", "opened"),
    };
    Ok(json!(pages::result(&together, totals)))
}
