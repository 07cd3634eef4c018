//! The access log: one thread that takes records out of the rings of all serving threads and writes
//! their lines.
//!
//! Serving threads never wait for it: a ring that is full, a disk that is full or a reader that
//! does not read costs lines, which are counted, and nothing else. The thread opens no file: it
//! gets files from the process that owns their paths, and asks that process when one is due for
//! rotation. It connects to collectors of syslog itself, and
//! starts programs that read a log.
//!
//! `log` is what the owner holds, `writer` the thread, `destination` one log, `syslog` the way of
//! one to a collector, `piped` that to a program, `pace` decides when the thread looks again.

mod destination;
mod log;
mod pace;
mod piped;
mod syslog;
mod writer;

pub use log::{AccessLog, AskForRotation, DestinationSettings, LogId, LogIdsUsedUp, Target};
use log::{WriterCommand, WriterMailbox};
pub use piped::StartProgram;
pub use syslog::{AcknowledgedBytes, SYSLOG_MESSAGE_BYTES_MAX, SyslogAddress, SyslogSettings};

#[cfg(test)]
mod tests;
