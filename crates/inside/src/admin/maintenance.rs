//! What an operator takes down, and has answer again.

use std::sync::Arc;

use hob_http::Answered;
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;
use crate::api::MemberOutcome;
use hob_server::serve::maintenance::ALL;

/// The lane of the file pool in which it is written down.
const LANE: u64 = u64::MAX - 9;
/// When clients are to come again where nothing is said, and at the latest, in seconds.
const RETRY_S: u64 = 300;
const RETRY_S_MAX: u64 = 7 * 86_400;

/// `POST /v1/maintenance/on`
pub(super) fn begin(ask: &AdminRequest) -> Answered {
    let retry = ask.query("retry_s").unwrap_or_else(|| RETRY_S.to_string());
    match retry.parse() {
        Ok(retry_s) if (1..=RETRY_S_MAX).contains(&retry_s) => set(ask, Some(retry_s)),
        _ => Answered::Ready(reply::text(
            400,
            "`retry_s` is a number of seconds, 7 days at most",
        )),
    }
}

/// `POST /v1/maintenance/off`
pub(super) fn end(ask: &AdminRequest) -> Answered {
    set(ask, None)
}

fn set(ask: &AdminRequest, retry_s: Option<u64>) -> Answered {
    let shared = Arc::clone(&ask.admin.shared);
    let site = ask.query("site").unwrap_or_default();
    let known = shared.sites().names();
    if site != ALL && !known.contains(&site) {
        let text = format!("there is no site {site}; those are {}", known.join(", "));
        return Answered::Ready(reply::text(404, text));
    }
    let what = match site.as_str() {
        ALL => "all sites".to_owned(),
        site => format!("the site {site}"),
    };
    ask.note(what.clone());
    let pool = shared.pool.for_lane(LANE);
    let job = pool.run(move || match retry_s {
        Some(retry_s) => {
            let kept = shared.maintenance.begin(&site, retry_s);
            let kept = kept
                .err()
                .map(|error| format!("; it ends with the server: {error}"));
            let kept = kept.unwrap_or_default();
            format!("down for maintenance: {what}; clients come again in {retry_s} s{kept}")
        }
        None => match shared.maintenance.end(&site) {
            Ok(true) => format!("answering again: {what}"),
            Ok(false) => format!("not down: {what}"),
            Err(error) => format!("answering again: {what}; it cannot be written down: {error}"),
        },
    });
    let ask = ask.clone();
    Answered::Later(Box::pin(async move {
        match ask.done(job).await {
            Ok(text) => reply::object(200, &json!(MemberOutcome { text })),
            Err(refusal) => refusal,
        }
    }))
}
