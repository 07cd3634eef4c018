//! From a program's output to an answer.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use hob_http::status::is_bodiless;
use hob_http::{Body, BodyError, BodyStream, Bytes, Chunk, Fields, Request, Response};
use hob_trace::watch::Stage;

use crate::handle::cgi::dechunk::{Dechunked, dechunk};
use crate::handle::cgi::fail::Failure;
use crate::handle::cgi::head::{BadHead, CgiHead, HeadReader, Progress};
use crate::handle::cgi::limits::{COMMAND_HELD_BYTES_MAX, OUTPUT_HELD_BYTES_MAX, OUTPUT_HELD_TIME};
use crate::handle::cgi::output::{More, Output, OutputEnd};
use crate::handle::plain;
use crate::handle::script_control::{self, Buffer, Control};

/// The type of a body whose program does not say what it is. Browsers show it and run nothing.
pub(crate) const TYPE_UNSAID: &[u8] = b"text/plain; charset=utf-8";

/// The answer of a CGI program.
pub(super) async fn of_program(
    request: &Request,
    output: &mut Option<Output>,
    started: Instant,
) -> Result<Response, Failure> {
    let Some(reading) = output.as_mut() else {
        return Err(Failure::Unreadable);
    };
    let (head, body_at) = read_head(reading).await?;
    reading.has_head();
    request.record_mut().program_us = started.elapsed().as_micros() as u64;
    request.tell(
        Stage::Program,
        format_args!("its head came: status {}", head.status),
    );
    let control = Control::read(&head.fields);
    if let Some(total) = control.timeout {
        reading.run.set_total(total);
    }
    let is_sent = request.head().method() != b"HEAD" && !is_bodiless(head.status);
    let announced = head.body_bytes.filter(|_| is_sent);
    let is_held = control.buffer != Buffer::Never && !is_event_stream(&head.fields);
    if is_sent && announced != Some(0) && head.local.is_none() {
        await_untyped(reading, body_at, &head.fields).await?;
    }
    read_ahead(reading, body_at, announced, is_held).await?;
    let first = reading.bytes.split_off(body_at);
    if is_bodiless(head.status) && !first.trim_ascii().is_empty() {
        return Err(Failure::Bodiless(head.status));
    }
    if reading.is_over() {
        check_end(reading, announced, first.len()).await?;
    }
    // What is sent in its place has a type of its own.
    let is_typed = is_sent && control.instead.is_none();
    match output.take() {
        Some(reading) if is_sent => with_body(request, reading, head, first, is_typed),
        Some(reading) => Ok(without_body(reading, head)),
        None => Err(Failure::Unreadable),
    }
}

/// An answer of which only the head is sent.
fn without_body(reading: Output, head: CgiHead) -> Response {
    reading.release();
    let mut fields = head.fields;
    fields.set(b"Server", plain::SERVER);
    if let Some(target) = &head.local {
        return inside(fields, target);
    }
    let body = match is_bodiless(head.status) {
        true => Body::Empty,
        false => Body::Stream(Box::new(Unsent(head.body_bytes))),
    };
    Response::new(head.status, fields, body)
}

/// An answer with its body, whole or as it comes.
fn with_body(
    request: &Request,
    reading: Output,
    head: CgiHead,
    mut first: Vec<u8>,
    is_typed: bool,
) -> Result<Response, Failure> {
    let mut fields = head.fields;
    fields.set(b"Server", plain::SERVER);
    if let Some(target) = &head.local {
        reading.release();
        return Ok(inside(fields, target));
    }
    let wanted_bytes = head.body_bytes.unwrap_or(u64::MAX);
    if reading.is_over() || first.len() as u64 >= wanted_bytes {
        reading.release();
        if head.is_chunked {
            first = dechunk(&first).ok_or(Failure::Chunks)?;
        }
        first.truncate(usize::try_from(wanted_bytes).unwrap_or(usize::MAX));
        if is_typed && !first.is_empty() {
            say_type(&mut fields);
        }
        return Ok(Response::new(head.status, fields, whole(first)));
    }
    if is_typed {
        say_type(&mut fields);
    }
    let run = Rc::clone(&reading.run);
    let Some(source) = reading.into_source() else {
        return Err(Failure::Unreadable);
    };
    let body = Body::Pipe {
        first: first.into(),
        fd: source.into_fd(),
        len: head.body_bytes,
        end: Some(Rc::new(OutputEnd::new(&run, request, false))),
    };
    let body = match head.is_chunked {
        true => Body::Stream(Box::new(Dechunked::new(body.into_stream()))),
        false => body,
    };
    Ok(Response::new(head.status, fields, body))
}

/// What this site has for a path answers.
pub(crate) fn inside(mut fields: Fields, target: &[u8]) -> Response {
    // The target has no control characters, so it can stand in a field.
    script_control::redirect_inside(&mut fields, target);
    Response::new(200, fields, Body::Empty)
}

