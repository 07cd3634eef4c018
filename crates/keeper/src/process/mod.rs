//! Starting programs: the spawner, a small process of its own, and the server's link to it.
//!
//! ```text
//!  keeper ---- policy, ends ----> spawner -- clone, exec --> program
//!     |                             ^  |
//!     | one end for the server      |  | started, exited, failed
//!     v                             |  v
//!  server --- an end per thread --> link <--- Launcher of that thread
//! ```
//!
//! The server forks no program. It asks for a start with a program of the policy, a path,
//! arguments, the variables of a request, standard streams and perhaps a channel; who it runs as,
//! what it may use and what may be started at all, with which arguments and which variables of the
//! config, is in the policy, which the keeper makes and the server never touches.
//!
//! `launcher` is what handlers use, `awaited` how they hear of an end, `message` what travels,
//! `policy` the rules, `spawner` the process, `recipe` what a child is started with, `child` what
//! happens between clone and exec, `kernel` the system calls no crate has, `bare` starts of
//! interpreters with nothing to do, `hosts` what interpreters that stay are given to read.
//! `trial` is a spawner for who tries programs before they are served.
//! `hook` is no program of a site: it sets records for certificates, and runs with the rights of
//! the process that gets them.

mod awaited;
pub mod bare;
mod child;
pub(crate) mod hook;
mod hosts;
mod kernel;
mod launcher;
pub mod message;
pub(crate) mod orders;
pub mod packet;
pub(crate) mod policy;
mod recipe;
pub mod spawner;
mod strings;
pub mod trial;

pub use awaited::Awaited;
pub use hosts::native_folder;
pub use kernel::landlock_version;
pub use kernel::now_us;
pub use launcher::{
    Child, EndSignal, Exit, Launcher, ProgramRef, SPAWNER_WAIT_MAX, STARTS_WAITING_MAX,
};
pub use launcher::{ProgramProcess, Start, Usage};
pub use launcher::{end_for_thread, ended, is_lack, packed};
pub use strings::{HasNul, Strings};
