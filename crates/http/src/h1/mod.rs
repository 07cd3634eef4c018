//! HTTP/1.0 and 1.1: a pure core, bytes and time in, bytes and events out.
//!
//! - `parse` finds and reads a head, strictly
//! - `chunked` decodes the chunked coding
//! - `conn` the state of one connection: what is read next, how the answer is framed, when time is up
//!
//! No socket and no clock in here; `thread` carries the bytes.

pub mod chunked;
pub mod conn;
pub mod parse;
#[cfg(test)]
mod tests;

pub use conn::{Conn, Eof, Event, Next, Sending};
pub use parse::{Framing, Length, Refusal};
