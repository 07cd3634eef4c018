//! What a config wants of this machine, seen before anything is opened: one report for `hob check`
//! and for the start and the reload of `hob serve`, with the same words at the same places.
//!
//! `look` is the entry, `told` the report while it is made, `sight` what an account may do on the
//! disk; `certificates`, `programs`, `libraries`, `places` and `addresses` are what is looked at.
//! Handlers tell what theirs want ([`MachineWants`]), and start applications, which `hob check`
//! alone tries: a server starts them anyway.

mod addresses;
mod certificates;
mod libraries;
mod look;
mod places;
mod programs;
mod sight;
mod told;

pub(crate) use addresses::not_opened;
pub(crate) use look::load_for_start;
pub use look::{Accounts, Extent, RunningAddresses, load};
pub use places::{connection_files, connections_possible};
pub use programs::{MachineWants, ProgramCheck};
pub use sight::Want;
pub use told::PreflightReport;
