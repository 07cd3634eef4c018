//! Statements: how values come into them, and what a database is asked.
//!
//! `bind` walks over a statement's text and makes a parameter of every value that is data; text
//! that reaches a database was written by the page's author. `place` knows where a value may stand.
//! `database` says what a database does for a run; `sqlite` and `postgres` are two. `state` numbers
//! their errors.

mod bind;
mod database;
mod place;
mod plan;
pub mod postgres;
pub mod sqlite;
mod state;

pub use bind::{BindRules, REFUSED, bind};
pub(crate) use bind::{CallParameter, bind_call};
pub use database::{
    BoundKind, BoundValue, Cell, Database, DatabaseName, Procedure, ProcedureParameter, READS_ONLY,
    RowSink, RowsEnd, RunDone, Statement,
};
pub use state::code_of_state;
