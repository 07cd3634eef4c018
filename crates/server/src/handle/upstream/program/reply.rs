//! From what a program prints to an answer.

use std::time::Instant;

use hob_http::reactor::Timer;
use hob_http::status::has_no_content;
use hob_http::{Body, BodyStream, Request, Response};
use hob_trace::watch::RequestStage;

use crate::handle::plain;
use crate::handle::script::control::{Buffer, Control, is_event_stream};
use crate::handle::script::dechunk::Dechunked;
use crate::handle::script::head::{BadHead, CgiHead, CgiHeadProgress, HeadReader};
use crate::handle::script::reply::{head_alone, say_type, whole};
use crate::handle::upstream::ask::note_time;
use crate::handle::upstream::buffer::ReadAhead;
use crate::handle::upstream::config::{RetryCause, RetryRules};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::program::body::AnswerBody;
use crate::handle::upstream::program::exchange::{Exchange, More};
use crate::handle::upstream::program::fail::ProgramFailure;
use crate::handle::upstream::program::limits::{OUTPUT_HELD_BYTES_MAX, OUTPUT_HELD_TIME};

/// The answer of a program. The exchange is left where it fails. With `retry`, an answer of a
/// status that it names is a failure.
pub(super) async fn of(
    request: &Request,
    exchange: &mut Option<Exchange>,
    ahead: &ReadAhead<'_>,
    (started, retry): (Instant, Option<&RetryRules>),
) -> Result<Response, ProgramFailure> {
    let Some(reading) = exchange.as_mut() else {
        return Err(UpstreamFailure::Closed.into());
    };
    let (mut head, body_at) = read_head(reading).await?;
    let asks_again = retry.is_some_and(|retry| retry.has(RetryCause::Status(head.status)));
    if asks_again {
        return Err(UpstreamFailure::Status(head.status).into());
    }
    reading.take_head();
    note_time(request, started);
    request.tell(
        RequestStage::Program,
        format_args!("its head came: status {}", head.status),
    );
    let control = take_control(reading, &mut head);
    let is_sent = request.head().method() != b"HEAD" && !has_no_content(head.status);
    let announced = head.body_bytes.filter(|_| is_sent);
    let is_events = announced.is_none() && is_event_stream(&head.fields);
    if let Some(total) = control.timeout {
        reading.set_total(total);
    }
    reading.output.drain(..body_at);
    if is_events {
        reading.begin_events(control.timeout.is_some());
    }
    let is_held = control.buffer != Buffer::Never && !is_events;
    if is_sent && head.local.is_none() {
        read_ahead(reading, announced, is_held).await?;
    }
    if has_no_content(head.status) && !reading.output.trim_ascii().is_empty() {
        return Err(ProgramFailure::Bodiless(head.status));
    }
    // What is sent in its place has a type of its own.
    let is_typed = is_sent && control.instead.is_none();
    let came = reading.output.len() as u64;
    if let Some(announced) = announced.filter(|len| reading.is_over() && came < *len) {
        return Err(ProgramFailure::Short { announced, came });
    }
    let Some(reading) = exchange.take() else {
        return Err(UpstreamFailure::Closed.into());
    };
    if !is_sent || head.local.is_some() {
        reading.release();
        return Ok(head_alone(head));
    }
    let ahead = Some(ahead).filter(|_| is_held);
    with_body(request, reading, head, ahead, (is_typed, is_events))
}

/// What the program asks of the server. What could have other things sent than its answer is left
/// out where the route does not let it: another path is for the client to ask for.
fn take_control(exchange: &Exchange, head: &mut CgiHead) -> Control {
    let may_steer = exchange.program.settings.control;
    if !may_steer && let Some(target) = head.local.take() {
        head.status = 302;
        head.fields.set(b"Location", &target);
    }
    Control::of_upstream(&mut head.fields, may_steer)
}

/// An answer with its body, whole or as it comes.
fn with_body(
    request: &Request,
    mut reading: Exchange,
    head: CgiHead,
    ahead: Option<&ReadAhead<'_>>,
    (is_typed, is_events): (bool, bool),
) -> Result<Response, ProgramFailure> {
    let wanted_bytes = head.body_bytes.unwrap_or(u64::MAX);
    if reading.is_over() || reading.output.len() as u64 >= wanted_bytes {
        let body = std::mem::take(&mut reading.output);
        reading.release();
        return whole(request, head, body, is_typed).ok_or(ProgramFailure::Chunks);
    }
    let mut fields = head.fields;
    fields.set(b"Server", plain::SERVER);
    if is_typed {
        say_type(&mut fields);
    }
    let watch = || is_events.then(|| request.reactor().watch_drain());
    let body: Box<dyn BodyStream> = Box::new(AnswerBody::new(reading, head.body_bytes, watch()));
    let body = match head.is_chunked {
        true => Box::new(Dechunked::new(body, watch())),
        false => body,
    };
    let body = match ahead {
        Some(ahead) => ahead.of(body),
        None => body,
    };
    Ok(Response::new(head.status, fields, Body::Stream(body)))
}

/// Reads until the head is complete.
async fn read_head(reading: &mut Exchange) -> Result<(CgiHead, usize), ProgramFailure> {
    let mut reader = HeadReader::new(reading.program.settings.head);
    loop {
        let more = reading.more().await?;
        match reader.read(&reading.output) {
            CgiHeadProgress::Head(head, used) => return Ok((head, used)),
            CgiHeadProgress::Refused(bad) => return Err(refused(reading, bad)),
            CgiHeadProgress::NeedMore if more == More::Bytes => {}
            CgiHeadProgress::NeedMore => {
                let bad = Box::new(reader.at_end(&reading.output));
                return Err(match reading.is_closed() {
                    true => ProgramFailure::HeadCut(bad),
                    false => ProgramFailure::Head(bad),
                });
            }
        }
    }
}

fn refused(reading: &Exchange, bad: BadHead) -> ProgramFailure {
    if bad.is_too_long() {
        reading.counters.limit_program_head.add(1);
    }
    ProgramFailure::Head(Box::new(bad))
}

/// Takes what has come of the body, and waits a moment for the end of it if it is to be held.
async fn read_ahead(
    reading: &mut Exchange,
    announced: Option<u64>,
    is_held: bool,
) -> Result<(), ProgramFailure> {
    let timer: Timer = reading.request.reactor().timer();
    timer.set_precise(match is_held {
        true => OUTPUT_HELD_TIME,
        false => std::time::Duration::ZERO,
    });
    loop {
        let held_bytes = reading.output.len();
        let is_there = announced.is_some_and(|announced| held_bytes as u64 >= announced);
        if held_bytes >= OUTPUT_HELD_BYTES_MAX || is_there {
            return Ok(());
        }
        match reading.more_until(&timer).await {
            Some(Ok(More::Bytes)) => {}
            Some(Ok(More::End)) | None => return Ok(()),
            Some(Err(failure)) => return Err(failure),
        }
    }
}