/// The answer of a command: all it prints, if it ends well.
pub(super) async fn of_command(
    request: &Request,
    output: &mut Option<Output>,
    media_type: &str,
    started: Instant,
) -> Result<Response, Failure> {
    let Some(reading) = output.as_mut() else {
        return Err(Failure::Unreadable);
    };
    while reading.bytes.len() < COMMAND_HELD_BYTES_MAX {
        match reading.more().await? {
            More::Bytes => reading.has_head(),
            More::End => break,
        }
    }
    request.record_mut().program_us = started.elapsed().as_micros() as u64;
    if reading.is_over()
        && let Some(exit) = reading.exit().await
        && let Some(failure) = Failure::of_end(exit, true)
    {
        return Err(failure);
    }
    let mut fields = plain::named();
    fields.add(b"Content-Type", media_type.as_bytes());
    let Some(mut reading) = output.take() else {
        return Err(Failure::Unreadable);
    };
    let first = std::mem::take(&mut reading.bytes);
    if request.head().method() == b"HEAD" {
        let len = reading.is_over().then_some(first.len() as u64);
        reading.release();
        return Ok(Response::new(
            200,
            fields,
            Body::Stream(Box::new(Unsent(len))),
        ));
    }
    let run = Rc::clone(&reading.run);
    let body = match reading.into_source() {
        None => whole(first),
        Some(source) => Body::Pipe {
            first: first.into(),
            fd: source.into_fd(),
            len: None,
            end: Some(Rc::new(OutputEnd::new(&run, request, true))),
        },
    };
    Ok(Response::new(200, fields, body))
}

/// Reads until the head is complete.
async fn read_head(reading: &mut Output) -> Result<(CgiHead, usize), Failure> {
    let mut reader = HeadReader::new(reading.run.cgi.settings.limits.head);
    loop {
        let more = reading.more().await?;
        match reader.read(&reading.bytes) {
            Progress::Head(head, used) => return Ok((head, used)),
            Progress::Refused(bad) => return Err(refused(reading, bad)),
            Progress::NeedMore if more == More::Bytes => {}
            Progress::NeedMore => {
                let exit = reading.exit().await;
                if let Some(failure) = exit.and_then(|exit| Failure::of_end(exit, false)) {
                    return Err(failure);
                }
                return Err(Failure::Head(reader.at_end(&reading.bytes), exit));
            }
        }
    }
}

fn refused(reading: &Output, bad: BadHead) -> Failure {
    if bad.is_too_long() {
        reading.run.counters.limit_program_head.add(1);
    }
    Failure::Head(bad, None)
}

/// Only a body gets a type. Where the program says none, waits until it is known whether there is
/// one: its first byte, or the end.
async fn await_untyped(
    reading: &mut Output,
    body_at: usize,
    fields: &Fields,
) -> Result<(), Failure> {
    let has_begun = reading.bytes.len() > body_at || reading.is_over();
    if fields.value(b"Content-Type").is_none() && !has_begun {
        reading.more().await?;
    }
    Ok(())
}

/// Takes what has come of the body, and waits a moment for the end of it if it is to be held.
async fn read_ahead(
    reading: &mut Output,
    body_at: usize,
    announced: Option<u64>,
    is_held: bool,
) -> Result<(), Failure> {
    let mut held = None;
    loop {
        let held_bytes = reading.bytes.len() - body_at;
        let is_there = announced.is_some_and(|announced| held_bytes as u64 >= announced);
        if held_bytes >= OUTPUT_HELD_BYTES_MAX || is_there {
            return Ok(());
        }
        let more = match (reading.more_now().await, is_held) {
            (None, true) => {
                let timer = held.get_or_insert_with(|| {
                    let timer = reading.run.reactor.timer();
                    timer.set_precise(OUTPUT_HELD_TIME);
                    timer
                });
                reading.more_until(timer).await
            }
            (more, _) => more,
        };
        match more {
            Some(Ok(More::Bytes)) => {}
            Some(Ok(More::End)) | None => return Ok(()),
            Some(Err(failure)) => return Err(failure),
        }
    }
}

/// Each event is for the client at once.
fn is_event_stream(fields: &Fields) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    let media_type = fields.value(b"Content-Type").unwrap_or_default();
    let begin = media_type.get(..EVENTS.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(EVENTS))
}

/// The output has ended: whether it is all that was meant.
async fn check_end(
    reading: &mut Output,
    announced: Option<u64>,
    came: usize,
) -> Result<(), Failure> {
    let came = came as u64;
    if announced.is_some_and(|announced| came >= announced) {
        return Ok(());
    }
    if let Some(exit) = reading.exit().await
        && let Some(failure) = Failure::of_end(exit, false)
    {
        return Err(failure);
    }
    match announced {
        Some(announced) => Err(Failure::Short { announced, came }),
        None => Ok(()),
    }
}

pub(crate) fn say_type(fields: &mut Fields) {
    if fields.value(b"Content-Type").is_none() {
        fields.add(b"Content-Type", TYPE_UNSAID);
    }
}

fn whole(bytes: Vec<u8>) -> Body {
    match bytes.is_empty() {
        true => Body::Empty,
        false => Body::Bytes(Bytes::from(bytes)),
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
