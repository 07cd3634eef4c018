//! One row in full: a request's life, a program with its workers, a route with all its times.

use hob_load::page::count;
use serde_json::Value;

use super::rows::Rows;
use super::state::State;
use crate::args::TopView;
use crate::facts::Facts;
use crate::table::{Cell, Table, UNKNOWN, age, numbers, words};
use crate::{escape, history};

/// Requests of a program that are listed.
const BUSY_COUNT: usize = 50;

/// The lines about the row of that name.
pub(super) fn lines(state: &State, name: &str, width: usize) -> Vec<String> {
    let rows = Rows::of(state.view, &state.snapshot);
    let found = rows.index_of(name).map(|index| rows.subjects[index].1);
    let finished = || {
        let finished = state.finished.as_ref().map(Facts);
        finished.filter(|one| one.text("id") == Some(name))
    };
    let text = match (state.view, found) {
        (TopView::Running, found) => match found.or_else(finished) {
            Some(request) => history::life(request, Some(width)),
            None => "this request has ended\n".to_owned(),
        },
        (_, None) => "this is no more\n".to_owned(),
        (TopView::Programs, Some(program)) => self::program(program, width),
        (TopView::Overview | TopView::Routes, Some(route)) => self::route(route, width),
    };
    text.lines().map(str::to_owned).collect()
}

fn program(program: Facts<'_>, width: usize) -> String {
    let shown = |name| escape::line(program.text(name).unwrap_or("-"));
    let mut text = format!("{}\n", shown("name"));
    text.push_str(&format!(
        "  site and route  {}, {}\n",
        shown("site"),
        shown("route")
    ));
    text.push_str(&format!(
        "  handler         {}, {}\n",
        shown("handler"),
        shown("carrier")
    ));
    if let Some(error) = program.text("last_error") {
        text.push_str(&format!("  last error      {}\n", escape::line(error)));
    }
    if let Some(advice) = program.text("advice") {
        text.push_str(&format!("  advice          {}\n", escape::line(advice)));
    }
    let mut table = Table::new(&[
        numbers("PID"),
        words("STATE"),
        numbers("AGE"),
        numbers("REQUESTS"),
        numbers("RUNNING"),
        numbers("MEMORY"),
        numbers("CPU"),
    ]);
    let mut busy = Vec::new();
    for worker in program.each("workers") {
        for request in worker.each("running") {
            let since = count(request.count("ms").unwrap_or(0));
            let what = escape::line(request.text("request").unwrap_or(UNKNOWN));
            busy.push(format!("{since:>9} ms  {what}\n"));
        }
        let pid = worker.count("pid").map(|pid| pid.to_string());
        // How many, or which ones.
        let running = worker.count("running");
        let running = running.unwrap_or(worker.list("running").len() as u64);
        table.push(vec![
            Cell::text(pid.as_deref()),
            Cell::text(worker.text("state")),
            Cell::number(worker.number("age_s"), |seconds| age(seconds as u64)),
            Cell::count(worker.count("requests")),
            Cell::count(Some(running)),
            Cell::bytes(worker.count("memory_bytes")),
            Cell::us(worker.count("cpu_us")),
        ]);
    }
    let busy: String = busy.into_iter().take(BUSY_COUNT).collect();
    let busy = match busy.is_empty() {
        true => busy,
        false => format!("\nanswers since\n{busy}"),
    };
    format!("{text}\n{}{busy}", table.text(Some(width)))
}

fn route(route: Facts<'_>, width: usize) -> String {
    let shown = |name| escape::line(route.text(name).unwrap_or("-"));
    let mut text = format!("{} {}\n", shown("site"), shown("route"));
    for (name, field) in [
        ("handler", "handler"),
        ("class", "class"),
        ("program", "program"),
    ] {
        if let Some(value) = route.text(field) {
            text.push_str(&format!("  {name:<10}{}\n", escape::line(value)));
        }
    }
    for (name, cell) in [
        ("requests", Cell::count(route.count("requests"))),
        ("errors", Cell::count(route.count("errors"))),
        ("sent", Cell::bytes(route.count("bytes_out"))),
        ("rate", Cell::rate(route.number("rate_s"))),
        ("last", last(route)),
    ] {
        text.push_str(&format!("  {name:<10}{}\n", cell.shown()));
    }
    let mut table = Table::new(&[
        words("TIME"),
        numbers("50 %"),
        numbers("90 %"),
        numbers("99 %"),
        numbers("MAX"),
        numbers("MEAN"),
    ]);
    for (name, field) in [
        ("in the queue", "queue"),
        ("to start", "start"),
        ("to the first byte", "first_byte"),
        ("in all", "total"),
        ("of CPU", "cpu"),
    ] {
        let times = route.below(field);
        if times.0 == &Value::Null {
            continue;
        }
        let mut row = vec![Cell::text(Some(name))];
        for figure in ["p50_us", "p90_us", "p99_us", "max_us", "mean_us"] {
            let time = times.number(figure).map(|us| us as u64);
            row.push(Cell::us(time));
        }
        table.push(row);
    }
    format!("{text}\n{}", table.text(Some(width)))
}

fn last(route: Facts<'_>) -> Cell {
    let moment = route.count("last_unix_ms").map(history::moment);
    Cell::text(moment.as_deref())
}
