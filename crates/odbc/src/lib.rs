//! Databases that pages reach over ODBC, with a driver manager and drivers of the system.
//!
//! Drivers are other people's C code. They are loaded into a process of its own for each
//! connection, which the server starts and ends: one that crashes or hangs takes nothing else
//! along, and neither the server nor hob needs a driver manager to be there.
//!
//! ```text
//!  run of a page -- database -- link ====== socket ====== process -- driver manager -- driver
//!                                        `message`
//! ```
//!
//! `options` reads which data source it is. `database` is what a run sees, `link` the way to the
//! process and its end, `message` what is said there. `process` is the other side.
#![deny(missing_docs)]

mod database;
mod link;
pub mod message;
mod options;
pub mod process;

pub use database::OdbcDatabase;
pub use link::{IsOver, StartProcess};
pub use options::{MEMORY_BYTES, OdbcOptions};
