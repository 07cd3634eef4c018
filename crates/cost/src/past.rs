//! What the same things took in 1995: CERN httpd 3.0 on a 50 MHz workstation, a POST of 542 bytes
//! to a CGI program that echoes it, 1,000 requests; and process creation alone.

/// A stage of then, beside the one of now. Milliseconds.
pub(crate) const TOTAL_MS: f64 = 202.0;
/// Client work, reading the answer, connection.
pub(crate) const CLIENT_MS: f64 = 16.0;
/// Reading the request's head.
pub(crate) const PARSE_MS: f64 = 43.0;
/// Decoding and formatting in the CGI program.
pub(crate) const PROGRAM_MS: f64 = 7.0;
/// fork and exec, as the text has it; an earlier draft says 24.
pub(crate) const CREATE_MS: &str = "14 or 24";
/// Blocked on a socket, which nobody explained.
pub(crate) const BLOCKED_MS: f64 = 120.0;
/// Fork and 1,000 bytes each way.
pub(crate) const FORK_MS: f64 = 10.0;
/// The same with exec.
pub(crate) const FORK_EXEC_MS: f64 = 24.0;
