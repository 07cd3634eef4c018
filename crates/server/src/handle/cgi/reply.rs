//! From a program's output to an answer.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use hob_http::status::has_no_content;
use hob_http::{Body, Fields, Request, Response, Watched};
use hob_keeper::process::Exit;
use hob_trace::watch::RequestStage;

use crate::handle::cgi::fail::{CgiFailure, ending};
use crate::handle::cgi::limits::{OUTPUT_HELD_BYTES_MAX, OUTPUT_HELD_TIME, READ_BYTES};
use crate::handle::cgi::output::{More, OutputEnd, OutputLifetime, ProgramOutput};
use crate::handle::cgi::run::Why;
use crate::handle::plain;
use crate::handle::script::call::{CameOfCall, ProgramCall};
use crate::handle::script::control::{Buffer, Control, is_event_stream};
use crate::handle::script::dechunk::Dechunked;
use crate::handle::script::head::{BadHead, CgiHead, CgiHeadProgress, HeadReader};
use crate::handle::script::limits::ASIDE_BYTES_PER_TURN;
use crate::handle::script::reply::{Unsent, body_of, head_alone, say_type, whole};

/// The answer of a CGI program.
pub(super) async fn of_program(
    request: &Request,
    output: &mut Option<ProgramOutput>,
    started: Instant,
) -> Result<Response, CgiFailure> {
    let Some(reading) = output.as_mut() else {
        return Err(CgiFailure::Unreadable);
    };
    let (head, body_at) = read_head(reading).await?;
    reading.has_head();
    reading.run.has_head(head.status);
    request.record_mut().program_us = started.elapsed().as_micros() as u64;
    request.tell(
        RequestStage::Program,
        format_args!("its head came: status {}", head.status),
    );
    let control = Control::read(&head.fields);
    if let Some(total) = control.timeout {
        reading.run.set_total(total);
    }
    let is_sent = request.head().method() != b"HEAD" && !has_no_content(head.status);
    let announced = head.body_bytes.filter(|_| is_sent);
    let is_events = announced.is_none() && is_event_stream(&head.fields);
    let span = match (is_events, control.timeout) {
        (false, _) => OutputLifetime::ToItsEnd,
        (true, None) => OutputLifetime::Events,
        (true, Some(_)) => OutputLifetime::EventsUntilTotal,
    };
    let is_held = control.buffer != Buffer::Never && !is_events;
    if is_sent && announced != Some(0) && head.local.is_none() {
        await_untyped(reading, body_at, &head.fields).await?;
    }
    read_ahead(reading, body_at, announced, is_held).await?;
    let first = reading.bytes.split_off(body_at);
    if has_no_content(head.status) && !first.trim_ascii().is_empty() {
        return Err(CgiFailure::Bodiless(head.status));
    }
    if reading.is_over() {
        check_end(reading, announced, first.len()).await?;
    }
    // What is sent in its place has a type of its own.
    let is_typed = is_sent && control.instead.is_none();
    match output.take() {
        Some(reading) if is_sent => with_body(request, reading, head, first, is_typed, span),
        Some(reading) => {
            reading.release();
            Ok(head_alone(head))
        }
        None => Err(CgiFailure::Unreadable),
    }
}

