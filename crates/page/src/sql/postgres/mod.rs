//! PostgreSQL as a page's database: one connection, opened by whoever owns the run, and again when
//! the server went away.
//!
//! Values go to the server as text, and it takes them for what its columns are; what comes back is
//! text too, so that every type there is can be shown. Rows come in portions: while a page prints
//! one, the connection is free for the statements of its rows.
//!
//! `url` reads where a database is, `connect` gets there, `wire` speaks, `session` holds prepared
//! statements, the transaction and open results. `database` is what a run sees, `marks` numbers the
//! parameters of a statement, `fault` says in codes what a server means.

mod connect;
mod database;
mod fault;
mod marks;
mod session;
mod url;
mod wire;

pub use database::PostgresDatabase;
pub use marks::numbered;
pub use url::{PostgresOptions, PostgresPlace, PostgresTls};

/// Asked while a statement runs; yes has the server cancel it.
pub type IsOver = Box<dyn FnMut() -> bool + Send>;
