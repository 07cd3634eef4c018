//! What can go wrong, as Rust says it and as C hears it.

use hob_ipc::Malformed;
use hob_ipc::shm::Lie;

use crate::abi;

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

impl Failure {
    /// The number for C.
    pub(crate) fn code(self) -> i32 {
        match self {
            Failure::Misuse => abi::HOB_MISUSE,
            Failure::Gone => abi::HOB_GONE,
            Failure::Cancelled => abi::HOB_CANCELLED,
            Failure::Unsupported => abi::HOB_UNSUPPORTED,
            Failure::TooLong => abi::HOB_TOO_LONG,
            Failure::Refused => abi::HOB_REFUSED,
            Failure::Broken => abi::HOB_BROKEN,
            Failure::System => abi::HOB_SYSTEM,
            Failure::Again => abi::HOB_AGAIN,
        }
    }
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
