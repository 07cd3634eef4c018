//! What is answered where there is no visit, and no new one.

use std::sync::Arc;

use hob_http::{Answered, Request, Response};
use hob_trace::Fault;
use hob_trace::metric::ThreadCounters;

use crate::handle::plain;
use crate::handle::script::fail::note;
use crate::handle::script::visits::carrier::VisitCarriers;
use crate::handle::script::visits::config::VisitSettings;
use crate::handle::script::visits::handle::VisitHandle;
use crate::handle::script::visits::table::VisitRefused;
use crate::serve::context::OnRoute;

/// Nothing has this handle.
pub(crate) const STALE: &str = "the visit is over, or there never was one of this handle";
/// There are two.
pub(crate) const DIFFER: &str = "the handles in path and cookie are not one";

/// The answer to a handle that names no visit here: that of the server before this one, which may
/// have it, or none.
pub(crate) fn elsewhere(
    on: &OnRoute<'_>,
    settings: &VisitSettings,
    carriers: VisitCarriers,
    reason: &'static str,
) -> Answered {
    let (settings, request) = (settings.clone(), on.request.clone());
    let counters = Arc::clone(&on.desk.counters);
    let over = move || stale(&settings, &carriers, (&request, &counters), reason);
    match on.desk.shared.predecessor.get() {
        Some(predecessor) if reason == STALE => predecessor.ask(on, over),
        _ => Answered::Ready(over()),
    }
}

/// No such visit: never a new one, and told alike whatever there was.
pub(crate) fn stale(
    settings: &VisitSettings,
    carriers: &VisitCarriers,
    (request, counters): (&Request, &ThreadCounters),
    reason: &'static str,
) -> Response {
    counters.session_stale.add(1);
    note(request, Fault::Client, reason);
    let mut response = match &settings.stale {
        Some(target) => plain::redirect(303, target.as_bytes()),
        None => plain::error(410),
    };
    carriers.clear_cookie(&mut response);
    response
}

/// No new visit.
pub(crate) fn new(request: &Request, counters: &ThreadCounters, refused: VisitRefused) -> Response {
    let (counter, status, reason) = match refused {
        VisitRefused::Client => (
            &counters.limit_session_client,
            429,
            "limits: session.visits.per_client: the client has as many visits as one may",
        ),
        VisitRefused::Rate => (
            &counters.limit_session_rate,
            503,
            "limits: session.visits.rate: too many visits begin",
        ),
        VisitRefused::Full => (
            &counters.limit_session_full,
            503,
            "limits: session.visits.max: as many visits as may be, and all are busy",
        ),
        VisitRefused::NoHandle => {
            note(
                request,
                Fault::Server,
                "there is no randomness for a handle",
            );
            return plain::error(500);
        }
    };
    counter.add(1);
    let fault = match status {
        429 => Fault::Client,
        _ => Fault::Server,
    };
    note(request, fault, reason);
    match status {
        429 => plain::error(429),
        _ => plain::busy(),
    }
}

/// The same request is under way.
pub(crate) fn duplicate(request: &Request, counters: &ThreadCounters) -> Response {
    counters.session_duplicates.add(1);
    let reason = "the visitor has sent the same, which is under way";
    note(request, Fault::Client, reason);
    plain::error(409)
}

/// As many of the visitor's requests wait as may.
pub(crate) fn busy(request: &Request, counters: &ThreadCounters) -> Response {
    counters.limit_session_queue.add(1);
    let reason = "limits: session.queue.max: too many requests of the visitor wait";
    note(request, Fault::Client, reason);
    plain::error(429)
}

impl VisitCarriers {
    /// The client is not to send a handle again that is over.
    pub(crate) fn clear_cookie(&self, response: &mut Response) {
        if let Some(name) = &self.cookie {
            let field = format!("{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
            response.fields_mut().add(b"Set-Cookie", field.as_bytes());
        }
    }

    /// The client is to send this handle with its next request, and nobody else is told of it: no
    /// other site, and no cache that others share.
    pub(crate) fn keep(&self, handle: &VisitHandle, request: &Request, response: &mut Response) {
        let fields = response.fields_mut();
        for (name, value) in [
            (&b"Referrer-Policy"[..], &b"same-origin"[..]),
            (b"Cache-Control", b"private"),
        ] {
            if fields.value(name).is_none() {
                fields.add(name, value);
            }
        }
        let text = handle.as_bytes();
        let mut set = |name: &[u8], value: &[u8], more: &str| {
            let end = format!("; Path=/; Secure; HttpOnly; SameSite=Lax{more}");
            let field = [name, b"=", value, end.as_bytes()].concat();
            fields.add(b"Set-Cookie", &field);
        };
        if let Some(name) = &self.cookie
            && !self.has_cookie(request, text)
        {
            set(name.as_bytes(), text, "");
        }
        if let (Some(weak), Some(cookie)) = (&self.weak, handle.cookie())
            && self.beside(request, text) != Some(cookie)
        {
            let name = [weak.prefix.as_bytes(), text].concat();
            set(&name, cookie, &format!("; Max-Age={}", weak.life.as_secs()));
        }
    }
}
