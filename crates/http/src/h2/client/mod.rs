//! HTTP/2 as a client speaks it, with other people's servers (RFC 9113): a pure core, bytes and
//! time in, bytes and events out.
//!
//! - `conn` one connection: what comes, by whole frames but for DATA; `settings` what the other
//!   side asks of us
//! - `ask` frames out: heads, pieces of body, ends, and what was taken of answers
//! - `answer` field blocks to heads and trailers
//! - `stream` a request on its connection

mod answer;
mod ask;
mod conn;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

pub use answer::Http2AnswerHead;
pub use ask::RequestBlock;
pub use conn::{Http2Client, Http2ClientEvent, Http2StreamFault};
