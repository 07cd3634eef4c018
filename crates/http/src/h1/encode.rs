//! Answers to bytes: head, framing, pieces of body, end (RFC 9112 sections 4, 6 and 7).

use crate::date::DateLine;
use crate::deadline::Deadline;
use crate::h1::conn::{Http1Connection, Http1ReadState};
use crate::head::Fields;
use crate::response::{self, ResponseHead};
use crate::status;

/// How far the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    Nothing,
    Length(u64),
    Chunked,
    UntilClose,
    NoBody,
    Done,
}

/// How the body of an answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFraming {
    /// No body follows.
    Nothing,
    /// So many bytes follow.
    Length(u64),
    /// Chunks follow.
    Chunked,
    /// Bytes follow until the connection closes.
    UntilClose,
    /// Raw bytes both ways.
    Tunnel,
}

impl Http1Connection {
    /// Appends `100 Continue` when the client waits for it and nothing was sent yet.
    //= rfc9110#10.1.1
    pub fn continue_now(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.continue_is_due) {
            out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// Appends an interim answer; HTTP/1.0 clients do not know them.
    pub fn push_interim(&mut self, status: u16, fields: &Fields, out: &mut Vec<u8>) {
        if self.is_http10 || self.writing != Writing::Nothing {
            return;
        }
        if status == 100 {
            self.continue_is_due = false;
        }
        response::push_status_line(status, out);
        out.extend_from_slice(fields.lines());
        out.extend_from_slice(b"\r\n");
    }

    /// Appends the head of the answer and decides how its body leaves. `body_len` is the body's
    /// size when known, unless the head announces one itself; `close` ends the connection after it.
    //= rfc9112#6
    pub fn push_head(
        &mut self,
        head: &ResponseHead,
        body_len: Option<u64>,
        close: bool,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) -> ResponseFraming {
        let (status, body_len) = match head {
            ResponseHead::Prepared(prepared) => {
                out.extend_from_slice(prepared.lines());
                (prepared.status(), Some(prepared.body_bytes()))
            }
            ResponseHead::Fields(status, fields) => {
                response::push_status_line(*status, out);
                out.extend_from_slice(fields.lines());
                if let (Some(len), false) = (body_len, status::is_bodiless(*status)) {
                    response::push_content_length(len, out);
                }
                (*status, body_len)
            }
        };
        // The client may send its body or not after this: the connection cannot be read on.
        if close || std::mem::take(&mut self.continue_is_due) {
            self.keep_alive = false;
        }
        self.writing = match body_len {
            _ if self.is_head_method || status::is_bodiless(status) => Writing::NoBody,
            Some(0) => Writing::NoBody,
            Some(len) => Writing::Length(len),
            None if self.is_http10 => Writing::UntilClose,
            None => Writing::Chunked,
        };
        match self.writing {
            Writing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Writing::UntilClose => self.keep_alive = false,
            _ => {}
        }
        if let Some(alt_svc) = &self.alt_svc
            && head.fields().value(b"Alt-Svc").is_none()
        {
            out.extend_from_slice(b"Alt-Svc: ");
            out.extend_from_slice(alt_svc);
            out.extend_from_slice(b"\r\n");
        }
        if !self.keep_alive {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if self.is_http10 {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        out.extend_from_slice(date.ending_head());
        match self.writing {
            Writing::Length(len) => ResponseFraming::Length(len),
            Writing::Chunked => ResponseFraming::Chunked,
            Writing::UntilClose => ResponseFraming::UntilClose,
            Writing::NoBody | Writing::Nothing | Writing::Done => ResponseFraming::Nothing,
        }
    }

    /// Appends the head of an answer after which the connection carries raw bytes both ways.
    //= rfc9110#7.8
    pub fn push_tunnel_head(
        &mut self,
        status: u16,
        fields: &Fields,
        date: &DateLine,
        out: &mut Vec<u8>,
    ) -> ResponseFraming {
        response::push_status_line(status, out);
        out.extend_from_slice(fields.lines());
        if status == 101 {
            out.extend_from_slice(b"Connection: upgrade\r\n");
        }
        out.extend_from_slice(date.ending_head());
        self.keep_alive = false;
        self.continue_is_due = false;
        self.reading = Http1ReadState::Raw;
        self.writing = Writing::UntilClose;
        self.awaited = Deadline::None;
        ResponseFraming::Tunnel
    }

    /// Counts `len` body bytes about to be sent and appends what goes before them. `None` when that
    /// is more than was announced.
    pub fn push_data_prefix(&mut self, len: u64, out: &mut Vec<u8>) -> Option<()> {
        match &mut self.writing {
            Writing::Length(left) => *left = left.checked_sub(len)?,
            Writing::Chunked => {
                crate::digits::push_hex(len, out);
                out.extend_from_slice(b"\r\n");
            }
            Writing::UntilClose => {}
            Writing::NoBody | Writing::Nothing | Writing::Done => return None,
        }
        Some(())
    }

    /// True when pieces of body have something after them.
    pub fn is_chunked(&self) -> bool {
        self.writing == Writing::Chunked
    }

    /// Appends what goes after a piece of body.
    pub fn push_data_suffix(&self, out: &mut Vec<u8>) {
        if self.writing == Writing::Chunked {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Ends the answer's body. Returns false when bytes are missing: the connection must break.
    //= rfc9112#7.1.2
    pub fn push_end(&mut self, trailers: Option<&Fields>, out: &mut Vec<u8>) -> bool {
        let is_whole = match self.writing {
            Writing::Length(left) => left == 0,
            Writing::Chunked => {
                out.extend_from_slice(b"0\r\n");
                out.extend_from_slice(trailers.map_or(&[][..], Fields::lines));
                out.extend_from_slice(b"\r\n");
                true
            }
            _ => true,
        };
        self.writing = Writing::Done;
        is_whole
    }
}
