//! Frames as bytes: a header of nine bytes, and a payload (RFC 9113 sections 4 and 6).
//!
//! ```text
//! 0        3      4       5                9
//! | length | kind | flags | stream (31 bit) | payload ...
//! ```

use crate::h2::conn::Http2ConnectionError;

/// What a client sends first.
//= rfc9113#3.4
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Size of a frame's header.
pub const HEADER_BYTES: usize = 9;
/// Largest payload either side may send before anyone says otherwise; also the largest taken here.
//= rfc9113#4.2
pub(crate) const PAYLOAD_BYTES: usize = 16 * 1024;
/// The size of every window before anyone says otherwise.
//= rfc9113#6.9.2
pub(crate) const WINDOW_BYTES: i64 = 65_535;
/// The largest window.
pub(crate) const WINDOW_BYTES_MAX: i64 = (1 << 31) - 1;
/// The largest stream number.
pub(crate) const STREAM_MAX: u32 = (1 << 31) - 1;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
//= rfc9218#7.1
pub(crate) const PRIORITY_UPDATE: u8 = 0x10;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) len: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Header {
    /// The header at the front of `input`, if all of it is there.
    pub(crate) fn read(input: &[u8]) -> Option<Header> {
        let bytes = input.first_chunk::<HEADER_BYTES>()?;
        Some(Header {
            len: usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]),
            kind: bytes[3],
            flags: bytes[4],
            stream: u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]) & STREAM_MAX,
        })
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Why a stream or a connection ends.
//= rfc9113#7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Http2ErrorCode {
    /// It is over, and well.
    NoError = 0,
    /// The other side broke the protocol.
    Protocol = 1,
    /// Something here went wrong.
    Internal = 2,
    /// The other side sent more than its window.
    FlowControl = 3,
    /// A frame came on a stream that was over.
    StreamClosed = 5,
    /// A frame has a size it cannot have.
    FrameSize = 6,
    /// The request was not looked at; it may be sent again.
    Refused = 7,
    /// Nobody wants the rest.
    Cancel = 8,
    /// A field block is malformed.
    Compression = 9,
    /// The other side does too much of something.
    Calm = 11,
}

/// A frame's header as bytes.
pub(crate) fn header(len: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEADER_BYTES] {
    debug_assert!(len < 1 << 24, "the length has three bytes");
    let [_, high, middle, low] = (len as u32).to_be_bytes();
    let [a, b, c, d] = stream.to_be_bytes();
    [high, middle, low, kind, flags, a, b, c, d]
}

pub(crate) fn push_header(len: usize, kind: u8, flags: u8, stream: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(len, kind, flags, stream));
}

/// Writes the length of a frame's payload into its header, which begins at `at`.
pub(crate) fn set_len(at: usize, len: usize, out: &mut [u8]) {
    let bytes = (len as u32).to_be_bytes();
    if let Some(place) = out.get_mut(at..at + 3) {
        place.copy_from_slice(&bytes[1..]);
    }
}

pub(crate) fn push_setting(id: u16, value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn push_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    debug_assert!(increment > 0 && increment <= STREAM_MAX);
    push_header(4, WINDOW_UPDATE, 0, stream, out);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// All that is said to a client there is no room for: it may try again, nothing was done.
//= rfc9113#3.4
//= rfc9113#6.8
pub(crate) fn push_refusal(reason: &str, out: &mut Vec<u8>) {
    push_header(0, SETTINGS, 0, 0, out);
    push_goaway(0, Http2ErrorCode::Calm, reason, out);
}

pub(crate) fn push_reset(stream: u32, code: Http2ErrorCode, out: &mut Vec<u8>) {
    push_header(4, RST_STREAM, 0, stream, out);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

pub(crate) fn push_goaway(last: u32, code: Http2ErrorCode, text: &str, out: &mut Vec<u8>) {
    push_header(8 + text.len(), GOAWAY, 0, 0, out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The first four bytes as a number; the payload has been checked to have them.
pub(crate) fn number(payload: &[u8]) -> u32 {
    payload
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Answers a PING that is no answer itself.
//= rfc9113#6.7
pub(super) fn answer_ping(
    header: Header,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Http2ConnectionError> {
    if header.stream != 0 {
        return Err(Http2ConnectionError::protocol("PING on a stream"));
    }
    if payload.len() != 8 {
        return Err(Http2ConnectionError::size("PING has not eight bytes"));
    }
    if !header.has(ACK) {
        push_header(8, PING, ACK, 0, out);
        out.extend_from_slice(payload);
    }
    Ok(())
}
