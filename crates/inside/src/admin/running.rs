//! What is open and under way at this moment: running requests and connections.

use hob_http::Answered;
use hob_http::thread::{InFlightRequest, Open};
use hob_trace::watch::Hidden;
use hob_trace::{HandlerKind, Texts, TlsVersion};
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::query::value_of;
use super::told::{RequestReport, name_of};
use super::{Admin, reply, threads};
use crate::api;
use hob_server::answer::CONTROL_LISTENER;
use hob_server::serve::sites::Sites;

/// Requests, and connections, of one thread that are told of; `limit` asks for fewer in all.
const COUNT_MAX: usize = 1000;

/// `GET /v1/running`
pub(super) fn requests(ask: &AdminRequest) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let limit = limit(ask.request.head().query().unwrap_or_default());
        let found = threads::look_at_all(&ask, |thread| thread.running(COUNT_MAX)).await;
        reply::object(200, &requests_of(&ask.admin, found, limit))
    }))
}

/// The same for a thread that serves nobody.
pub(super) fn requests_now(admin: &Admin, query: &[u8]) -> Value {
    let found = threads::wait_for_all(admin, |thread| thread.running(COUNT_MAX));
    requests_of(admin, found, limit(query))
}

/// How many are asked for at most.
fn limit(query: &[u8]) -> usize {
    let limit = value_of(query, "limit").and_then(|limit| limit.parse().ok());
    limit.unwrap_or(usize::MAX)
}

/// What threads have of something, with whether they have more; and whether one did not answer.
type Found<T> = (Vec<(Vec<T>, bool)>, bool);

fn requests_of(admin: &Admin, (found, is_more): Found<InFlightRequest>, limit: usize) -> Value {
    let server = admin.report.lock().servers_started;
    let sites = admin.shared.sites();
    let is_more = is_more || found.iter().any(|(_, is_more)| *is_more);
    let mut all: Vec<InFlightRequest> =
        found.into_iter().flat_map(|(running, _)| running).collect();
    // Who looks is not what is looked for.
    all.retain(|running| running.record.handler != HandlerKind::Admin);
    all.sort_by_key(|running| std::cmp::Reverse(running.age_us));
    let is_more = is_more || all.len() > limit;
    all.truncate(limit);
    let hidden = admin.shared.watching.hidden();
    let request = |one: &InFlightRequest| {
        let request = request(one, server, &sites, &hidden);
        api::Request {
            client_name: name_of(&admin.names, request.client.as_ref()),
            ..request
        }
    };
    json!(api::Running {
        requests: all.iter().map(request).collect(),
        more: is_more,
    })
}

/// `GET /v1/connections`
pub(super) fn connections(ask: &AdminRequest) -> Answered {
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        let limit = limit(ask.request.head().query().unwrap_or_default());
        let count = limit.min(COUNT_MAX);
        let found = threads::look_at_all(&ask, move |thread| thread.connections(count)).await;
        reply::object(200, &connections_of(&ask.admin, found, limit))
    }))
}

/// The same for a thread that serves nobody.
pub(super) fn connections_now(admin: &Admin, query: &[u8]) -> Value {
    let limit = limit(query);
    let count = limit.min(COUNT_MAX);
    let found = threads::wait_for_all(admin, move |thread| thread.connections(count));
    connections_of(admin, found, limit)
}

fn connections_of(admin: &Admin, (found, is_more): Found<Open>, limit: usize) -> Value {
    let is_more = is_more || found.iter().any(|(_, is_more)| *is_more);
    let mut all: Vec<Open> = found.into_iter().flat_map(|(open, _)| open).collect();
    all.retain(|open| open.listener < CONTROL_LISTENER);
    all.sort_by_key(|open| open.number);
    let is_more = is_more || all.len() > limit;
    all.truncate(limit);
    json!(api::Connections {
        connections: all.iter().map(|open| connection(admin, open)).collect(),
        more: is_more,
    })
}

fn request(running: &InFlightRequest, server: u64, sites: &Sites, hidden: &Hidden) -> api::Request {
    let record = &running.record;
    let site = sites.site(record.site.into());
    let route = site.and_then(|site| site.routes.get(record.route as usize));
    let told = RequestReport {
        hidden,
        server,
        record,
        texts: Texts {
            method: &running.method,
            target: &running.target,
            host: &running.host,
            referer: &running.referer,
            user_agent: &running.user_agent,
            user: b"",
            detail: b"",
            asked: b"",
        },
        site: site.map_or("", |site| &site.name),
        route: route.map_or("", |route| &route.label),
    };
    told.running(running)
}

fn connection(admin: &Admin, open: &Open) -> api::Connection {
    let tls = (open.tls_version != TlsVersion::None).then(|| open.tls_version.word().to_owned());
    let network = open.network.as_ref();
    let client = open.client.map(|client| client.ip().to_string());
    api::Connection {
        number: open.number,
        client_name: name_of(&admin.names, client.as_ref()),
        client,
        client_port: open.client.map(|client| client.port()),
        protocol: open.protocol.word().to_owned(),
        tls_suite: tls.as_ref().map(|_| open.tls_suite.to_owned()),
        tls_version: tls,
        listener: open.local.map(|local| local.to_string()),
        opened_unix_ms: open.opened_unix_ms,
        requests: open.requests,
        bytes_in: network.map(|network| network.bytes_in),
        bytes_out: network.map(|network| network.bytes_out),
        state: open.state.to_owned(),
        rtt_us: network.map(|network| network.rtt_us),
        retransmits: network.map(|network| network.retransmits),
        window_bytes: network.map(|network| network.window_bytes),
    }
}
