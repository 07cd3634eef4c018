//! `GET /v1/environment`: where this server runs.

use hob_http::Answered;
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;
use crate::environment::environment;

/// `GET /v1/environment`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let answer = environment(&ask.admin);
    Answered::Ready(reply::object(200, &json!(answer)))
}
