//! From a program's output to an answer.

use std::rc::Rc;

use hob_http::status::is_bodiless;
use hob_http::{Body, BodyError, BodyStream, Bytes, Chunk, Fields, Request, Response};

use crate::handle::cgi::dechunk::{Dechunked, dechunk};
use crate::handle::cgi::fail::Failure;
use crate::handle::cgi::head::{BadHead, CgiHead, HeadReader, Progress};
use crate::handle::cgi::limits::{COMMAND_HELD_BYTES_MAX, OUTPUT_HELD_BYTES_MAX};
use crate::handle::cgi::output::{More, Output, OutputEnd};
use crate::handle::{plain, script_control};

/// The type of a body whose program does not say what it is. Browsers show it and run nothing.
const TYPE_UNSAID: &[u8] = b"text/plain; charset=utf-8";

/// The answer of a CGI program.
pub(super) async fn of_program(
    request: &Request,
    output: &mut Option<Output>,
    started: std::time::Instant,
) -> Result<Response, Failure> {
    let Some(reading) = output.as_mut() else {
        return Err(Failure::Unreadable);
    };
    let (head, body_at) = read_head(reading).await?;
    reading.has_head();
    request.record_mut().program_us = started.elapsed().as_micros() as u64;
    let control = script_control::Control::read(&head.fields);
    if let Some(total) = control.timeout {
        reading.run.set_total(total);
    }
    let is_head_asked = request.head().method() == b"HEAD";
    // Where no body is sent, what comes of it need not be waited for.
    let wanted_bytes = head.body_bytes.unwrap_or(u64::MAX);
    read_ahead(reading, body_at, &head).await?;
    let mut first = reading.bytes.split_off(body_at);
    if is_bodiless(head.status) && !is_head_asked && !first.trim_ascii().is_empty() {
        return Err(Failure::Bodiless(head.status));
    }
    let is_whole = reading.is_over() || first.len() as u64 >= wanted_bytes;
    if reading.is_over() {
        let is_sent = !is_bodiless(head.status) && !is_head_asked;
        check_end(reading, head.body_bytes.filter(|_| is_sent), first.len()).await?;
    }
    let mut fields = head.fields;
    fields.set(b"Server", plain::SERVER);
    let Some(reading) = output.take() else {
        return Err(Failure::Unreadable);
    };
    if let Some(target) = &head.local {
        reading.release();
        return match script_control::redirect_inside(&mut fields, target) {
            true => Ok(Response::new(200, fields, Body::Empty)),
            false => Err(Failure::Unreadable),
        };
    }
    if is_bodiless(head.status) || is_head_asked {
        let len = head.body_bytes;
        reading.release();
        let body: Body = match is_bodiless(head.status) {
            true => Body::Empty,
            false => Body::Stream(Box::new(Unsent(len))),
        };
        return Ok(Response::new(head.status, fields, body));
    }
    if is_whole {
        reading.release();
        if head.is_chunked {
            first = dechunk(&first).ok_or(Failure::Chunks)?;
        }
        first.truncate(usize::try_from(wanted_bytes).unwrap_or(usize::MAX));
        if !first.is_empty() && control.instead.is_none() {
            say_type(&mut fields);
        }
        return Ok(Response::new(head.status, fields, whole(first)));
    }
    // What is sent in its place has a type of its own.
    if control.instead.is_none() {
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

/// The answer of a command: all it prints, if it ends well.
pub(super) async fn of_command(
    request: &Request,
    output: &mut Option<Output>,
    media_type: &str,
    started: std::time::Instant,
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

/// Takes what has come of the body, without waiting for it; but where the program says no type,
/// whether there is a body has to be known, because only a body gets one.
async fn read_ahead(reading: &mut Output, body_at: usize, head: &CgiHead) -> Result<(), Failure> {
    let wanted_bytes = head.body_bytes.unwrap_or(u64::MAX);
    let is_typed = head.fields.value(b"Content-Type").is_some();
    let has_none = is_bodiless(head.status) || head.local.is_some() || wanted_bytes == 0;
    if !is_typed && !has_none && reading.bytes.len() == body_at && !reading.is_over() {
        reading.more().await?;
    }
    loop {
        let held_bytes = reading.bytes.len() - body_at;
        if held_bytes >= OUTPUT_HELD_BYTES_MAX || held_bytes as u64 >= wanted_bytes {
            return Ok(());
        }
        match reading.more_now().await {
            Some(Ok(More::Bytes)) => {}
            Some(Ok(More::End)) | None => return Ok(()),
            Some(Err(failure)) => return Err(failure),
        }
    }
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

fn say_type(fields: &mut Fields) {
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
struct Unsent(Option<u64>);

impl BodyStream for Unsent {
    fn poll_chunk(
        &mut self,
        _: &mut std::task::Context<'_>,
        _: usize,
    ) -> std::task::Poll<Option<Result<Chunk, BodyError>>> {
        std::task::Poll::Ready(None)
    }

    fn len(&self) -> Option<u64> {
        self.0
    }
}
