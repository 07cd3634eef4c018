//! The life of the processes: start, drop privileges, reload, drain, upgrade, stop.
//!
//! `keeper` is the first process; `server_side` is what the server process calls; they speak over
//! `channel`, which sends `parcel`s. `servers` is where commands find them. Unsafe code stands in
//! `privileges` and `exec` only.

pub(crate) mod channel;
pub(crate) mod exec;
pub mod keeper;
pub(crate) mod key_files;
mod localhost;
pub(crate) mod memory;
mod notify;
mod papers;
pub(crate) mod parcel;
pub mod preflight;
pub(crate) mod privileges;
mod server_side;
pub mod servers;
pub(crate) mod signals;
pub(crate) mod wire;

pub use channel::Wish;
pub use exec::adopt_inherited;
pub use keeper::{ControlChoice, Failure, Options};
pub use key_files::{KeyFiles, Pair};
pub use papers::Facts;
pub use privileges::become_server_user;
pub use server_side::{Event, Generation, ServerLife};
