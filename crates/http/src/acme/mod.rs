//! Certificates from an authority that speaks ACME (RFC 8555), asked for and renewed by themselves.
//!
//! ```text
//! account --> order --> challenges shown --> authority looks --> chain --> checked, stored, served
//! ```
//!
//! - `client` HTTPS to the authority, `account` who we are there
//! - `order` one certificate from the wish to the chain, `trouble` why there is none
//! - `challenge` what proves that a name is ours; the server answers `http-01` and `tls-alpn-01`
//! - `leaf` what a certificate says of itself, `check` whether a chain may be served
//! - `renewal` when to renew and when to try again: numbers in, numbers out
//! - `store` where accounts and certificates are kept
//!
//! Only orders need a runtime and a network; they are made in a process that answers no request.

mod account;
mod challenge;
mod check;
mod client;
mod leaf;
mod order;
mod renewal;
mod store;
mod trouble;

pub use account::{AcmeSession, Authority, ExternalAccount};
pub use challenge::{ALPN, Challenge, ChallengeMethod, Challenges, PATH, Token};
pub use check::{UnfitCertificate, certificates_only, check, leaf_of, names_in};
pub use leaf::Leaf;
pub use order::{ChallengePresenter, Obtained, WantedCertificate, obtain};
pub use renewal::{OrderPacing, Window, due_unix_s, seed_of};
pub use store::{AuthorityFolder, Item, OrderLock, Store, StoreError};
pub use trouble::{AcmeError, one_line};

use std::time::Duration;

/// Most names of one certificate.
pub const NAMES_MAX: usize = 100;
/// Orders under way at a time.
pub const ORDERS_MAX: usize = 4;
/// Challenges that are answered at a time.
pub const CHALLENGES_MAX: usize = NAMES_MAX * ORDERS_MAX;
/// Longest time for one request to the authority.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// Largest answer of the authority, in bytes.
pub(crate) const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// How long the authority may take to look at the challenges, and again to make the certificate.
pub(crate) const POLL_TIME_MAX: Duration = Duration::from_secs(120);
/// How often a request is made again because the authority refused its nonce; each is tried three
/// times by the library.
pub(crate) const NONCE_TRIES_MAX: u32 = 5;
