//! Where this server runs: program, machine, kernel, limits, and what programs are held to. What
//! figures mean, and why something is refused, depends on it.
//!
//! `machine` tells of the machine and the control groups above this process, `confined` what holds
//! for the server and for each program, `told` puts it together.

mod confined;
mod machine;
mod told;

pub(crate) use told::{environment, slow_file_systems};
