//! HTTP/3 (RFC 9114): a pure core, bytes in, bytes and events out, and QUIC below it.
//!
//! - `conn` a connection: its control streams, settings, priorities, and how it is left
//! - `stream` what comes over the stream of a request: frames, and what they mean
//! - `frame` frames and integers as bytes, codes, settings
//! - `qpack` compression of field lists (RFC 9204)
//! - `quic` the only place that names the QUIC library: sockets, handshakes, streams
//!
//! No clock in here, and a socket in `quic` only; `thread` carries the bytes. What makes a request
//! malformed is told by `h2`, whose rules are the same.

mod conn;
pub mod frame;
pub mod qpack;
pub(crate) mod quic;
mod stream;
#[cfg(test)]
mod tests;

pub use conn::{Conn, Event as ControlEvent, Failure, Flood, Kind, Uni};
pub use frame::Code;
pub use stream::{Event, Receiver};
