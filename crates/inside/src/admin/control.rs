//! The control socket: its own user and root may do everything.

use std::sync::Arc;

use hob_http::{Answered, Request};

use super::ask::{AdminRequest, Visitor};
use super::endpoints;
use super::{Admin, reply};
use hob_server::config::AdminRole;

/// Answers a request on the control socket.
pub(super) fn answer(admin: &Arc<Admin>, request: &Request) -> Answered {
    let allowed_uid = admin.report.lock().keeper_uid;
    let uid = request.facts().peer_uid;
    // The socket's own mode says the same; this holds when it is passed on or its mode is changed.
    let Some(uid) = uid.filter(|uid| *uid == 0 || *uid == allowed_uid) else {
        return Answered::Ready(reply::text(403, "this user may not steer this server"));
    };
    let visitor = Visitor {
        name: format!("user id {uid}"),
        from: "control socket".to_owned(),
        role: AdminRole::Operate,
        session: None,
    };
    endpoints::answer(AdminRequest::new(admin, request, visitor))
}
