//! `GET /v1/environment`: where this server runs.

use hob_http::Answered;
use serde_json::json;

use super::ask::AdminRequest;
use super::reply;
use crate::api::Environment;
use crate::environment::environment;

/// `GET /v1/environment`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    let admin = &ask.admin;
    let report = admin.report().clone();
    let threads = admin.crew.thread_count();
    let answer = Environment {
        listeners: report.addresses,
        warnings: admin.warnings(),
        interfaces: admin
            .resources
            .interfaces(admin.shared.counts.merged().requests),
        ..environment(&admin.config(), &admin.shared, threads, report.keeper_uid)
    };
    Answered::Ready(reply::object(200, &json!(answer)))
}
