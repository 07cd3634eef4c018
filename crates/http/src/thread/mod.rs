//! One server thread: a loop that carries bytes between sockets, the HTTP engine and answers.
//!
//! - `shared` what other threads may touch: the mailbox, the counts, the hand-over of connections
//! - `run` the loop, `clock` its time
//! - `accept` new connections; `proxy_header` those that begin with a header of the PROXY protocol
//! - `conn` a connection and its stages; `seats` where connections are found again
//! - `drive` what happens when a connection can go on
//! - `respond` a response to bytes in order, `pull` bodies that come bit by bit, `pipe` out of a
//!   pipe, `filled` out of another socket by way of one
//! - `send` bytes to the kernel, in order, with budgets
//! - `receive` bytes from a socket, `pump` request bodies out of them
//! - `tls` TLS: handshakes, what comes in; `seal` what goes out; `handshake_failures` what is
//!   told of those that failed
//! - `h2` all of that for HTTP/2, `h3` for HTTP/3
//! - `exchange` the life of a request over either, `work` what its answer is at, `source` where the
//!   bytes of its body come from
//! - `drain` how a thread ends
//! - `begin` requests and their records; `ending` records, deadlines, what is told when a
//!   connection ends
//! - `visit` connections counted by listener
//! - `listing` what is open and under way, for who asks
//! - `waits` how long answers waited for their client

mod accept;
mod begin;
mod bulk;
mod clock;
mod conn;
mod drain;
mod drive;
mod ending;
mod exchange;
mod filled;
mod give_way;
mod h2;
mod h3;
mod handshake_failures;
mod listing;
mod pipe;
mod proxy_header;
mod pull;
mod pump;
mod receive;
mod respond;
mod run;
mod seal;
mod seats;
mod send;
mod shared;
mod source;
#[cfg(test)]
mod tests;
mod tls;
mod visit;
mod waits;
mod work;

pub use accept::Listening;
pub use listing::{InFlightRequest, Open, RequestState};
pub use run::Thread;
pub use shared::{Crew, Drain, Handle};

pub use visit::Visits;
