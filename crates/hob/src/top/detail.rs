//! One row in full: a request's life, a program with its workers, a route with all its times.

use hob_load::page::count;
use serde_json::{Value, json};

use super::rows::ViewRows;
use super::state::ScreenState;
use crate::args::TopView;
use crate::facts::JsonView;
use crate::status::programs::visit_table;
use crate::table::{TextCell, TextTable, UNKNOWN, age, numbers, texts, words};
use crate::{escape, history};

/// Requests of a program that are listed.
const BUSY_COUNT: usize = 50;

/// The lines about the row of that name.
pub(super) fn lines(state: &ScreenState, name: &str, width: usize) -> Vec<String> {
    let rows = ViewRows::of(state.view, &state.snapshot);
    let found = rows.index_of(name).map(|index| rows.subjects[index].1);
    let finished = || {
        let finished = state.finished.as_ref().map(JsonView);
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

fn program(program: JsonView<'_>, width: usize) -> String {
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
    for (name, span) in [("last minute", "cpu.minute"), ("last hour", "cpu.hour")] {
        let span = program.below(span);
        if let Some(us) = span.count("request_us") {
            let requests = count(span.count("requests").unwrap_or(0));
            let each = TextCell::us(Some(us));
            let each = each.shown();
            text.push_str(&format!(
                "  {name:<16}{requests} requests, {each} of CPU each\n"
            ));
        }
    }
    if let Some(advice) = program.text("advice") {
        text.push_str(&paragraph("advice", &escape::line(advice), width));
    }
    if !program.list("scripts").is_empty() {
        return format!("{text}\n{}", scripts(program, width));
    }
    if program.text("handler") == Some("session") {
        let visits = json!({ "visits": program.list("workers") });
        let table = visit_table(JsonView(&visits)).text(Some(width));
        return format!("{text}\n{table}\n`hob visit end VISIT` ends one\n");
    }
    format!("{text}\n{}", workers(program, width))
}

/// A program's workers, and what they have been at for longest.
fn workers(program: JsonView<'_>, width: usize) -> String {
    let mut table = TextTable::new(&[
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
            TextCell::text(pid.as_deref()),
            TextCell::text(worker.text("state")),
            TextCell::number(worker.number("age_s"), |seconds| age(seconds as u64)),
            TextCell::count(worker.count("requests")),
            TextCell::count(Some(running)),
            TextCell::bytes(worker.count("memory_bytes")),
            TextCell::us(worker.count("cpu_us")),
        ]);
    }
    let busy: String = busy.into_iter().take(BUSY_COUNT).collect();
    let busy = match busy.is_empty() {
        true => busy,
        false => format!("\nanswers since\n{busy}"),
    };
    format!("{}{busy}", table.text(Some(width)))
}

/// Scripts that ran today, those first that used most.
fn scripts(program: JsonView<'_>, width: usize) -> String {
    let mut table = TextTable::new(&[
        texts("SCRIPT"),
        numbers("TODAY"),
        numbers("RATE"),
        numbers("CPU"),
        numbers("A REQUEST"),
        numbers("START"),
        numbers("SAVED"),
    ]);
    for script in program.each("scripts") {
        let file = script.text("file").and_then(|file| file.rsplit('/').next());
        table.push(vec![
            TextCell::text(file),
            TextCell::count(script.count("requests")),
            TextCell::rate(script.number("rate_s")),
            TextCell::us(script.count("used_us")),
            TextCell::us(script.count("cpu_us")),
            TextCell::us(script.count("start_cpu_us")),
            TextCell::us(script.below("saves").count("cpu_us")),
        ]);
    }
    table.text(Some(width))
}

/// A fact of more than one line.
fn paragraph(name: &str, words: &str, width: usize) -> String {
    let room = width.saturating_sub(18).max(20);
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        if let Some(line) = lines.last_mut()
            && (line.is_empty() || line.chars().count() + 1 + word.chars().count() <= room)
        {
            let space = if line.is_empty() { "" } else { " " };
            line.push_str(space);
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        text.push_str(&format!("  {name:<16}{line}\n"));
    }
    text
}

fn route(route: JsonView<'_>, width: usize) -> String {
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
        ("requests", TextCell::count(route.count("requests"))),
        ("errors", TextCell::count(route.count("errors"))),
        ("sent", TextCell::bytes(route.count("bytes_out"))),
        ("rate", TextCell::rate(route.number("rate_s"))),
        ("last", last(route)),
    ] {
        text.push_str(&format!("  {name:<10}{}\n", cell.shown()));
    }
    let mut table = TextTable::new(&[
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
        let mut row = vec![TextCell::text(Some(name))];
        for figure in ["p50_us", "p90_us", "p99_us", "max_us", "mean_us"] {
            let time = times.number(figure).map(|us| us as u64);
            row.push(TextCell::us(time));
        }
        table.push(row);
    }
    format!("{text}\n{}", table.text(Some(width)))
}

fn last(route: JsonView<'_>) -> TextCell {
    let moment = route.count("last_unix_ms").map(history::moment);
    TextCell::text(moment.as_deref())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn route_with_scripts_shows_them_and_its_advice_within_the_width() {
        let program = json!({
            "name": "/cgi/* cgi", "site": "*", "route": "/cgi/*", "handler": "cgi",
            "cpu": { "minute": { "seconds": 60, "requests": 31, "request_us": 12_000 } },
            "scripts": [{
                "file": "/srv/cgi/b.py", "requests": 31, "rate_s": 3.1, "used_us": 372_000,
                "cpu_us": 12_000, "start_cpu_us": 11_000, "saves": { "cpu_us": 10_340 },
            }],
            "advice": "Moving b.py from cgi to warm would save about 10.3 ms of 12.0 ms of CPU \
                       time a request (86 %); at today's 3.10 requests a second that is 0.03 of a \
                       CPU.",
        });
        let text = super::program(JsonView(&program), 80);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        for words in [
            "advice          Moving b.py",
            "31 requests, 12.0 ms",
            "b.py  ",
        ] {
            assert!(text.contains(words), "{words:?} in\n{text}");
        }
        assert!(!text.contains("PID"), "{text}");
    }
}
