//! What the client says of itself and of its streams: SETTINGS, PING, windows, priorities, resets.

use crate::h2::budget::Flood;
use crate::h2::conn::{FrameReadContext, Given, Http2Connection, Http2ConnectionError, Http2Event};
use crate::h2::frame::{self, Header, Http2ErrorCode, WINDOW_BYTES_MAX};
use crate::limits::{H2_EARLY_PRIORITIES_MAX, H2_STREAMS_MAX};
use crate::priority::Priority;

pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;
//= rfc8441#3
pub(super) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
//= rfc9218#2.1
const NO_RFC7540_PRIORITIES: u16 = 9;

/// The settings of a frame; `None` where it acknowledges ours.
//= rfc9113#6.5
pub(super) fn settings_in(
    header: Header,
    payload: &[u8],
) -> Result<Option<impl Iterator<Item = (u16, u32)>>, Http2ConnectionError> {
    if header.stream != 0 {
        return Err(Http2ConnectionError::protocol("SETTINGS on a stream"));
    }
    if header.has(frame::ACK) {
        return match payload {
            [] => Ok(None),
            _ => Err(Http2ConnectionError::size(
                "an acknowledgement of SETTINGS has a payload",
            )),
        };
    }
    let (settings, rest) = payload.as_chunks::<6>();
    if !rest.is_empty() {
        return Err(Http2ConnectionError::size(
            "SETTINGS has a piece of a setting",
        ));
    }
    let read = |setting: &[u8; 6]| {
        let id = u16::from_be_bytes([setting[0], setting[1]]);
        (id, frame::number(&setting[2..]))
    };
    Ok(Some(settings.iter().map(read)))
}

impl Http2Connection {
    /// Our settings; what they do not name has the protocol's default.
    pub(super) fn push_settings(&self, out: &mut Vec<u8>) {
        let start = out.len();
        frame::push_header(0, frame::SETTINGS, 0, 0, out);
        let head_bytes = u32::try_from(self.limits.head_bytes).unwrap_or(u32::MAX);
        frame::push_setting(MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX as u32, out);
        frame::push_setting(MAX_HEADER_LIST_SIZE, head_bytes, out);
        frame::push_setting(NO_RFC7540_PRIORITIES, 1, out);
        if self.limits.h2_connect_protocol {
            frame::push_setting(ENABLE_CONNECT_PROTOCOL, 1, out);
        }
        let len = out.len() - start - frame::HEADER_BYTES;
        frame::set_len(start, len, out);
    }

    //= rfc9113#6.5
    pub(super) fn handle_settings(
        &mut self,
        header: Header,
        payload: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        self.budgets.take(Flood::Settings, desk.now_ms)?;
        let Some(settings) = settings_in(header, payload)? else {
            return Ok(None);
        };
        for (id, value) in settings {
            self.apply(id, value)?;
        }
        frame::push_header(0, frame::SETTINGS, frame::ACK, 0, desk.out);
        Ok(None)
    }

