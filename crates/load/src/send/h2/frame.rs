//! Frames of HTTP/2: nine bytes before each payload. //= rfc9113#4.1
//!
//! ```text
//! length: 3 bytes | kind: 1 | flags: 1 | stream: 4 (highest bit unused) | payload
//! ```

/// What every connection begins with. //= rfc9113#3.4
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes before a payload.
pub(crate) const HEAD_BYTES: usize = 9;
/// The longest payload either side may send without a setting. //= rfc9113#6.5.2
pub(crate) const PAYLOAD_BYTES_MAX: usize = 16_384;

/// Kinds of frames.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Settings. //= rfc9113#6.5.2
pub(crate) mod setting {
    pub(crate) const TABLE_BYTES: u16 = 1;
    pub(crate) const PUSH: u16 = 2;
    pub(crate) const STREAM_COUNT: u16 = 3;
    pub(crate) const WINDOW: u16 = 4;
    pub(crate) const PAYLOAD_BYTES: u16 = 5;
    pub(crate) const HEAD_BYTES: u16 = 6;
}

/// Codes of errors. //= rfc9113#7
pub(crate) mod code {
    pub(crate) const NONE: u32 = 0;
    pub(crate) const PROTOCOL: u32 = 1;
    pub(crate) const REFUSED: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
}

/// The name of a code, as the standard has it.
pub(crate) fn code_name(code: u32) -> &'static str {
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
pub(crate) struct Head {
    pub(crate) len: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Head {
    /// Reads one; none while it is not whole.
    pub(crate) fn read(bytes: &[u8]) -> Option<Head> {
        let (head, _) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let [a, b, c, kind, flags, stream @ ..] = *head;
        Some(Head {
            len: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        })
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.len as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, d, e, f, g]);
    }
}

/// Appends a whole frame.
pub(crate) fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let len = payload.len();
    Head {
        len,
        kind,
        flags,
        stream,
    }
    .write(out);
    out.extend_from_slice(payload);
}
