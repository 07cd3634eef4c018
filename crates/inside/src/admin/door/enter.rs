//! The way of a request that comes to the admin listener.

use std::sync::Arc;

use hob_http::{Answered, Known, Request, Response};

use super::session::LoginSession;
use super::{DoorCounters, login, origin, pages};
use crate::admin::ask::{AdminRequest, Visitor};
use crate::admin::{Admin, endpoints, reply};
use hob_server::serve::fleet::now_ms;

/// Answers a request on the admin listener.
pub(in crate::admin) fn answer(admin: &Arc<Admin>, request: &Request) -> Answered {
    let answered = match route(admin, request) {
        Ok(answered) => answered,
        Err((status, text)) => {
            DoorCounters::add(&admin.door.tally.refused);
            Answered::Ready(reply::text(status, text))
        }
    };
    match answered {
        Answered::Ready(response) => Answered::Ready(guarded(response)),
        Answered::Later(future) => Answered::Later(Box::pin(async move { guarded(future.await) })),
    }
}

fn route(admin: &Arc<Admin>, request: &Request) -> Result<Answered, origin::Refusal> {
    let names = {
        let state = admin.door.state.lock();
        let table = state
            .settings
            .admin()
            .ok_or((404, "there is nothing here"))?;
        table.names.clone()
    };
    origin::check_name(request, &names)?;
    let head = request.head();
    let path = head.path();
    if !path.starts_with(b"/v1/") && path != b"/metrics" {
        return Ok(Answered::Ready(pages::answer(request)));
    }
    if path == b"/v1/login" && head.method() == b"POST" {
        origin::check_change(request)?;
        return Ok(login::log_in(admin, request));
    }
    let session = session_of(admin, request).ok_or((401, "log in first"))?;
    match head.method() {
        b"GET" | b"HEAD" => origin::check_page(request)?,
        _ => origin::check_change(request)?,
    }
    let from = request.facts().peer.map(|peer| peer.ip().to_string());
    let visitor = Visitor {
        name: session.name,
        from: from.unwrap_or_else(|| "unix socket".to_owned()),
        role: session.role,
        session: Some(session.number),
    };
    Ok(endpoints::answer(AdminRequest::new(
        admin, request, visitor,
    )))
}

/// The session of a request's cookie.
pub(super) fn session_of(admin: &Admin, request: &Request) -> Option<LoginSession> {
    let name = cookie_name(request);
    let head = request.head();
    let cookies = head.joined(Known::Cookie)?;
    let cookies = std::str::from_utf8(&cookies).ok()?;
    let mut pairs = cookies
        .split([';', ','])
        .filter_map(|pair| pair.split_once('='));
    let (_, secret) = pairs.find(|(known, _)| known.trim() == name)?;
    let mut state = admin.door.state.lock();
    state.sessions.find(secret.trim(), now_ms())
}

/// The name of the cookie. Cookies are not kept apart by port, so it has the port; over TLS its
/// beginning has browsers keep it for this host alone.
pub(super) fn cookie_name(request: &Request) -> String {
    let facts = request.facts();
    let port = facts.local.map_or(0, |local| local.port());
    match facts.tls {
        Some(_) => format!("__Host-hob-admin-{port}"),
        None => format!("hob-admin-{port}"),
    }
}

/// What every answer has: nothing of it is taken for what it is not, shown in another page, or told
/// to another.
fn guarded(mut response: Response) -> Response {
    let fields = response.fields_mut();
    if fields.value(b"Content-Security-Policy").is_none() {
        let nothing = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'";
        fields.add(b"Content-Security-Policy", nothing);
    }
    fields.add(b"X-Content-Type-Options", b"nosniff");
    fields.add(b"X-Frame-Options", b"DENY");
    fields.add(b"Referrer-Policy", b"no-referrer");
    fields.add(b"Cross-Origin-Resource-Policy", b"same-origin");
    fields.add(b"Cross-Origin-Opener-Policy", b"same-origin");
    response
}
