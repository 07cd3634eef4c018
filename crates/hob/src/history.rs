//! `hob history`: requests that were answered, and the whole life of one.

mod follow;
mod life;
mod remark;
mod rows;

use std::time::{SystemTime, UNIX_EPOCH};

use hob_load::{parse_duration, parse_moment};
use hob_trace::calendar::UtcDateTime;
use serde_json::{Value, json};

use crate::args::{HistoryOptions, Surroundings};
use crate::control::{self, Hob};
use crate::facts::JsonView;
use crate::filter::{Filter, push_encoded};
use crate::{CommandFailure, escape, output};
use follow::HistoryOutputStyle;

pub(crate) use life::life;
pub(crate) use remark::remark;

/// What requests can be chosen by.
const KEYS: &[&str] = &[
    "client", "site", "route", "path", "method", "status", "handler", "fault", "slower", "since",
    "until", "q",
];
/// Requests that are asked for at once.
const PAGE_COUNT: usize = 500;

/// Shows what was asked for.
pub(crate) fn run(
    options: &HistoryOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    if let [id] = options.filters.as_slice()
        && is_id(id)
        && !options.follow
    {
        return one(id, options, surroundings);
    }
    let mut filter = Filter::read(&options.filters, KEYS, Some("q"))?;
    let now = SystemTime::now();
    filter.translate(&["since", "until"], |text| unix_ms(text, now))?;
    if options.slowest {
        filter.add("sort", "slowest");
    }
    let mut hob = control::hob(&options.control, surroundings)?;
    if options.follow {
        let style = match options.control.json {
            true => HistoryOutputStyle::Json,
            false => HistoryOutputStyle::Table,
        };
        return follow::follow(&mut hob, &filter, style);
    }
    let found = find(&mut hob, &filter, options)?;
    if options.control.json {
        output::line(&escape::json(&found));
    } else {
        output::write(&list(JsonView(&found), output::width()));
    }
    Ok(())
}

/// One request, which may still be running.
fn one(
    id: &str,
    options: &HistoryOptions,
    surroundings: &Surroundings,
) -> Result<(), CommandFailure> {
    let mut hob = control::hob(&options.control, surroundings)?;
    let request = find_one(&mut hob, id)?;
    if options.control.json {
        output::line(&escape::json(&request));
    } else {
        output::write(&life(JsonView(&request), output::width()));
    }
    Ok(())
}

/// A request by its id: finished, else running.
pub(crate) fn find_one(hob: &mut Hob, id: &str) -> Result<Value, CommandFailure> {
    let finished = hob.ask("GET", &format!("/v1/history/{id}"))?;
    if finished.status != 404 {
        return finished.told();
    }
    let running = hob.get("/v1/running")?;
    let mut running = JsonView(&running).each("requests");
    match running.find(|request| request.text("id") == Some(id)) {
        Some(request) => Ok(request.0.clone()),
        None => finished.told(),
    }
}

/// As many as are wanted, a page after the other; what the last page said of the whole.
fn find(hob: &mut Hob, filter: &Filter, options: &HistoryOptions) -> Result<Value, CommandFailure> {
    let mut requests: Vec<Value> = Vec::new();
    let mut next: Option<String> = None;
    let base = filter.target("/v1/history");
    let mark = if base.contains('?') { '&' } else { '?' };
    loop {
        let wanted = (options.limit - requests.len()).min(PAGE_COUNT);
        let mut target = format!("{base}{mark}limit={wanted}");
        if let Some(next) = &next {
            target.push_str("&before=");
            push_encoded(&mut target, next);
        }
        let mut page = hob.get(&target)?;
        let came = page["requests"].as_array_mut().map(std::mem::take);
        let came = came.unwrap_or_default();
        next = JsonView(&page).text("next").map(str::to_owned);
        let is_end = came.is_empty() || next.is_none();
        requests.extend(came);
        if is_end || requests.len() >= options.limit {
            page["requests"] = json!(requests);
            return Ok(page);
        }
    }
}

/// Number of the server, of the connection, of the request.
fn is_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number)
}

