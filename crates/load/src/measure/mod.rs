//! What came of a run: counts and histograms of each thread, and what the machine did meanwhile.

mod cgroup;
mod encode;
mod failure;
mod latency;
mod live;
mod machine;
mod series;
mod tally;

pub(crate) use cgroup::Cgroup;
pub(crate) use failure::{FAILURES, Failure, Failures};
pub(crate) use latency::Latency;
pub(crate) use live::{Counts, Live, Told};
pub(crate) use machine::{Passed, moment, passed, thread_cpu_ns};
pub(crate) use series::{Interval, Series};
pub(crate) use tally::{Outcome, Part, Tally};
