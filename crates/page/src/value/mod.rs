//! Values: text that knows who made each part of it, and tables of such text.
//!
//! What a macro's author wrote is trusted; everything else is data. Data is bound when it comes to
//! a statement and escaped when it comes to a page, so where it came from travels with it.

mod direction;
mod table;
mod text;

pub use direction::Direction;
pub use table::{Table, TableShape};
pub(crate) use text::char_count;
pub use text::{Marks, Provenance, Text, ValueOrigin};
