//! `GET /v1/resources`: what was used of the machine, minute by minute.

use hob_http::Answered;
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;

/// `GET /v1/resources?from=UNIX_S&to=UNIX_S&step=S`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let (from_s, to_s) = (ask.number("from", 0), ask.number("to", u64::MAX));
    let step_s = ask.number("step", 60);
    let told = ask.admin.resources.told(from_s, to_s, step_s);
    Answered::Ready(reply::object(200, &json!(told)))
}
