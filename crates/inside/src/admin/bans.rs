//! Clients that are banned: the list, and an operator who bans and lifts.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_http::{Answered, unix_ms};
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;
use crate::api::{BanOutcome, Banned, BannedClient};
use hob_server::answer::ban_is_spared;
use hob_server::serve::bans::{BY_HAND, Ban, BanInForce};
use hob_server::step::banned_network::BanNetwork;

/// The lane of the file pool in which they are gone through and written down.
const LANE: u64 = u64::MAX - 11;
/// Bans of one answer.
const LIMIT_MAX: u64 = 20_000;
/// How long a ban lasts where nothing is said, and at most, in seconds.
const TIME_S: u64 = 3600;
const TIME_S_MAX: u64 = 366 * 86_400;

/// `GET /v1/bans?limit&client`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let limit = ask.number("limit", LIMIT_MAX).min(LIMIT_MAX) as usize;
    let shared = Arc::clone(&ask.admin.shared);
    let job = shared.pool.for_lane(LANE).run({
        let shared = Arc::clone(&shared);
        move || {
            let all = shared.bans.all(unix_ms());
            let bans = all.iter().take(limit).map(|one| told(one)).collect();
            json!(Banned {
                bans,
                total: all.len(),
            })
        }
    });
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        match ask.done(job).await {
            Ok(told) => reply::object(200, &told),
            Err(refusal) => refusal,
        }
    }))
}

fn told(one: &BanInForce) -> BannedClient {
    let ban = &one.ban;
    let is_rule = ban.rule != BY_HAND;
    BannedClient {
        client: ban.network.to_string(),
        rule: is_rule.then(|| ban.rule.clone()),
        why: is_rule.then(|| ban.why.clone()),
        since_unix_ms: ban.since_ms,
        until_unix_ms: ban.until_ms,
        close: ban.close,
        refused: one.refused.load(Ordering::Relaxed),
    }
}

/// `POST /v1/bans/add?client&time_s&close`
pub(super) fn add(ask: &AdminRequest) -> Answered {
    let network = match client(ask) {
        Ok(network) => network,
        Err(text) => return Answered::Ready(reply::text(400, text)),
    };
    let time = ask.query("time_s").unwrap_or_else(|| TIME_S.to_string());
    let Some(time_s) = time.parse().ok().filter(|s| (1..=TIME_S_MAX).contains(s)) else {
        let text = "`time_s` is a number of seconds, 366 days at most";
        return Answered::Ready(reply::text(400, text));
    };
    ask.note(network.to_string());
    let now_ms = unix_ms();
    let ban = Ban {
        network,
        rule: BY_HAND.to_owned(),
        why: String::new(),
        since_ms: now_ms,
        until_ms: now_ms + time_s * 1000,
        close: ask.query("close").is_some_and(|said| said == "true"),
    };
    let spared = spared(ask, network.first());
    ask.admin.shared.bans.add(ban, now_ms);
    done(ask, 1, format!("banned for {time_s} s: {network}{spared}"))
}

/// `POST /v1/bans/lift?client`, or `all=true`
pub(super) fn lift(ask: &AdminRequest) -> Answered {
    let bans = &ask.admin.shared.bans;
    if ask.query("all").is_some_and(|said| said == "true") {
        ask.note("all");
        let count = bans.lift_where(|_| true);
        return done(ask, count, format!("bans ended: {count}"));
    }
    match client(ask) {
        Ok(network) => {
            ask.note(network.to_string());
            match bans.lift(network) {
                0 => Answered::Ready(reply::text(404, format!("not banned: {network}"))),
                count => done(ask, count, format!("not banned any more: {network}")),
            }
        }
        Err(text) => Answered::Ready(reply::text(400, text)),
    }
}

fn client(ask: &AdminRequest) -> Result<BanNetwork, &'static str> {
    BanNetwork::parse(&ask.query("client").unwrap_or_default())
}

/// What is to be said of a client that a listener believes: it is refused nowhere that is so.
fn spared(ask: &AdminRequest, client: IpAddr) -> &'static str {
    let sites = ask.admin.shared.sites();
    let mut listeners = sites.trusts.keys();
    match listeners.any(|listener| ban_is_spared(&sites, client, *listener)) {
        true => "; a listener has it in `trusted`, where it is not refused",
        false => "",
    }
}

/// Answers once it is written down.
fn done(ask: &AdminRequest, count: usize, text: String) -> Answered {
    let shared = Arc::clone(&ask.admin.shared);
    let job = shared.pool.for_lane(LANE).run({
        let shared = Arc::clone(&shared);
        move || shared.bans.keep(unix_ms()).err()
    });
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        match ask.done(job).await {
            Ok(unkept) => {
                let rest = unkept.map(|error| format!("; that ends with the server: {error}"));
                let text = text + &rest.unwrap_or_default();
                reply::object(200, &json!(BanOutcome { text, count }))
            }
            Err(refusal) => refusal,
        }
    }))
}
