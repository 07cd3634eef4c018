//! What happened: one record per request, and everything that reads it.
//!
//! `record` is the table of what is known about one request. `ring` carries finished requests from
//! a serving thread to the thread of `access_log`, which writes them in a `format`; `rotate` is for
//! the process that owns the log files. `metric` is the table of counters, `statistics` that of
//! what requests were, `tally` counts by site and handler, `counts` is all three, and `exposition`
//! writes numbers as Prometheus reads them. `recorder` is what a thread does with a finished
//! request besides: `history` keeps it, `series` counts it by route, with times in a `histogram`.
//! `activity` is what the server did, second by second. `verdict` says what took a slow request's
//! time, `watch` tells of requests as they live. `traceparent` is the trace a request belongs to,
//! `calendar` the one calendar. `pen` writes lines and events, `escape` what clients sent within
//! them. This crate knows nothing of the other crates.
#![deny(missing_docs)]

pub mod access_log;
pub mod activity;
pub mod address;
pub mod block;
pub mod calendar;
pub mod counts;
pub mod digits;
mod escape;
pub mod exposition;
pub mod format;
pub mod histogram;
pub mod history;
pub mod metric;
mod mutex;
mod pen;
pub mod record;
pub mod recorder;
pub mod ring;
pub mod rotate;
pub mod seldom;
pub mod series;
pub mod statistics;
pub mod tally;
pub mod traceparent;
pub mod verdict;
pub mod watch;

pub use access_log::{AccessLog, DestinationSettings, LogId, Target};
pub use counts::{ServerCounts, ThreadCounts};
pub use format::{AccessLogFormat, FormatError, RecordNames};
pub use metric::{Counters, Snapshot, ThreadCounters};
pub use mutex::Mutex;
pub use record::{
    CacheOutcome, Fault, HandlerKind, Outcome, ProgramEnd, ProgramLife, Protocol, Record,
    RefusedBy, Texts, TlsHandshake, TlsVersion,
};
pub use recorder::Recorder;
pub use ring::{Consumer, Producer, ring};
pub use statistics::{AllStatistics, Statistics, ThreadStatistics};
