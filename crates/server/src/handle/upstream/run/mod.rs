//! A program that hob starts and looks after itself, where it would otherwise ask one that others
//! run: php-fpm and php-cgi with children of their own, and whatever takes connections from a
//! socket that it finds as its standard input.
//!
//! The socket is the server's: requests wait in it while the program starts, and while it starts
//! again.
//!
//! - `socket` where it listens, and only the server reaches it
//! - `program` one program, as all threads see it; `keep` the task that starts one of its processes
//!   and looks after it
//! - `start` what is executed, `keys` its keys, `config` what they say, `told` what is told of it

pub mod config;
pub(crate) mod keep;
pub(crate) mod keys;
pub mod program;
pub mod socket;
mod start;
pub mod told;
