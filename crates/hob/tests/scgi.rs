//! Programs behind SCGI: a real Fossil, one that hob starts itself, and peers that break off or say
//! what is no answer.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "upstream/authority.rs"]
mod authority;
#[path = "upstream/buffer.rs"]
mod buffer;
#[path = "scgi/fossil.rs"]
mod fossil;
#[path = "upstream/limits.rs"]
mod limits;
#[path = "upstream/members.rs"]
mod members;
#[path = "upstream/peer.rs"]
mod peer;
#[path = "upstream/printed.rs"]
mod printed;
#[path = "scgi/run.rs"]
mod run;
#[path = "upstream/site.rs"]
mod site;
#[path = "upstream/tls.rs"]
mod tls;
#[path = "upstream/to_its_end.rs"]
mod to_its_end;
#[path = "scgi/wire.rs"]
mod wire;
