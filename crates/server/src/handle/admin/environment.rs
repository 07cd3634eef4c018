//! `GET /v1/environment`: where this server runs.

use hob_http::Answered;

use super::ask::AdminRequest;
use super::reply;
use crate::environment::environment;

/// `GET /v1/environment`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    Answered::Ready(reply::object(200, &environment(&ask.admin)))
}
