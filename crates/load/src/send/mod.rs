//! Sending requests and reading answers: one loop per thread, each with its own connections.
//!
//! `thread` is the loop and decides what leaves when; `coming` is what is due next, `visits` has it
//! load pages. A `lane` is a place for a request, a `conn` one for a connection; `exchange` moves
//! the bytes of one that carries one request at a time, `multiplex` of one that carries several
//! (`queued` is what waits for room there), `datagrams` below QUIC. `socket` opens connections,
//! `probe` looks whether somebody speaks QUIC, `tls` seals what goes over them; `h1`, `h2` and `h3`
//! read answers, of which `kept` is what somebody wants to read. `acts` is what clients do besides.

mod acts;
mod body;
mod coming;
mod conn;
mod datagrams;
pub(crate) mod digits;
pub(crate) mod event;
mod exchange;
pub(crate) mod fields;
mod gate;
pub(crate) mod h1;
pub(crate) mod h2;
pub(crate) mod h3;
pub(crate) mod kept;
mod lane;
mod multiplex;
mod prepared;
mod probe;
mod queued;
mod secure;
mod socket;
mod thread;
mod ticking;
mod tls;
mod trust;
mod visits;

pub(crate) use gate::Gates;
pub(crate) use kept::{Kept, KeptField};
pub(crate) use prepared::{Choice, PreparedRun, RequestKind, Share};
pub(crate) use probe::answers_quic;
pub(crate) use socket::source_address;
pub use socket::{ConnectingSocket, Opener, ServerAddress, SourceAddresses};
pub(crate) use thread::Thread;
pub use tls::{PIECE_BYTES, Tls};
pub(crate) use trust::{Trust, client_config};
pub(crate) use visits::Pages;
