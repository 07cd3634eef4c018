//! What loading pages came to, as JSON and as text; read back where results are merged.

use std::fmt::Write;

use serde_json::Value;

use super::result::{Asset, Origin, PageResult, PerPage};
use super::times;
use crate::measure::{AssetKind, PageCount};
use crate::measure::{Interval, Latency};
use crate::page::{bytes, count, time};

/// Assets a table for people lists; JSON has all.
const ASSET_COUNT_MAX: usize = 15;
/// Other servers it lists.
const ORIGIN_COUNT_MAX: usize = 5;

/// What figures of one page are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    /// Measured pages that were answered.
    pub(crate) pages: u64,
    pub(crate) received_bytes: u64,
    pub(crate) connections: u64,
}

impl Totals {
    /// How much of something falls to one page.
    fn each(self, whole: u64) -> Option<f64> {
        (self.pages > 0).then(|| whole as f64 / self.pages as f64)
    }
}

/// Gathers everything.
pub(crate) fn result(all: &PageCount, totals: Totals) -> PageResult {
    let us = |times: &Interval, percent: f64| times.percentile(percent).map(|ns| ns as f64 / 1e3);
    let assets = all.slowest().into_iter().map(|(target, asset)| Asset {
        url: target.to_owned(),
        kind: asset.kind.name(),
        count: asset.times.answered,
        good: asset.times.good,
        failed: asset.times.failed,
        not_modified: asset.not_modified,
        body_bytes: asset.body_bytes,
        p50_us: us(&asset.times, 50.0),
        p99_us: us(&asset.times, 99.0),
        max_us: us(&asset.times, 100.0),
        histogram: asset.times.histogram(),
    });
    let origins = all.origins.iter().map(|(origin, &count)| Origin {
        origin: origin.clone(),
        count,
    });
    PageResult {
        first_byte: times(&all.first_byte),
        per_page: PerPage {
            requests: totals.each(all.requests),
            received_bytes: totals.each(totals.received_bytes),
            not_modified: totals.each(all.not_modified),
            from_cache: totals.each(all.from_cache),
            connections: totals.each(totals.connections),
        },
        requests: all.requests,
        not_modified: all.not_modified,
        from_cache: all.from_cache,
        elsewhere: all.elsewhere,
        left_out: all.left_out,
        cut: all.cut,
        assets: assets.collect(),
        origins: origins.collect(),
    }
}

/// Reads it back; none where it is no such thing.
pub(crate) fn read(value: &Value) -> Option<PageCount> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let mut all = PageCount::new();
    if !value["first_byte"].is_null() {
        let text = value["first_byte"]["histogram"].as_str()?;
        let mut times = Latency::new();
        times.add_text(text)?;
        all.first_byte = times;
    }
    all.requests = number(&value["requests"]);
    all.not_modified = number(&value["not_modified"]);
    all.from_cache = number(&value["from_cache"]);
    all.left_out = number(&value["left_out"]);
    all.cut = number(&value["cut"]);
    for origin in value["origins"].as_array()? {
        all.elsewhere(origin["origin"].as_str()?, number(&origin["count"]));
    }
    for asset in value["assets"].as_array()? {
        let kind = AssetKind::named(asset["kind"].as_str()?)?;
        let counts = ["count", "good", "failed"].map(|field| number(&asset[field]));
        let times = Interval::read(counts, asset["histogram"].as_str()?)?;
        let own = all.asset(asset["url"].as_str()?, kind);
        own.times.merge(&times);
        own.not_modified += number(&asset["not_modified"]);
        own.body_bytes += number(&asset["body_bytes"]);
    }
    Some(all)
}

/// For people.
pub(super) fn table(text: &mut String, all: &PageCount, totals: Totals) -> std::fmt::Result {
    let each = |whole: u64| totals.each(whole).unwrap_or(0.0);
    write!(
        text,
        "\na page     {:.1} requests over {:.1} new connections, {} received",
        each(all.requests),
        each(totals.connections),
        bytes(each(totals.received_bytes)),
    )?;
    if all.not_modified + all.from_cache > 0 {
        write!(
            text,
            "; {:.1} not modified, {:.1} not asked for",
            each(all.not_modified),
            each(all.from_cache)
        )?;
    }
    writeln!(text)?;
    if all.elsewhere > 0 {
        let origins = all.origins.iter().take(ORIGIN_COUNT_MAX);
        let origins: Vec<String> = origins
            .map(|(origin, number)| format!("{origin} {:.1}", each(*number)))
            .collect();
        let more = if all.origins.len() > ORIGIN_COUNT_MAX {
            ", ..."
        } else {
            ""
        };
        writeln!(
            text,
            "elsewhere  {:.1} of other servers, not loaded: {}{more}",
            each(all.elsewhere),
            origins.join(", ")
        )?;
    }
    assets(text, all)
}

fn assets(text: &mut String, all: &PageCount) -> std::fmt::Result {
    let slowest = all.slowest();
    writeln!(
        text,
        "\n{:>9} {:>9} {:>9} {:>9} {:>9}  kind      slowest by p99",
        "answered", "failed", "p50", "p99", "max"
    )?;
    for (target, asset) in slowest.iter().take(ASSET_COUNT_MAX) {
        let at = |percent: f64| {
            let ns = asset.times.percentile(percent);
            ns.map_or_else(|| "-".to_owned(), |ns| time(ns as f64))
        };
        writeln!(
            text,
            "{:>9} {:>9} {:>9} {:>9} {:>9}  {:<9} {target}",
            count(asset.times.answered),
            count(asset.times.failed),
            at(50.0),
            at(99.0),
            at(100.0),
            asset.kind.name(),
        )?;
    }
    match slowest.len().checked_sub(ASSET_COUNT_MAX) {
        Some(more @ 1..) => writeln!(text, "... and {more} more; --json has all"),
        _ => Ok(()),
    }
}
