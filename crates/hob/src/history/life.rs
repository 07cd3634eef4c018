//! One request's whole life: what is known of it, and where its time went, as bars below each
//! other.

use hob_load::page::{bytes, count, time_us};

use super::{asked, moment, remark};
use crate::check::FAILURES;
use crate::escape;
use crate::facts::JsonView;
use crate::table::{columns_of, cut};

/// Columns of the names, of the times and of the bars where the width is not known.
const NAME_WIDTH: usize = 22;
const TIME_WIDTH: usize = 9;
const BAR_WIDTH: usize = 44;
const BAR_WIDTH_MIN: usize = 10;

/// A stretch of a request's time.
#[derive(Debug, PartialEq, Eq)]
struct TimelineStage {
    name: &'static str,
    begin_us: u64,
    length_us: u64,
    /// Its length is known and lies within; when it was is not.
    is_somewhere: bool,
}

/// Everything about a request, in lines.
pub(crate) fn life(request: JsonView<'_>, width: Option<usize>) -> String {
    let mut text = format!("{}\n", escape::line(&asked(request)));
    for (name, value) in facts(request) {
        let name = format!("{name:<NAME_WIDTH$}");
        text.push_str(&format!("  {name}{}\n", escape::line(&value)));
    }
    if let Some(remark) = remark(request) {
        text.push_str(&format!(
            "  {:<NAME_WIDTH$}{remark}\n",
            "what there is to say"
        ));
    }
    if let Some(command) = explaining(request) {
        text.push_str(&format!("  {:<NAME_WIDTH$}{command}\n", "ways out"));
    }
    text.push('\n');
    let bar = width.map_or(BAR_WIDTH, |width| {
        let rest = width.saturating_sub(NAME_WIDTH + TIME_WIDTH + 6);
        rest.clamp(BAR_WIDTH_MIN, 2 * BAR_WIDTH)
    });
    text.push_str(&waterfall(request, bar));
    let lines: Vec<String> = text
        .lines()
        .map(|line| width.map_or_else(|| line.to_owned(), |width| cut(line, width)))
        .collect();
    lines.join("\n") + "\n"
}

/// The command that tells the ways out of a failure, where one does.
fn explaining(request: JsonView<'_>) -> Option<String> {
    request.text("reason")?;
    let status = request.count("status")?.to_string();
    let is_explained = FAILURES.contains(&status.as_str());
    is_explained.then(|| format!("hob check --explain {status}"))
}

