//! How data comes into a page: escaped by where it stands.
//!
//! `html` follows the markup that the page's author wrote and knows what a browser is inside of:
//! text, a tag, an attribute's value, a script, a style, a comment. `script` does so for
//! JavaScript, `url` for addresses. `encode` are the encodings themselves. Data never moves the
//! place that they follow: whatever it is, tags and scripts stay those of the author.
//! `header` does so for header fields that come before the markup.

mod encode;
mod header;
mod html;
mod script;
mod url;

pub(crate) use encode::{html_encode, html_encode_all, percent_encode};
pub(crate) use header::{DATA_IN_NAME, HeaderFields, HeaderSign, HeaderStart};
pub use html::{EscapeMode, HtmlPlace};
