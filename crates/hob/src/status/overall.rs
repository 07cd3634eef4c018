//! The whole state on a page: processes, listeners, warnings, and every counter that is not 0.

use hob_load::page::count;

use super::{cache, certificates, pairs, programs};
use crate::escape;
use crate::facts::JsonView;
use crate::table::{age, columns_of};

/// Columns of the counters where the width is not known.
const WIDTH: usize = 80;

/// The state in parts, each with its name above it.
pub(crate) fn text(state: JsonView<'_>, width: Option<usize>) -> String {
    let mut text = processes(state);
    let mut part = |name: &str, lines: String| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{name}\n{}", indented(&lines)));
        }
    };
    let inner = width.map(|width| width.saturating_sub(2));
    part("warnings", list(state, "warnings"));
    part("listening on", list(state, "listening"));
    part("sites", list(state, "sites"));
    part("cache", cache::text(state.below("cache"), inner));
    if !state.list("certificates").is_empty() {
        part(
            "certificates",
            certificates::text(state.below("certificates"), inner),
        );
    }
    part("programs", programs::text(state.below("programs"), inner));
    part("counters that are not 0", counters(state, inner));
    text
}

fn processes(state: JsonView<'_>) -> String {
    let text = |name| state.text(name).map(str::to_owned);
    let number = |name| state.count(name).map(count);
    let keeper = state.count("keeper.pid").map(|pid| {
        let servers = number("keeper.servers_started").unwrap_or_default();
        format!("process {pid}, servers started so far: {servers}")
    });
    let server = state.count("server.pid").map(|pid| {
        let threads = number("server.threads").unwrap_or_default();
        let user = number("server.user_id").unwrap_or_default();
        let up = age(state.count("server.uptime_s").unwrap_or(0));
        format!("process {pid}, up {up}, {threads} threads, user {user}")
    });
    let spawner = state.count("spawner.pid");
    let spawner = spawner.map(|pid| format!("process {pid}"));
    let open: u64 = state
        .list("server.connections_by_thread")
        .iter()
        .filter_map(serde_json::Value::as_u64)
        .sum();
    let pool = state.count("file_pool.threads").map(|threads| {
        let idle = number("file_pool.idle").unwrap_or_default();
        let queued = number("file_pool.queued").unwrap_or_default();
        let left = match state.count("file_pool.left") {
            None | Some(0) => String::new(),
            Some(left) => format!(", {left} besides that hang at a disk"),
        };
        format!("{threads} threads, {idle} idle, {queued} jobs waiting{left}")
    });
    pairs(&[
        ("hob", text("version")),
        ("generation", number("generation")),
        ("keeper", keeper),
        ("server", server),
        ("spawner", spawner),
        ("connections", Some(count(open))),
        ("file pool", pool),
    ])
}

fn list(state: JsonView<'_>, name: &str) -> String {
    let texts = state.list(name).iter().filter_map(|item| item.as_str());
    texts
        .map(|text| format!("{}\n", escape::lines(text)))
        .collect()
}

/// The counters, in as many columns as there is room for, downwards.
fn counters(state: JsonView<'_>, width: Option<usize>) -> String {
    let all = state.below("counters").0.as_object().into_iter().flatten();
    let shown: Vec<String> = all
        .filter_map(|(name, value)| Some((name, value.as_u64().filter(|value| *value != 0)?)))
        .map(|(name, value)| format!("{} {}", escape::line(name), count(value)))
        .collect();
    let widest = shown.iter().map(|text| columns_of(text)).max();
    let Some(widest) = widest else {
        return "none\n".to_owned();
    };
    let across = (width.unwrap_or(WIDTH) / (widest + 3)).max(1);
    let down = shown.len().div_ceil(across);
    (0..down)
        .map(|row| {
            let cells = shown.iter().skip(row).step_by(down);
            let line: String = cells
                .map(|cell| format!("{cell:<0$}", widest + 3))
                .collect();
            format!("{}\n", line.trim_end())
        })
        .collect()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn state_is_a_page_of_parts() {
        let state = json!({
            "version": "0.1.0", "generation": 2,
            "keeper": { "pid": 7, "servers_started": 1 },
            "server": { "pid": 8, "threads": 2, "user_id": 0, "uptime_s": 5,
                "connections_by_thread": [1, 2] },
            "spawner": null, "listening": ["127.0.0.1:80"], "sites": ["*"],
            "warnings": ["one\u{1b}"], "cache": { "entries": 0 }, "certificates": [],
            "programs": {}, "counters": { "requests": 1234, "none": 0, "hits": 2 },
        });
        assert_eq!(
            text(JsonView(&state), None),
            "hob          0.1.0\ngeneration   2\n\
             keeper       process 7, servers started so far: 1\n\
             server       process 8, up 5 s, 2 threads, user 0\nconnections  3\n\n\
             warnings\n  one\\x1b\n\nlistening on\n  127.0.0.1:80\n\nsites\n  *\n\n\
             cache\n  entries        0\n\n\
             programs\n  no program stays, and no interpreter is kept warm\n\n\
             counters that are not 0\n  hits 2           requests 1,234\n"
        );
    }
}
