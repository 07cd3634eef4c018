//! HTTP/1.1 from the client's side: reading answers. Bytes go in, events come out; nothing here
//! has a socket or a clock, and nothing is shared with the server's parser.

mod chunks;
mod head;
mod reader;

pub use reader::{AnswerProgress, AnswerReadOptions, AnswerReader, BadAnswer};