/// An answer with its body, whole or as it comes.
fn with_body(
    request: &Request,
    reading: ProgramOutput,
    head: CgiHead,
    first: Vec<u8>,
    is_typed: bool,
    span: OutputLifetime,
) -> Result<Response, CgiFailure> {
    if head.local.is_some() {
        reading.release();
        return Ok(head_alone(head));
    }
    let wanted_bytes = head.body_bytes.unwrap_or(u64::MAX);
    if reading.is_over() || first.len() as u64 >= wanted_bytes {
        reading.release();
        return whole(request, head, first, is_typed).ok_or(CgiFailure::Chunks);
    }
    let mut fields = head.fields;
    fields.set(b"Server", plain::SERVER);
    if is_typed {
        say_type(&mut fields);
    }
    let run = Rc::clone(&reading.run);
    let Some(source) = reading.into_source() else {
        return Err(CgiFailure::Unreadable);
    };
    let body = Body::Pipe {
        first: first.into(),
        fd: source.into_fd(),
        len: head.body_bytes,
        end: Some(Rc::new(OutputEnd::new(&run, request, span))),
    };
    let drain = (span != OutputLifetime::ToItsEnd).then(|| run.reactor.watch_drain());
    let body = match head.is_chunked {
        true => Body::Stream(Box::new(Dechunked::new(body.into_stream(), drain))),
        false => body,
    };
    Ok(Response::new(head.status, fields, body))
}

/// The answer of a command: what it prints. It begins with its first byte, as that of a program
/// begins with its head; one that fails before is told by the status.
pub(super) async fn of_command(
    request: &Request,
    output: &mut Option<ProgramOutput>,
    media_type: &str,
    started: Instant,
) -> Result<Response, CgiFailure> {
    let Some(reading) = output.as_mut() else {
        return Err(CgiFailure::Unreadable);
    };
    reading.more().await?;
    reading.has_head();
    reading.run.has_head(200);
    request.record_mut().program_us = started.elapsed().as_micros() as u64;
    let mut fields = plain::named();
    fields.add(b"Content-Type", media_type.as_bytes());
    let is_events = is_event_stream(&fields);
    let span = match is_events {
        true => OutputLifetime::Events,
        false => OutputLifetime::ToItsEnd,
    };
    read_ahead(reading, 0, None, !is_events).await?;
    if reading.is_over() {
        check_end(reading, None, 0).await?;
    }
    let Some(mut reading) = output.take() else {
        return Err(CgiFailure::Unreadable);
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
        None => body_of(first),
        Some(source) => Body::Pipe {
            first: first.into(),
            fd: source.into_fd(),
            len: None,
            end: Some(Rc::new(OutputEnd::new(&run, request, span))),
        },
    };
    Ok(Response::new(200, fields, body))
}

/// What comes of a program that a page has called: all that it prints, and beside that what it
/// writes to set values. It ends with its exit code, which is the page's to understand.
pub(super) async fn of_call(
    output: &mut Option<ProgramOutput>,
    call: &ProgramCall,
    values: Watched,
) -> Result<Response, CgiFailure> {
    let Some(mut reading) = output.take() else {
        return Err(CgiFailure::Unreadable);
    };
    let came = all_of_call(&mut reading, call, values).await;
    if matches!(came, Err(CgiFailure::TooLong)) {
        reading.run.counters.limit_page_program_output.add(1);
    }
    *call.came.borrow_mut() = came?;
    let body = body_of(std::mem::take(&mut reading.bytes));
    reading.release();
    Ok(Response::new(200, plain::named(), body))
}

async fn all_of_call(
    reading: &mut ProgramOutput,
    call: &ProgramCall,
    values: Watched,
) -> Result<CameOfCall, CgiFailure> {
    // It has no head that could be late.
    reading.has_head();
    let mut values = CallValues {
        pipe: Some(values),
        bytes: Vec::new(),
        bytes_max: call.output_bytes_max,
    };
    while !reading.is_over() {
        let more = poll_fn(|cx| match values.poll(cx) {
            Ok(()) => reading.poll_more(cx),
            Err(failure) => Poll::Ready(Err(failure)),
        });
        more.await?;
        if reading.bytes.len() > call.output_bytes_max {
            return Err(CgiFailure::TooLong);
        }
    }
    let exit = poll_fn(|cx| match values.poll(cx) {
        Ok(()) => reading.poll_exit(cx).map(Ok),
        Err(failure) => Poll::Ready(Err(failure)),
    });
    let exit = exit.await?;
    // What a program wrote that has ended is all there.
    while poll_fn(|cx| Poll::Ready(values.read(cx))).await? {}
    let code = match exit {
        _ if reading.run.ended_for() == Some(Why::Total) => return Err(CgiFailure::Total),
        Some(Exit::Ended {
            signal: None, code, ..
        }) => code.unwrap_or_default(),
        Some(exit) => return Err(CgiFailure::of_exit(exit)),
        // It goes on without output.
        None => 0,
    };
    Ok(CameOfCall {
        code,
        values: values.bytes,
    })
}

