//! Programs behind FastCGI: a real php-fpm, a program in Perl that keeps its own socket, those that
//! hob starts itself, and peers that break the protocol.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "upstream/authority.rs"]
mod authority;
#[path = "upstream/buffer.rs"]
mod buffer;
#[path = "fastcgi/failures.rs"]
mod failures;
#[path = "fastcgi/kept.rs"]
mod kept;
#[path = "upstream/limits.rs"]
mod limits;
#[path = "upstream/members.rs"]
mod members;
#[path = "upstream/peer.rs"]
mod peer;
#[path = "fastcgi/perl.rs"]
mod perl;
#[path = "fastcgi/php.rs"]
mod php;
#[path = "upstream/printed.rs"]
mod printed;
#[path = "fastcgi/run.rs"]
mod run;
#[path = "upstream/site.rs"]
mod site;
#[path = "upstream/tls.rs"]
mod tls;
#[path = "fastcgi/wire.rs"]
mod wire;
