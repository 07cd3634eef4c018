//! `GET /v1/history`: finished requests, newest or slowest first, and one by its id.
//!
//! Threads hand over what they have, then this one looks through sealed segments, some at a time,
//! with its other work in between.

use hob_http::unix_ms;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use hob_http::{Answered, Response};
use hob_trace::history::{
    FOUND_MAX, Filter, FoundRequest, HistoryPage, HistorySearch, Mark, Rank, RequestId, Statuses,
};
use hob_trace::series::SeriesName;
use hob_trace::watch::Hidden;
use hob_trace::{Fault, HandlerKind};
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::query::value_of;
use super::told::{RequestReport, known, name_of};
use super::{Admin, reply, threads};
use crate::api;
use hob_server::config::parse_duration;

/// Requests of an answer where nobody says.
const USUAL: usize = 100;
/// Why nothing can be followed.
const OFF: &str = "the history is off, so nothing comes in that could be followed: give \
                   `bytes` in `[history]` more than 0 and reload";
/// Segments looked through at a time: about a quarter of a millisecond.
const SEGMENTS_AT_ONCE: usize = 16;

/// `GET /v1/history`
pub(super) fn list(ask: &AdminRequest) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let told = list_of(&ask).await;
        told.unwrap_or_else(|QueryRefusal(status, text)| reply::text(status, text))
    }))
}

/// `GET /v1/history/{id}`
pub(super) fn one(ask: &AdminRequest) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let Some(id) = RequestId::parse(&ask.part) else {
            let text = "an id is server.connection.request, such as 1.42.0";
            return reply::text(400, text);
        };
        hand_over(&ask).await;
        let names = ask.admin.shared.series.names();
        match find(&ask, id).await {
            Some(found) => reply::object(
                200,
                &json!(told(
                    &ask.admin,
                    &found,
                    &names,
                    &ask.admin.shared.watching.hidden()
                )),
            ),
            None => reply::text(404, "no such request is in the history"),
        }
    }))
}

/// Why a question is not answered: status and text.
pub(super) struct QueryRefusal(pub(super) u16, pub(super) String);

/// What is looked for, as the query says it.
struct HistoryListQuery {
    filter: Filter,
    limit: usize,
    order: HistoryOrder,
    /// A mark, an id, or `now`.
    from: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HistoryOrder {
    Newest,
    Slowest,
    /// As they came in.
    Arrived,
}

/// Where a list begins.
enum Begin {
    /// Behind a mark, or with the first.
    At(Option<Mark>),
    Behind(RequestId),
}

impl HistoryListQuery {
    fn read(query: &[u8]) -> Result<HistoryListQuery, QueryRefusal> {
        let text = |key: &str| value_of(query, key).filter(|text| !text.is_empty());
        let limit = text("limit").and_then(|limit| limit.parse().ok());
        let order = match (text("sort").as_deref(), text("after").is_some()) {
            (None, true) => HistoryOrder::Arrived,
            (Some(_), true) => return refused("what comes after is told as it came in, unsorted"),
            (None | Some("newest"), false) => HistoryOrder::Newest,
            (Some("slowest"), false) => HistoryOrder::Slowest,
            (Some(_), false) => return refused("sort is newest or slowest"),
        };
        let from = match (text("before"), text("after")) {
            (Some(_), Some(_)) => return refused("either before or after"),
            (before, after) => before.or(after),
        };
        Ok(HistoryListQuery {
            filter: filter(query)?,
            limit: limit.unwrap_or(USUAL).min(FOUND_MAX),
            order,
            from,
        })
    }

    /// Where it begins.
    fn begin(&self) -> Result<Begin, QueryRefusal> {
        let Some(text) = self.from.as_deref() else {
            return Ok(Begin::At(None));
        };
        match (Mark::parse(text), RequestId::parse(text), self.order) {
            (Some(mark), _, _) => Ok(Begin::At(Some(mark))),
            (None, Some(id), HistoryOrder::Newest | HistoryOrder::Slowest) => Ok(Begin::Behind(id)),
            (None, _, HistoryOrder::Arrived) if text == "now" => Ok(Begin::At(None)),
            (None, _, HistoryOrder::Arrived) => refused("after is now, or a next"),
            (None, None, _) => {
                refused("before is the id of a request, or the next of the page before")
            }
        }
    }

