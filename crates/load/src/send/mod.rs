//! Sending requests and reading answers: one loop per thread, each with its own connections.
//!
//! `thread` is the loop and decides what leaves when; `exchange` moves bytes for one connection;
//! `socket` opens connections; `h1` reads answers.

mod exchange;
pub(crate) mod h1;
mod prepared;
mod slot;
mod socket;
mod thread;

pub(crate) use prepared::{Prepared, Share};
pub(crate) use socket::Address;
pub(crate) use thread::Thread;
