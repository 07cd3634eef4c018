//! `GET /v1/watch`: live events of requests, as server-sent events.

use std::sync::Arc;

use hob_http::{Answered, Body, HalfClose, Response};
use hob_trace::watch::{Refused, WATCHERS_MAX, WatchTerms};

use super::ask::AdminRequest;
use super::reply;
use crate::api::SERVER_ENDS;
use hob_server::config::AdminRole;
use hob_server::handle::plain;
use hob_server::serve::fleet::now_ms;

/// `GET /v1/watch`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    Answered::Ready(begin(ask))
}

fn begin(ask: &AdminRequest) -> Response {
    let terms = match terms(ask) {
        Ok(terms) => terms,
        Err(error) => return reply::text(400, &error),
    };
    if terms.shows_secrets && ask.visitor.role < AdminRole::Operate {
        return reply::text(403, "your role may watch, and not see secrets");
    }
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"text/event-stream");
    fields.add(b"Cache-Control", b"no-store");
    fields.add(b"X-Accel-Buffering", b"no");
    if ask.request.head().method() == b"HEAD" {
        return Response::new(200, fields, Body::Empty);
    }
    let (admin, session) = (Arc::clone(&ask.admin), ask.visitor.session);
    let may_go_on = move || session.is_none_or(|number| admin.door.goes_on(number, now_ms()));
    let watching = &ask.admin.shared.watching;
    match watching.begin(terms, &ask.request, may_go_on) {
        Ok(feed) => {
            // Who says nothing more has left.
            ask.request.set_half_close(HalfClose::Cancel);
            Response::new(200, fields, Body::Stream(Box::new(feed)))
        }
        Err(Refused::Full) => {
            let text = format!("{WATCHERS_MAX} watch already, which is as many as may");
            reply::text(503, &text)
        }
        Err(Refused::Over) => reply::text(503, SERVER_ENDS),
    }
}

/// What is asked for: the keys of the query, and in `q` a whole filter.
fn terms(ask: &AdminRequest) -> Result<WatchTerms, String> {
    let mut terms = WatchTerms::default();
    for (key, value) in ask.pairs() {
        let added = match key.as_str() {
            "q" => terms.add_words(&value),
            key => terms.add(key, &value),
        };
        added.map_err(|error| error.to_string())?;
    }
    Ok(terms)
}
