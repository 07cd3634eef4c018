//! Parts of answers that programs of every kind get.

use std::task::{Context, Poll};

use hob_http::{Body, BodyError, BodyStream, Chunk, Fields, Request, Response};

use crate::handle::script::control;

/// The type of a body whose program does not say what it is. Browsers show it and run nothing.
pub(crate) const TYPE_UNSAID: &[u8] = b"text/plain; charset=utf-8";

/// What this site has for a path answers.
pub(crate) fn inside(mut fields: Fields, target: &[u8]) -> Response {
    // The target has no control characters, so it can stand in a field.
    control::redirect_inside(&mut fields, target);
    Response::new(200, fields, Body::Empty)
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
