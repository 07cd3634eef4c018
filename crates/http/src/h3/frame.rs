//! Frames as bytes (RFC 9114 section 7), and the integers they are made of (RFC 9000 section 16).
//!
//! ```text
//! frame     type (integer), length (integer), payload
//! integer   the two high bits of the first byte say how many bytes it has: 1, 2, 4 or 8
//! ```

/// Why a stream or a connection is ended (RFC 9114 section 8.1, RFC 9204 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Http3ErrorCode {
    /// H3_NO_ERROR
    NoError = 0x100,
    /// H3_GENERAL_PROTOCOL_ERROR
    Protocol = 0x101,
    /// H3_INTERNAL_ERROR
    Internal = 0x102,
    /// H3_STREAM_CREATION_ERROR
    StreamCreation = 0x103,
    /// H3_CLOSED_CRITICAL_STREAM
    ClosedCriticalStream = 0x104,
    /// H3_FRAME_UNEXPECTED
    FrameUnexpected = 0x105,
    /// H3_FRAME_ERROR
    Frame = 0x106,
    /// H3_EXCESSIVE_LOAD
    ExcessiveLoad = 0x107,
    /// H3_ID_ERROR
    Id = 0x108,
    /// H3_SETTINGS_ERROR
    Settings = 0x109,
    /// H3_MISSING_SETTINGS
    MissingSettings = 0x10a,
    /// H3_REQUEST_REJECTED
    RequestRejected = 0x10b,
    /// H3_REQUEST_CANCELLED
    RequestCancelled = 0x10c,
    /// H3_REQUEST_INCOMPLETE
    RequestIncomplete = 0x10d,
    /// H3_MESSAGE_ERROR
    Message = 0x10e,
    /// H3_CONNECT_ERROR
    Connect = 0x10f,
    /// QPACK_DECOMPRESSION_FAILED
    Decompression = 0x200,
    /// QPACK_ENCODER_STREAM_ERROR
    EncoderStream = 0x201,
    /// QPACK_DECODER_STREAM_ERROR
    DecoderStream = 0x202,
}

/// DATA
pub const DATA: u64 = 0;
/// HEADERS
pub const HEADERS: u64 = 1;
/// CANCEL_PUSH
pub const CANCEL_PUSH: u64 = 3;
/// SETTINGS
pub const SETTINGS: u64 = 4;
/// PUSH_PROMISE
pub const PUSH_PROMISE: u64 = 5;
/// GOAWAY
pub const GOAWAY: u64 = 7;
/// MAX_PUSH_ID
pub const MAX_PUSH_ID: u64 = 0xd;
/// PRIORITY_UPDATE for a request (RFC 9218 section 7.2)
pub const PRIORITY_UPDATE: u64 = 0xf0700;
/// PRIORITY_UPDATE for a push
pub const PRIORITY_UPDATE_PUSH: u64 = 0xf0701;

/// The stream of the other side's SETTINGS, and of what else concerns the whole connection.
pub const CONTROL_STREAM: u64 = 0;
/// A stream that only a server may open.
pub const PUSH_STREAM: u64 = 1;
/// What the other side's encoder says of its table.
pub const ENCODER_STREAM: u64 = 2;
/// What the other side's decoder says of ours.
pub const DECODER_STREAM: u64 = 3;

/// The largest size of a field section that is read (SETTINGS_MAX_FIELD_SECTION_SIZE).
pub const MAX_FIELD_SECTION_SIZE: u64 = 6;
/// Extended CONNECT may be used (SETTINGS_ENABLE_CONNECT_PROTOCOL, RFC 9220).
pub const ENABLE_CONNECT_PROTOCOL: u64 = 8;

/// Types of frames of HTTP/2 that mean nothing here and may not come.
//= rfc9114#7.2.8
pub fn is_of_http2(kind: u64) -> bool {
    matches!(kind, 2 | 6 | 8 | 9)
}

/// Settings of HTTP/2 that may not come.
//= rfc9114#7.2.4.1
pub fn is_setting_of_http2(id: u64) -> bool {
    matches!(id, 0 | 2..=5)
}

/// The largest integer there is.
pub const INTEGER_MAX: u64 = (1 << 62) - 1;
/// Bytes that the header of a frame may have.
pub const HEADER_BYTES_MAX: usize = 16;
/// Bytes of a DATA frame's header, as it is written here: its length takes four.
pub const DATA_HEADER_BYTES: usize = 5;

