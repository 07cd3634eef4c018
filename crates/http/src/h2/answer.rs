//! Answers to frames: heads, pieces of body, ends (RFC 9113 sections 8.1 and 6).

use crate::date::DateLine;
use crate::fields_coding::hpack::push_content_length;
use crate::h2::conn::Http2Connection;
use crate::h2::frame::{self, HEADER_BYTES, Http2ErrorCode, PAYLOAD_BYTES};
use crate::h2::stream::{Http2StreamState, Receiving, Writing};
use crate::head::Fields;
use crate::limits::{H2_STREAM_WINDOW_BYTES_MAX, H2_TINY_DATA_BYTES, H2_WINDOW_GROWTH_BYTES_MAX};
use crate::response::ResponseHead;
use crate::status;

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterHead {
    /// Nothing: the answer is complete.
    Nothing,
    /// A body.
    Body,
}

impl Http2Connection {
    /// Appends an interim answer, unless the head of the final one was sent.
    pub fn push_interim(&mut self, stream: u32, status: u16, fields: &Fields, out: &mut Vec<u8>) {
        let Some(open) = self.streams.find(stream) else {
            return;
        };
        if open.sending != Writing::Nothing {
            return;
        }
        if status == 100 {
            open.continue_is_due = false;
        }
        let at = begin_block(stream, 0, out);
        self.encoder.begin(status, out);
        for (name, value) in fields.iter() {
            self.encoder.field(name, value, out);
        }
        end_block(at, out);
    }

    /// Appends `100` when the client waits for it and nothing was sent yet.
    //= rfc9110#10.1.1
    pub fn continue_now(&mut self, stream: u32, out: &mut Vec<u8>) {
        if self
            .streams
            .find(stream)
            .is_some_and(|stream| stream.continue_is_due)
        {
            self.push_interim(stream, 100, &Fields::new(), out);
        }
    }

    /// Appends the head of the answer. `body_len` is the body's size when known, unless the head
    /// announces one itself.
    pub fn push_head(
        &mut self,
        stream: u32,
        head: &ResponseHead,
        body_len: Option<u64>,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) -> AfterHead {
        let (status, body_len) = match head {
            ResponseHead::Prepared(prepared) => (prepared.status(), Some(prepared.body_bytes())),
            ResponseHead::Fields(status, _) => (*status, body_len),
        };
        let Some(open) = self.streams.find(stream) else {
            return AfterHead::Nothing;
        };
        let is_bodiless = open.is_head_method || status::is_bodiless(status) || body_len == Some(0);
        open.sending = match is_bodiless {
            true => Writing::Ended,
            false => Writing::Body(body_len),
        };
        let end_stream = if is_bodiless { frame::END_STREAM } else { 0 };
        let at = begin_block(stream, end_stream, out);
        self.encoder.begin(status, out);
        self.encoder.date(date.date(), out);
        if let Some(alt_svc) = &self.alt_svc
            && head.fields().value(b"alt-svc").is_none()
        {
            self.encoder.repeated(b"alt-svc", alt_svc, out);
        }
        match head {
            ResponseHead::Prepared(prepared) => prepared.block().push(&mut self.encoder, out),
            ResponseHead::Fields(_, fields) => {
                for (name, value) in fields.iter() {
                    self.encoder.field(name, value, out);
                }
                if let (Some(len), false) = (body_len, status::is_bodiless(status)) {
                    push_content_length(len, out);
                }
            }
        }
        end_block(at, out);
        if is_bodiless {
            self.end_answer(stream, out);
            return AfterHead::Nothing;
        }
        AfterHead::Body
    }

    /// Appends the head of an answer after which the stream carries raw bytes both ways.
    //= rfc8441#5
    pub fn push_tunnel_head(
        &mut self,
        stream: u32,
        status: u16,
        fields: &Fields,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) {
        // What HTTP/1 says by changing the protocol is success here.
        let status = if status == 101 { 200 } else { status };
        let Some(open) = self.streams.find(stream) else {
            return;
        };
        open.sending = Writing::Body(None);
        let at = begin_block(stream, 0, out);
        self.encoder.begin(status, out);
        self.encoder.date(date.date(), out);
        for (name, value) in fields.iter() {
            self.encoder.field(name, value, out);
        }
        end_block(at, out);
    }

