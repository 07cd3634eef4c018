//! What runs with privileges, and the other ends of its channels: the keeper, which is the first
//! process, and the spawner, which starts programs.
//!
//! From below: `wire` and `memory` are how values travel, `parcel` and `channel` what carries them,
//! `privileges` who somebody is; `process` starts programs, `acme` has certificates made, `keeper`
//! is the loop of the first process, `server_side` what the server process calls. `preflight` is
//! what a config wants of the machine, `servers` where commands find running ones. It knows no
//! handler and no request: what a config says of its routes is read here by the types of whoever
//! answers them, looked at, and dropped. Unsafe code stands in `privileges`, `exec`, and in
//! `process` where programs are started.

pub mod acme;
pub mod beside;
pub mod called;
mod channel;
mod exec;
pub mod heap;
mod keeper;
mod key_files;
mod localhost;
pub mod memory;
mod notify;
mod papers;
pub mod parcel;
pub mod piped;
pub mod preflight;
pub mod privileges;
pub mod process;
pub mod secret;
mod server_side;
pub mod servers;
pub mod shebang;
mod signals;
pub mod tls;
mod wire;

pub use channel::{VisitSockets, Wish};
pub use exec::adopt_inherited;
pub use keeper::{ControlChoice, HANDOVER_VERSION, KeeperFailure, KeeperOptions, Load, loads, run};
pub use key_files::{CertificateAndKey, FILE_BYTES_MAX, KeyFiles};
pub use papers::KeeperFacts;
pub use preflight::{connection_files, connections_possible};
pub use privileges::become_server_user;
pub use server_side::{Generation, KeeperEvent, ServerLife};

/// What the first process keeps of a config.
type Config = hob_config::Config<hob_config::NoHandlers>;

/// Cores this process may use: affinity and CPU quota counted.
pub fn usable_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
