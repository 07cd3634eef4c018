//! Stateless resets: how a server ends connections that it knows nothing of, those of a server
//! that has died.
//!
//! ```text
//! secret, kept by the keeper -> HMAC with the socket's address -> key -> HMAC with the id -> token
//! ```
//!
//! The token of a connection id goes to the client within the handshake; whoever sends it later
//! ends the connection. Servers that follow each other have the same secret, so a later one can
//! make the tokens that an earlier one gave. Each address has a key of its own: a datagram with
//! somebody else's id, sent to another address of the same server, shows nobody a token of use.

use std::fmt;
use std::net::SocketAddr;

use aws_lc_rs::hmac;

/// What tokens are made from.
#[derive(Clone, PartialEq, Eq)]
pub struct ResetSecret([u8; ResetSecret::BYTES]);

impl ResetSecret {
    /// Bytes of a secret.
    pub const BYTES: usize = 32;

    /// A new one, which nobody else has.
    #[allow(clippy::new_without_default)] // Each one is another.
    pub fn new() -> ResetSecret {
        let mut secret = [0; ResetSecret::BYTES];
        // Whoever can guess it can only end connections of others.
        let _ = aws_lc_rs::rand::fill(&mut secret);
        ResetSecret(secret)
    }

    /// One that was made before; `None` when it is not as long as they are.
    pub fn from_bytes(bytes: &[u8]) -> Option<ResetSecret> {
        bytes.try_into().ok().map(ResetSecret)
    }

    /// Its bytes, for who keeps it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What the tokens of connections over one socket are made with.
    //= rfc9000#10.3.2
    pub(super) fn key_at(&self, address: Option<SocketAddr>) -> hmac::Key {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let mut text = b"stateless reset of connections to ".to_vec();
        if let Some(address) = address {
            text.extend_from_slice(address.to_string().as_bytes());
        }
        let key = hmac::sign(&secret, &text);
        hmac::Key::new(hmac::HMAC_SHA256, key.as_ref())
    }
}

impl fmt::Debug for ResetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetSecret")
    }
}