    /// True when the stream is one of CONNECT: it may become a tunnel.
    pub fn is_tunnel(&mut self, stream: u32) -> bool {
        self.streams
            .find(stream)
            .is_some_and(|stream| stream.is_tunnel)
    }

    /// Appends the header of a frame of `len` body bytes, which the caller appends then: no more
    /// than [`Http2Connection::room`] and than fit into a frame. `None` when that is more than was
    /// announced.
    pub fn push_data(&mut self, stream: u32, len: usize, out: &mut Vec<u8>) -> Option<AfterHead> {
        let at = out.len();
        out.resize(at + HEADER_BYTES, 0);
        let sending = self.frame_data(stream, at, len, out);
        if sending.is_none() {
            out.truncate(at);
        }
        sending
    }

    /// Like [`Http2Connection::push_data`], for bytes that stand in `out` already: room for the
    /// header was left before them, at `at`.
    pub fn frame_data(
        &mut self,
        stream: u32,
        at: usize,
        len: usize,
        out: &mut [u8],
    ) -> Option<AfterHead> {
        debug_assert!(len > 0 && len <= PAYLOAD_BYTES);
        let open = self.streams.find(stream)?;
        let Writing::Body(left) = &mut open.sending else {
            return None;
        };
        if let Some(left) = left {
            *left = left.checked_sub(len as u64)?;
        }
        let is_last = *left == Some(0);
        let window = open.send_window.min(self.send_window);
        debug_assert!(len as i64 <= window, "the window has room");
        open.send_window -= len as i64;
        self.send_window -= len as i64;
        if len >= H2_TINY_DATA_BYTES || (len as i64) < window {
            self.budgets.sent_data();
        }
        let flags = if is_last { frame::END_STREAM } else { 0 };
        let header = frame::header(len, frame::DATA, flags, stream);
        out[at..at + HEADER_BYTES].copy_from_slice(&header);
        if !is_last {
            return Some(AfterHead::Body);
        }
        open.sending = Writing::Ended;
        Some(AfterHead::Nothing)
    }

    /// Ends the answer's body. Returns false when bytes are missing: then the stream was reset.
    pub fn push_end(&mut self, stream: u32, trailers: Option<&Fields>, out: &mut Vec<u8>) -> bool {
        let Some(open) = self.streams.find(stream) else {
            return false;
        };
        match open.sending {
            Writing::Ended => {}
            Writing::Body(None) => {
                open.sending = Writing::Ended;
                match trailers.filter(|trailers| !trailers.is_empty()) {
                    None => frame::push_header(0, frame::DATA, frame::END_STREAM, stream, out),
                    Some(trailers) => {
                        let at = begin_block(stream, frame::END_STREAM, out);
                        self.encoder.begin_bare(out);
                        for (name, value) in trailers.iter() {
                            self.encoder.field(name, value, out);
                        }
                        end_block(at, out);
                    }
                }
            }
            Writing::Nothing | Writing::Body(Some(_)) => {
                self.reset(stream, Http2ErrorCode::Internal, out);
                return false;
            }
        }
        self.end_answer(stream, out);
        true
    }

    /// Ends our direction of a tunnel; what the client sends is still read.
    pub fn push_half_close(&mut self, stream: u32, out: &mut Vec<u8>) {
        let Some(open) = self.streams.find(stream) else {
            return;
        };
        open.sending = Writing::Ended;
        open.is_half_closed = true;
        open.is_ready = false;
        let has_ended = open.receiving == Receiving::Ended;
        frame::push_header(0, frame::DATA, frame::END_STREAM, stream, out);
        if has_ended {
            self.streams.close(stream);
        }
    }

