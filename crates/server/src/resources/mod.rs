//! What is used of the machine, minute by minute, and alerts in words.
//!
//! `parse` reads what the kernel prints, `reading` opens it, `minute` keeps a day of minutes in
//! fixed memory, `conditions` is the table of what is worth an alert, `alarms` what makes a finding
//! an alert, `sampler` looks once a second and has the board others read.

mod alarms;
mod conditions;
mod minute;
pub mod parse;
mod reading;
mod sampler;

pub use alarms::{Alert, Level};
pub(crate) use conditions::{Expiry, PoolFacts};
pub(crate) use reading::{descriptors, read};
pub(crate) use sampler::unix_ms;
pub use sampler::{Resources, Sampler};
