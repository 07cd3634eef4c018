//! QUIC (RFC 9000), by quinn-proto: the only place that names it, and quinn-udp beside it.
//!
//! - `socket` datagrams in and out, many at a time where the kernel can
//! - `endpoint` whom a datagram is for, and whether a new connection is taken
//! - `connection` streams of bytes
//! - `session` the TLS handshake within, by rustls, with the certificate that the name asks for
//! - `relay` datagrams from one server to the other during an upgrade
//! - `reset` how connections end that a server before this one had
//! - `id` connection ids: they say which thread of which server has the connection
//!
//! The library makes no call to the kernel and asks no clock: both are our thread's.

mod connection;
mod endpoint;
pub(crate) mod id;
pub(crate) mod relay;
mod reset;
mod session;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use connection::{Happened, Lost, QuicConnection, Readout, Wrote};
pub(crate) use endpoint::{Arrival, DatagramSendOutcome, Endpoint, Newcomer, Stray};
pub(crate) use id::ID_BYTES;
pub use reset::ResetSecret;
pub(crate) use session::{Offered, RetryKey};
pub(crate) use socket::{Datagram, Socket};
