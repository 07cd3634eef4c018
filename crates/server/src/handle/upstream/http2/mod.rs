//! HTTP/2 with members: many requests over one connection, which belongs to a thread.
//!
//! - `connections` those that a thread has, and who waits for one
//! - `connection` one of them: what drives it, and what comes
//! - `stream` a request on it; `body` its body on the way

mod body;
mod connection;
pub mod connections;
mod stream;

pub(crate) use body::send;
pub(crate) use connection::{Http2Broken, SharedConnection, StreamPart};
pub use connections::HttpVersions;
pub(crate) use connections::{Http2Connections, Http2Found, Http2Wish};
pub(crate) use stream::Http2Stream;
