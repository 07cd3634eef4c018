//! Unchanged programs of other people, as CGI: they answer the same under hob as under Apache and
//! lighttpd.
//!
//! Each program has a module, and where it makes pages a table of requests beside it
//! (`programs/*.txt`): hob's status, words of its body, and every difference to a peer with its
//! reason. A difference that is not listed fails, and so does a listed one that does not occur.
//! What is not installed is left out with one line.
//!
//! - `cgit`, `gitweb`, `git`, `mercurial`, `awstats`, `fossil`, `plack` the programs
//! - `servers` hob and its peers with one program behind a path
//! - `ask` one request and its answer
//! - `table` reads the tables, `compare` compares by them
//! - `place` the folder of a test, the commands it needs
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "programs/ask.rs"]
mod ask;
#[path = "programs/awstats.rs"]
mod awstats;
#[path = "programs/cgit.rs"]
mod cgit;
#[path = "programs/compare.rs"]
mod compare;
#[path = "programs/fossil.rs"]
mod fossil;
#[path = "programs/git.rs"]
mod git;
#[path = "programs/gitweb.rs"]
mod gitweb;
#[path = "programs/mercurial.rs"]
mod mercurial;
#[path = "programs/place.rs"]
mod place;
#[path = "programs/plack.rs"]
mod plack;
#[path = "programs/servers.rs"]
mod servers;
#[path = "programs/table.rs"]
mod table;
