//! The one layout of messages between server and worker, version 1.
//!
//! All numbers are little-endian. A message is a head of 16 bytes and its payload:
//!
//! ```text
//!  0 u32 bytes of payload       4 u8 kind    5 u8 flags    6 u16 small (meaning by kind)
//!  8 u32 request (0: about the worker itself)              12 u32 large (meaning by kind)
//! ```
//!
//! On a stream messages follow each other without padding. In a ring of shared memory each begins
//! at a multiple of 8.
//!
//! ```text
//! server to worker
//!  1 hello    small: version; payload: see `hello`; three descriptors with its first byte if
//!             shared memory is offered
//!  2 request  small: slot, large: the slot's generation (shared memory only); payload: the
//!             request block, see `request`; LAST: no body follows
//!  3 body     bytes of the request's body; LAST on the last, which may be empty
//!  4 cancel   the client left: output is thrown away; finish, or stop
//!  5 window   large: so many more bytes of data may be sent
//!  6 reply    small: serial of the callout; payload: three digits, a space, text
//!  7 drain    no more requests come; finish those begun, then exit
//!
//! worker to server
//! 33 hello    small: version, large: carrier chosen (1 stream, 2 shm); payload: name and version
//!             of the library, text
//! 34 head     small: status, or 0: as CGI says, from a Status or Location field, else 200;
//!             payload: lines "Name: value\n"; LAST: no body; TUNNEL: what follows is raw both
//!             ways, in `data` and `body`, which now also comes for a request that had none
//! 35 data     bytes of the answer's body; LAST on the last: then no end is needed. LAST and
//!             TUNNEL: only this direction of the tunnel ends, and an end is needed; see `hello`
//! 36 end      ends the answer; payload: trailer lines, or with FAILED the reason
//! 37 info     small: 1xx status; payload: lines
//! 38 window   large: so many more bytes of body may come
//! 39 callout  small: serial; payload: "KEYWORD: parameters"; QUIET: no reply wanted
//! 40 file     bytes of a file are the next data: see `file`; LAST as with data
//!
//! flags: 1 LAST   2 TUNNEL   4 QUIET   8 CHUNK (shared memory only: the payload says where)
//!        16 FAILED (the program failed; the payload is its reason, for log and record)
//!        32 FILES (hello of a worker: it will pass descriptors, as the server's hello allows)
//! ```
//!
//! Payloads are at most 64 KiB long, a request block 128 KiB. What is longer, of an unknown kind,
//! or bears a flag that its kind does not have is malformed and ends the worker.

use crate::limits::{FILE_BYTES, HEAD_BYTES, PAYLOAD_BYTES_MAX, REQUEST_BYTES_MAX};
use crate::malformed::MalformedMessage;

/// The version of the layout, in both hellos.
pub const VERSION: u16 = 1;

/// Nothing more of this direction follows for the request.
pub const LAST: u8 = 1;
/// On a head: what follows is raw both ways. On data, with [`LAST`]: only this direction ends.
pub const TUNNEL: u8 = 2;
/// On a callout: no reply is wanted.
pub const QUIET: u8 = 4;
/// On data in shared memory: the payload names a chunk instead of holding the bytes.
pub const CHUNK: u8 = 8;
/// On an end: the program failed, the payload is its reason.
pub const FAILED: u8 = 16;

/// On a worker's hello: it will send `file`, which the server's hello has allowed.
pub const FILES: u8 = 32;

/// The payload of a message with [`CHUNK`]: index of the chunk and bytes in it, two u32.
pub const CHUNK_REFERENCE_BYTES: usize = 8;

/// Who writes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageSender {
    /// The server.
    Server,
    /// A worker.
    Worker,
}

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Carrier {
    /// Over the Unix socket.
    Stream = 1,
    /// Through shared memory.
    Shm = 2,
}

