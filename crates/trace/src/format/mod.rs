//! Access log formats: `common`, `combined`, `json`, or a line of one's own with `{field}` words.
//!
//! A format is compiled once into parts; writing a line appends them one after another. What a
//! client sent is escaped wherever it appears (see `escape`), so that no request can break or forge
//! a line.

mod compile;
mod line;

pub use compile::{AccessLogFormat, FormatError};
use compile::{EscapeStyle, Field, PrefixedField};
pub use line::{ClientNameSource, LineCache, RecordNames};

#[cfg(test)]
mod tests;
