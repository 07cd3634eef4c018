//! What can be wrong with a message. Whoever sent it broke the protocol; its connection ends.

use std::fmt;

use crate::message::MessageKind;

/// What the other side sent is not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MalformedMessage {
    /// No message of that kind comes from that side.
    Kind(u8),
    /// The payload is longer than its kind allows.
    Length {
        /// The kind.
        kind: MessageKind,
        /// How long it says it is.
        bytes: u32,
        /// How long it may be.
        bytes_max: u32,
    },
    /// A flag that its kind does not have on this carrier.
    Flags(MessageKind, u8),
    /// A reference to a chunk has another length than such references have.
    ChunkReference(u32),
    /// A `file` whose payload says no range of a file.
    File,
    /// A request's message without a number, or one about the worker with a number.
    Request(MessageKind, u32),
    /// A status that is none, or not one of its kind.
    Status(MessageKind, u16),
    /// A hello that cannot be read: why.
    Hello(&'static str),
    /// A request block that cannot be read: why.
    Block(&'static str),
    /// The stream ended inside a message.
    Cut,
    /// Lines of the classic protocol that cannot be followed: why.
    Lines(&'static str),
}

impl fmt::Display for MalformedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MalformedMessage::Kind(number) => {
                write!(f, "a message of kind {number}, which this side never sends")
            }
            MalformedMessage::Length {
                kind,
                bytes,
                bytes_max,
            } => write!(
                f,
                "a {} message of {bytes} bytes, {bytes_max} are allowed",
                kind.word()
            ),
            MalformedMessage::Flags(kind, flags) => write!(
                f,
                "a {} message with flags {flags:#x}, which it cannot have",
                kind.word()
            ),
            MalformedMessage::ChunkReference(bytes) => {
                write!(f, "a reference to a chunk of {bytes} bytes instead of 8")
            }
            MalformedMessage::File => f.write_str("a file message that says no range of a file"),
            MalformedMessage::Request(kind, 0) => {
                write!(f, "a {} message that names no request", kind.word())
            }
            MalformedMessage::Request(kind, request) => write!(
                f,
                "a {} message that names request {request}, but is about the worker",
                kind.word()
            ),
            MalformedMessage::Status(kind, status) => write!(
                f,
                "a {} message with status {status}, which it cannot have",
                kind.word()
            ),
            MalformedMessage::Hello(why) => write!(f, "a hello that cannot be read: {why}"),
            MalformedMessage::Block(why) => write!(f, "a request block that cannot be read: {why}"),
            MalformedMessage::Cut => f.write_str("the stream ended inside a message"),
            MalformedMessage::Lines(why) => {
                write!(f, "output that breaks the line protocol: {why}")
            }
        }
    }
}

impl std::error::Error for MalformedMessage {}
