//! What the kernel tells of the machine, its processes and control groups, for everybody here who
//! asks: below `/proc`, `/sys/fs/cgroup` and `/sys`.
//!
//! [`text`] makes numbers of what it prints and opens nothing; [`process`] reads processes, one or
//! all; [`cgroup`] finds the groups of this process, what they allow, and what a group used;
//! [`hardware`] what the machine is made of, [`mounts`] which file systems it has where.
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod hardware;
pub mod mounts;
pub mod process;
mod read;
pub mod text;

pub use cgroup::{Cgroup, OwnGroups, Quota};
pub use process::{ProcessStat, Processes, tick_ns};
pub use read::read;

/// Memory that there is for this process and what it starts, in bytes: the machine's, or a control
/// group's limit. Reads a few files.
pub fn usable_memory_bytes() -> u64 {
    let machine = hardware::memory_bytes().unwrap_or(u64::MAX);
    machine.min(Quota::find().memory_bytes.unwrap_or(u64::MAX))
}
