//! Servers of other people that answer for routes: who they are and how they are reached. Knows no
//! protocol that is spoken there.
//!
//! - `address` where one is, as the config writes it
//! - `connect` a connection to it, `kept` those that stay open between requests

pub mod address;
pub(crate) mod connect;
pub(crate) mod kept;
