//! What happens when a connection can go on: send, then poll the answer, then read, until nothing moves.

use std::rc::Rc;
use std::task::{Context, Poll};

use hob_trace::{Fault, Outcome, Record};

use crate::body::{Body, BodyError, Chunk};
use crate::h1::conn::Deadline;
use crate::h1::{Eof, Event, Framing, Length, Next, Refusal, Sending};
use crate::limits::{
    COPY_BYTES_MAX, OUT_WINDOW_BYTES, READ_BYTES_PER_TURN, REQUEST_POOL_MAX, REQUESTS_PER_TURN,
};
use crate::raw;
use crate::request::{Exchange, HalfClose, IncomingState, Request};
use crate::response::{Answer, Answered, Response, ResponseHead};
use crate::thread::conn::{Conn, Piece, Stage};
use crate::thread::pump::Read;
use crate::thread::run::Thread;
use crate::thread::send::Flushed;

/// Rounds of sending and making on one connection before others have their turn.
const ROUNDS_PER_TURN: usize = 8;
/// Bytes read from a pipe at a time.
const PIPE_BYTES: usize = 64 * 1024;

/// Whether a connection lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Keep,
    Close,
}

/// Whether driving goes on.
enum Step {
    Again,
    Wait,
    Close,
}

impl<A: Answer + 'static> Thread<A> {
    /// Lets the connection go as far as it can. `output` and `finishing` are empty before and after.
    pub(crate) fn drive(&mut self, conn: &mut Conn) -> Fate {
        debug_assert!(self.output.is_empty() && self.finishing.is_empty());
        if conn.is_reset {
            Fate::Close
        } else {
            self.drive_on(conn)
        }
    }

    /// As [`Self::drive`], with an answer begun already.
    fn drive_on(&mut self, conn: &mut Conn) -> Fate {
        let mut rounds = 0;
        let fate = loop {
            rounds += 1;
            if rounds > ROUNDS_PER_TURN {
                self.queue_bulk(conn);
            }
            if !self.output.is_empty() || !conn.out.is_empty() || !self.finishing.is_empty() {
                match self.flush(conn) {
                    Flushed::All => conn.core.wrote_all(self.now_ms),
                    Flushed::Blocked | Flushed::Fetching => break Fate::Keep,
                    Flushed::Yield => {
                        self.queue_bulk(conn);
                        break Fate::Keep;
                    }
                    Flushed::Broken(error) => {
                        tracing::debug!(%error, "an answer broke off");
                        break Fate::Close;
                    }
                }
            }
            if conn.is_in_bulk {
                break Fate::Keep;
            }
            let step = match conn.stage {
                Stage::Reading => self.read_requests(conn),
                Stage::Later(_) => self.poll_answer(conn),
                Stage::Stream { .. } => self.pull(conn),
                Stage::Pipe { .. } => self.pull_pipe(conn),
                Stage::Flushing(next) => self.go_on(conn, next),
                Stage::Discarding => self.discard_body(conn),
                Stage::Lingering => match self.discard(conn) {
                    Ok(_) => Step::Wait,
                    Err(_) => Step::Close,
                },
            };
            let has_output = !self.output.is_empty() || !conn.out.is_empty();
            match step {
                Step::Again => {}
                Step::Wait if has_output || !self.finishing.is_empty() => {}
                Step::Wait => break Fate::Keep,
                Step::Close => break Fate::Close,
            }
        };
        self.output.clear();
        if fate == Fate::Keep {
            match self.watch(conn) {
                Ok(()) => Fate::Keep,
                Err(error) => {
                    tracing::error!(%error, "a connection could not be watched");
                    Fate::Close
                }
            }
        } else {
            fate
        }
    }

    /// Reads and answers requests until input or the turn's budget is used up.
    fn read_requests(&mut self, conn: &mut Conn) -> Step {
        if !conn.carry.is_empty() {
            let carry = std::mem::take(&mut conn.carry);
            let used = self.answer_input(conn, &carry);
            if used < carry.len() {
                // What was read meanwhile cannot be: reading stops while there is a carry.
                conn.carry = if used == 0 {
                    carry
                } else {
                    carry[used..].to_vec()
                };
            }
            if used > 0 || !matches!(conn.stage, Stage::Reading) {
                return Step::Again;
            }
        }
        if !conn.is_readable {
            return if conn.is_half_closed {
                self.end_of_input(conn)
            } else {
                Step::Wait
            };
        }
        match self.receive(conn) {
            Read::Bytes(count) => {
                let input = std::mem::take(&mut self.input);
                if conn.carry.is_empty() {
                    let used = self.answer_input(conn, &input[..count]);
                    conn.carry.extend_from_slice(&input[used..count]);
                } else {
                    conn.carry.extend_from_slice(&input[..count]);
                    let carry = std::mem::take(&mut conn.carry);
                    let used = self.answer_input(conn, &carry);
                    conn.carry = carry;
                    conn.carry.drain(..used);
                }
                self.input = input;
                if matches!(conn.stage, Stage::Reading) && self.output.is_empty() {
                    // A part of a head: the rest may be there already.
                    return if conn.is_readable || conn.is_half_closed {
                        Step::Again
                    } else {
                        Step::Wait
                    };
                }
                Step::Again
            }
            Read::Nothing => Step::Wait,
            Read::Eof => self.end_of_input(conn),
            Read::Broken => Step::Close,
        }
    }

    fn end_of_input(&mut self, conn: &mut Conn) -> Step {
        match conn.core.handle_eof(conn.carry.len()) {
            Eof::Refuse(refusal) => {
                conn.carry = Vec::new();
                let request = self.fresh_request(conn);
                self.refuse(conn, request, refusal);
                Step::Again
            }
            Eof::Close | Eof::BodyBroken | Eof::HalfClosed => Step::Close,
        }
    }

    /// Answers the requests in `input`; returns how many bytes were used.
    fn answer_input(&mut self, conn: &mut Conn, input: &[u8]) -> usize {
        let mut used = 0;
        for _ in 0..REQUESTS_PER_TURN {
            if used == input.len() || self.output.len() >= READ_BYTES_PER_TURN {
                return used;
            }
            let mut request = self.fresh_request(conn);
            let Some(exchange) = Rc::get_mut(&mut request.exchange) else {
                debug_assert!(false, "a fresh request has one owner");
                return used;
            };
            let (count, event) = conn
                .core
                .read(&input[used..], &mut exchange.head, self.now_ms);
            used += count;
            match event {
                Event::Request(framing) => self.begin(conn, request, framing),
                Event::Refused(refusal) => {
                    self.refuse(conn, request, refusal);
                    return input.len();
                }
                Event::NeedMore => {
                    self.recycle(request);
                    return used;
                }
                Event::Data(_) | Event::BodyEnd(_) | Event::Busy => {
                    self.recycle(request);
                    return used;
                }
            }
            if !matches!(conn.stage, Stage::Reading) {
                return used;
            }
        }
        // More is there: others first.
        self.queue_bulk(conn);
        used
    }

    /// A request for the next head of this connection.
    fn fresh_request(&mut self, conn: &Conn) -> Request {
        while let Some(mut request) = self.pool.pop() {
            if let Some(exchange) = Rc::get_mut(&mut request.exchange) {
                exchange.renew(&conn.facts);
                return request;
            }
        }
        let exchange = Exchange::new(Rc::clone(&conn.facts), Rc::clone(&self.ready));
        Request {
            exchange: Rc::new(exchange),
        }
    }

    /// Keeps the memory of a request whose last owner this is.
    pub(crate) fn recycle(&mut self, request: Request) {
        if self.pool.len() < REQUEST_POOL_MAX && Rc::strong_count(&request.exchange) == 1 {
            self.pool.push(request);
        }
    }

    fn note_start(&self, conn: &mut Conn, request: &Request) {
        let mut record = request.record_mut();
        record.started_us = self.now_us;
        record.started_unix_ms = self.now_ms.wrapping_add(self.unix_offset_ms);
        record.protocol = request.head().protocol();
        record.bytes_in = request.head().byte_count() as u64;
        record.connection = conn.facts.number;
        record.request = conn.request_count;
        if let Some(peer) = conn.facts.peer {
            record.client = peer.ip();
            record.client_port = peer.port();
        }
        conn.request_count = conn.request_count.wrapping_add(1);
    }

    fn begin(&mut self, conn: &mut Conn, request: Request, framing: Framing) {
        self.note_start(conn, &request);
        request.exchange.key.set(conn.key);
        request.exchange.body_limit.set(self.limits.body_bytes);
        if framing.length != Length::Bytes(0) {
            let mut body = request.exchange.body.borrow_mut();
            body.state = IncomingState::Open;
            body.announced = match framing.length {
                Length::Bytes(len) => Some(len),
                Length::Chunked => None,
            };
        }
        match self.answer.answer(&request) {
            Answered::Ready(response) => self.respond(conn, request, response),
            Answered::Later(future) => {
                conn.core.limit_body(request.exchange.body_limit.get());
                conn.request = Some(request);
                conn.stage = Stage::Later(future);
            }
        }
    }

    /// Answers what the engine refused; the connection ends after it.
    fn refuse(&mut self, conn: &mut Conn, request: Request, refusal: Refusal) {
        self.count_refusal(refusal);
        self.note_start(conn, &request);
        {
            let mut record = request.record_mut();
            record.fault = Fault::Client;
            record.reason = Some(refusal.reason);
        }
        request.exchange.key.set(conn.key);
        let mut response = self.answer.refuse(&request, refusal.status);
        response.close = true;
        self.respond(conn, request, response);
        conn.stage = Stage::Flushing(Next::Linger);
    }

    /// Sends an answer's head and starts on its body.
    fn respond(&mut self, conn: &mut Conn, request: Request, response: Response) {
        let Response { head, body, close } = response;
        let close = close || self.draining.is_some();
        let before = self.output.len();
        let (sending, status) =
            if let (Body::Tunnel(_), ResponseHead::Fields(status, fields)) = (&body, &head) {
                let output = &mut self.output;
                (
                    conn.core
                        .push_tunnel_head(*status, fields, &self.date, output),
                    *status,
                )
            } else {
                let status = match &head {
                    ResponseHead::Fields(status, _) => *status,
                    ResponseHead::Prepared(prepared) => prepared.status(),
                };
                let output = &mut self.output;
                (
                    conn.core
                        .push_head(&head, body.len(), close, &self.date, output),
                    status,
                )
            };
        {
            let mut record = request.record_mut();
            record.status = status;
            record.head_bytes_out = (self.output.len() - before) as u64;
        }
        match (sending, body) {
            (Sending::Nothing, _) | (_, Body::Empty) => self.end_answer(conn, request, None),
            (_, Body::Bytes(bytes)) => self.respond_bytes(conn, request, bytes),
            (_, Body::Region(region)) => {
                self.queue_chunk(conn, &request, Chunk::Region(region));
                self.end_answer(conn, request, None);
            }
            (_, Body::File(file)) => {
                self.queue_chunk(conn, &request, Chunk::File(file));
                self.end_answer(conn, request, None);
            }
            (_, Body::Pipe { fd, len }) => {
                let watched = self.watch_pipe(std::os::fd::AsFd::as_fd(&fd), conn.key);
                if let Err(error) = watched {
                    tracing::error!(%error, "a pipe could not be watched");
                }
                conn.stage = Stage::Pipe { fd, left: len };
                conn.request = Some(request);
            }
            (sending, Body::Stream(body)) => {
                conn.stage = Stage::Stream {
                    body,
                    is_tunnel: sending == Sending::Tunnel,
                };
                conn.request = Some(request);
            }
            (_, Body::Tunnel(body)) => {
                let mut incoming = request.exchange.body.borrow_mut();
                incoming.state = IncomingState::Open;
                drop(incoming);
                conn.stage = Stage::Stream {
                    body,
                    is_tunnel: true,
                };
                conn.request = Some(request);
            }
        }
    }

    fn respond_bytes(&mut self, conn: &mut Conn, request: Request, bytes: bytes::Bytes) {
        if bytes.len() <= COPY_BYTES_MAX && conn.out.is_empty() {
            if conn
                .core
                .push_data_prefix(bytes.len() as u64, &mut self.output)
                .is_some()
            {
                // Copied so that head and body leave in one plain write.
                self.output.extend_from_slice(&bytes);
                conn.core.push_data_suffix(&mut self.output);
            }
            request.record_mut().body_bytes_out += bytes.len() as u64;
        } else {
            self.queue_chunk(conn, &request, Chunk::Bytes(bytes));
        }
        self.end_answer(conn, request, None);
    }

    /// Queues a piece of body with its framing. Bytes over the announced size are dropped.
    fn queue_chunk(&mut self, conn: &mut Conn, request: &Request, chunk: Chunk) {
        let len = chunk.len();
        if len == 0 {
            return;
        }
        let framed = self.with_tail(conn, |core, tail| core.push_data_prefix(len, tail));
        if framed.is_none() {
            let mut record = request.record_mut();
            record.outcome = Outcome::Broken;
            record.reason = Some("the body is longer than its announced size");
            return;
        }
        request.record_mut().body_bytes_out += len;
        match chunk {
            Chunk::Bytes(bytes) if bytes.len() <= COPY_BYTES_MAX => {
                self.with_tail(conn, |_, tail| tail.extend_from_slice(&bytes));
            }
            Chunk::Bytes(bytes) => conn.out.push(Piece::Shared(bytes)),
            Chunk::Region(region) if len <= COPY_BYTES_MAX as u64 => {
                let copy = raw::copy_region(region.as_ref());
                self.with_tail(conn, |_, tail| tail.extend_from_slice(&copy));
            }
            Chunk::Region(region) => conn.out.push(Piece::Region(region, 0)),
            Chunk::File(file) => conn.out.push(Piece::File(file)),
        }
        self.with_tail_if_needed(conn);
    }

    fn with_tail_if_needed(&mut self, conn: &mut Conn) {
        let mut suffix = Vec::new();
        conn.core.push_data_suffix(&mut suffix);
        if !suffix.is_empty() {
            self.with_tail(conn, |_, tail| tail.extend_from_slice(&suffix));
        }
    }

    /// Runs `push` with the buffer that comes after everything queued.
    fn with_tail<R>(
        &mut self,
        conn: &mut Conn,
        push: impl FnOnce(&mut crate::h1::Conn, &mut Vec<u8>) -> R,
    ) -> R {
        if conn.out.is_empty() {
            return push(&mut conn.core, &mut self.output);
        }
        // Only add a piece when there is something to put into it.
        let mut fresh = Vec::new();
        let result = push(&mut conn.core, &mut fresh);
        if !fresh.is_empty() {
            conn.out.grew(fresh.len());
            conn.out.tail().extend_from_slice(&fresh);
        }
        result
    }

    /// All of the answer is queued: what comes next, and the record ends when it has left.
    fn end_answer(&mut self, conn: &mut Conn, request: Request, trailers: Option<&crate::Fields>) {
        let is_whole = self.with_tail(conn, |core, tail| core.push_end(trailers, tail));
        let next = if is_whole {
            conn.core.finish(self.now_ms)
        } else {
            let mut record = request.record_mut();
            record.outcome = Outcome::Broken;
            record
                .reason
                .get_or_insert("the body is shorter than its announced size");
            Next::Close
        };
        if conn.out.is_empty() {
            self.finishing.push(request);
        } else {
            conn.out.push(Piece::End(request));
        }
        conn.stage = match next {
            Next::Request if conn.out.is_empty() => Stage::Reading,
            next => Stage::Flushing(next),
        };
    }

    /// Everything has left; the connection goes on as the engine said.
    fn go_on(&mut self, conn: &mut Conn, next: Next) -> Step {
        match next {
            Next::Request => {
                conn.stage = Stage::Reading;
                Step::Again
            }
            Next::Discard => {
                conn.stage = Stage::Discarding;
                conn.core.wait_for_body(self.now_ms);
                Step::Again
            }
            Next::Linger => {
                conn.core.begin_linger(self.now_ms);
                if rustix::net::shutdown(&conn.socket, rustix::net::Shutdown::Write).is_err() {
                    return Step::Close;
                }
                conn.stage = Stage::Lingering;
                Step::Again
            }
            Next::Close => Step::Close,
        }
    }

    fn discard_body(&mut self, conn: &mut Conn) -> Step {
        match self.discard(conn) {
            Ok(true) => match conn.core.finish(self.now_ms) {
                Next::Request => {
                    conn.stage = Stage::Reading;
                    Step::Again
                }
                next => self.go_on(conn, next),
            },
            Ok(false) => Step::Wait,
            Err(_) => Step::Close,
        }
    }

    /// Polls an answer that is on its way, and feeds it the request's body.
    fn poll_answer(&mut self, conn: &mut Conn) -> Step {
        let waker = self.waker_of(conn);
        let Stage::Later(future) = &mut conn.stage else {
            return Step::Again;
        };
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let Some(request) = conn.request.clone() else {
            return Step::Close;
        };
        self.push_interims(conn, &request);
        if let Poll::Ready(response) = polled {
            conn.stage = Stage::Reading;
            conn.request = None;
            self.respond(conn, request, response);
            return Step::Again;
        }
        if conn.is_half_closed
            && !conn.core.body_is_open()
            && request.exchange.half_close.get() == HalfClose::Cancel
        {
            return Step::Close;
        }
        match self.pump(conn) {
            Ok(true) => Step::Again,
            Ok(false) => Step::Wait,
            // The handler sees the broken body and may still answer; a reset connection is over.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Step::Wait,
            Err(_) => Step::Close,
        }
    }

    fn push_interims(&mut self, conn: &mut Conn, request: &Request) {
        let interims = std::mem::take(&mut request.exchange.line.borrow_mut().interim);
        for (status, fields) in interims {
            conn.core.push_interim(status, &fields, &mut self.output);
            self.counters.responses_1xx.add(1);
        }
    }

    /// Takes chunks from a body as long as the client keeps up.
    fn pull(&mut self, conn: &mut Conn) -> Step {
        let waker = self.waker_of(conn);
        let Some(request) = conn.request.clone() else {
            return Step::Close;
        };
        let mut cx = Context::from_waker(&waker);
        while conn.out.held_bytes + self.output.len() < OUT_WINDOW_BYTES {
            let Stage::Stream { body, .. } = &mut conn.stage else {
                return Step::Again;
            };
            match body.poll_chunk(&mut cx, OUT_WINDOW_BYTES / 4) {
                Poll::Ready(Some(Ok(chunk))) => {
                    let is_file = matches!(chunk, Chunk::File(_));
                    self.queue_chunk(conn, &request, chunk);
                    if is_file {
                        return Step::Again;
                    }
                }
                Poll::Ready(Some(Err(error))) => return self.break_answer(&request, error),
                Poll::Ready(None) => {
                    let trailers = body.trailers();
                    conn.request = None;
                    conn.stage = Stage::Reading;
                    self.end_answer(conn, request, trailers.as_ref());
                    return Step::Again;
                }
                Poll::Pending => {
                    conn.core.wait_for_nothing();
                    return self.pump_beside(conn);
                }
            }
        }
        Step::Again
    }

    /// The request's body may still be coming in while the answer's goes out.
    fn pump_beside(&mut self, conn: &mut Conn) -> Step {
        let is_tunnel = matches!(
            conn.stage,
            Stage::Stream {
                is_tunnel: true,
                ..
            }
        );
        match self.pump(conn) {
            Ok(true) => Step::Again,
            Ok(false) => Step::Wait,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                if is_tunnel && let Some(request) = &conn.request {
                    request.exchange.body.borrow_mut().end();
                    conn.core.end_input();
                }
                Step::Wait
            }
            Err(_) => Step::Close,
        }
    }

    /// Takes what has come out of a pipe.
    fn pull_pipe(&mut self, conn: &mut Conn) -> Step {
        let Some(request) = conn.request.clone() else {
            return Step::Close;
        };
        let Stage::Pipe { fd, left } = &mut conn.stage else {
            return Step::Again;
        };
        let room = left.map_or(PIPE_BYTES, |left| left.min(PIPE_BYTES as u64) as usize);
        let mut bytes = Vec::with_capacity(room);
        let spare = rustix::buffer::spare_capacity(&mut bytes);
        match if room == 0 {
            Ok(0)
        } else {
            rustix::io::read(&*fd, spare)
        } {
            Ok(0) => {
                conn.request = None;
                conn.stage = Stage::Reading;
                self.end_answer(conn, request, None);
                Step::Again
            }
            Ok(count) => {
                if let Some(left) = left {
                    *left -= count as u64;
                }
                self.queue_chunk(conn, &request, Chunk::Bytes(bytes.into()));
                Step::Again
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                conn.core.wait_for_nothing();
                self.pump_beside(conn)
            }
            Err(_) => {
                let error = BodyError::Source(Fault::Script, "the pipe could not be read");
                self.break_answer(&request, error)
            }
        }
    }

    fn break_answer(&mut self, request: &Request, error: BodyError) -> Step {
        let mut record = request.record_mut();
        record.outcome = Outcome::Broken;
        if let BodyError::Source(fault, reason) = error {
            record.fault = fault;
            record.reason = Some(reason);
        }
        Step::Close
    }

    /// A deadline has passed.
    pub(crate) fn time_out(&mut self, conn: &mut Conn, deadline: Deadline) -> Fate {
        let counters = std::sync::Arc::clone(&self.counters);
        match deadline {
            Deadline::None => return Fate::Keep,
            Deadline::Idle => counters.limit_idle.add(1),
            Deadline::Linger => counters.limit_linger.add(1),
            Deadline::Write => {
                counters.limit_write_progress.add(1);
                mark(
                    conn,
                    Outcome::Timeout,
                    "limits.write_progress: the client took no bytes",
                );
            }
            Deadline::Head => {
                let request = self.fresh_request(conn);
                let reason = "limits.head_time: the request head did not come in time";
                conn.carry = Vec::new();
                self.refuse(
                    conn,
                    request,
                    Refusal {
                        status: 408,
                        reason,
                    },
                );
                return self.drive_on(conn);
            }
            Deadline::Body => return self.time_out_body(conn),
        }
        Fate::Close
    }

    /// The client stopped sending its body: 408 unless an answer is under way.
    fn time_out_body(&mut self, conn: &mut Conn) -> Fate {
        self.counters.limit_body_progress.add(1);
        if !matches!(conn.stage, Stage::Later(_)) {
            mark(
                conn,
                Outcome::Timeout,
                "limits.body_progress: the client stopped sending",
            );
            return Fate::Close;
        }
        let Some(request) = conn.request.take() else {
            return Fate::Close;
        };
        request
            .exchange
            .body
            .borrow_mut()
            .break_off(BodyError::TooSlow);
        conn.stage = Stage::Reading;
        let mut response = self.answer.refuse(&request, 408);
        response.close = true;
        {
            let mut record = request.record_mut();
            record.fault = Fault::Client;
            record.outcome = Outcome::Timeout;
            record.reason = Some("limits.body_progress: the client stopped sending");
        }
        self.respond(conn, request, response);
        conn.stage = Stage::Flushing(Next::Linger);
        self.drive_on(conn)
    }

    /// The connection ends with something under way: those who wait are told, records are closed.
    pub(crate) fn abandon(&mut self, conn: &mut Conn) {
        conn.stage = Stage::Discarding;
        let waiting = conn.request.take();
        let queued = std::mem::take(&mut conn.out.pieces);
        let ended = queued.into_iter().filter_map(|piece| match piece {
            Piece::End(request) => Some(request),
            _ => None,
        });
        let fresh = std::mem::take(&mut self.finishing);
        for request in fresh.into_iter().chain(ended).chain(waiting) {
            request.exchange.leave();
            {
                let mut record = request.record_mut();
                if record.outcome == Outcome::Complete {
                    record.outcome = Outcome::ClientLeft;
                    record.fault = Fault::Client;
                    self.counters.client_left.add(1);
                }
            }
            self.close_record(&request, Self::clock_us());
            self.recycle(request);
        }
    }

    /// Everything of these answers was handed to the kernel.
    pub(crate) fn finish_all(&mut self) {
        if self.finishing.is_empty() {
            return;
        }
        let written_us = Self::clock_us();
        let mut finishing = std::mem::take(&mut self.finishing);
        for request in finishing.drain(..) {
            self.close_record(&request, written_us);
            self.recycle(request);
        }
        self.finishing = finishing;
    }

    fn close_record(&self, request: &Request, end_us: u64) {
        {
            let mut record: std::cell::RefMut<'_, Record> = request.record_mut();
            record.total_us = end_us.saturating_sub(record.started_us);
            if record.first_byte_us == 0 {
                record.first_byte_us = record.total_us;
            }
        }
        self.answer.finished(request);
    }
}

fn mark(conn: &Conn, outcome: Outcome, reason: &'static str) {
    let queued = conn.out.pieces.iter().find_map(|piece| match piece {
        Piece::End(request) => Some(request),
        _ => None,
    });
    if let Some(request) = conn.request.as_ref().or(queued) {
        let mut record = request.record_mut();
        record.outcome = outcome;
        record.fault = Fault::Client;
        record.reason = Some(reason);
    }
}
