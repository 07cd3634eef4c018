//! Where the time and the CPU of one request go: the study behind `hob cost`.
//!
//! `study` starts a hob of its own (`private`) with a route for each way of running a program
//! (`rungs`, `site`), asks it with the load generator (`load`), and reads what its processes used
//! (`processes`). `stages` takes one CGI request apart, with programs started bare beside it
//! (`bare`, `kernel`, `elf`); `experiment` and `growth` ask what a start depends on, `wire` what
//! goes over a connection (`relay`, `datagrams`, `calls`). `report` tells it, `advice` in one
//! sentence.
#![deny(missing_docs)]

mod advice;
mod ask;
mod bare;
mod calls;
mod datagrams;
mod echo;
mod elf;
mod error;
mod experiment;
mod growth;
mod kernel;
mod ladder;
pub mod limits;
mod load;
mod past;
mod private;
mod processes;
mod relay;
mod report;
mod rungs;
mod script;
mod site;
mod stages;
mod stop;
mod study;
mod wire;

pub use bare::bare;
pub use error::CostError;
pub use load::MeasuredRequest;
pub use private::serve;
pub use report::{StudyReport, reference, schema};
pub use script::ScriptSettings;
pub use study::{StudyOptions, StudyPart, StudySubject, study};
