//! What the other side says of itself: SETTINGS and windows.

use crate::h2::budget::Flood;
use crate::h2::client::conn::{Given, Http2Client, Http2ClientEvent, Http2StreamFault};
use crate::h2::conn::Http2ConnectionError;
use crate::h2::frame::{self, Header, Http2ErrorCode, WINDOW_BYTES_MAX};
use crate::h2::settings::{
    ENABLE_CONNECT_PROTOCOL, ENABLE_PUSH, HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE, settings_in,
};
use crate::limits::H2_STREAMS_MAX;

const TOO_LARGE: &str = "a window would become too large";

impl Http2Client {
    pub(super) fn handle_settings(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Given {
        self.budgets.take(Flood::Settings, now_ms)?;
        let Some(settings) = settings_in(header, payload)? else {
            return Ok(None);
        };
        for (id, value) in settings {
            self.apply(id, value)?;
        }
        self.is_greeted = true;
        frame::push_header(0, frame::SETTINGS, frame::ACK, 0, out);
        Ok(Some(Http2ClientEvent::Settings))
    }

    //= rfc9113#6.5.2
    fn apply(&mut self, id: u16, value: u32) -> Result<(), Http2ConnectionError> {
        match id {
            HEADER_TABLE_SIZE => {
                let size = usize::try_from(value).unwrap_or(usize::MAX);
                self.encoder.resize(size);
            }
            ENABLE_PUSH if value != 0 => {
                return Err(Http2ConnectionError::protocol("ENABLE_PUSH of a server"));
            }
            MAX_CONCURRENT_STREAMS => {
                let allowed = usize::try_from(value).unwrap_or(usize::MAX);
                self.streams_max = allowed.min(H2_STREAMS_MAX);
            }
            INITIAL_WINDOW_SIZE => return self.change_windows(i64::from(value)),
            MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                return Err(Http2ConnectionError::protocol(
                    "MAX_FRAME_SIZE is out of its range",
                ));
            }
            //= rfc8441#3
            ENABLE_CONNECT_PROTOCOL => match value {
                0 if self.allows_connect => {
                    return Err(Http2ConnectionError::protocol(
                        "ENABLE_CONNECT_PROTOCOL is taken back",
                    ));
                }
                0 | 1 => self.allows_connect = value == 1,
                _ => {
                    return Err(Http2ConnectionError::protocol(
                        "ENABLE_CONNECT_PROTOCOL is neither 0 nor 1",
                    ));
                }
            },
            // Frames of the smallest size any side must take are long enough.
            _ => {}
        }
        Ok(())
    }

    //= rfc9113#6.9.2
    fn change_windows(&mut self, bytes: i64) -> Result<(), Http2ConnectionError> {
        let too_large = Http2ConnectionError::of(Http2ErrorCode::FlowControl, TOO_LARGE);
        if bytes > WINDOW_BYTES_MAX {
            return Err(too_large);
        }
        let change = bytes - self.peer_window_bytes;
        self.peer_window_bytes = bytes;
        for stream in &mut self.streams {
            stream.send_window += change;
            if stream.send_window > WINDOW_BYTES_MAX {
                return Err(too_large);
            }
        }
        Ok(())
    }

    //= rfc9113#6.9
    pub(super) fn handle_window_update(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Given {
        if payload.len() != 4 {
            return Err(Http2ConnectionError::size(
                "WINDOW_UPDATE has not four bytes",
            ));
        }
        let increment = i64::from(frame::number(payload) & frame::STREAM_MAX);
        if header.stream == 0 {
            self.send_window += increment;
            return match increment {
                0 => Err(Http2ConnectionError::protocol("WINDOW_UPDATE of nothing")),
                _ if self.send_window > WINDOW_BYTES_MAX => Err(Http2ConnectionError::of(
                    Http2ErrorCode::FlowControl,
                    TOO_LARGE,
                )),
                _ => Ok(Some(Http2ClientEvent::Window(0))),
            };
        }
        self.check_opened(header)?;
        let Some(stream) = self.find(header.stream) else {
            return Ok(None);
        };
        stream.send_window += increment;
        let (code, reason) = match increment {
            0 => (Http2ErrorCode::Protocol, "WINDOW_UPDATE of nothing"),
            _ if stream.send_window > WINDOW_BYTES_MAX => (Http2ErrorCode::FlowControl, TOO_LARGE),
            _ => return Ok(Some(Http2ClientEvent::Window(header.stream))),
        };
        self.reset(header.stream, code, out);
        let fault = Http2StreamFault::Malformed(reason);
        Ok(Some(Http2ClientEvent::Broken(header.stream, fault)))
    }
}