    fn search(&self, admin: &Admin, mark: Option<Mark>) -> Result<HistorySearch, QueryRefusal> {
        let history = &admin.inside.history;
        let names = admin.shared.series.names();
        let (filter, limit) = (self.filter.clone(), self.limit);
        Ok(match (self.order, mark) {
            (HistoryOrder::Newest, None) => {
                HistorySearch::newest(history, &names, filter, None, limit)
            }
            (HistoryOrder::Newest, Some(Mark::Newest(place))) => {
                HistorySearch::newest(history, &names, filter, Some(place), limit)
            }
            (HistoryOrder::Slowest, None) => {
                HistorySearch::slowest(history, &names, filter, None, limit)
            }
            (HistoryOrder::Slowest, Some(Mark::Slowest(rank))) => {
                HistorySearch::slowest(history, &names, filter, Some(rank), limit)
            }
            (HistoryOrder::Arrived, None) => {
                HistorySearch::arrived(history, &names, filter, None, limit)
            }
            (HistoryOrder::Arrived, Some(Mark::Reached(reached))) => {
                HistorySearch::arrived(history, &names, filter, Some(reached), limit)
            }
            _ => return refused("this next is of a page in another order"),
        })
    }
}

fn refused<T>(text: &str) -> Result<T, QueryRefusal> {
    Err(QueryRefusal(400, text.to_owned()))
}

async fn list_of(ask: &AdminRequest) -> Result<Response, QueryRefusal> {
    let head = ask.request.head();
    let wanted = HistoryListQuery::read(head.query().unwrap_or_default())?;
    if wanted.order == HistoryOrder::Arrived && !ask.admin.inside.history.is_on() {
        // Who follows would wait for ever.
        return Err(QueryRefusal(409, OFF.to_owned()));
    }
    hand_over(ask).await;
    let mark = match wanted.begin()? {
        Begin::At(mark) => mark,
        Begin::Behind(id) => {
            let Some(found) = find(ask, id).await else {
                let text = "the request named by before is no longer in the history";
                return Err(QueryRefusal(410, text.to_owned()));
            };
            Some(match wanted.order {
                HistoryOrder::Slowest => Mark::Slowest(Rank {
                    total_us: found.finished().record.total_us,
                    place: found.place,
                }),
                HistoryOrder::Newest | HistoryOrder::Arrived => Mark::Newest(found.place),
            })
        }
    };
    let search = wanted.search(&ask.admin, mark)?;
    let page = run(search).await;
    Ok(reply::object(200, &list_told(&ask.admin, &page)))
}

/// Whether a query is one that [`list_now`] answers.
pub(super) fn check(query: &[u8]) -> Result<(), QueryRefusal> {
    match HistoryListQuery::read(query)?.from {
        None => Ok(()),
        Some(_) => refused("a list that is pushed begins at its begin"),
    }
}

/// The list for a thread that serves nobody; null where [`check`] refuses.
pub(super) fn list_now(admin: &Admin, query: &[u8]) -> Value {
    let _ = threads::wait_for_all(admin, |thread| thread.answer().hand_over());
    let wanted = HistoryListQuery::read(query);
    let search = wanted.and_then(|wanted| wanted.search(admin, None));
    let Ok(mut search) = search else {
        return Value::Null;
    };
    while search.step() {}
    list_told(admin, &search.page())
}

fn list_told(admin: &Admin, page: &HistoryPage) -> Value {
    let hidden = admin.shared.watching.hidden();
    if page.is_cut {
        admin.inside.count_cut_search();
    }
    let names = admin.shared.series.names();
    let requests = page.found.iter();
    let holdings = page.holdings;
    json!(api::History {
        requests: requests
            .map(|found| told(admin, found, &names, &hidden))
            .collect(),
        kept: holdings.count,
        kept_bytes: holdings.bytes,
        oldest_unix_ms: (holdings.count > 0).then_some(holdings.oldest_unix_ms),
        scanned: page.scanned,
        more: page.has_more,
        next: page.next.map(|next| next.to_string()),
        cut: page.is_cut,
        gap: page.is_gap,
    })
}

/// Has every thread hand over what it keeps to itself.
async fn hand_over(ask: &AdminRequest) {
    // A thread that is busy for longer has its requests in the next answer.
    let _ = threads::look_at_all(ask, |thread| thread.answer().hand_over()).await;
}

async fn find(ask: &AdminRequest, id: RequestId) -> Option<FoundRequest> {
    let search = HistorySearch::one(&ask.admin.inside.history, id);
    run(search).await.found.pop()
}

/// Carries out a search; other work of the thread goes on in between.
async fn run(mut search: HistorySearch) -> HistoryPage {
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

fn filter(query: &[u8]) -> Result<Filter, QueryRefusal> {
    let text = |key: &str| value_of(query, key).filter(|text| !text.is_empty());
    let wrong = |key: &str, what: &str| QueryRefusal(400, format!("{key} is {what}"));
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
    let slower = |text: String| -> Result<u64, QueryRefusal> {
        let time = parse_duration(&text).map_err(|_| wrong("slower", "a time such as 100ms"))?;
        Ok(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    };
    let within = |text: String| -> Result<u64, QueryRefusal> {
        let time = parse_duration(&text).map_err(|_| wrong("within", "a time such as 10m"))?;
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Ok(unix_ms().saturating_sub(time_ms))
    };
    let within = text("within").map(within).transpose()?;
    Ok(Filter {
        // The later of both; one that is not given is earlier than any.
        since_unix_ms: number("since")?.max(within),
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
fn told(
    admin: &Admin,
    found: &FoundRequest,
    names: &[Arc<SeriesName>],
    hidden: &Hidden,
) -> api::Request {
    let finished = found.finished();
    let name = names.get(usize::from(finished.record.series));
    let request = RequestReport {
        server: found.id.server,
        record: &finished.record,
        texts: finished.texts,
        site: name.map_or("", |name| &name.site),
        route: name.map_or("", |name| &name.route),
        hidden,
    }
    .finished();
    let trace = Some(finished.record.trace).filter(|trace| trace.is_some());
    api::Request {
        id: found.id.to_string(),
        client_name: name_of(&admin.names, request.client.as_ref()),
        trace_id: trace.map(|trace| String::from_utf8_lossy(&trace.id_text()).into_owned()),
        tls_suite: known(finished.tls_suite),
        reason: known(finished.reason).or(request.reason),
        note: known(finished.note).or(request.note),
        program: known(name.map_or("", |name| &name.program).as_bytes()),
        ..request
    }
}
