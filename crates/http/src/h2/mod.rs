//! HTTP/2 (RFC 9113): a pure core, bytes and time in, bytes and events out.
//!
//! - `conn` one connection: frames in, and what they mean; `fields` field blocks among them, `data`
//!   bodies, `settings` what the client asks of us
//! - `answer` frames out: heads, pieces of body, ends
//! - `stream` the streams of a connection, `schedule` whose turn it is to send
//! - `budget` how much of what costs the client nothing it may send
//! - `frame` frames as bytes
//! - `client` the other side of it: asking other people's servers
//!
//! No socket and no clock in here; `thread` carries the bytes, `fields_coding` makes heads of them.

mod answer;
mod budget;
pub mod client;
pub mod conn;
mod data;
mod fields;
pub mod frame;
mod schedule;
mod settings;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

pub use answer::AfterHead;
pub use budget::Flood;
pub use conn::{Http2Connection, Http2ConnectionError, Http2Event};
pub use frame::{Http2ErrorCode, PREFACE};
pub use schedule::StreamSendTurn;
