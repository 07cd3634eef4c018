//! Many accounts by few lines: captures of a route's path in roots, in folders of programs with
//! the account they run as, and in files of passwords.
//!
//! - `accounts` a machine with accounts of its own, which the tests' machine never sees
//! - `files` roots that paths and hosts decide
//! - `passwords` who sees the pages of an account
//! - `programs` programs that run as their accounts
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "hosting/accounts.rs"]
mod accounts;
#[path = "hosting/files.rs"]
mod files;
#[path = "hosting/passwords.rs"]
mod passwords;
#[path = "hosting/programs.rs"]
mod programs;