/// Takes an integer off the front of `input`; `None` when it is not all there.
//= rfc9000#16
pub fn take_integer(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    let len = 1usize << (first >> 6);
    let (bytes, rest) = input.split_at_checked(len)?;
    *input = rest;
    let mut value = u64::from(first & 0x3f);
    for byte in &bytes[1..] {
        value = value << 8 | u64::from(*byte);
    }
    Some(value)
}

/// Appends an integer, in as few bytes as there are.
pub fn push_integer(value: u64, out: &mut Vec<u8>) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Appends a frame.
pub fn push_frame(kind: u64, payload: &[u8], out: &mut Vec<u8>) {
    push_integer(kind, out);
    push_integer(payload.len() as u64, out);
    out.extend_from_slice(payload);
}

/// The header of a DATA frame of `len` bytes, in a known size: it is written before what follows is
/// there.
pub fn data_header(len: usize) -> [u8; DATA_HEADER_BYTES] {
    debug_assert!(len < 1 << 30);
    let [a, b, c, d] = (len as u32 | 0x8000_0000).to_be_bytes();
    [DATA as u8, a, b, c, d]
}

/// Begins a HEADERS frame whose length is not known yet; [`end_headers`] sets it.
pub fn begin_headers(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[HEADERS as u8, 0, 0, 0, 0]);
    at
}

/// Ends the HEADERS frame that began at `at`.
pub fn end_headers(at: usize, out: &mut [u8]) {
    let len = out.len() - at - DATA_HEADER_BYTES;
    debug_assert!(len < 1 << 30);
    let len = (len as u32 | 0x8000_0000).to_be_bytes();
    out[at + 1..at + DATA_HEADER_BYTES].copy_from_slice(&len);
}

/// A frame's header as it comes, byte by byte if need be.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeaderReader {
    bytes: [u8; HEADER_BYTES_MAX],
    count: usize,
}

impl HeaderReader {
    /// Takes from `input` what belongs to the header. `Some` once it is whole: type and length.
    pub fn read(&mut self, input: &mut &[u8]) -> Option<(u64, u64)> {
        loop {
            let mut held = &self.bytes[..self.count];
            if let Some(kind) = take_integer(&mut held)
                && let Some(len) = take_integer(&mut held)
            {
                self.count = 0;
                return Some((kind, len));
            }
            let (first, rest) = input.split_first()?;
            // Two integers have at most as many bytes as there is room.
            self.bytes[self.count] = *first;
            self.count += 1;
            *input = rest;
        }
    }

    /// True in the middle of a header.
    pub fn is_begun(&self) -> bool {
        self.count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc9000#appendix-A.1
    #[test]
    fn integers_of_the_examples() {
        for (bytes, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            let mut input = bytes;
            assert_eq!(take_integer(&mut input), Some(value));
            assert!(input.is_empty());
            let mut out = Vec::new();
            push_integer(value, &mut out);
            assert_eq!(out, bytes);
            for end in 0..bytes.len() {
                assert_eq!(take_integer(&mut &bytes[..end]), None);
            }
        }
        assert_eq!(take_integer(&mut &[0x40, 0x25][..]), Some(37), "longer");
    }

    #[test]
    fn header_is_read_however_it_is_cut() {
        let mut bytes = Vec::new();
        push_integer(PRIORITY_UPDATE, &mut bytes);
        push_integer(INTEGER_MAX, &mut bytes);
        for cut in 0..=bytes.len() {
            let mut reader = HeaderReader::default();
            let (mut first, mut second) = bytes.split_at(cut);
            let early = reader.read(&mut first);
            let found = early.or_else(|| reader.read(&mut second));
            assert_eq!(found, Some((PRIORITY_UPDATE, INTEGER_MAX)), "{cut}");
            assert!(!reader.is_begun());
        }
    }

    #[test]
    fn header_written_ahead_is_one_of_data() {
        let mut reader = HeaderReader::default();
        let header = data_header(70_000);
        assert_eq!(reader.read(&mut &header[..]), Some((DATA, 70_000)));
        let mut out = vec![9];
        let at = begin_headers(&mut out);
        out.extend_from_slice(b"abc");
        end_headers(at, &mut out);
        let mut input = &out[1..];
        assert_eq!(reader.read(&mut input), Some((HEADERS, 3)));
        assert_eq!(input, b"abc");
    }
}
