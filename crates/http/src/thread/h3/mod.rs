//! HTTP/3 on a thread: datagrams go to connections, what those have go to answers, and theirs back.
//!
//! - `session` what there is: sockets and connections
//! - `packets` sockets: datagrams in, new connections, those that belong to other threads
//! - `drive` what happens when a connection can go on
//! - `requests` what has come: requests, their bodies, their ends
//! - `respond` answers: heads at once, bodies in the order of their urgency
//! - `stream` a request from its first byte to the last of its answer
//! - `unread` how much of what has come waits for somebody to read it
//! - `ending` deadlines, and how streams and connections end
//!
//! ```text
//! events -> datagrams -> connections marked -> tasks -> each marked connection once -> wait
//! ```
//!
//! A connection is driven once in a turn of the loop, however many datagrams came for it: what it
//! has to say leaves in as few as possible.

mod drive;
mod ending;
mod packets;
mod requests;
mod respond;
mod session;
mod stream;
mod unread;

pub(crate) use packets::Forwarded;
use session::{Http3ServerSession, Http3SessionStage, QuicListener};
pub(crate) use session::{QUIC, Quic};