impl Carrier {
    /// The carrier of that number.
    pub fn from_number(number: u32) -> Option<Carrier> {
        match number {
            1 => Some(Carrier::Stream),
            2 => Some(Carrier::Shm),
            _ => None,
        }
    }
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// The server greets.
    Hello = 1,
    /// A request.
    Request = 2,
    /// Bytes of a request's body.
    Body = 3,
    /// The client left.
    Cancel = 4,
    /// More data may be sent.
    Window = 5,
    /// Answers a callout.
    Reply = 6,
    /// No more requests come.
    Drain = 7,
    /// The worker greets back.
    WorkerHello = 33,
    /// Status and fields of an answer.
    Head = 34,
    /// Bytes of an answer's body.
    Data = 35,
    /// The answer ends.
    End = 36,
    /// An interim answer.
    Info = 37,
    /// More body may come.
    WorkerWindow = 38,
    /// The worker asks the server something.
    Callout = 39,
    /// Bytes of a file are the next of an answer's body.
    File = 40,
}

/// What a kind's request number must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Worker,
    Request,
    Either,
}

/// What holds for one kind.
struct Rule {
    kind: MessageKind,
    side: MessageSender,
    flags: u8,
    about: About,
    payload_bytes_max: usize,
}

const fn rule(
    kind: MessageKind,
    side: MessageSender,
    flags: u8,
    about: About,
    payload_bytes_max: usize,
) -> Rule {
    Rule {
        kind,
        side,
        flags,
        about,
        payload_bytes_max,
    }
}

/// The table of kinds.
const RULES: [Rule; 15] = {
    use About::{Either, Request, Worker};
    const MAX: usize = PAYLOAD_BYTES_MAX;
    [
        rule(MessageKind::Hello, MessageSender::Server, 0, Worker, MAX),
        rule(
            MessageKind::Request,
            MessageSender::Server,
            LAST,
            Request,
            REQUEST_BYTES_MAX,
        ),
        rule(MessageKind::Body, MessageSender::Server, LAST, Request, MAX),
        rule(MessageKind::Cancel, MessageSender::Server, 0, Request, 0),
        rule(MessageKind::Window, MessageSender::Server, 0, Request, 0),
        rule(MessageKind::Reply, MessageSender::Server, 0, Either, MAX),
        rule(MessageKind::Drain, MessageSender::Server, 0, Worker, 0),
        rule(
            MessageKind::WorkerHello,
            MessageSender::Worker,
            FILES,
            Worker,
            MAX,
        ),
        rule(
            MessageKind::Head,
            MessageSender::Worker,
            LAST | TUNNEL,
            Request,
            MAX,
        ),
        rule(
            MessageKind::Data,
            MessageSender::Worker,
            LAST | TUNNEL | CHUNK,
            Request,
            MAX,
        ),
        rule(
            MessageKind::End,
            MessageSender::Worker,
            LAST | FAILED,
            Request,
            MAX,
        ),
        rule(MessageKind::Info, MessageSender::Worker, 0, Request, MAX),
        rule(
            MessageKind::WorkerWindow,
            MessageSender::Worker,
            0,
            Request,
            0,
        ),
        rule(
            MessageKind::Callout,
            MessageSender::Worker,
            QUIET,
            Either,
            MAX,
        ),
        rule(
            MessageKind::File,
            MessageSender::Worker,
            LAST,
            Request,
            FILE_BYTES,
        ),
    ]
};

/// Where in the table each kind stands, by its number; 255 where there is no kind.
const PLACES: [u8; 41] = {
    let mut places = [255; 41];
    let mut place = 0;
    while place < RULES.len() {
        places[RULES[place].kind as usize] = place as u8;
        place += 1;
    }
    places
};

impl MessageKind {
    /// Who sends messages of this kind.
    pub fn side(self) -> MessageSender {
        self.rule().side
    }

    /// The longest payload, in bytes.
    pub fn payload_bytes_max(self) -> usize {
        self.rule().payload_bytes_max
    }

