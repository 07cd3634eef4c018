//! `GET /v1/routes`: what each route has had, and how long it took; with `by`, all routes of a
//! site, a handler, a class or a program together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hob_http::Answered;
use hob_server::handle::cost_class;
use hob_trace::histogram::HistogramSnapshot;
use hob_trace::series::{SeriesName, SeriesSum};
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::history::QueryRefusal;
use super::query::value_of;
use super::{Admin, reply};
use crate::api::{Quantiles, Route, Routes};

/// What a row is of: what it has no word for is everything.
type Labels = [Option<String>; LABELS.len()];

const LABELS: [&str; 5] = ["site", "route", "handler", "class", "program"];

/// Answers with a row for each route that has had a request; those of earlier configs too.
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let head = ask.request.head();
    let query = head.query().unwrap_or_default();
    Answered::Ready(match check(query) {
        Ok(()) => reply::object(200, &routes(&ask.admin, query)),
        Err(QueryRefusal(status, text)) => reply::text(status, text),
    })
}

/// Whether a query is one that [`routes`] answers.
pub(super) fn check(query: &[u8]) -> Result<(), QueryRefusal> {
    match value_of(query, "by").filter(|by| !by.is_empty()) {
        Some(by) if !LABELS.contains(&by.as_str()) => {
            let text = "by is site, route, handler, class or program";
            Err(QueryRefusal(400, text.to_owned()))
        }
        _ => Ok(()),
    }
}

/// The rows; with `limit` only so many, the slowest (by the 99th percentile).
pub(super) fn routes(admin: &Admin, query: &[u8]) -> Value {
    let by = value_of(query, "by");
    let by = by.and_then(|by| LABELS.iter().position(|label| *label == by));
    let series = &admin.shared.series;
    let names = series.names();
    let recent = admin.inside.seen().recent;
    let mut rows: BTreeMap<Labels, (Box<SeriesSum>, f64)> = BTreeMap::new();
    for (number, sum) in series.sums() {
        let Some(name) = names.get(usize::from(number)) else {
            continue;
        };
        let mut labels = labels(name, number == 0);
        if let Some(by) = by {
            let others = labels.iter_mut().enumerate().filter(|(at, _)| *at != by);
            others.for_each(|(_, label)| *label = None);
        }
        let (all, rate_s) = rows.entry(labels).or_default();
        all.merge(&sum);
        *rate_s += recent.rates.get(&number).copied().unwrap_or(0.0);
    }
    let mut rows: Vec<(Labels, (Box<SeriesSum>, f64))> = rows.into_iter().collect();
    let limit = value_of(query, "limit").and_then(|limit| limit.parse().ok());
    let more = limit.is_some_and(|limit| rows.len() > limit);
    if let Some(limit) = limit.filter(|_| more) {
        rows.sort_by_cached_key(|(_, (sum, _))| Reverse(sum.total.percentile_us(990)));
        rows.truncate(limit);
    }
    let told =
        |(labels, (sum, rate_s)): &(Labels, (Box<SeriesSum>, f64))| row(labels, sum, *rate_s);
    json!(Routes {
        routes: rows.iter().map(told).collect(),
        more,
    })
}

fn labels(name: &SeriesName, is_other: bool) -> Labels {
    let told = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let site = match is_other {
        // No site was chosen, or there are too many routes to tell them apart.
        true => Some("other".to_owned()),
        false => told(&name.site),
    };
    [
        site,
        told(&name.route),
        told(name.handler.word()),
        told(cost_class(name.handler)),
        told(&name.program),
    ]
}

fn row(labels: &Labels, sum: &SeriesSum, rate_s: f64) -> Route {
    let [site, route, handler, class, program] = labels.clone();
    Route {
        site,
        route,
        handler,
        class,
        program,
        requests: sum.requests,
        errors: sum.errors,
        bytes_in: sum.bytes_in,
        bytes_out: sum.bytes_out,
        rate_s: rounded(rate_s),
        last_unix_ms: sum.last_unix_ms,
        server_us: sum.server_us,
        program_us: sum.program_us,
        client_us: sum.client_us,
        total: times(&sum.total),
        first_byte: times(&sum.first_byte),
        queue: times(&sum.queue),
        start: times(&sum.start),
        cpu: times(&sum.cpu),
    }
}

/// Percentiles as the API tells them; null, all but the count, when there are no times.
pub(super) fn times(times: &HistogramSnapshot) -> Quantiles {
    let count = times.count();
    let known = |value_us: u64| (count > 0).then_some(value_us);
    let [p50_us, p90_us, p99_us] = times.percentiles_us([500, 900, 990]).map(known);
    Quantiles {
        p50_us,
        p90_us,
        p99_us,
        max_us: known(times.max_us()),
        mean_us: known(times.mean_us()),
        count,
    }
}

/// A rate with two digits after the point.
pub(super) fn rounded(rate: f64) -> f64 {
    (rate * 100.0).round() / 100.0
}
