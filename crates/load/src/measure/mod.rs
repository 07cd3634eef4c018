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

pub use answer::AnswerSummary;
pub use asset_kind::AssetKind;
pub(crate) use failure::FAILURES;
pub use failure::{FailureKind, Failures};
pub use latency::Latency;
pub use latency::replay_histogram;
pub(crate) use live::{Counts, Live, ReportedCounts};
pub(crate) use machine::{Passed, ThreadTime, moment, passed};
pub(crate) use pages::{AssetEnd, PageCount};
pub(crate) use series::{Interval, IntervalSeries};
pub(crate) use tally::{MeasuredAnswer, PartTally};
pub use tally::{RequestTally, jain};
