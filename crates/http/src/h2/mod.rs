//! HTTP/2 (RFC 9113): a pure core, bytes and time in, bytes and events out.
//!
//! - `conn` one connection: frames in, and what they mean; `fields` field blocks among them, `data`
//!   bodies, `settings` what the client asks of us
//! - `answer` frames out: heads, pieces of body, ends
//! - `stream` the streams of a connection, `schedule` whose turn it is to send
//! - `head` field lists to request heads, and what makes a request malformed
//! - `budget` how much of what costs the client nothing it may send
//! - `frame` frames as bytes, `priority` what a client says of urgency (RFC 9218)
//! - `hpack` compression of field lists (RFC 7541)
//!
//! No socket and no clock in here; `thread` carries the bytes.

mod answer;
mod budget;
pub mod conn;
mod data;
mod fields;
pub mod frame;
pub(crate) mod head;
pub mod hpack;
mod priority;
mod schedule;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

pub use answer::{PreparedBlock, Sending};
pub use budget::Flood;
pub(crate) use budget::{Bucket, Rate};
pub use conn::{Conn, Event, Failure};
pub use frame::{Code, PREFACE};
pub use priority::Priority;
pub use schedule::Turn;
