//! Pages of the macro language and their databases, asked for over HTTP.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "page/answers.rs"]
mod answers;
#[path = "page/databases.rs"]
mod databases;
#[path = "page/files.rs"]
mod files;
#[path = "page/limits.rs"]
mod limits;
#[path = "page/place.rs"]
mod place;
#[path = "page/sql.rs"]
mod sql;
