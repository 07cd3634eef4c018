//! Pages of the macro language and their databases, asked for over HTTP.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "page/answers.rs"]
mod answers;
#[path = "page/checks.rs"]
mod checks;
#[path = "page/databases.rs"]
mod databases;
#[path = "page/files.rs"]
mod files;
#[path = "page/flat.rs"]
mod flat;
#[path = "page/limits.rs"]
mod limits;
#[path = "page/many.rs"]
mod many;
#[path = "page/odbc.rs"]
mod odbc;
#[path = "page/place.rs"]
mod place;
#[path = "page/postgres.rs"]
mod postgres;
#[path = "page/program_ends.rs"]
mod program_ends;
#[path = "page/program_place.rs"]
mod program_place;
#[path = "page/programs.rs"]
mod programs;
#[path = "../../page/tests/postgres/server.rs"]
mod server;
#[path = "page/sql.rs"]
mod sql;
#[path = "page/visit_ends.rs"]
mod visit_ends;
#[path = "page/visit_place.rs"]
mod visit_place;
#[path = "page/visits.rs"]
mod visits;
