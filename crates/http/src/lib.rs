//! Bytes to requests and answers to bytes: listening, connections, HTTP/1, 2 and 3.
//!
//! A user of this crate implements [`Responder`] and gives it to a [`thread::Thread`]; it sees
//! [`Request`], [`Response`] and [`Body`] and no socket. This crate knows no files, scripts or
//! config.
//!
//! - `head` what a head is: a request's bytes with offsets, a response's fields
//! - `request`, `response`, `body` the face handlers work with
//! - `trailers` what those of requests may hold
//! - `fields_coding` compression of field lists, and what makes a list of fields a request's head
//! - `refusal`, `deadline`, `framing`, `host`, `priority`, `rate` what the engines have in common
//! - `h1` the HTTP/1 engine: bytes and time in, bytes and events out; `h2` the HTTP/2 engine,
//!   `h3` the HTTP/3 engine and QUIC
//! - `splice_pipe` pipes by which bytes go from one socket to another inside the kernel
//! - `reactor` what answers wait with on their thread: descriptors, timers, tasks
//! - `thread` the loop that carries bytes between sockets, engine and answers
//! - `listen` opening sockets
//! - `tls` handshakes and records below a connection
//! - `proxy_protocol` what stands before a connection's first byte and says whose it is
//! - `network` what the network below a connection is like
//! - `acme` certificates from an authority, asked for by themselves
//! - `post` sending to other people's servers what this one exports
#![deny(missing_docs)]

pub mod acme;
pub mod body;
mod chunks;
mod clock;
pub mod date;
mod deadline;
pub mod fields_coding;
mod framing;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod head;
mod host;
pub mod limits;
pub mod listen;
pub mod network;
pub mod outbound;
mod pipe;
mod priority;
pub mod private_folder;
pub mod proxy_protocol;
mod rate;
mod raw;
pub mod reactor;
mod refusal;
pub mod request;
pub mod response;
mod splice_pipe;
pub mod status;
pub mod thread;
pub mod tls;
mod trailers;

pub use body::{Body, BodyError, BodyStream, Chunk, FileBody, FileSource, PipeEnd, Region};
pub use bytes::Bytes;
pub use clock::unix_ms;
pub use deadline::Deadline;
pub use head::{Fields, Known, RequestHead};
pub use hob_trace::digits;
pub use host::is_host;
pub use priority::Priority;
pub use reactor::{DrainWatch, Hold, Reactor, Standby, StandbyGuard, Timer, Watched};
pub use refusal::Refusal;
pub use request::{
    Aftermath, AtWork, BodyPiece, ConnectionFacts, HalfClose, HandlerPhase, Preconditions, Request,
    SignedIn, TextsShown, TlsFacts, ToldOfClient, ToldVariables,
};
pub use response::{Answered, PreparedHead, Responder, Response, ResponseHead};
pub use splice_pipe::SplicePipe;