    /// The word for it in errors and traces.
    pub fn word(self) -> &'static str {
        match self {
            MessageKind::Hello | MessageKind::WorkerHello => "hello",
            MessageKind::Request => "request",
            MessageKind::Body => "body",
            MessageKind::Cancel => "cancel",
            MessageKind::Window | MessageKind::WorkerWindow => "window",
            MessageKind::Reply => "reply",
            MessageKind::Drain => "drain",
            MessageKind::Head => "head",
            MessageKind::Data => "data",
            MessageKind::End => "end",
            MessageKind::Info => "info",
            MessageKind::Callout => "callout",
            MessageKind::File => "file",
        }
    }

    fn rule(self) -> &'static Rule {
        &RULES[PLACES[self as usize] as usize]
    }
}

/// The head of a message. One that was decoded has been checked: see [`Head::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// Bytes of payload; whoever sends a message need not set it.
    pub len: u32,
    /// What the message is about.
    pub kind: MessageKind,
    /// Flags: [`LAST`] and so on.
    pub flags: u8,
    /// Meaning by kind.
    pub small: u16,
    /// The request; 0 is the worker itself.
    pub request: u32,
    /// Meaning by kind.
    pub large: u32,
}

impl MessageHead {
    /// A head with nothing but kind and request.
    pub fn new(kind: MessageKind, request: u32) -> MessageHead {
        MessageHead {
            len: 0,
            kind,
            flags: 0,
            small: 0,
            request,
            large: 0,
        }
    }

    /// The same with these flags.
    pub fn flags(self, flags: u8) -> MessageHead {
        MessageHead { flags, ..self }
    }

    /// The same with this small number.
    pub fn small(self, small: u16) -> MessageHead {
        MessageHead { small, ..self }
    }

    /// The same with this large number.
    pub fn large(self, large: u32) -> MessageHead {
        MessageHead { large, ..self }
    }

    /// The same for a payload of that length.
    ///
    /// # Panics
    ///
    /// When the length is more than the kind allows: whoever sends cuts what is long.
    pub fn sized(self, len: usize) -> MessageHead {
        assert!(
            len <= self.kind.payload_bytes_max(),
            "a sender cuts payloads to what their kind allows"
        );
        MessageHead {
            len: len as u32,
            ..self
        }
    }

    /// True when nothing more of this direction follows for the request.
    pub fn is_last(&self) -> bool {
        self.flags & LAST != 0
    }

