//! Programs that stay, and interpreters that are kept warm.

use hob_load::page::count;

use crate::escape;
use crate::facts::JsonView;
use crate::table::{TextCell, TextTable, age, numbers, texts, words};

/// Pools with their workers, then hosts.
pub(crate) fn text(programs: JsonView<'_>, width: Option<usize>) -> String {
    let mut text = String::new();
    for pool in programs.each("pools") {
        text.push_str(&pool_text(pool, width));
    }
    for visits in programs.each("visits") {
        text.push_str(&visits_text(visits, width));
    }
    text.push_str(&hosts(programs, width));
    for upstream in programs.each("upstreams") {
        text.push_str(&upstream_text(upstream, width));
    }
    text.push_str(&offers(programs, width));
    if text.is_empty() {
        text.push_str("no program stays, and no interpreter is kept warm\n");
    }
    text
}

/// A pool in a line, then its workers and what they do.
fn pool_text(pool: JsonView<'_>, width: Option<usize>) -> String {
    let name = escape::line(pool.text("name").unwrap_or("?"));
    let number = |name| count(pool.count(name).unwrap_or(0));
    let mut text = format!(
        "{name}: {} of {} to {} workers, {} waiting, {} started, {} replaced, {} crashed\n",
        count(pool.list("workers").len() as u64),
        number("min"),
        number("max"),
        number("waiting"),
        number("started"),
        number("replaced"),
        number("crashed"),
    );
    for (name, what) in [("growth", "grows"), ("last_failure", "last failure")] {
        if let Some(said) = pool.text(name) {
            text.push_str(&format!("  {what}: {}\n", escape::line(said)));
        }
    }
    let mut table = TextTable::new(&[
        numbers("PID"),
        words("STATE"),
        numbers("AGE"),
        numbers("SERVED"),
        numbers("MEMORY"),
        words("CARRIER"),
        words("LIBRARY"),
        texts("DOES"),
    ]);
    for worker in pool.each("workers") {
        let mut does = worker.each("requests").map(|request| {
            let ms = count(request.count("ms").unwrap_or(0));
            format!("{} for {ms} ms", request.text("request").unwrap_or("?"))
        });
        let first = does.next();
        table.push(vec![
            TextCell::text(worker.count("pid").map(|pid| pid.to_string()).as_deref()),
            TextCell::text(worker.text("state")),
            TextCell::age(worker.count("age_s")),
            TextCell::count(worker.count("served")),
            TextCell::bytes(worker.count("memory_bytes")),
            TextCell::text(worker.text("carrier")),
            TextCell::text(worker.text("library")),
            TextCell::text(Some(first.as_deref().unwrap_or_default())),
        ]);
        for more in does {
            let mut row = vec![TextCell::text(Some("")); 7];
            row.push(TextCell::text(Some(&more)));
            table.push(row);
        }
    }
    if !table.rows.is_empty() {
        text.push_str(&indented(
            &table.text(width.map(|width| width.saturating_sub(2))),
        ));
    }
    text
}

/// A program's visits in a line, then each.
fn visits_text(visits: JsonView<'_>, width: Option<usize>) -> String {
    let name = visits_name(visits);
    let name = escape::line(&name);
    let number = |name| count(visits.count(name).unwrap_or(0));
    let mut text = format!(
        "{name}: {} of {} visits, {} at most so far\n",
        number("count"),
        number("max"),
        number("peak"),
    );
    let table = visit_table(visits);
    if !table.rows.is_empty() {
        text.push_str(&indented(
            &table.text(width.map(|width| width.saturating_sub(2))),
        ));
    }
    text
}

/// Whose visits they are, and which server keeps them where it is an old one.
pub(crate) fn visits_name(visits: JsonView<'_>) -> String {
    let name = visits.text("name").unwrap_or("?");
    match visits.count("server_pid") {
        None => name.to_owned(),
        Some(pid) => format!("{name}, kept by server {pid} of before an upgrade"),
    }
}

/// A row for each visit of a program.
pub(crate) fn visit_table(visits: JsonView<'_>) -> TextTable {
    let mut table = TextTable::new(&[
        numbers("VISIT"),
        words("HANDLE"),
        texts("CLIENT"),
        words("STATE"),
        numbers("PID"),
        numbers("AGE"),
        numbers("IDLE"),
        numbers("ANSWERS"),
        numbers("MEMORY"),
    ]);
    for visit in visits.each("visits") {
        table.push(vec![
            // As `hob visit end` takes it.
            TextCell::text(
                visit
                    .count("number")
                    .map(|number| number.to_string())
                    .as_deref(),
            ),
            TextCell::text(visit.text("handle")),
            TextCell::text(visit.text("client")),
            TextCell::text(visit.text("state")),
            TextCell::text(visit.count("pid").map(|pid| pid.to_string()).as_deref()),
            TextCell::age(visit.count("age_s")),
            TextCell::age(visit.count("idle_s")),
            TextCell::count(visit.count("answers")),
            TextCell::bytes(visit.count("memory_bytes")),
        ]);
    }
    table
}

