//! Other HTTP servers behind hob: real ones, and peers that do what a test says.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "upstream/authority.rs"]
mod authority;
#[path = "proxy/buffer.rs"]
mod buffer;
#[path = "proxy/failures.rs"]
mod failures;
#[path = "proxy/http2.rs"]
mod http2;
#[path = "proxy/http2_h1_only.rs"]
mod http2_h1_only;
#[path = "proxy/http2_member.rs"]
mod http2_member;
#[path = "proxy/kept.rs"]
mod kept;
#[path = "proxy/limits.rs"]
mod limits;
#[path = "proxy/members.rs"]
mod members;
#[path = "proxy/names.rs"]
mod names;
#[path = "proxy/open_files_h1_only.rs"]
mod open_files_h1_only;
#[path = "proxy/passing.rs"]
mod passing;
#[path = "proxy/peer.rs"]
mod peer;
#[path = "proxy/run_h1_only.rs"]
mod run_h1_only;
#[path = "proxy/secure.rs"]
mod secure;
#[path = "proxy/services.rs"]
mod services;
#[path = "proxy/smuggling_h1_only.rs"]
mod smuggling_h1_only;
#[path = "proxy/spliced_h1_only.rs"]
mod spliced_h1_only;
#[path = "proxy/spliced_requests_h1_only.rs"]
mod spliced_requests_h1_only;
#[path = "proxy/spliced_tunnels_h1_only.rs"]
mod spliced_tunnels_h1_only;
#[path = "proxy/tls.rs"]
mod tls;
#[path = "proxy/tls_failures.rs"]
mod tls_failures;
#[path = "proxy/tls_h1_only.rs"]
mod tls_h1_only;
#[path = "proxy/tls_nginx.rs"]
mod tls_nginx;
#[path = "proxy/toxic.rs"]
mod toxic;
#[path = "proxy/tunnel_h1_only.rs"]
mod tunnel_h1_only;
#[path = "proxy/upstream.rs"]
mod upstream;
#[path = "proxy/zone.rs"]
mod zone;
