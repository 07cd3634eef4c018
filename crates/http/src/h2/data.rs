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
    stream: u32,
    left: usize,
    padding: usize,
    ends: bool,
}

impl Http2Connection {
    /// The header of a DATA frame, and how long its padding is; the payload is taken as it comes.
    //= rfc9113#6.1
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
        let (used, padding) = match header.has(frame::PADDED) {
            false => (HEADER_BYTES, 0),
            true if header.len == 0 => {
                return Err(Http2ConnectionError::size("padded DATA is too short"));
            }
            true => match input.get(HEADER_BYTES) {
                None => return Ok(Took::NeedMore),
                Some(&padding) => (HEADER_BYTES + 1, usize::from(padding)),
            },
        };
        let Some(data_len) = (header.len + HEADER_BYTES - used).checked_sub(padding) else {
            return Err(Http2ConnectionError::protocol(
                "DATA has more padding than bytes",
            ));
        };
        let ends = header.has(frame::END_STREAM);
        if !ends && data_len < H2_TINY_DATA_BYTES {
            let flood = match data_len {
                0 => Flood::Empty,
                _ => Flood::TinyData,
            };
            self.budgets.take(flood, desk.now_ms)?;
        }
        self.count_received(header.len as i64, desk.out)?;
        self.stage = Http2ReadState::Data(DataFramePayload {
            stream: header.stream,
            left: data_len,
            padding,
            ends,
        });
        Ok(match self.open_to_data(header, data_len, ends, desk)? {
            None => Took::Bytes(used),
            Some(event) => Took::Event(used, event),
        })
    }

    /// The window of the connection gives back at once what it took: how much is held is bounded by
    /// the windows of its streams, and one that nobody reads must not stop the others.
    //= rfc9113#6.9
    fn count_received(&mut self, len: i64, out: &mut Vec<u8>) -> Result<(), Http2ConnectionError> {
        self.receive_window -= len;
        if self.receive_window < 0 {
            let reason = "DATA beyond the window of the connection";
            return Err(Http2ConnectionError::of(
                Http2ErrorCode::FlowControl,
                reason,
            ));
        }
        if self.receive_window < H2_CONNECTION_WINDOW_BYTES / 2 {
            let increment = H2_CONNECTION_WINDOW_BYTES - self.receive_window;
            frame::push_window_update(0, increment as u32, out);
            self.receive_window += increment;
        }
        Ok(())
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

    pub(super) fn read_data(&mut self, payload: DataFramePayload, input: &[u8]) -> Step {
        let DataFramePayload {
            stream: id,
            left,
            padding,
            ends,
        } = payload;
        let is_read = matches!(
            self.streams.find(id).map(|stream| stream.receiving),
            Some(Receiving::Body(_))
        );
        if left + padding == 0 {
            self.stage = Http2ReadState::Frames;
            if ends {
                self.end_request(id);
            }
            return Ok(match ends && is_read {
                true => Took::Event(0, Http2Event::BodyEnd(id, Vec::new())),
                false => Took::Bytes(0),
            });
        }
        if input.is_empty() {
            return Ok(Took::NeedMore);
        }
        let data = left.min(input.len());
        let is_seen = is_read && data > 0;
        // What is used last is body, so padding behind it is left for the next step.
        let skipped = match is_seen {
            true => 0,
            false => padding.min(input.len() - data),
        };
        self.stage = Http2ReadState::Data(DataFramePayload {
            left: left - data,
            padding: padding - skipped,
            ..payload
        });
        Ok(match is_seen {
            true => Took::Event(data, Http2Event::Data(id, data)),
            false => Took::Bytes(data + skipped),
        })
    }
}
