//! What can go wrong.

use hob_ipc::Malformed;
use hob_ipc::shm::Lie;

/// Why a call did not do what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The call makes no sense here.
    Misuse,
    /// The server is gone.
    Gone,
    /// The client left.
    Cancelled,
    /// There is no such thing on this carrier.
    Unsupported,
    /// Too long.
    TooLong,
    /// The server said no.
    Refused,
    /// What the server sent cannot be understood.
    Broken,
    /// The system said no; `errno` says why.
    System,
    /// The time is over.
    Again,
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Failure {
        Failure::Broken
    }
}

impl From<Lie> for Failure {
    fn from(_: Lie) -> Failure {
        Failure::Broken
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(errno: rustix::io::Errno) -> Failure {
        match errno {
            rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET => Failure::Gone,
            _ => Failure::System,
        }
    }
}
