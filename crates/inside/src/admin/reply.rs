//! Answers of the admin API: JSON objects that nobody keeps.

use hob_http::{Body, Response};
use serde_json::{Value, json};

use crate::api::Remark;
use hob_server::handle::plain;

/// A JSON answer.
pub(super) fn object(status: u16, value: &Value) -> Response {
    let mut fields = plain::named();
    fields.add(b"Content-Type", b"application/json");
    fields.add(b"Cache-Control", b"no-store");
    Response::new(status, fields, Body::Bytes(format!("{value}\n").into()))
}

/// What happened, or why not, in words.
pub(super) fn text(status: u16, text: impl AsRef<str>) -> Response {
    let text = text.as_ref().to_owned();
    object(status, &json!(Remark { text }))
}

/// 503: there is no thread for it at the moment.
pub(super) fn busy() -> Response {
    text(503, "too much to do at the moment; try again")
}

/// The words of an answer that [`text`] made.
pub(super) fn text_of(response: &Response) -> Option<String> {
    let Body::Bytes(bytes) = &response.body else {
        return None;
    };
    let value: Value = serde_json::from_slice(bytes).ok()?;
    value["text"].as_str().map(str::to_owned)
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
