//! TLS with other people's servers, where hob is the client of requests.
//!
//! - `terms` who is believed to be who, and what is shown of us
//! - `stream` bytes over a connection, from the handshake on
//! - `fault` why there is no TLS, or no more of it

mod fault;
mod stream;
mod terms;
#[cfg(test)]
mod tests;

pub use fault::{PeerFault, PeerFaultKind};
pub use stream::{RestingTls, TlsStream};
pub use terms::{PeerName, PeerTerms, PeerTrust, PeerVersions};
