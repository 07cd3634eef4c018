//! Access log formats: `common`, `combined`, `json`, or a line of one's own with `{field}` words.
//!
//! A format is compiled once into parts; writing a line appends them one after another. What a
//! client sent is escaped wherever it appears (see `escape`), so that no request can break or forge
//! a line.

mod asked;
mod compile;
mod line;

use asked::AskedText;
pub(crate) use asked::whole_characters;
pub use asked::{
    ASKED_BYTES_MAX, ASKED_COUNT_MAX, ASKED_VALUE_BYTES_MAX, AskedValue, AskedValueWriter,
    variables_of,
};
pub use compile::{AccessLogFormat, FormatError};
use compile::{EscapeStyle, Field, PrefixedField};
pub(crate) use line::CUT_MARK;
pub use line::{ClientCountrySource, ClientNameSource, LineCache, RecordNames};

#[cfg(test)]
mod tests;
