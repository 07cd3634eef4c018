//! Pages that are statements: a file of SQL whose first line is `-- hob: page`.
//!
//! ```text
//! -- hob: page
//! -- title: Parts
//! -- rows: 20
//! SELECT id, name FROM part WHERE (:q IS NULL OR name LIKE '%' || :q || '%') ORDER BY id;
//! ```
//!
//! `:name` is a field of the request, bound as data; one that is missing or empty is NULL. `read`
//! makes statements of the text, `run` has a database run them, `print` writes results as HTML,
//! JSON or CSV.

mod print;
mod read;
mod run;

pub use print::SqlPageFormat;
pub use read::SqlPage;
pub use run::{SqlPageEnd, SqlPageRequest, run};

/// The first line of such a file.
pub const FIRST_LINE: &str = "-- hob: page";
/// The field that says which part of a long result is wanted: 1 is the first.
pub const PAGE_FIELD: &str = "page";
