//! What came of a run: counts and histograms of each thread, and what the machine did meanwhile.

mod failure;
mod latency;
mod machine;
mod tally;

pub(crate) use failure::{FAILURES, Failure};
pub(crate) use latency::Latency;
pub(crate) use machine::{Passed, moment, passed, thread_cpu_ns};
pub(crate) use tally::{Outcome, Part, Tally};
