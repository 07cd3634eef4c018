//! DATA: bodies of requests, taken as they come, and the windows they come through.

use crate::h2::budget::Flood;
use crate::h2::conn::{
    FrameReadContext, Given, Http2Connection, Http2ConnectionError, Http2Event, Http2ReadState,
    Step, Took,
};
use crate::h2::frame::{self, HEADER_BYTES, Header, Http2ErrorCode};
use crate::h2::stream::{Receiving, Writing};
use crate::limits::{H2_CONNECTION_WINDOW_BYTES, H2_TINY_DATA_BYTES};

/// What is left of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataFramePayload {
    pub(super) stream: u32,
    /// Bytes of a body, and behind them of padding.
    pub(super) left: usize,
    padding: usize,
    pub(super) ends: bool,
}

/// What comes next of one.
pub(super) enum DataStep {
    NeedMore,
    /// Nothing of it is left.
    Over,
    /// So many bytes of a body, and of padding. What is used last is body where there is any: the
    /// padding behind it is left for the next step.
    Bytes(usize, usize),
}

impl DataFramePayload {
    /// The header of a DATA frame, and how long its padding is. Returns how many bytes that are;
    /// `None` while they are not all there.
    //= rfc9113#6.1
    pub(super) fn begin(
        header: Header,
        input: &[u8],
    ) -> Result<Option<(usize, DataFramePayload)>, Http2ConnectionError> {
        let (used, padding) = match header.has(frame::PADDED) {
            false => (HEADER_BYTES, 0),
            true if header.len == 0 => {
                return Err(Http2ConnectionError::size("padded DATA is too short"));
            }
            true => match input.get(HEADER_BYTES) {
                None => return Ok(None),
                Some(&padding) => (HEADER_BYTES + 1, usize::from(padding)),
            },
        };
        let Some(left) = (header.len + HEADER_BYTES - used).checked_sub(padding) else {
            return Err(Http2ConnectionError::protocol(
                "DATA has more padding than bytes",
            ));
        };
        let payload = DataFramePayload {
            stream: header.stream,
            left,
            padding,
            ends: header.has(frame::END_STREAM),
        };
        Ok(Some((used, payload)))
    }

    /// Goes on with so many bytes of input; `is_read` where somebody wants the body.
    pub(super) fn go_on(&mut self, input_len: usize, is_read: bool) -> DataStep {
        if self.left + self.padding == 0 {
            return DataStep::Over;
        }
        if input_len == 0 {
            return DataStep::NeedMore;
        }
        let data = self.left.min(input_len);
        let skipped = match is_read && data > 0 {
            true => 0,
            false => self.padding.min(input_len - data),
        };
        self.left -= data;
        self.padding -= skipped;
        DataStep::Bytes(data, skipped)
    }
}

/// What the other side may still send on all streams together. It gives back at once what it took:
/// how much is held is bounded by the windows of the streams, and one that nobody reads must not
/// stop the others.
//= rfc9113#6.9
#[derive(Debug)]
pub(super) struct ConnectionWindow(i64);

impl ConnectionWindow {
    pub(super) fn new() -> ConnectionWindow {
        ConnectionWindow(H2_CONNECTION_WINDOW_BYTES)
    }

