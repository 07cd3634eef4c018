//! Making traffic and measuring it: the load generator behind `hob bench`.
//!
//! `plan` says what to do, `run` does it with one or more threads (`send`), `measure` counts what
//! came of it, `report` tells it as a table and as JSON. When requests are due is decided in
//! `arrive`, what a page takes in `browse`; `parts` are for clients by hand, `history` has figures
//! of old documents. Nothing here is shared with the server: a load generator that reads answers
//! with the server's parser shares its mistakes.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod acts;
pub mod arrive;
mod browse;
mod check;
mod conduct;
mod draw;
mod entry;
mod environment;
mod error;
mod expect;
pub mod history;
pub mod layout;
pub mod limits;
mod list;
mod measure;
mod moment;
pub mod page;
pub mod parts;
mod plan;
mod quantity;
mod random;
mod reach;
mod replay;
mod report;
mod request;
mod run;
mod send;
mod student;
pub mod terminal;
mod threshold;
mod url;
mod view;
mod watch;
mod written;

pub use acts::{parse_bytes_per_second, parse_percent};
pub use browse::{AssetReference, Scan, resolve, scan_ahead, scan_css, scan_html};
pub use conduct::{Conduct, ProgressDisplay, Shard, StopCondition, parse_moment};
pub use entry::RequestSpec;
pub use environment::Environment;
pub use error::LoadError;
pub use expect::Expectation;
pub use list::{ListError, parse_list};
pub use measure::{AnswerSummary, AssetKind, jain, replay_histogram};
pub use plan::{BenchPlan, ClientActs, ClientTlsOffer, LoadModel, Protocol, Reuse, Visit};
pub use quantity::{parse_bit_rate, parse_cpus, parse_duration};
pub use replay::{LineFault, LogLine, Replay};
pub use report::{BenchReport, reference, schema};
pub use run::{run, run_rested, run_through, run_until, run_with, stop_at_signals};
pub use send::h1::{AnswerProgress, AnswerReadOptions, AnswerReader, BadAnswer};
pub use send::h2::replay as replay_h2;
pub use send::h3::{replay_answer as replay_h3_answer, replay_control as replay_h3_control};
pub use threshold::Threshold;
pub use url::Url;
pub use written::{ChangeLimit, ResultComparison, SavedResult, moment};
