//! DATA: bodies of requests, taken as they come, and the windows they come through.

use crate::h2::budget::Flood;
use crate::h2::conn::{Conn, Desk, Event, Failure, Given, Stage, Step, Took};
use crate::h2::frame::{self, Code, HEADER_BYTES, Header};
use crate::h2::stream::{Receiving, Writing};
use crate::limits::{H2_CONNECTION_WINDOW_BYTES, H2_TINY_DATA_BYTES};

/// What is left of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    stream: u32,
    left: usize,
    padding: usize,
    ends: bool,
}

impl Conn {
    /// The header of a DATA frame, and how long its padding is; the payload is taken as it comes.
    //= rfc9113#6.1
    pub(super) fn begin_data(&mut self, header: Header, input: &[u8], desk: &mut Desk<'_>) -> Step {
        if header.stream == 0 {
            return Err(Failure::protocol("DATA without a stream"));
        }
        if header.stream > self.last_stream {
            return Err(Failure::protocol("DATA on a stream that was not opened"));
        }
        let (used, padding) = match header.has(frame::PADDED) {
            false => (HEADER_BYTES, 0),
            true if header.len == 0 => return Err(Failure::size("padded DATA is too short")),
            true => match input.get(HEADER_BYTES) {
                None => return Ok(Took::NeedMore),
                Some(&padding) => (HEADER_BYTES + 1, usize::from(padding)),
            },
        };
        let Some(data_len) = (header.len + HEADER_BYTES - used).checked_sub(padding) else {
            return Err(Failure::protocol("DATA has more padding than bytes"));
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
        self.stage = Stage::Data(Payload {
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
    fn count_received(&mut self, len: i64, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.receive_window -= len;
        if self.receive_window < 0 {
            let reason = "DATA beyond the window of the connection";
            return Err(Failure::of(Code::FlowControl, reason));
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
        desk: &mut Desk<'_>,
    ) -> Given {
        let id = header.stream;
        let Some(stream) = self.streams.find(id) else {
            if self.streams.was_reset(id) || self.is_beyond(id) {
                return Ok(None);
            }
            self.reset_by_fault(id, Code::StreamClosed, desk)?;
            return Ok(None);
        };
        stream.receive_window -= header.len as i64;
        let window_left = stream.receive_window;
        let (is_read, left) = match &mut stream.receiving {
            Receiving::Body(left) => (true, left),
            Receiving::Unread(left) => (false, left),
            Receiving::Ended => {
                let reason = "DATA after the end of the request";
                self.reset_by_fault(id, Code::StreamClosed, desk)?;
                return Ok(Some(Event::Broken(id, reason)));
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
            () if window_left < 0 => (Code::FlowControl, "DATA beyond the window of its stream"),
            () if !fits => (
                Code::Protocol,
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
                    self.reset(id, Code::NoError, desk.out);
                }
                return Ok(None);
            }
        };
        self.reset_by_fault(id, code, desk)?;
        Ok(is_read.then_some(Event::Broken(id, reason)))
    }

    pub(super) fn read_data(&mut self, payload: Payload, input: &[u8]) -> Step {
        let Payload {
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
            self.stage = Stage::Frames;
            if ends {
                self.end_request(id);
            }
            return Ok(match ends && is_read {
                true => Took::Event(0, Event::BodyEnd(id, Vec::new())),
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
        self.stage = Stage::Data(Payload {
            left: left - data,
            padding: padding - skipped,
            ..payload
        });
        Ok(match is_seen {
            true => Took::Event(data, Event::Data(id, data)),
            false => Took::Bytes(data + skipped),
        })
    }
}
