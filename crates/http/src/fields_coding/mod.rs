//! Lists of fields as HTTP/2 and HTTP/3 send them, and the heads they make.
//!
//! - `head` fields to request heads, and what makes a request malformed (RFC 9113 section 8)
//! - `field` what a name means, and whether a value is lawful
//! - `hpack` compression with tables that grow (RFC 7541), `qpack` without (RFC 9204)
//! - `number` integers and strings of both, `huffman` and `code` their compression
//!
//! What a name means and whether a value is lawful is found out when it is read as text, and kept
//! in the table beside it: a field that comes as an index costs no second look.

mod code;
mod field;
pub(crate) mod head;
pub mod hpack;
pub mod huffman;
mod number;
pub mod qpack;

pub(crate) use field::is_hop_by_hop;
pub use field::{Field, RequestFieldName};

/// What an entry counts for besides its bytes.
//= rfc7541#4.1
pub(crate) const ENTRY_BYTES: usize = 32;

/// A block that no encoder makes: the connection cannot go on, its tables differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedFieldBlock(pub &'static str);