    //= rfc9113#6.5.2
    fn apply(&mut self, id: u16, value: u32) -> Result<(), Http2ConnectionError> {
        match id {
            HEADER_TABLE_SIZE => {
                self.encoder
                    .resize(usize::try_from(value).unwrap_or(usize::MAX));
            }
            ENABLE_PUSH if value > 1 => {
                return Err(Http2ConnectionError::protocol(
                    "ENABLE_PUSH is neither 0 nor 1",
                ));
            }
            INITIAL_WINDOW_SIZE => return self.change_windows(i64::from(value)),
            MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                return Err(Http2ConnectionError::protocol(
                    "MAX_FRAME_SIZE is out of its range",
                ));
            }
            //= rfc8441#3
            ENABLE_CONNECT_PROTOCOL if value > 1 => {
                return Err(Http2ConnectionError::protocol(
                    "ENABLE_CONNECT_PROTOCOL is neither 0 nor 1",
                ));
            }
            //= rfc9218#2.1
            NO_RFC7540_PRIORITIES if value > 1 => {
                return Err(Http2ConnectionError::protocol(
                    "NO_RFC7540_PRIORITIES is neither 0 nor 1",
                ));
            }
            // Frames of the smallest size any side must take are long enough.
            _ => {}
        }
        Ok(())
    }

    //= rfc9113#6.9.2
    fn change_windows(&mut self, bytes: i64) -> Result<(), Http2ConnectionError> {
        const TOO_LARGE: &str = "a window would become too large";
        if bytes > WINDOW_BYTES_MAX {
            return Err(Http2ConnectionError::of(
                Http2ErrorCode::FlowControl,
                TOO_LARGE,
            ));
        }
        let change = bytes - self.peer_window_bytes;
        self.peer_window_bytes = bytes;
        for stream in self.streams.iter_mut() {
            stream.send_window += change;
            if stream.send_window > WINDOW_BYTES_MAX {
                return Err(Http2ConnectionError::of(
                    Http2ErrorCode::FlowControl,
                    TOO_LARGE,
                ));
            }
        }
        Ok(())
    }

    //= rfc9113#6.7
    pub(super) fn handle_ping(
        &mut self,
        header: Header,
        payload: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        self.budgets.take(Flood::Ping, desk.now_ms)?;
        frame::answer_ping(header, payload, desk.out)?;
        Ok(None)
    }

    //= rfc9113#6.9
    pub(super) fn handle_window_update(
        &mut self,
        header: Header,
        payload: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        const TOO_LARGE: &str = "a window would become too large";
        const NOTHING: &str = "WINDOW_UPDATE of nothing";
        if payload.len() != 4 {
            return Err(Http2ConnectionError::size(
                "WINDOW_UPDATE has not four bytes",
            ));
        }
        self.budgets.take(Flood::Window, desk.now_ms)?;
        let increment = i64::from(frame::number(payload) & frame::STREAM_MAX);
        if header.stream == 0 {
            self.send_window += increment;
            return match increment {
                0 => Err(Http2ConnectionError::protocol(NOTHING)),
                _ if self.send_window > WINDOW_BYTES_MAX => Err(Http2ConnectionError::of(
                    Http2ErrorCode::FlowControl,
                    TOO_LARGE,
                )),
                _ => Ok(None),
            };
        }
        if header.stream > self.last_stream {
            return Err(Http2ConnectionError::protocol(
                "WINDOW_UPDATE on a stream that was not opened",
            ));
        }
        let Some(stream) = self.streams.find(header.stream) else {
            if increment == 0 && !self.streams.was_reset(header.stream) {
                self.reset_by_fault(header.stream, Http2ErrorCode::Protocol, desk)?;
            }
            return Ok(None);
        };
        stream.send_window += increment;
        let (code, reason) = match increment {
            0 => (Http2ErrorCode::Protocol, NOTHING),
            _ if stream.send_window > WINDOW_BYTES_MAX => (Http2ErrorCode::FlowControl, TOO_LARGE),
            _ => return Ok(None),
        };
        self.reset_by_fault(header.stream, code, desk)?;
        Ok(Some(Http2Event::Broken(header.stream, reason)))
    }

    //= rfc9113#6.4
    pub(super) fn handle_reset(&mut self, header: Header, payload: &[u8], now_ms: u64) -> Given {
        let id = header.stream;
        if id == 0 || id > self.last_stream {
            return Err(Http2ConnectionError::protocol(
                "RST_STREAM on a stream that was not opened",
            ));
        }
        if payload.len() != 4 {
            return Err(Http2ConnectionError::size("RST_STREAM has not four bytes"));
        }
        self.budgets.take(Flood::Resets, now_ms)?;
        if self.streams.find(id).is_none() {
            return Ok(None);
        }
        self.streams.remove(id);
        self.streams.note_left(id);
        Ok(Some(Http2Event::Left(id)))
    }

    /// Priorities of the old kind: read for their faults alone.
    //= rfc9113#6.3
    pub(super) fn handle_priority(
        &mut self,
        header: Header,
        payload: &[u8],
        desk: &mut FrameReadContext<'_>,
    ) -> Given {
        let id = header.stream;
        if id == 0 {
            return Err(Http2ConnectionError::protocol("PRIORITY without a stream"));
        }
        self.budgets.take(Flood::Empty, desk.now_ms)?;
        let (code, reason) = match payload.len() {
            5 if frame::number(payload) & frame::STREAM_MAX == id => {
                (Http2ErrorCode::Protocol, "a stream is to depend on itself")
            }
            5 => return Ok(None),
            _ => (Http2ErrorCode::FrameSize, "PRIORITY has not five bytes"),
        };
        if self.streams.find(id).is_none() {
            return Err(Http2ConnectionError::of(code, reason));
        }
        self.reset_by_fault(id, code, desk)?;
        Ok(Some(Http2Event::Broken(id, reason)))
    }

    //= rfc9218#7.1
    pub(super) fn handle_priority_update(
        &mut self,
        header: Header,
        payload: &[u8],
        now_ms: u64,
    ) -> Given {
        if header.stream != 0 {
            return Err(Http2ConnectionError::protocol(
                "PRIORITY_UPDATE on a stream",
            ));
        }
        let Some((id, value)) = payload.split_at_checked(4) else {
            return Err(Http2ConnectionError::size("PRIORITY_UPDATE is too short"));
        };
        let id = frame::number(id) & frame::STREAM_MAX;
        if id.is_multiple_of(2) {
            return Err(Http2ConnectionError::protocol(
                "PRIORITY_UPDATE of a stream no client opens",
            ));
        }
        self.budgets.take(Flood::Empty, now_ms)?;
        let priority = Priority::read(value);
        if let Some(stream) = self.streams.find(id) {
            stream.priority = priority;
        } else if id > self.last_stream {
            self.early_priorities.retain(|(early, _)| *early != id);
            if self.early_priorities.len() < H2_EARLY_PRIORITIES_MAX {
                self.early_priorities.push((id, priority));
            }
        }
        Ok(None)
    }

    /// What was said of a stream before it was opened.
    pub(super) fn take_early_priority(&mut self, id: u32) -> Option<Priority> {
        if self.early_priorities.is_empty() {
            return None;
        }
        let found = self.early_priorities.iter().find(|(early, _)| *early == id);
        let priority = found.map(|(_, priority)| *priority);
        // Streams below this one will not be opened any more.
        self.early_priorities.retain(|(early, _)| *early > id);
        if self.early_priorities.is_empty() {
            self.early_priorities = Vec::new();
        }
        priority
    }
}