    /// So many bytes have come.
    pub(super) fn receive(
        &mut self,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Http2ConnectionError> {
        self.0 -= len as i64;
        if self.0 < 0 {
            let reason = "DATA beyond the window of the connection";
            return Err(Http2ConnectionError::of(
                Http2ErrorCode::FlowControl,
                reason,
            ));
        }
        if self.0 < H2_CONNECTION_WINDOW_BYTES / 2 {
            let increment = H2_CONNECTION_WINDOW_BYTES - self.0;
            frame::push_window_update(0, increment as u32, out);
            self.0 += increment;
        }
        Ok(())
    }
}

impl Http2Connection {
    /// The header of a DATA frame; the payload is taken as it comes.
    pub(super) fn begin_data(
        &mut self,
        header: Header,
        input: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Step {
        if header.stream == 0 {
            return Err(Http2ConnectionError::protocol("DATA without a stream"));
        }
        if header.stream > self.last_stream {
            return Err(Http2ConnectionError::protocol(
                "DATA on a stream that was not opened",
            ));
        }
        let Some((used, payload)) = DataFramePayload::begin(header, input)? else {
            return Ok(Took::NeedMore);
        };
        let (data_len, ends) = (payload.left, payload.ends);
        if !ends && data_len < H2_TINY_DATA_BYTES {
            let flood = match data_len {
                0 => Flood::Empty,
                _ => Flood::TinyData,
            };
            self.budgets.take(flood, desk.now_ms)?;
        }
        self.receive_window.receive(header.len, desk.out)?;
        self.stage = Http2ReadState::Data(payload);
        Ok(match self.open_to_data(header, data_len, ends, desk)? {
            None => Took::Bytes(used),
            Some(event) => Took::Event(used, event),
        })
    }

    /// Whether a stream takes a DATA frame; if not, what becomes of the stream.
    fn open_to_data(
        &mut self,
        header: Header,
        data_len: usize,
        ends: bool,
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        let id = header.stream;
        let Some(stream) = self.streams.find(id) else {
            if self.streams.was_reset(id) || self.is_beyond(id) {
                return Ok(None);
            }
            self.reset_by_fault(id, Http2ErrorCode::StreamClosed, desk)?;
            return Ok(None);
        };
        stream.receive_window -= header.len as i64;
        let window_left = stream.receive_window;
        let (is_read, left) = match &mut stream.receiving {
            Receiving::Body(left) => (true, left),
            Receiving::Unread(left) => (false, left),
            Receiving::Ended => {
                let reason = "DATA after the end of the request";
                self.reset_by_fault(id, Http2ErrorCode::StreamClosed, desk)?;
                return Ok(Some(Http2Event::Broken(id, reason)));
            }
        };
        // Padding is nothing anyone will read.
        stream.receive_window += (header.len - data_len) as i64;
        let fits = match left {
            None => true,
            //= rfc9113#8.1.1
            Some(left) => match left.checked_sub(data_len as u64) {
                Some(rest) => {
                    *left = rest;
                    !ends || rest == 0
                }
                None => false,
            },
        };
        let (code, reason) = match () {
            () if window_left < 0 => (
                Http2ErrorCode::FlowControl,
                "DATA beyond the window of its stream",
            ),
            () if !fits => (
                Http2ErrorCode::Protocol,
                "the body has not the size that was announced",
            ),
            () if is_read => {
                stream.continue_is_due = false;
                return Ok(None);
            }
            () => {
                let is_much = window_left < stream.window_bytes / 2;
                let is_much = is_much && stream.sending == Writing::Ended;
                if is_much && !ends {
                    self.reset(id, Http2ErrorCode::NoError, desk.out);
                }
                return Ok(None);
            }
        };
        self.reset_by_fault(id, code, desk)?;
        Ok(is_read.then_some(Http2Event::Broken(id, reason)))
    }

    pub(super) fn read_data(&mut self, mut payload: DataFramePayload, input: &[u8]) -> Step {
        let (id, ends) = (payload.stream, payload.ends);
        let is_read = matches!(
            self.streams.find(id).map(|stream| stream.receiving),
            Some(Receiving::Body(_))
        );
        let step = payload.go_on(input.len(), is_read);
        self.stage = Http2ReadState::Data(payload);
        Ok(match step {
            DataStep::NeedMore => Took::NeedMore,
            DataStep::Over => {
                self.stage = Http2ReadState::Frames;
                if ends {
                    self.end_request(id);
                }
                match ends && is_read {
                    true => Took::Event(0, Http2Event::BodyEnd(id, Vec::new())),
                    false => Took::Bytes(0),
                }
            }
            DataStep::Bytes(data @ 1.., _) if is_read => {
                Took::Event(data, Http2Event::Data(id, data))
            }
            DataStep::Bytes(data, skipped) => Took::Bytes(data + skipped),
        })
    }
}
