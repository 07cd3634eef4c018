//! What can go wrong.

use hob_ipc::MalformedMessage;
use hob_ipc::shm::Lie;

/// Why a call did not do what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
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

impl From<MalformedMessage> for CallFailure {
    fn from(_: MalformedMessage) -> CallFailure {
        CallFailure::Broken
    }
}

impl From<Lie> for CallFailure {
    fn from(_: Lie) -> CallFailure {
        CallFailure::Broken
    }
}

impl From<rustix::io::Errno> for CallFailure {
    fn from(errno: rustix::io::Errno) -> CallFailure {
        match errno {
            rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET => CallFailure::Gone,
            _ => CallFailure::System,
        }
    }
}