/// A row for each interpreter, and below it what went wrong last.
fn hosts(programs: JsonView<'_>, width: Option<usize>) -> String {
    let mut table = TextTable::new(&[
        texts("HOST"),
        words("STATE"),
        numbers("PID"),
        numbers("AGE"),
        numbers("SERVED"),
        numbers("RUNNING"),
        numbers("MEMORY"),
        numbers("STARTS"),
        numbers("FAILURES"),
        numbers("CRASHES"),
    ]);
    let mut below = Vec::new();
    for host in programs.each("hosts") {
        let names = ["interpreter", "dir"];
        let names: Vec<&str> = names.iter().filter_map(|name| host.text(name)).collect();
        table.push(vec![
            TextCell::text(Some(&names.join(" in "))),
            TextCell::text(host.text("state")),
            TextCell::text(host.count("pid").map(|pid| pid.to_string()).as_deref()),
            TextCell::age(host.count("age_s")),
            TextCell::count(host.count("served")),
            TextCell::count(host.count("running")),
            TextCell::bytes(host.count("memory_bytes")),
            TextCell::count(host.count("starts")),
            TextCell::count(host.count("failures")),
            TextCell::count(host.count("crashes")),
        ]);
        below.push(host_below(host));
    }
    if table.rows.is_empty() {
        return String::new();
    }
    let widths = table.widths(width);
    let mut text = table.heading(&widths) + "\n";
    for (index, below) in below.iter().enumerate() {
        text.push_str(&table.row(index, &widths));
        text.push('\n');
        text.push_str(below);
    }
    text
}

/// An upstream in a line, then its members.
fn upstream_text(upstream: JsonView<'_>, width: Option<usize>) -> String {
    let mut table = TextTable::new(&[
        texts("MEMBER"),
        words("STATE"),
        numbers("OUT FOR"),
        numbers("REQUESTS"),
        numbers("RESTING"),
        numbers("LATENCY"),
        numbers("ANSWERS"),
        numbers("FAILURES"),
    ]);
    for member in upstream.each("members") {
        let latency = member.number("latency_ms").map(|ms| format!("{ms} ms"));
        table.push(vec![
            TextCell::text(member.text("address")),
            TextCell::text(member.text("state")),
            TextCell::age(member.count("out_for_s")),
            TextCell::count(member.count("requests")),
            TextCell::count(member.count("resting")),
            TextCell::text(latency.as_deref()),
            TextCell::count(member.count("answers")),
            TextCell::count(member.count("failures")),
        ]);
    }
    let name = escape::line(upstream.text("name").unwrap_or("?"));
    let services: String = upstream.each("services").map(service_text).collect();
    let rows = table.text(width.map(|width| width.saturating_sub(2)));
    let mut text = format!("{name}\n{services}{}", indented(&rows));
    for member in upstream.each("members") {
        if let (Some(address), Some(why)) = (member.text("address"), member.text("why")) {
            let (address, why) = (escape::line(address), escape::line(why));
            text.push_str(&format!("  {address}: {why}\n"));
        }
        text.push_str(&run_text(member.below("run")));
    }
    text
}

/// A service whose servers are members, in a line, and why it was not found last.
fn service_text(service: JsonView<'_>) -> String {
    let name = escape::line(service.text("name").unwrap_or("?"));
    let number = |name| count(service.count(name).unwrap_or_default());
    let mut text = format!("  {name}: {} found", number("servers"));
    if service.count("surplus").is_some_and(|surplus| surplus > 0) {
        text.push_str(&format!(", {} more left out", number("surplus")));
    }
    let again = age(service.count("again_in_s").unwrap_or_default());
    text.push_str(&format!(", again in {again}\n"));
    if let Some(why) = service.text("why") {
        text.push_str(&format!("    {}\n", escape::line(why)));
    }
    text
}

/// A row for each program that hobs of other machines may ask for.
fn offers(programs: JsonView<'_>, width: Option<usize>) -> String {
    let mut table = TextTable::new(&[
        texts("OFFER"),
        texts("ROUTE"),
        numbers("REQUESTS"),
        texts("TO"),
    ]);
    for offer in programs.each("offers") {
        table.push(vec![
            TextCell::text(offer.text("program")),
            TextCell::text(offer.text("route")),
            TextCell::count(offer.count("requests")),
            TextCell::text(offer.texts("to").as_deref()),
        ]);
    }
    match table.rows.is_empty() {
        true => String::new(),
        false => table.text(width),
    }
}

