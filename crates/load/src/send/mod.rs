//! Sending requests and reading answers: one loop per thread, each with its own connections.
//!
//! `thread` is the loop and decides what leaves when; `exchange` moves bytes for one connection;
//! `socket` opens connections, `tls` seals what goes over them; `h1` reads answers.

mod exchange;
pub(crate) mod h1;
mod prepared;
mod secure;
mod slot;
mod socket;
mod thread;
mod tls;
mod trust;

pub(crate) use prepared::{Prepared, Share};
pub(crate) use socket::Address;
pub(crate) use thread::Thread;
pub(crate) use trust::{Trust, client_config};
