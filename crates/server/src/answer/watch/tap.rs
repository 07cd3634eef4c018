//! The answer's head and the bytes of its body, for those who watch.

use std::task::{Context, Poll, ready};

use hob_http::{Answered, Body, BodyError, BodyStream, Chunk, Fields, Request, Response};
use hob_trace::watch::{Hidden, RequestStage};

use super::told;
use crate::handle::script::visits::handle::without_handles;

/// The same answer; its head is told when it is there, and its body as it leaves if somebody wants
/// to see that. Then the body does not leave by the fastest way there is.
#[cold]
pub(crate) fn tap(request: &Request, answered: Answered) -> Answered {
    match answered {
        Answered::Ready(response) => Answered::Ready(tap_response(request, response)),
        Answered::Later(future) => {
            let request = request.clone();
            Answered::Later(Box::pin(async move {
                let response = future.await;
                tap_response(&request, response)
            }))
        }
    }
}

fn tap_response(request: &Request, mut response: Response) -> Response {
    let (station, trail) = (request.reactor().station(), request.trail());
    if !trail.is_traced() {
        return response;
    }
    let now_us = trail.started_us + request.age_us();
    if station.shows_head(&trail) {
        let (status, fields) = (response.status(), response.fields());
        station.tell(&trail, RequestStage::Answer, now_us, |pen, hidden| {
            let lines = answer_lines(status, fields, hidden);
            pen.number("status", status.into());
            pen.dump(&lines, told::HEAD_BYTES_MAX);
        });
    } else {
        let status = response.status();
        station.tell(&trail, RequestStage::Answer, now_us, |pen, _| {
            pen.number("status", status.into());
        });
    }
    let has_bytes = !matches!(response.body, Body::Empty | Body::Tunnel(_));
    if has_bytes && station.shows_body(&trail) {
        let body = std::mem::replace(&mut response.body, Body::Empty);
        let len = body.len();
        response.body = Body::Stream(Box::new(Tapped {
            request: request.clone(),
            stream: body.into_stream(),
            len,
            seen_bytes: 0,
        }));
    }
    response
}

fn answer_lines(status: u16, fields: &Fields, hidden: Option<&Hidden>) -> Vec<u8> {
    let phrase = hob_http::status::phrase(status);
    let line = format!("{status} {phrase}").into_bytes();
    let location = fields.value(b"Location").and_then(without_handles);
    let fields = fields.iter().map(|(name, value)| match &location {
        Some(shown) if name.eq_ignore_ascii_case(b"Location") => (name, &**shown),
        _ => (name, value),
    });
    told::lines(line, fields, hidden)
}

/// A body whose bytes are shown as they leave.
struct Tapped {
    request: Request,
    stream: Box<dyn BodyStream>,
    len: Option<u64>,
    seen_bytes: u64,
}

impl BodyStream for Tapped {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let polled = ready!(self.stream.poll_chunk(cx, max));
        if let Some(Ok(Chunk::Bytes(bytes))) = &polled {
            let before = self.seen_bytes;
            self.seen_bytes += bytes.len() as u64;
            if self.request.is_traced() {
                self.request
                    .tell_body(RequestStage::AnswerBody, before, bytes);
            }
        }
        Poll::Ready(polled)
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.stream.trailers()
    }
}