/// Names and values of what is known, in the order of a request's life.
fn facts(request: JsonView<'_>) -> Vec<(&'static str, String)> {
    let mut facts: Vec<(&'static str, Option<String>)> = Vec::new();
    let text = |name| request.text(name).map(str::to_owned);
    facts.push(("id", text("id")));
    facts.push(("began", request.count("started_unix_ms").map(moment)));
    let status = request.count("status").map(|status| status.to_string());
    facts.push(("status", status.or_else(|| text("state"))));
    facts.push(("client", client(request)));
    facts.push((
        "protocol",
        joined(request, &["protocol", "tls_version", "tls_handshake"]),
    ));
    facts.push(("host", text("host")));
    facts.push(("site and route", joined(request, &["site", "route"])));
    facts.push(("handler", joined(request, &["handler", "cache"])));
    let worker = request.count("worker_pid").map(|pid| pid.to_string());
    facts.push(("worker", worker));
    facts.push(("user", text("user")));
    facts.push(("browser", text("user_agent")));
    facts.push(("came from", text("referer")));
    let amount = |name| request.count(name).map(|size| bytes(size as f64));
    facts.push(("received", amount("bytes_in")));
    let sent = [amount("head_bytes_out"), amount("body_bytes_out")];
    if let [Some(head), Some(body)] = sent {
        facts.push(("sent", Some(format!("{head} of head, {body} of body"))));
    }
    facts.push(("CPU time", us(request, "cpu_us")));
    facts.push(("network", network(request)));
    facts.push(("trace", text("trace_id")));
    let known = facts.into_iter();
    known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn client(request: JsonView<'_>) -> Option<String> {
    let mut text = request.text("client")?.to_owned();
    if let Some(port) = request.count("client_port").filter(|port| *port != 0) {
        text.push_str(&format!(", port {port}"));
    }
    if let Some(name) = request.text("client_name") {
        text.push_str(&format!(", {name}"));
    }
    Some(text)
}

fn network(request: JsonView<'_>) -> Option<String> {
    let rtt = request.count("rtt_us").filter(|rtt| *rtt != 0)?;
    let mut text = format!("round trip {}", time_us(rtt as f64));
    if let Some(again) = request.count("retransmits") {
        text.push_str(&format!(", {} sent again", count(again)));
    }
    if let Some(window) = request.count("window_bytes") {
        text.push_str(&format!(", window {}", bytes(window as f64)));
    }
    Some(text)
}

fn joined(request: JsonView<'_>, names: &[&str]) -> Option<String> {
    let known = names.iter().filter_map(|name| request.text(name));
    let known: Vec<&str> = known.filter(|text| *text != "none").collect();
    (!known.is_empty()).then(|| known.join(", "))
}

fn us(request: JsonView<'_>, name: &str) -> Option<String> {
    let time = request.count(name).filter(|time| *time != 0)?;
    Some(time_us(time as f64))
}

/// A bar for every stretch of time, below a scale from the begin to the end.
fn waterfall(request: JsonView<'_>, bar: usize) -> String {
    let whole = request.count("total_us").or(request.count("age_us"));
    let Some(whole) = whole else {
        return String::new();
    };
    let end = time_us(whole as f64);
    let room = " ".repeat(bar.saturating_sub(1 + columns_of(&end)));
    let blank = " ".repeat(2 + NAME_WIDTH + TIME_WIDTH + 2);
    let mut text = format!("{blank}0{room}{end}\n");
    for stage in stages(request, whole) {
        let length = time_us(stage.length_us as f64);
        let drawn = drawn(&stage, whole, bar);
        text.push_str(&format!(
            "  {:<NAME_WIDTH$}{length:>TIME_WIDTH$}  {drawn}\n",
            stage.name
        ));
    }
    if let Some(handshake) = us(request, "handshake_us") {
        let name = "TLS, before that";
        text.push_str(&format!("  {name:<NAME_WIDTH$}{handshake:>TIME_WIDTH$}\n"));
    }
    if let Some(server) = us(request, "server_us") {
        let name = "the server itself";
        text.push_str(&format!("  {name:<NAME_WIDTH$}{server:>TIME_WIDTH$}\n"));
    }
    text
}

/// The bar of a stage: where it was as `█`, and as `▒` where only its length is known.
fn drawn(stage: &TimelineStage, whole_us: u64, bar: usize) -> String {
    let whole = whole_us.max(1);
    let place = |us: u64| {
        let place = us.min(whole) as u128 * bar as u128 / u128::from(whole);
        usize::try_from(place).unwrap_or(bar)
    };
    let begin = place(stage.begin_us).min(bar.saturating_sub(1));
    let end = place(stage.begin_us.saturating_add(stage.length_us));
    let length = end.saturating_sub(begin).max(1);
    let mark = if stage.is_somewhere { "▒" } else { "█" };
    format!("{}{}", " ".repeat(begin), mark.repeat(length))
}

/// The stretches that took any time, by when they began.
fn stages(request: JsonView<'_>, whole_us: u64) -> Vec<TimelineStage> {
    let of = |name| request.count(name).unwrap_or(0);
    let first = request.count("first_byte_us").filter(|first| *first != 0);
    let first = first.unwrap_or(whole_us).min(whole_us);
    // A program's head goes out as soon as it is complete: what came before ends there.
    let program_begin = first.saturating_sub(of("program_us"));
    let queue_begin = program_begin.saturating_sub(of("queue_us"));
    let start = of("start_us").min(of("program_us"));
    let sending = whole_us - first;
    let stage = |name, begin_us, length_us| TimelineStage {
        name,
        begin_us,
        length_us,
        is_somewhere: false,
    };
    let somewhere = |name, begin_us, length_us| TimelineStage {
        is_somewhere: true,
        ..stage(name, begin_us, length_us)
    };
    let all = vec![
        somewhere("waits for the body", 0, of("client_body_us")),
        somewhere("waits for a disk", 0, of("disk_wait_us")),
        stage("waits in the queue", queue_begin, of("queue_us")),
        stage("starts the program", program_begin, start),
        stage(
            "runs the program",
            program_begin + start,
            of("program_us") - start,
        ),
        stage("sends the answer", first, sending),
        somewhere(
            "waits for the client",
            whole_us.saturating_sub(of("client_take_us")),
            of("client_take_us"),
        ),
    ];
    all.into_iter().filter(|one| one.length_us > 0).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn waterfall_shows_where_the_time_went() {
        let request = json!({
            "queue_us": 100_000, "start_us": 100_000, "program_us": 500_000,
            "first_byte_us": 600_000, "client_take_us": 300_000, "total_us": 1_000_000,
            "handshake_us": 1500, "server_us": 10,
        });
        assert_eq!(
            waterfall(JsonView(&request), 10),
            "                                   0   1.00 s\n  \
             waits in the queue       100 ms  █\n  \
             starts the program       100 ms   █\n  \
             runs the program         400 ms    ████\n  \
             sends the answer         400 ms        ████\n  \
             waits for the client     300 ms         ▒▒▒\n  \
             TLS, before that        1.50 ms\n  \
             the server itself       10.0 us\n"
        );
    }

    #[test]
    fn failure_that_hob_answers_itself_has_its_ways_out() {
        let told = |status: u16, reason: Option<&str>| {
            let request = json!({ "status": status, "reason": reason, "total_us": 5 });
            life(JsonView(&request), None).contains(&format!("hob check --explain {status}\n"))
        };
        assert!(told(502, Some("no head")) && told(504, Some("no head")));
        assert!(!told(502, None), "the program has sent it itself");
        assert!(!told(404, Some("no such file")));
    }

    #[test]
    fn life_holds_what_is_known_and_nothing_that_steers() {
        let request = json!({
            "id": "1.2.3", "started_unix_ms": 1000, "method": "GET", "target": "/\u{1b}[2J",
            "status": 200, "client": "192.0.2.7", "client_port": 4, "user_agent": "x\u{9b}y",
            "rtt_us": 200, "retransmits": 1, "window_bytes": 14600, "total_us": 5,
            "verdict": "network: 1 of 2 s",
        });
        let text = life(JsonView(&request), None);
        for wanted in [
            "GET /\\x1b[2J\n",
            "client                192.0.2.7, port 4\n",
            "browser               x\\u{9b}y\n",
            "network               round trip 200 us, 1 sent again, window 14.6 kB\n",
            "what there is to say  network: 1 of 2 s\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in:\n{text}");
        }
        let narrow = life(JsonView(&request), Some(40));
        assert!(
            narrow.lines().all(|line| columns_of(line) <= 40),
            "{narrow}"
        );
    }

    #[test]
    fn stages_of_a_record_that_contradicts_itself_stay_within() {
        let request = json!({
            "queue_us": u64::MAX, "start_us": 9, "program_us": 7, "first_byte_us": 90,
            "total_us": 10, "client_take_us": u64::MAX,
        });
        let text = waterfall(JsonView(&request), 10);
        assert!(text.lines().all(|line| columns_of(line) < 60), "{text}");
    }
}
