//! Fixed answers written in the config.

use bytes::Bytes;
use hob_http::{Body, Response};

use crate::handle::plain;

/// A fixed answer, ready to give.
pub struct Respond {
    /// Status code.
    pub status: u16,
    /// Media type of the body.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
    /// Fields of the route.
    pub headers: Vec<(String, String)>,
}

/// Gives the answer.
pub fn answer(respond: &Respond) -> Response {
    let mut fields = plain::named();
    let body = if respond.body.is_empty() {
        Body::Empty
    } else {
        fields.add(b"Content-Type", respond.content_type.as_bytes());
        Body::Bytes(respond.body.clone())
    };
    plain::dress(&mut fields, &respond.headers);
    Response::new(respond.status, fields, body)
}
