//! HPACK (RFC 7541): field lists to blocks and back.
//!
//! - `decode` blocks to names and values, in the caller's buffer; `heads` to requests and trailers
//! - `encode` names and values to blocks; `prepared` those of heads that many answers have
//! - `table` the dynamic table that each side has, `fixed` the static one

mod decode;
mod encode;
mod fixed;
mod heads;
mod prepared;
mod table;

pub use decode::HpackDecoder;
pub(crate) use encode::place_of;
pub use encode::{Encoder, Stored, encode_field};
pub(crate) use heads::{pass_over, read_head, read_trailers};
pub(crate) use prepared::{PreparedBlock, push_content_length};

use crate::fields_coding::MalformedFieldBlock;

/// The size of a dynamic table before anyone says otherwise; also the most either side here keeps.
pub(crate) const TABLE_BYTES: usize = 4096;

/// A block that makes more of few bytes than any request is worth.
pub(crate) const TOO_LARGE: MalformedFieldBlock =
    MalformedFieldBlock("a field block grows too large when it is read");
