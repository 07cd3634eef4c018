//! The macro-page language: pages with variables, built-in functions and statements of SQL.
//!
//! `parse` makes a `tree` of a file (`lex` knows its words), `run` runs it. Values (`value`) know
//! who made them, so that `sql` binds data into statements and `escape` writes it into pages as
//! what it is: never as a part of either. `builtin` is the table of functions, `host` what a run
//! asks of whoever runs it, `program` what programs are told and say, `request` what a client may
//! say, `ini` the initialization file, `limits` what a run may use. `files` are flat files and
//! registries below folders that are allowed. `lint` says what is doubtful about a page.
//!
//! This crate knows no HTTP and reads no clock; databases and those files are all that it opens.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod builtin;
pub mod escape;
pub mod fault;
pub mod files;
pub mod host;
pub mod ini;
pub mod lex;
pub mod limits;
pub mod lint;
mod parse;
pub mod program;
pub mod request;
pub mod run;
pub mod sql;
pub mod sql_page;
pub mod tree;
pub mod value;
