//! The payload of the server's hello, which offers what the worker then chooses from.
//!
//! ```text
//!  0 u16 concurrency: requests the worker may have at a time    2 u16 flags: 1 FILES, 2 HALF
//!  4 u32 bytes of data a worker may send per request before it waits for a window
//!  8 u32 bytes of body the server sends per request before it waits for a window
//! 12 u8 carrier offered (1 stream, 2 shm)                      13 three bytes, 0
//! ```
//!
//! FILES: the server takes `file` messages. HALF: it takes data with LAST and TUNNEL, which is the
//! half-close of a tunnel. A library passes over flags that it does not know.
//!
//! A longer payload is read up to here: what a later server adds does not trouble an old library.

use crate::limits::CONCURRENCY_MAX;
use crate::malformed::MalformedMessage;
use crate::message::Carrier;

/// Bytes of the payload.
pub const HELLO_BYTES: usize = 16;

/// What the server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Requests the worker may have at a time, 1 to [`CONCURRENCY_MAX`].
    pub concurrency: u16,
    /// Bytes of data a worker may send per request before it waits for a window.
    pub data_window_bytes: u32,
    /// Bytes of body the server sends per request before it waits for a window.
    pub body_window_bytes: u32,
    /// The best carrier there is; `stream` is always possible.
    pub carrier: Carrier,
    /// The server takes `file` messages.
    pub takes_files: bool,
    /// The server takes a worker's half-close of a tunnel.
    pub takes_half_close: bool,
}

/// The flags for those.
const FILES: u16 = 1;
const HALF: u16 = 2;

impl Hello {
    /// The payload.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[0..2].copy_from_slice(&self.concurrency.to_le_bytes());
        let files = if self.takes_files { FILES } else { 0 };
        let half = if self.takes_half_close { HALF } else { 0 };
        let flags = files | half;
        bytes[2..4].copy_from_slice(&flags.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.data_window_bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.body_window_bytes.to_le_bytes());
        bytes[12] = self.carrier as u8;
        bytes
    }

    /// Reads and checks a payload.
    ///
    /// # Errors
    ///
    /// [`MalformedMessage::Hello`] when it is short or a number makes no sense.
    pub fn decode(payload: &[u8]) -> Result<Hello, MalformedMessage> {
        let bytes: &[u8; HELLO_BYTES] = payload
            .first_chunk()
            .ok_or(MalformedMessage::Hello("it is shorter than 16 bytes"))?;
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let concurrency = u16::from_le_bytes([bytes[0], bytes[1]]);
        if concurrency == 0 || concurrency > CONCURRENCY_MAX {
            return Err(MalformedMessage::Hello("concurrency is not from 1 to 1024"));
        }
        let (data_window_bytes, body_window_bytes) = (number(4), number(8));
        if data_window_bytes == 0 || body_window_bytes == 0 {
            return Err(MalformedMessage::Hello("a window is empty"));
        }
        let flags = u16::from_le_bytes([bytes[2], bytes[3]]);
        Ok(Hello {
            concurrency,
            data_window_bytes,
            body_window_bytes,
            carrier: Carrier::from_number(bytes[12].into())
                .ok_or(MalformedMessage::Hello("no such carrier is known"))?,
            takes_files: flags & FILES != 0,
            takes_half_close: flags & HALF != 0,
        })
    }
}
