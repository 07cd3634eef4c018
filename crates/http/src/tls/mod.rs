//! TLS below the connection: handshakes by rustls, records by our own hand.
//!
//! ```text
//! first bytes --> Hello (which name?) --> Handshake (rustls) --> Session (our records)
//! ```
//!
//! - `roots` who is believed where hob is the client
//! - `certificate` a chain and its key, checked to belong together
//! - `self_signed` one made here, for machines without a name
//! - `terms` what a listener offers: versions, suites, certificates by name, client rules
//! - `client` whether clients need a certificate, `x509` what theirs says
//! - `ticket` keys of session tickets, shared and rotating
//! - `hello` a look at a ClientHello before rustls has it
//! - `handshake` from the first byte to the session, `failure` why there is none
//! - `record` sealing and opening of records, `session` the connection they belong to
//! - `peer` all of it to other people's servers
//!
//! rustls makes the handshake and hands its keys out. Records are sealed and opened here with the
//! same AEADs, in the thread's own buffers: one copy less each way than through rustls, no
//! allocation, and an idle connection holds keys and nothing else.

pub(crate) mod certificate;
mod client;
pub(crate) mod failure;
pub(crate) mod handshake;
pub mod hello;
pub mod peer;
pub(crate) mod record;
pub(crate) mod roots;
mod self_signed;
pub(crate) mod session;
pub(crate) mod terms;
mod ticket;
pub(crate) mod x509;

pub use certificate::{Certificate, CertificateError};
pub(crate) use client::ShownCertificates;
pub use client::{ClientRule, NO_RULE, Need};
pub use self_signed::SelfSigned;
pub(crate) use self_signed::pem;
pub(crate) use terms::suite_name;
pub use terms::{HostOffer, Offer, SUITES, TermsError, TlsHosts, Version};
pub use ticket::TicketKeys;
pub use x509::ClientCertificate;
