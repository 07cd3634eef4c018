//! From what another server sends to an answer.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use hob_http::status::has_no_content;
use hob_http::{Body, Bytes, Fields, Request, Response};
use hob_trace::watch::RequestStage;

use crate::handle::plain;
use crate::handle::proxy::body::ProxiedBody;
use crate::handle::proxy::exchange::{AnswerPart, ProxyExchange};
use crate::handle::proxy::fail::ProxyFailure;
use crate::handle::proxy::limits::{OUTPUT_HELD_BYTES_MAX, OUTPUT_HELD_TIME};
use crate::handle::proxy::tunnel;
use crate::handle::proxy::wire::AnswerHead;
use crate::handle::script::control::{Buffer, Control, is_event_stream};
use crate::handle::script::reply::Unsent;
use crate::handle::upstream::ask::note_time;
use crate::handle::upstream::buffer::ReadAhead;
use crate::handle::upstream::config::{RetryCause, RetryRules};
use crate::handle::upstream::fail::UpstreamFailure;

/// The answer. The exchange is left where it fails. With `retry`, an answer of a status that it
/// names is a failure.
pub(super) async fn of(
    request: &Request,
    exchange: &mut Option<ProxyExchange>,
    (ahead, may_steer): (&ReadAhead<'_>, bool),
    (started, retry): (Instant, Option<&RetryRules>),
) -> Result<Response, ProxyFailure> {
    let Some(reading) = exchange.as_mut() else {
        return Err(UpstreamFailure::Closed.into());
    };
    let AnswerPart::Head(mut head) = poll_fn(|cx| reading.poll_more(cx)).await? else {
        return Err(UpstreamFailure::Closed.into());
    };
    if retry.is_some_and(|retry| retry.has(RetryCause::Status(head.status))) {
        return Err(UpstreamFailure::Status(head.status).into());
    }
    reading.take_head();
    note_time(request, started);
    request.tell(
        RequestStage::Program,
        format_args!("its head came: status {}", head.status),
    );
    if head.status == 101 {
        return tunnel::open(request, exchange, head);
    }
    let control = Control::of_upstream(&mut head.fields, may_steer);
    head.fields.set(b"Server", plain::SERVER);
    let AnswerHead {
        status,
        fields,
        body_bytes,
        ..
    } = head;
    if has_no_content(status) {
        return Ok(Response::new(status, fields, Body::Empty));
    }
    if request.head().method() == b"HEAD" {
        let unsent = Body::Stream(Box::new(Unsent(body_bytes)));
        return Ok(Response::new(status, fields, unsent));
    }
    let is_events = is_event_stream(&fields);
    let is_grpc = is_grpc(&fields);
    if is_events {
        reading
            .awaited
            .patience
            .begin_events(control.timeout.is_some());
    }
    let is_held = control.buffer != Buffer::Never && !is_events && !is_grpc;
    let (first, is_whole) = read_ahead(reading, body_bytes, is_held).await?;
    let body = match exchange.take() {
        Some(reading) if !is_whole || reading.awaited.trailers.is_some() => {
            let drain = is_events.then(|| request.reactor().watch_drain());
            let body = Box::new(ProxiedBody::new(reading, first, body_bytes, drain));
            Body::Stream(match is_held {
                true => ahead.of(body),
                false => body,
            })
        }
        _ if first.is_empty() => Body::Empty,
        _ => Body::Bytes(first),
    };
    Ok(Response::new(status, fields, body))
}

/// Messages of gRPC, each of which is awaited by somebody.
fn is_grpc(fields: &Fields) -> bool {
    let kind = fields.value(b"content-type").unwrap_or_default();
    kind.starts_with(b"application/grpc")
}

/// Takes what has come of the body, and waits a moment for the end of it if it is to be held.
/// Returns that, and whether it is all.
async fn read_ahead(
    reading: &mut ProxyExchange,
    announced: Option<u64>,
    is_held: bool,
) -> Result<(Bytes, bool), ProxyFailure> {
    if reading.is_over() {
        return Ok((Bytes::new(), true));
    }
    let timer = reading.request().reactor().timer();
    timer.set_precise(match is_held {
        true => OUTPUT_HELD_TIME,
        false => Duration::ZERO,
    });
    // A long one is not collected: it begins with what there is.
    let wanted = match announced {
        Some(bytes) if bytes <= OUTPUT_HELD_BYTES_MAX as u64 => bytes as usize,
        Some(_) => 1,
        None => OUTPUT_HELD_BYTES_MAX,
    };
    let mut body = Vec::with_capacity(announced.map_or(0, |_| wanted));
    while !reading.is_over() && body.len() < wanted {
        let more = poll_fn(|cx| match reading.poll_collect(cx, &mut body) {
            Poll::Ready(more) => Poll::Ready(Some(more)),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        });
        match more.await {
            Some(Ok(true)) => {}
            Some(Err(failure)) => return Err(failure),
            Some(Ok(false)) | None => break,
        }
    }
    // The end of a stream is told behind its last byte.
    if announced == Some(body.len() as u64) && !reading.is_over() {
        match poll_fn(|cx| Poll::Ready(reading.poll_collect(cx, &mut body))).await {
            Poll::Ready(Err(failure)) => return Err(failure),
            Poll::Ready(Ok(_)) | Poll::Pending => {}
        }
    }
    Ok((body.into(), reading.is_over()))
}
