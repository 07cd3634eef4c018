//! What happened: one record per request, and everything that reads it.
//!
//! `record` is the table of what is known about one request. `ring` carries finished requests from
//! a serving thread to the thread of `access_log`, which writes them in a `format`; `rotate` is for
//! the process that owns the log files. `metric` is the table of counters, `statistics` that of
//! what requests were, `calendar` the one calendar. This crate knows nothing of the other crates.
#![deny(missing_docs)]

pub mod access_log;
pub mod address;
pub mod block;
pub mod calendar;
pub mod format;
pub mod metric;
pub mod record;
pub mod ring;
pub mod rotate;
pub mod statistics;

pub use access_log::{AccessLog, DestinationSettings, LogId, Target};
pub use format::{Format, FormatError, Names};
pub use metric::{Counters, Snapshot, ThreadCounters};
pub use record::{
    CacheOutcome, Fault, HandlerKind, Outcome, Protocol, Record, Texts, TlsHandshake, TlsVersion,
};
pub use ring::{Consumer, Producer, ring};
pub use statistics::{AllStatistics, Statistics, ThreadStatistics};