    /// A tunnel is over whose client was told before that it gets no more. One that is still
    /// sending is told to stop.
    //= rfc9113#8.1
    pub fn end_half_closed(&mut self, stream: u32, out: &mut Vec<u8>) {
        self.budgets.answered();
        if !self.streams.forget_closed_tunnel(stream) && self.streams.find(stream).is_some() {
            self.reset(stream, Http2ErrorCode::NoError, out);
        }
    }

    /// The answer is complete. What is left of the request nobody reads: it may come if it is
    /// short, else the client is told to keep it, at once or when that shows. A client without a
    /// window would wait for one, and show nothing.
    //= rfc9113#8.1
    fn end_answer(&mut self, id: u32, out: &mut Vec<u8>) {
        self.budgets.answered();
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        stream.is_ready = false;
        match stream.receiving {
            Receiving::Ended => {
                self.streams.remove(id);
                self.streams.note_ended(id);
            }
            Receiving::Body(left)
                if !stream.continue_is_due
                    && left.map_or(1, |left| left as i64) <= stream.receive_window =>
            {
                stream.receiving = Receiving::Unread(left);
            }
            Receiving::Body(_) | Receiving::Unread(_) => {
                self.reset(id, Http2ErrorCode::NoError, out)
            }
        }
    }

    /// The stream's reader has taken what came but for so many bytes: the client may send as much
    /// as the window has room for then. It doubles when half of it was used and read: over a long
    /// path no more than a window comes in a round trip.
    //= rfc9113#6.9.1
    pub fn offer(&mut self, stream: u32, held_bytes: usize, out: &mut Vec<u8>) {
        let growth_left = H2_WINDOW_GROWTH_BYTES_MAX - self.streams.grown_bytes();
        let Some(open) = self.streams.find(stream) else {
            return;
        };
        let held = held_bytes as i64;
        // Little at a time is not worth a frame.
        let is_little = |open: &Http2StreamState| {
            open.window_bytes - held - open.receive_window < open.window_bytes / 2
        };
        if !matches!(open.receiving, Receiving::Body(_)) || is_little(open) {
            return;
        }
        // What is announced and fits is on its way anyway.
        if let Receiving::Body(Some(left)) = open.receiving
            && left as i64 <= open.receive_window
        {
            return;
        }
        if held == 0 {
            let most = H2_STREAM_WINDOW_BYTES_MAX - open.window_bytes;
            open.window_bytes += open.window_bytes.min(most).min(growth_left).max(0);
        }
        let more = open.window_bytes - held - open.receive_window;
        open.receive_window += more;
        frame::push_window_update(stream, more as u32, out);
    }

    /// True while more of the stream's request is to come.
    pub fn body_is_open(&mut self, stream: u32) -> bool {
        self.streams
            .find(stream)
            .is_some_and(|stream| matches!(stream.receiving, Receiving::Body(_)))
    }
}

/// Begins a HEADERS frame; returns where.
pub(super) fn begin_block(stream: u32, flags: u8, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    let flags = flags | frame::END_HEADERS;
    frame::push_header(0, frame::HEADERS, flags, stream, out);
    at
}

/// Ends the frame that began at `at`; a block too long for one goes on in CONTINUATION frames.
pub(super) fn end_block(at: usize, out: &mut Vec<u8>) {
    let len = out.len() - at - HEADER_BYTES;
    if len <= PAYLOAD_BYTES {
        return frame::set_len(at, len, out);
    }
    let rest = out.split_off(at + HEADER_BYTES + PAYLOAD_BYTES);
    frame::set_len(at, PAYLOAD_BYTES, out);
    let stream = frame::number(&out[at + 5..]);
    out[at + 4] &= !frame::END_HEADERS;
    let mut pieces = rest.chunks(PAYLOAD_BYTES).peekable();
    while let Some(piece) = pieces.next() {
        let flags = match pieces.peek() {
            None => frame::END_HEADERS,
            Some(_) => 0,
        };
        frame::push_header(piece.len(), frame::CONTINUATION, flags, stream, out);
        out.extend_from_slice(piece);
    }
}
