//! Redirects written in the config.

use hob_http::{Request, Response};

use crate::handle::plain;
use crate::route::pattern::Captures;
use crate::route::template::{Facts, Location};

/// A redirect, ready to answer.
pub struct Redirect {
    /// The target.
    pub to: Location,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// Answers with the target filled in.
pub fn answer(
    redirect: &Redirect,
    request: &Request,
    path: &[u8],
    captures: &Captures,
) -> Response {
    let head = request.head();
    let facts = Facts {
        path,
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
