//! Scripts forked from a kept interpreter, held against the same scripts started by `cgi`: whatever
//! can be seen of them must be the same.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "warm/compare.rs"]
mod compare;
#[path = "warm/hosts.rs"]
mod hosts;
#[path = "warm/lives.rs"]
mod lives;
#[path = "warm/offered.rs"]
mod offered;
#[path = "warm/parts.rs"]
mod parts;
#[path = "warm/perl.rs"]
mod perl;
#[path = "resident/pool.rs"]
mod pool;
#[path = "warm/python.rs"]
mod python;
#[path = "cgi/site.rs"]
mod site;
