//! Programs of other machines: a hob that has the client asks another one that has the program,
//! over TLS in which both show a certificate.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "remote/answers.rs"]
mod answers;
#[path = "upstream/authority.rs"]
mod authority;
#[path = "remote/life.rs"]
mod life;
#[path = "remote/pair.rs"]
mod pair;
#[path = "remote/passing.rs"]
mod passing;
#[path = "remote/refusals.rs"]
mod refusals;
#[path = "remote/streams.rs"]
mod streams;
