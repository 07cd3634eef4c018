//! What server and programs say to each other, and the three ways it travels.
//!
//! [`message`] draws the one layout. [`stream`] carries it over a Unix socket, in any language;
//! [`shm`] through memory both sides share, reached by programs through `libhob`; [`lines`] is the
//! classic protocol of lines, for shells and old programs. Everything a worker sends is checked
//! once, where it comes in; a worker that breaks the rules is an error with words, never a panic.

pub mod file;
pub mod hello;
pub mod limits;
pub mod lines;
pub mod malformed;
pub mod message;
pub mod request;
pub mod shm;
pub mod stream;

pub use malformed::MalformedMessage;
pub use message::{Carrier, MessageHead, MessageKind, MessageSender};
