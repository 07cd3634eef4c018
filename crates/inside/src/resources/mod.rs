//! What is used of the machine, minute by minute, and alerts in words.
//!
//! `reading` is a look at the machine, `minute` keeps a day of minutes in
//! fixed memory, `conditions` is the table of what is worth an alert, `alarms` what makes a finding
//! an alert, `sampler` looks once a second and has the board others read, `trim` gives memory back.

mod alarms;
mod conditions;
mod minute;
mod reading;
mod sampler;
mod trim;

pub use alarms::{Alert, Level};
pub(crate) use conditions::Expiry;
pub use sampler::{Resources, Sampler};
