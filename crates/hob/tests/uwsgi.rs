//! Applications behind the protocol of uWSGI: a real uWSGI with one in Python, and peers that break
//! off or say what is no answer.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "uwsgi/application.rs"]
mod application;
#[path = "upstream/authority.rs"]
mod authority;
#[path = "upstream/buffer.rs"]
mod buffer;
#[path = "upstream/limits.rs"]
mod limits;
#[path = "upstream/members.rs"]
mod members;
#[path = "upstream/peer.rs"]
mod peer;
#[path = "upstream/printed.rs"]
mod printed;
#[path = "upstream/site.rs"]
mod site;
#[path = "upstream/tls.rs"]
mod tls;
#[path = "upstream/to_its_end.rs"]
mod to_its_end;
#[path = "uwsgi/wire.rs"]
mod wire;
