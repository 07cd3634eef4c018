//! One server thread: a loop that carries bytes between sockets, the HTTP engine and answers.
//!
//! - `shared` what other threads may touch: the mailbox, the counts, the hand-over of connections
//! - `run` the loop, `clock` its time
//! - `accept` new connections
//! - `conn` a connection and its stages
//! - `drive` what happens when a connection can go on
//! - `respond` a response to bytes in order, `pull` bodies that come bit by bit, `pipe` out of a
//!   pipe
//! - `send` bytes to the kernel, in order, with budgets
//! - `pump` request bodies in
//! - `secure` TLS: handshakes, what comes in; `seal` what goes out; `shaken` handshakes that failed
//! - `h2` all of that for HTTP/2, `h3` for HTTP/3
//! - `drain` how a thread ends
//! - `ending` records, deadlines, what is told when a connection ends
//! - `visit` connections counted by listener
//! - `listing` what is open and under way, for who asks
//! - `waits` how long answers waited for their client
//! - `wheel` deadlines, a tick each

mod accept;
mod bulk;
mod clock;
mod conn;
mod drain;
mod drive;
mod ending;
mod give_way;
mod h2;
mod h3;
mod listing;
mod pipe;
mod pull;
mod pump;
mod respond;
mod run;
mod seal;
mod secure;
mod send;
mod shaken;
mod shared;
#[cfg(test)]
mod tests;
mod visit;
mod waits;
mod wheel;

pub use accept::Listening;
pub use listing::{Open, Running, State};
pub use run::{Guest, Thread};
pub use shared::{Crew, Drain, Handle};
pub(crate) use shared::{Letter, Mailbox};
pub use visit::Visits;
pub(crate) use wheel::{TICK_MS, Wheel};
