//! Answers of the admin API: JSON objects that nobody keeps.

use hob_http::{Body, Response};
use serde_json::{Value, json};

use crate::handle::plain;

/// A JSON answer.
pub(super) fn object(status: u16, value: &Value) -> Response {
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"application/json");
    fields.add(b"Cache-Control", b"no-store");
    Response::new(status, fields, Body::Bytes(format!("{value}\n").into()))
}

/// What happened, or why not, in words.
pub(super) fn text(status: u16, text: &str) -> Response {
    object(status, &json!({ "text": text }))
}

/// 404.
pub(super) fn nothing() -> Response {
    text(404, "there is nothing here")
}

/// 405.
pub(super) fn wrong_method(allowed: &[u8]) -> Response {
    let mut response = text(405, "this method does nothing here");
    response.fields_mut().add(b"Allow", allowed);
    response
}
