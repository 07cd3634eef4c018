//! Built-in functions: one table, from which the reader, the runs, the reference and the checks
//! know them.
//!
//! `list` is the table; the other files hold what its rows name, by family, and `rows` how flat
//! files are written. A function takes values and gives one; the run puts it into the variable or
//! the text where it belongs.

mod call;
mod decimal;
mod files;
mod general;
mod html_table;
mod list;
mod math;
mod registry;
mod rows;
mod string;
mod table;
mod word;

pub use call::{BuiltIn, BuiltInForms, BuiltInParameter, CallForm, Tier};
pub(crate) use call::{BuiltInArgument, BuiltInCall, Services, TableRef};
pub use list::{LIST, find, reference};
pub use rows::RowFormat;