/// What a program writes to set values.
struct CallValues {
    /// `None` once it has ended.
    pipe: Option<Watched>,
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl CallValues {
    /// Reads what is there, as much of it as one turn may.
    fn poll(&mut self, cx: &mut Context<'_>) -> Result<(), CgiFailure> {
        for _ in 0..ASIDE_BYTES_PER_TURN / READ_BYTES {
            if !self.read(cx)? {
                return Ok(());
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Reads a piece; false where none is there.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, CgiFailure> {
        let Some(pipe) = &self.pipe else {
            return Ok(false);
        };
        let mut buffer = [0; READ_BYTES];
        match pipe.poll_read(cx, &mut buffer) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(count)) if count > 0 => {
                self.bytes.extend_from_slice(&buffer[..count]);
            }
            Poll::Ready(_) => self.pipe = None,
        }
        match self.bytes.len() > self.bytes_max {
            true => Err(CgiFailure::TooLong),
            false => Ok(true),
        }
    }
}

/// Reads until the head is complete.
async fn read_head(reading: &mut ProgramOutput) -> Result<(CgiHead, usize), CgiFailure> {
    let mut reader = HeadReader::new(reading.run.cgi.settings.limits.head);
    loop {
        let more = reading.more().await?;
        match reader.read(&reading.bytes) {
            CgiHeadProgress::Head(head, used) => return Ok((head, used)),
            CgiHeadProgress::Refused(bad) => return Err(refused(reading, bad)),
            CgiHeadProgress::NeedMore if more == More::Bytes => {}
            CgiHeadProgress::NeedMore => {
                let exit = reading.exit().await;
                if let Some(failure) = exit.and_then(CgiFailure::of_end) {
                    return Err(failure);
                }
                let bad = Box::new(reader.at_end(&reading.bytes));
                return Err(CgiFailure::Head(bad, exit.map(ending).unwrap_or_default()));
            }
        }
    }
}

fn refused(reading: &ProgramOutput, bad: BadHead) -> CgiFailure {
    if bad.is_too_long() {
        reading.run.counters.limit_program_head.add(1);
    }
    CgiFailure::Head(Box::new(bad), String::new())
}

/// Only a body gets a type. Where the program says none, waits until it is known whether there is
/// one: its first byte, or the end.
async fn await_untyped(
    reading: &mut ProgramOutput,
    body_at: usize,
    fields: &Fields,
) -> Result<(), CgiFailure> {
    let has_begun = reading.bytes.len() > body_at || reading.is_over();
    if fields.value(b"Content-Type").is_none() && !has_begun {
        reading.more().await?;
    }
    Ok(())
}

/// Takes what has come of the body, and waits a moment for the end of it if it is to be held.
async fn read_ahead(
    reading: &mut ProgramOutput,
    body_at: usize,
    announced: Option<u64>,
    is_held: bool,
) -> Result<(), CgiFailure> {
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

/// The output has ended: whether it is all that was meant.
async fn check_end(
    reading: &mut ProgramOutput,
    announced: Option<u64>,
    came: usize,
) -> Result<(), CgiFailure> {
    let came = came as u64;
    if announced.is_some_and(|announced| came >= announced) {
        return Ok(());
    }
    if let Some(exit) = reading.exit().await
        && let Some(failure) = reading.run.failure(exit)
    {
        return Err(failure);
    }
    match announced {
        Some(announced) => Err(CgiFailure::Short { announced, came }),
        None => Ok(()),
    }
}
