//! What happened: one record per request, and everything that reads it.
//!
//! `record` is the table of what is known about one request. Later parts (ring, access log, counters)
//! only carry, count or write records. This crate knows nothing of the other crates.
#![deny(missing_docs)]

pub mod record;

pub use record::{CacheOutcome, Fault, HandlerKind, Outcome, Protocol, Record, Texts};
