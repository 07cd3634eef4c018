//! What a connection waits for with a clock running.

/// Which clock is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// None.
    None,
    /// A new connection's first byte, or the time between requests.
    Idle,
    /// The rest of a head.
    Head,
    /// The next piece of a request body.
    Body,
    /// The client taking bytes.
    Write,
    /// Closing with unread input.
    Linger,
    /// TLS being established; no engine has this one.
    Handshake,
}
