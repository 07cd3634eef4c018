//! What came of a run: counts and histograms of each thread, and what the machine did meanwhile.

mod cgroup;
mod encode;
mod failure;
mod latency;
mod live;
mod machine;
mod process;
mod series;
mod tally;

pub use cgroup::Cgroup;
pub(crate) use failure::{FAILURES, Failure, Failures};
pub(crate) use latency::Latency;
pub use latency::replay_histogram;
pub(crate) use live::{Counts, Live, Told};
pub(crate) use machine::{Passed, moment, passed, thread_cpu_ns};
pub use process::{Process, Processes, tick_ns};
pub(crate) use series::{Interval, Series};
pub(crate) use tally::{Outcome, Part, Tally, jain};
