//! A process for each request: CGI programs (RFC 3875), and commands that know nothing of the web.
//!
//! - `find` which program a path means
//! - `arguments` words of a query as arguments
//! - `gate` how many run at once, and who waits
//! - `head` what a program says of its answer

pub mod arguments;
pub mod find;
pub mod gate;
pub mod head;
