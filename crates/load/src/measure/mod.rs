//! What came of a run: counts and histograms of each thread, and what the machine did meanwhile.

mod answer;
mod asset_kind;
mod encode;
mod failure;
mod latency;
mod live;
mod machine;
mod pages;
mod series;
mod tally;

pub use answer::Answer;
pub use asset_kind::AssetKind;
pub(crate) use failure::FAILURES;
pub use failure::{Failure, Failures};
pub use latency::Latency;
pub use latency::replay_histogram;
pub(crate) use live::{Counts, Live, Told};
pub(crate) use machine::{Passed, moment, passed, thread_cpu_ns};
pub(crate) use pages::{AssetEnd, PageCount};
pub(crate) use series::{Interval, Series};
pub use tally::Tally;
pub(crate) use tally::{Outcome, Part, jain};