/// Unix time in milliseconds of `1h` (so long ago) or of a moment.
fn unix_ms(text: &str, now: SystemTime) -> Result<String, String> {
    let moment = match parse_duration(text) {
        Ok(ago) => now.checked_sub(ago),
        Err(_) => Some(parse_moment(text).map_err(|_| {
            format!("{text:?} is no moment; write 1h, 90s or 2026-01-31T12:00:00Z")
        })?),
    };
    let since = moment.and_then(|moment| moment.duration_since(UNIX_EPOCH).ok());
    Ok(since.unwrap_or_default().as_millis().to_string())
}

/// The requests as a table, and what was looked through.
fn list(found: JsonView<'_>, width: Option<usize>) -> String {
    let table = rows::table(found.each("requests"), width);
    let widths = table.widths(width);
    let mut text = table.heading(&widths) + "\n";
    text.push_str(&rows::lines(&table, found.each("requests"), &widths));
    text.push_str(&summary(found, table.rows.len()));
    text
}

/// What was looked through.
fn summary(found: JsonView<'_>, shown: usize) -> String {
    let count = |name| found.count(name).map(hob_load::page::count);
    let mut text = format!("{} shown", hob_load::page::count(shown as u64));
    if let Some(kept) = count("kept") {
        text.push_str(&format!(" of {kept} that are kept"));
    }
    if let Some(oldest) = found.count("oldest_unix_ms") {
        text.push_str(&format!(", the oldest of {}", moment(oldest)));
    }
    if found.is("more") {
        text.push_str("; --limit shows more");
    }
    if found.is("cut") {
        text.push_str("; not all of them were looked at");
    }
    text + "\n"
}

/// By name where it has one.
pub(crate) fn client(request: JsonView<'_>) -> Option<&str> {
    request.text("client_name").or(request.text("client"))
}

/// Method and target.
pub(crate) fn asked(request: JsonView<'_>) -> String {
    let method = request.text("method").unwrap_or(crate::table::UNKNOWN);
    let target = request.text("target").unwrap_or_default();
    format!("{method} {target}")
}

/// The time of day, in UTC.
pub(crate) fn clock(unix_ms: u64) -> String {
    let at = UtcDateTime::from_unix_s((unix_ms / 1000).cast_signed());
    format!("{:02}:{:02}:{:02}", at.hour, at.minute, at.second)
}

/// Day and time, in UTC.
pub(crate) fn moment(unix_ms: u64) -> String {
    let at = UtcDateTime::from_unix_s((unix_ms / 1000).cast_signed());
    let clock = clock(unix_ms);
    format!("{:04}-{:02}-{:02} {clock} UTC", at.year, at.month, at.day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ids_are_three_numbers() {
        for (text, wanted) in [
            ("3.17.0", true),
            ("3.17", false),
            ("3..0", false),
            ("1.2.3.4", false),
            ("a.b.c", false),
        ] {
            assert_eq!(is_id(text), wanted, "{text}");
        }
    }

    #[test]
    fn moments_are_ages_or_dates() {
        let now = UNIX_EPOCH + Duration::from_secs(7200);
        assert_eq!(unix_ms("1h", now), Ok("3600000".to_owned()));
        assert_eq!(unix_ms("1970-01-01T00:00:01Z", now), Ok("1000".to_owned()));
        assert_eq!(unix_ms("24h", now), Ok("0".to_owned()));
        assert!(unix_ms("yesterday", now).is_err());
    }

    #[test]
    fn requests_are_rows_with_what_there_is_to_say_below() {
        let found = json!({
            "requests": [
                {
                    "id": "1.5.0", "started_unix_ms": 50_000, "client": "192.0.2.7",
                    "method": "GET", "target": "/slow\u{1b}[31m", "status": 200,
                    "total_us": 2_000_000, "verdict": "network: 1.8 of 2.0 s",
                },
                { "id": "1.4.0", "status": null, "outcome": "client-left" },
            ],
            "kept": 1234, "oldest_unix_ms": 1000, "more": true,
        });
        assert_eq!(
            list(JsonView(&found), Some(80)),
            "TIME      ID     CLIENT     STATUS   TOTAL  REQUEST\n\
             00:00:50  1.5.0  192.0.2.7     200  2.00 s  GET /slow\\x1b[31m\n          \
             network: 1.8 of 2.0 s\n\
             -         1.4.0  -               -       -  -\n          \
             the client left\n\
             2 shown of 1,234 that are kept, the oldest of 1970-01-01 00:00:01 UTC; \
             --limit shows more\n"
        );
    }
}
