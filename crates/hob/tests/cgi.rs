//! CGI programs and commands behind the real server: real scripts in sh, C, Perl and Python, held
//! against RFC 3875.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "cgi/answers.rs"]
mod answers;
#[path = "cgi/commands.rs"]
mod commands;
#[path = "cgi/ending.rs"]
mod ending;
#[path = "cgi/failures.rs"]
mod failures;
#[path = "cgi/limits.rs"]
mod limits;
#[path = "cgi/paths.rs"]
mod paths;
#[path = "cgi/requests.rs"]
mod requests;
#[path = "cgi/site.rs"]
mod site;
