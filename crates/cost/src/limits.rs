//! Every limit of a cost study, with its unit in its name.

use std::time::Duration;

/// Requests of each series, unless others are asked for.
pub const COUNT: u64 = 1000;
/// Most requests of each series.
pub const COUNT_MAX: u64 = 1_000_000;
/// Bytes of the body that the built-in echo is sent: what the study of 1995 sent.
pub const ECHO_BYTES: usize = 542;
/// Bytes each way of the bare experiment: what the study of 1995 sent.
pub const EXCHANGE_BYTES: usize = 1000;
/// Largest body of a request to a script: it must fit into a pipe, so that nobody has to feed it.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Longest answer that is read when one is looked at.
pub(crate) const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Longest wait for an answer.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest wait for a first answer over UDP, where nobody says that nobody is there.
pub(crate) const DATAGRAM_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest wait for the private server to be ready, or to end.
pub(crate) const SERVER_TIME_MAX: Duration = Duration::from_secs(60);
/// Longest wait for what the server has just finished: a line of its log, the end of a process.
pub(crate) const SETTLE_TIME_MAX: Duration = Duration::from_secs(5);
/// How often it is looked whether something has happened that nobody tells.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_millis(5);
/// Bytes of a script that are read to find out what it is.
pub(crate) const SCRIPT_BYTES_MAX: u64 = 1024 * 1024;
/// Largest program whose head is read.
pub(crate) const PROGRAM_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a diagnostic message that are shown.
pub(crate) const MESSAGE_BYTES_MAX: usize = 2000;
