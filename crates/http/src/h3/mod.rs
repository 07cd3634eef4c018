//! HTTP/3 (RFC 9114): a pure core, bytes in, bytes and events out, and QUIC below it.
//!
//! - `conn` a connection: its control streams, settings, priorities, and how it is left
//! - `stream` what comes over the stream of a request: frames, and what they mean
//! - `frame` frames and integers as bytes, codes, settings
//! - `quic` the only place that names the QUIC library: sockets, handshakes, streams
//!
//! No clock in here, and a socket in `quic` only; `thread` carries the bytes, and
//! `fields_coding` makes heads of them.

mod conn;
pub mod frame;
pub(crate) mod quic;
mod stream;
#[cfg(test)]
mod tests;

pub use conn::{
    ControlStreamEvent as ControlEvent, Flood, Http3Connection, Http3ConnectionError, Uni,
    UniStreamKind,
};
pub use frame::Http3ErrorCode;
pub use quic::ResetSecret;
pub use stream::{Receiver, RequestStreamEvent};
