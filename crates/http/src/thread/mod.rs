//! One server thread: a loop that carries bytes between sockets, the HTTP engine and answers.
//!
//! - `shared` what other threads may touch: the mailbox, the counts, the hand-over of connections
//! - `run` the loop
//! - `accept` new connections
//! - `conn` a connection and its stages
//! - `drive` what happens when a connection can go on
//! - `send` bytes to the kernel, in order, with budgets
//! - `wheel` deadlines, a tick each

mod accept;
mod conn;
mod drive;
mod pump;
mod run;
mod send;
mod shared;
#[cfg(test)]
mod tests;
mod wheel;

pub use run::{Guest, Thread};
pub use shared::{Crew, Drain, Handle};
