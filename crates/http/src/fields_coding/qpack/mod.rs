//! QPACK (RFC 9204) without dynamic tables: field lists to sections and back.
//!
//! - `decode` sections to names and values, in the caller's buffer
//! - `encode` names and values to sections
//! - `fixed` the static table
//!
//! Neither side has a table that grows: we offer none for requests, and use none for answers. So a
//! section is read the moment it is there, whatever else is lost on its way, and one that was made
//! once is good for every connection. What a table would save is at most a few dozen bytes of an
//! answer. Integers and strings are those of HPACK.

mod decode;
mod encode;
mod fixed;

pub use decode::{decode, read_request};
pub(crate) use decode::{read_head, read_trailers};
pub(crate) use encode::{PreparedSection, push_content_length};
pub use encode::{push_field, push_prefix, push_status};
