//! The C library for programs that stay: `hob.h`, over `hob-ipc`.
//!
//! [`abi`] is all that C sees: its comments are the reference, the header is made from them. A
//! [`connection`] carries the messages, over shared memory or the stream, for any number of
//! threads; a [`request`] collects an answer and sends it in as few messages as it can. Started
//! without hob, [`plain`] serves one CGI request through the same calls.

pub mod abi;
mod connection;
mod environment;
mod face;
mod failure;
mod fork;
mod link;
mod output;
mod plain;
mod readiness;
mod request;
mod start;
mod wait;
