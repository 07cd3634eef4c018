//! `GET /v1/environment`: where this server runs.

use hob_http::Answered;

use super::ask::Ask;
use super::reply;
use crate::environment::environment;

/// `GET /v1/environment`
pub(super) fn answer(ask: &Ask) -> Answered {
    Answered::Ready(reply::object(200, &environment(&ask.admin)))
}
