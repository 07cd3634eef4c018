//! Frames of HTTP/2: nine bytes before each payload. //= rfc9113#4.1
//!
//! ```text
//! length: 3 bytes | kind: 1 | flags: 1 | stream: 4 (highest bit unused) | payload
//! ```

/// What every connection begins with. //= rfc9113#3.4
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes before a payload.
pub const HEAD_BYTES: usize = 9;
/// The longest payload either side may send without a setting. //= rfc9113#6.5.2
pub const PAYLOAD_BYTES_MAX: usize = 16_384;

/// Kinds of frames.
pub mod kind {
    /// A piece of a body.
    pub const DATA: u8 = 0;
    /// The beginning of a block of fields.
    pub const HEADERS: u8 = 1;
    /// The end of a stream, by error.
    pub const RST_STREAM: u8 = 3;
    /// Settings, or their acknowledgement.
    pub const SETTINGS: u8 = 4;
    /// An answer that nobody asked for.
    pub const PUSH_PROMISE: u8 = 5;
    /// A question whether the other side is there.
    pub const PING: u8 = 6;
    /// No more streams.
    pub const GOAWAY: u8 = 7;
    /// Room for more of bodies.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a block of fields.
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub mod flag {
    /// Settings or a ping are acknowledged.
    pub const ACK: u8 = 1;
    /// Nothing follows on the stream.
    pub const END_STREAM: u8 = 1;
    /// The block of fields is whole.
    pub const END_HEADERS: u8 = 4;
    /// There is padding.
    pub const PADDED: u8 = 8;
    /// There is a priority.
    pub const PRIORITY: u8 = 0x20;
}

/// Settings. //= rfc9113#6.5.2
pub mod setting {
    /// Size of the table of fields.
    pub const TABLE_BYTES: u16 = 1;
    /// May there be pushes?
    pub const PUSH: u16 = 2;
    /// Streams at once.
    pub const STREAM_COUNT: u16 = 3;
    /// The window of each stream.
    pub const WINDOW: u16 = 4;
    /// The longest payload.
    pub const PAYLOAD_BYTES: u16 = 5;
    /// The longest head.
    pub const HEAD_BYTES: u16 = 6;
}

/// Codes of errors. //= rfc9113#7
pub mod code {
    /// No error.
    pub const NONE: u32 = 0;
    /// The protocol was broken.
    pub const PROTOCOL: u32 = 1;
    /// The request was not looked at.
    pub const REFUSED: u32 = 7;
    /// Nobody wants it any more.
    pub const CANCEL: u32 = 8;
}

/// The name of a code, as the standard has it.
pub fn code_name(code: u32) -> &'static str {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES.get(code as usize).unwrap_or(&"an unknown error")
}

/// The beginning of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct H2FrameHeader {
    /// Bytes of the payload.
    pub len: usize,
    /// What it is, of [`kind`].
    pub kind: u8,
    /// Of [`flag`].
    pub flags: u8,
    /// The stream; 0 for the connection.
    pub stream: u32,
}

impl H2FrameHeader {
    /// Reads one; none while it is not whole.
    pub fn read(bytes: &[u8]) -> Option<H2FrameHeader> {
        let (head, _) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let [a, b, c, kind, flags, stream @ ..] = *head;
        Some(H2FrameHeader {
            len: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        })
    }

    /// Has it this flag?
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Writes it.
    pub fn write(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.len as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, d, e, f, g]);
    }
}

/// Appends a whole frame.
pub fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let len = payload.len();
    H2FrameHeader {
        len,
        kind,
        flags,
        stream,
    }
    .write(out);
    out.extend_from_slice(payload);
}
