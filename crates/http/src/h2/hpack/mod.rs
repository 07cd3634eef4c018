//! HPACK (RFC 7541): field lists to blocks and back.
//!
//! - `decode` blocks to names and values, in the caller's buffer
//! - `encode` names and values to blocks
//! - `table` the dynamic table that each side has, `fixed` the static one
//! - `number` integers and strings, `huffman` and `code` their compression
//!
//! What a name means and whether a value is lawful is found out when it is read as text, and kept
//! in the table beside it: a field that comes as an index costs no second look.

mod code;
mod decode;
mod encode;
mod fixed;
pub mod huffman;
pub(crate) mod number;
mod table;

pub use decode::{Decoder, Field, Name};
pub(crate) use decode::{append, is_hop_by_hop, is_lawful, span};
pub(crate) use encode::place_of;
pub use encode::{Encoder, Stored, encode_field};

/// The size of a dynamic table before anyone says otherwise; also the most either side here keeps.
pub(crate) const TABLE_BYTES: usize = 4096;
/// What an entry counts for besides its bytes.
//= rfc7541#4.1
pub(crate) const ENTRY_BYTES: usize = 32;

/// A block that no encoder makes: the connection cannot go on, its tables differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);
