//! Parts of answers that programs of every kind get.

use std::task::{Context, Poll};

use hob_http::status::has_no_content;
use hob_http::{Body, BodyError, BodyStream, Bytes, Chunk, Fields, Request, Response};

use crate::handle::plain;
use crate::handle::script::control;
use crate::handle::script::dechunk::dechunk;
use crate::handle::script::head::CgiHead;

/// The type of a body whose program does not say what it is. Browsers show it and run nothing.
pub(crate) const TYPE_UNSAID: &[u8] = b"text/plain; charset=utf-8";

/// What this site has for a path answers.
pub(crate) fn inside(mut fields: Fields, target: &[u8]) -> Response {
    // The target has no control characters, so it can stand in a field.
    control::redirect_inside(&mut fields, target);
    Response::new(200, fields, Body::Empty)
}

/// An answer of which only the head is sent, or that another path of the site gives.
pub(crate) fn head_alone(head: CgiHead) -> Response {
    let mut fields = head.fields;
    fields.set(b"Server", plain::SERVER);
    if let Some(target) = &head.local {
        return inside(fields, target);
    }
    let body = match has_no_content(head.status) {
        true => Body::Empty,
        false => Body::Stream(Box::new(Unsent(head.body_bytes))),
    };
    Response::new(head.status, fields, body)
}

/// An answer of which all has come that is sent. `None` where its body is not in chunks, as its
/// head says.
pub(crate) fn whole(
    request: &Request,
    head: CgiHead,
    mut body: Vec<u8>,
    is_typed: bool,
) -> Option<Response> {
    let mut fields = head.fields;
    fields.set(b"Server", plain::SERVER);
    if head.is_chunked {
        body = dechunk(&body)?;
    }
    let wanted_bytes = head.body_bytes.unwrap_or(u64::MAX);
    if body.len() as u64 > wanted_bytes {
        note_cut(request);
        body.truncate(wanted_bytes as usize);
    }
    if is_typed && !body.is_empty() {
        say_type(&mut fields);
    }
    Some(Response::new(head.status, fields, body_of(body)))
}

/// These bytes as a body.
pub(crate) fn body_of(bytes: Vec<u8>) -> Body {
    match bytes.is_empty() {
        true => Body::Empty,
        false => Body::Bytes(Bytes::from(bytes)),
    }
}

/// Says of a body what it is, where its program does not.
pub(crate) fn say_type(fields: &mut Fields) {
    if fields.value(b"Content-Type").is_none() {
        fields.add(b"Content-Type", TYPE_UNSAID);
    }
}

/// A body that is only announced, for HEAD.
pub(crate) struct Unsent(pub(crate) Option<u64>);

impl BodyStream for Unsent {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        Poll::Ready(None)
    }

    fn len(&self) -> Option<u64> {
        self.0
    }
}

/// More came than the program's head had announced.
pub(crate) fn note_cut(request: &Request) {
    const CUT: &str = "the body was cut to its Content-Length";
    request.record_mut().note.get_or_insert(CUT);
}
