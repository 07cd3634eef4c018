//! From a request to the place where it is sent.

use std::sync::Arc;

use hob_http::{Answered, Request, Response};

use crate::handle::redirect::Redirect;
use crate::handle::{AnswersRoute, plain};
use crate::route::pattern::Captures;
use crate::route::template::TemplateValues;
use crate::serve::context::OnRoute;

impl AnswersRoute for Redirect {
    fn answer(self: &Arc<Redirect>, on: &OnRoute<'_>) -> Answered {
        Answered::Ready(match on.route.pattern.matches(on.path) {
            Some(captures) => answer(self, on.request, on.path, &captures),
            None => plain::error(500),
        })
    }
}

/// Answers with the target filled in.
pub(super) fn answer(
    redirect: &Redirect,
    request: &Request,
    path: &[u8],
    captures: &Captures,
) -> Response {
    let head = request.head();
    let facts = TemplateValues {
        path,
        raw_path: head.path(),
        query: head.query(),
        host: head.host(),
        captures,
    };
    let mut location = Vec::new();
    if redirect.to.expand(&facts, &mut location).is_err() {
        return plain::error(400);
    }
    plain::redirect(redirect.status, &location)
}
