//! Programs behind FastCGI: a real php-fpm, a program in Perl that keeps its own socket, and peers
//! that break the protocol.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "fastcgi/failures.rs"]
mod failures;
#[path = "fastcgi/kept.rs"]
mod kept;
#[path = "fastcgi/limits.rs"]
mod limits;
#[path = "fastcgi/peer.rs"]
mod peer;
#[path = "fastcgi/perl.rs"]
mod perl;
#[path = "fastcgi/php.rs"]
mod php;
#[path = "fastcgi/site.rs"]
mod site;
