//! HTTP/1.0 and 1.1: a pure core, bytes and time in, bytes and events out.
//!
//! - `quick` reads the usual head in one pass; `parse` finds and reads any, strictly; `target` its
//!   target and host
//! - `chunked` decodes the chunked coding
//! - `conn` the state of one connection: what is read next, what comes after, when time is up
//! - `encode` how an answer is framed
//! - `offline` requests that came over no connection
//!
//! No socket and no clock in here; `thread` carries the bytes.

pub mod chunked;
pub mod conn;
mod encode;
mod offline;
pub mod parse;
pub mod quick;
mod target;
#[cfg(test)]
mod tests;

pub use conn::{AfterAnswer, Eof, Http1Connection, Http1Event};
pub use encode::ResponseFraming;
pub use parse::{Framing, Length};
