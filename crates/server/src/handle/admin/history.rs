//! `GET /v1/history`: finished requests, newest or slowest first, and one by its id.
//!
//! Threads hand over what they have, then this one looks through sealed segments, some at a time,
//! with its other work in between.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use hob_http::{Answered, Response};
use hob_trace::history::{FOUND_MAX, Filter, Found, Page, Place, RequestId, Search, Statuses};
use hob_trace::series::SeriesName;
use hob_trace::{Fault, HandlerKind};
use serde_json::{Value, json};

use super::ask::Ask;
use super::told::{Told, named};
use super::{reply, threads};
use crate::config::parse_duration;

/// Requests of an answer where nobody says.
const USUAL: u64 = 100;
/// Segments looked through at a time: about a quarter of a millisecond.
const SEGMENTS_AT_ONCE: usize = 16;

/// `GET /v1/history`
pub(super) fn list(ask: &Ask) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let told = list_of(&ask).await;
        told.unwrap_or_else(|Refusal(status, text)| reply::text(status, text))
    }))
}

/// `GET /v1/history/{id}`
pub(super) fn one(ask: &Ask) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let Some(id) = RequestId::parse(&ask.part) else {
            let text = "an id is server.connection.request, such as 1.42.0";
            return reply::text(400, text);
        };
        hand_over(&ask).await;
        let names = ask.admin.shared.series.names();
        match find(&ask, id).await {
            Some(found) => reply::object(200, &named(&ask.admin.names, told(&found, &names))),
            None => reply::text(404, "no such request is in the history"),
        }
    }))
}

/// Why a question is not answered: status and text.
struct Refusal(u16, String);

async fn list_of(ask: &Ask) -> Result<Response, Refusal> {
    let limit = usize::try_from(ask.number("limit", USUAL)).unwrap_or(FOUND_MAX);
    let filter = filter(ask)?;
    let is_slowest = match ask.query("sort").as_deref() {
        None | Some("newest" | "") => false,
        Some("slowest") => true,
        Some(_) => return Err(Refusal(400, "sort is newest or slowest".to_owned())),
    };
    hand_over(ask).await;
    let before = match ask.query("before").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(place(ask, &text).await?),
    };
    let history = &ask.admin.inside.history;
    let names = ask.admin.shared.series.names();
    let search = match is_slowest {
        true => Search::slowest(history, &names, filter, limit),
        false => Search::newest(history, &names, filter, before, limit),
    };
    let page = run(search).await;
    let requests: Vec<Value> = page
        .found
        .iter()
        .map(|found| named(&ask.admin.names, told(found, &names)))
        .collect();
    let holdings = page.holdings;
    let oldest = (holdings.count > 0).then_some(holdings.oldest_unix_ms);
    let body = json!({
        "requests": requests,
        "kept": holdings.count,
        "kept_bytes": holdings.bytes,
        "oldest_unix_ms": oldest,
        "scanned": page.scanned,
        "more": page.next.is_some(),
        "next": page.next.map(|next| next.to_string()),
    });
    Ok(reply::object(200, &body))
}

/// Has every thread hand over what it keeps to itself.
async fn hand_over(ask: &Ask) {
    // A thread that is busy for longer has its requests in the next answer.
    let _ = threads::look_at_all(ask, |thread| thread.answer().hand_over()).await;
}

/// Where a page begins: behind a request, or where the page before has ended.
async fn place(ask: &Ask, text: &str) -> Result<Place, Refusal> {
    if let Some(place) = Place::parse(text) {
        return Ok(place);
    }
    let Some(id) = RequestId::parse(text) else {
        let text = "before is the id of a request, or the next of the page before";
        return Err(Refusal(400, text.to_owned()));
    };
    let found = find(ask, id).await;
    found.map(|found| found.place).ok_or_else(|| {
        Refusal(
            410,
            "the request named by before is no longer in the history".to_owned(),
        )
    })
}

async fn find(ask: &Ask, id: RequestId) -> Option<Found> {
    let search = Search::one(&ask.admin.inside.history, id);
    run(search).await.found.pop()
}

/// Carries out a search; other work of the thread goes on in between.
async fn run(mut search: Search) -> Page {
    loop {
        for _ in 0..SEGMENTS_AT_ONCE {
            if !search.step() {
                return search.page();
            }
        }
        let mut has_waited = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut has_waited, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

fn filter(ask: &Ask) -> Result<Filter, Refusal> {
    let text = |key: &str| ask.query(key).filter(|text| !text.is_empty());
    let wrong = |key: &str, what: &str| Refusal(400, format!("{key} is {what}"));
    let number = |key: &str| {
        let parse = |text: String| text.parse::<u64>();
        let parsed = text(key).map(parse).transpose();
        parsed.map_err(|_| wrong(key, "a Unix time in milliseconds"))
    };
    let status = |text: String| {
        Statuses::parse(&text).ok_or_else(|| wrong("status", "a code, or a class such as 4xx"))
    };
    let handler = |text: String| {
        let known = HandlerKind::ALL.iter().find(|kind| kind.word() == text);
        known
            .copied()
            .ok_or_else(|| wrong("handler", "the word for who answers, such as files or cgi"))
    };
    let fault = |text: String| {
        let known = Fault::ALL.iter().find(|fault| fault.word() == text);
        known
            .copied()
            .ok_or_else(|| wrong("fault", "client, server, script or upstream"))
    };
    let slower = |text: String| -> Result<u64, Refusal> {
        let time = parse_duration(&text).map_err(|_| wrong("slower", "a time such as 100ms"))?;
        Ok(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    };
    Ok(Filter {
        since_unix_ms: number("since")?,
        until_unix_ms: number("until")?,
        text: text("q"),
        client: text("client"),
        site: text("site"),
        route: text("route"),
        path: text("path"),
        method: text("method"),
        status: text("status").map(status).transpose()?,
        handler: text("handler").map(handler).transpose()?,
        fault: text("fault").map(fault).transpose()?,
        slower_us: text("slower").map(slower).transpose()?,
    })
}

/// A finished request as the API tells it.
fn told(found: &Found, names: &[Arc<SeriesName>]) -> Value {
    let finished = found.finished();
    let name = names.get(usize::from(finished.record.series));
    let mut value = Told {
        server: found.id.server,
        record: &finished.record,
        texts: finished.texts,
        site: name.map_or("", |name| &name.site),
        route: name.map_or("", |name| &name.route),
    }
    .finished();
    value["id"] = found.id.to_string().into();
    if finished.record.trace.is_some() {
        let id = finished.record.trace.id_text();
        value["trace_id"] = String::from_utf8_lossy(&id).into();
    }
    for (key, text) in [
        ("tls_suite", finished.tls_suite),
        ("reason", finished.reason),
        ("note", finished.note),
        ("program", name.map_or("", |name| &name.program).as_bytes()),
    ] {
        if !text.is_empty() {
            value[key] = String::from_utf8_lossy(text).into();
        }
    }
    value
}