/// A program that hob runs itself, its processes, and why the last one ended that did; nothing of
/// other people's.
fn run_text(run: JsonView<'_>) -> String {
    let Some(program) = run.text("program") else {
        return String::new();
    };
    let (program, state) = (escape::line(program), run.text("state").unwrap_or("?"));
    let starts = run.count("starts").unwrap_or_default();
    let mut text = format!("  {program} is {state}, {starts} starts");
    let pids = run.list("pids").iter().map(|pid| format!(" {pid}"));
    let pids: String = pids.collect();
    if !pids.is_empty() {
        text.push_str(&format!(", processes{pids}"));
    }
    text.push('\n');
    if let Some(failure) = run.text("last_failure") {
        text.push_str(&format!("  last failure: {}\n", escape::line(failure)));
    }
    text
}

/// What a host is and holds, and what went wrong with it last.
fn host_below(host: JsonView<'_>) -> String {
    let mut text = String::new();
    for (name, what) in [("version", ""), ("last_failure", "last failure: ")] {
        if let Some(said) = host.text(name) {
            text.push_str(&format!("  {what}{}\n", escape::line(said)));
        }
    }
    if let Some(modules) = host.texts("preload") {
        text.push_str(&format!("  has loaded {}\n", escape::line(&modules)));
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pools_and_hosts_are_told_with_what_they_do() {
        let programs = json!({
            "pools": [{
                "name": "app", "min": 1, "max": 8, "waiting": 2, "started": 3, "crashed": 1,
                "replaced": 0, "last_failure": "exit\ncode 1",
                "workers": [
                    {
                        "pid": 12, "state": "busy", "age_s": 61, "served": 1234,
                        "memory_bytes": 2_000_000, "carrier": "shm", "library": "hob-python/1",
                        "requests": [
                            { "request": "GET /a\u{1b}[2J", "ms": 12 },
                            { "request": "GET /b", "ms": 1 },
                        ],
                    },
                    { "pid": null, "state": "starting", "requests": [] },
                ],
            }],
            "hosts": [{
                "interpreter": "/usr/bin/python3", "dir": "/srv", "state": "failed",
                "preload": ["json"], "last_failure": "no module x",
            }],
        });
        let wanted = [
            "app: 2 of 1 to 8 workers, 2 waiting, 3 started, 0 replaced, 1 crashed",
            "  last failure: exit\\ncode 1",
            "  PID  STATE         AGE  SERVED  MEMORY  CARRIER  LIBRARY       DOES",
            "   12  busy      1 m 1 s   1,234  2.0 MB  shm      hob-python/1  GET /a\\x1b[2J for 12 ms",
            "                                                                 GET /b for 1 ms",
            "    -  starting        -       -       -  -        -",
            "HOST                      STATE   PID  AGE  SERVED  RUNNING  MEMORY  STARTS  FAILURES  CRASHES",
            "/usr/bin/python3 in /srv  failed    -    -       -        -       -       -         -        -",
            "  last failure: no module x",
            "  has loaded json",
        ];
        let text = text(JsonView(&programs), None);
        assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn offers_are_told_with_who_may_ask() {
        let programs = json!({ "offers": [{
            "program": "reports", "route": "/reports/*", "requests": 1234,
            "to": ["front1", "sha256:0A\n"],
        }] });
        let wanted = [
            "OFFER    ROUTE       REQUESTS  TO",
            "reports  /reports/*     1,234  front1, sha256:0A\\n",
        ];
        let text = text(JsonView(&programs), None);
        assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn members_of_upstreams_are_told_with_why_they_are_not_asked() {
        let programs = json!({ "upstreams": [{
            "name": "/* proxy",
            "members": [
                { "address": "127.0.0.1:1", "state": "in", "out_for_s": null, "requests": 2,
                  "resting": 3, "latency_ms": 1.25, "answers": 1234, "failures": 0 },
                { "address": "127.0.0.1:2", "state": "out", "out_for_s": 7, "requests": 0,
                  "resting": 0, "latency_ms": null, "answers": 0, "failures": 5 },
            ],
            "services": [
                { "name": "srv:_app._tcp.test", "servers": 1, "surplus": 2, "again_in_s": 70,
                  "why": "no name server answered" },
            ],
        }] });
        let text = text(JsonView(&programs), None);
        let service = "  srv:_app._tcp.test: 1 found, 2 more left out, again in 1 m 10 s\n    no name \
                       server answered\n";
        assert!(text.contains(service), "{text}");
        let text = text.replace(service, "");
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["/*", "proxy"], "{text}");
        assert_eq!(lines[2][..2], ["127.0.0.1:1", "in"], "{text}");
        assert!(
            lines[2].contains(&"1.25") && lines[2].contains(&"1,234"),
            "{text}"
        );
        assert_eq!(lines[3][..3], ["127.0.0.1:2", "out", "7"], "{text}");
    }
}
