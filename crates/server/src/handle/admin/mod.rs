//! The control API: JSON over HTTP on the control socket.
//!
//! `GET /v1/status`, `POST /v1/reload`, `/v1/upgrade`, `/v1/stop`. Every answer is a JSON object.

pub mod helm;
mod status;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hob_http::thread::Crew;
use hob_http::{Answered, Body, Request, Response};
use hob_trace::metric::Counters;
use hob_trace::tally::Tallies;
use serde_json::{Value, json};

use crate::handle::admin::helm::{Helm, Outcome};
use crate::handle::plain;
use crate::life::Wish;
use crate::shared::Shared;

pub use status::Report;
use status::status;

/// What the control API tells and steers.
pub struct Admin {
    /// Wishes to the keeper.
    pub helm: Helm,
    /// Counters of all threads.
    pub counters: Arc<Counters>,
    /// What requests were, by all threads.
    pub tallies: Tallies,
    /// The threads.
    pub crew: Arc<Crew>,
    /// Cache and pool.
    pub shared: Arc<Shared>,
    /// When this server started.
    pub started: Instant,
    /// What is told of the generation being served.
    pub report: Mutex<Report>,
}

/// Answers a request on the control socket.
pub fn answer(admin: &Arc<Admin>, request: &Request) -> Answered {
    let allowed_uid = lock(&admin.report).keeper_uid;
    // The socket's own mode says the same; this holds when it is passed on or its mode is changed.
    if !matches!(request.facts().peer_uid, Some(uid) if uid == 0 || uid == allowed_uid) {
        return Answered::Ready(object(
            403,
            &json!({"text": "this user may not steer this server"}),
        ));
    }
    let head = request.head();
    let wish = match (head.method(), head.path()) {
        (b"GET" | b"HEAD", b"/v1/status") => {
            return Answered::Ready(object(200, &status(admin)));
        }
        (b"POST", b"/v1/reload") => Wish::Reload,
        (b"POST", b"/v1/upgrade") => Wish::Upgrade,
        (b"POST", b"/v1/stop") => Wish::Stop,
        (_, b"/v1/status") => return Answered::Ready(wrong_method(b"GET, HEAD")),
        (_, b"/v1/reload" | b"/v1/upgrade" | b"/v1/stop") => {
            return Answered::Ready(wrong_method(b"POST"));
        }
        _ => return Answered::Ready(object(404, &json!({"text": "there is nothing here"}))),
    };
    let asked = admin.helm.ask(wish);
    Answered::Later(Box::pin(async move {
        let Outcome { is_ok, text } = asked.await;
        object(if is_ok { 200 } else { 409 }, &json!({ "text": text }))
    }))
}

fn wrong_method(allowed: &[u8]) -> Response {
    let mut response = object(405, &json!({"text": "this method does nothing here"}));
    response.fields_mut().add(b"Allow", allowed);
    response
}

fn object(status: u16, value: &Value) -> Response {
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"application/json");
    fields.add(b"Cache-Control", b"no-store");
    Response::new(status, fields, Body::Bytes(format!("{value}\n").into()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