    /// True when all these flags are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// The 16 bytes.
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[0..4].copy_from_slice(&self.len.to_le_bytes());
        bytes[4] = self.kind as u8;
        bytes[5] = self.flags;
        bytes[6..8].copy_from_slice(&self.small.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.request.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.large.to_le_bytes());
        bytes
    }

    /// Reads and checks a head that `side` wrote, on that carrier.
    ///
    /// What comes back keeps these promises: the kind is one that `side` sends, the length is
    /// within the kind's limit, flags are the kind's own, the request number is zero exactly where
    /// it must be, and a status is one.
    ///
    /// # Errors
    ///
    /// [`MalformedMessage`] says what does not hold.
    pub fn decode(
        bytes: &[u8; HEAD_BYTES],
        side: MessageSender,
        carrier: Carrier,
    ) -> Result<MessageHead, MalformedMessage> {
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let rule = PLACES
            .get(usize::from(bytes[4]))
            .and_then(|&place| RULES.get(usize::from(place)))
            .filter(|rule| rule.side == side)
            .ok_or(MalformedMessage::Kind(bytes[4]))?;
        let head = MessageHead {
            len: number(0),
            kind: rule.kind,
            flags: bytes[5],
            small: u16::from_le_bytes([bytes[6], bytes[7]]),
            request: number(8),
            large: number(12),
        };
        head.check(rule, carrier)?;
        Ok(head)
    }

    fn check(&self, rule: &Rule, carrier: Carrier) -> Result<(), MalformedMessage> {
        let kind = self.kind;
        if self.len as usize > rule.payload_bytes_max {
            return Err(MalformedMessage::Length {
                kind,
                bytes: self.len,
                bytes_max: rule.payload_bytes_max as u32,
            });
        }
        let is_chunk = self.has(CHUNK);
        let ends_half = kind == MessageKind::Data && self.has(TUNNEL);
        if self.flags & !rule.flags != 0
            || (is_chunk && carrier != Carrier::Shm)
            || (ends_half && !self.is_last())
        {
            return Err(MalformedMessage::Flags(kind, self.flags));
        }
        if is_chunk && self.len as usize != CHUNK_REFERENCE_BYTES {
            return Err(MalformedMessage::ChunkReference(self.len));
        }
        if kind == MessageKind::File && self.len as usize != FILE_BYTES {
            return Err(MalformedMessage::File);
        }
        let is_about_worker = self.request == 0;
        match rule.about {
            About::Worker if !is_about_worker => Err(MalformedMessage::Request(kind, self.request)),
            About::Request if is_about_worker => Err(MalformedMessage::Request(kind, 0)),
            _ => self.check_status(),
        }
    }

    fn check_status(&self) -> Result<(), MalformedMessage> {
        let is_good = match self.kind {
            MessageKind::Head => matches!(self.small, 0 | 101 | 200..=599),
            MessageKind::Info => matches!(self.small, 100 | 102..=199),
            _ => true,
        };
        if is_good {
            Ok(())
        } else {
            Err(MalformedMessage::Status(self.kind, self.small))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_line_in_the_table() {
        for number in 0..=255u8 {
            let mut bytes = [0; HEAD_BYTES];
            bytes[4] = number;
            bytes[8] = 1;
            if number == MessageKind::File as u8 {
                bytes[0] = FILE_BYTES as u8;
            }
            for side in [MessageSender::Server, MessageSender::Worker] {
                if let Ok(head) = MessageHead::decode(&bytes, side, Carrier::Stream) {
                    assert_eq!((head.kind as u8, head.kind.side()), (number, side));
                    assert_eq!(head.encode(), bytes);
                }
            }
        }
    }

    #[test]
    fn what_a_kind_does_not_have_is_malformed() {
        let data = MessageHead::new(MessageKind::Data, 7);
        let decode =
            |head: MessageHead, side, carrier| MessageHead::decode(&head.encode(), side, carrier);
        let stream = |head| decode(head, MessageSender::Worker, Carrier::Stream);
        assert_eq!(stream(data.flags(LAST)), Ok(data.flags(LAST)));
        assert_eq!(
            stream(data.flags(LAST | TUNNEL)),
            Ok(data.flags(LAST | TUNNEL))
        );
        assert_eq!(
            stream(data.flags(TUNNEL)),
            Err(MalformedMessage::Flags(MessageKind::Data, TUNNEL))
        );
        assert_eq!(
            stream(data.flags(CHUNK)),
            Err(MalformedMessage::Flags(MessageKind::Data, CHUNK))
        );
        assert_eq!(
            decode(data.flags(CHUNK), MessageSender::Worker, Carrier::Shm),
            Err(MalformedMessage::ChunkReference(0))
        );
        assert_eq!(
            decode(data, MessageSender::Server, Carrier::Stream),
            Err(MalformedMessage::Kind(35))
        );
        assert_eq!(
            stream(MessageHead { request: 0, ..data }),
            Err(MalformedMessage::Request(MessageKind::Data, 0))
        );
        let long = MessageHead {
            len: 65_537,
            ..data
        };
        assert_eq!(
            stream(long).expect_err("too long").to_string(),
            "a data message of 65537 bytes, 65536 are allowed"
        );
        assert_eq!(
            stream(MessageHead::new(MessageKind::Info, 1).small(101)),
            Err(MalformedMessage::Status(MessageKind::Info, 101))
        );
    }
}
