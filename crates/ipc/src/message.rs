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
use crate::malformed::Malformed;

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
pub enum Side {
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
pub enum Kind {
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
    kind: Kind,
    side: Side,
    flags: u8,
    about: About,
    payload_bytes_max: usize,
}

const fn rule(kind: Kind, side: Side, flags: u8, about: About, payload_bytes_max: usize) -> Rule {
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
        rule(Kind::Hello, Side::Server, 0, Worker, MAX),
        rule(
            Kind::Request,
            Side::Server,
            LAST,
            Request,
            REQUEST_BYTES_MAX,
        ),
        rule(Kind::Body, Side::Server, LAST, Request, MAX),
        rule(Kind::Cancel, Side::Server, 0, Request, 0),
        rule(Kind::Window, Side::Server, 0, Request, 0),
        rule(Kind::Reply, Side::Server, 0, Either, MAX),
        rule(Kind::Drain, Side::Server, 0, Worker, 0),
        rule(Kind::WorkerHello, Side::Worker, FILES, Worker, MAX),
        rule(Kind::Head, Side::Worker, LAST | TUNNEL, Request, MAX),
        rule(
            Kind::Data,
            Side::Worker,
            LAST | TUNNEL | CHUNK,
            Request,
            MAX,
        ),
        rule(Kind::End, Side::Worker, LAST | FAILED, Request, MAX),
        rule(Kind::Info, Side::Worker, 0, Request, MAX),
        rule(Kind::WorkerWindow, Side::Worker, 0, Request, 0),
        rule(Kind::Callout, Side::Worker, QUIET, Either, MAX),
        rule(Kind::File, Side::Worker, LAST, Request, FILE_BYTES),
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

impl Kind {
    /// Who sends messages of this kind.
    pub fn side(self) -> Side {
        self.rule().side
    }

    /// The longest payload, in bytes.
    pub fn payload_bytes_max(self) -> usize {
        self.rule().payload_bytes_max
    }

    /// The word for it in errors and traces.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Hello | Kind::WorkerHello => "hello",
            Kind::Request => "request",
            Kind::Body => "body",
            Kind::Cancel => "cancel",
            Kind::Window | Kind::WorkerWindow => "window",
            Kind::Reply => "reply",
            Kind::Drain => "drain",
            Kind::Head => "head",
            Kind::Data => "data",
            Kind::End => "end",
            Kind::Info => "info",
            Kind::Callout => "callout",
            Kind::File => "file",
        }
    }

    fn rule(self) -> &'static Rule {
        &RULES[PLACES[self as usize] as usize]
    }
}

/// The head of a message. One that was decoded has been checked: see [`Head::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of payload; whoever sends a message need not set it.
    pub len: u32,
    /// What the message is about.
    pub kind: Kind,
    /// Flags: [`LAST`] and so on.
    pub flags: u8,
    /// Meaning by kind.
    pub small: u16,
    /// The request; 0 is the worker itself.
    pub request: u32,
    /// Meaning by kind.
    pub large: u32,
}

impl Head {
    /// A head with nothing but kind and request.
    pub fn new(kind: Kind, request: u32) -> Head {
        Head {
            len: 0,
            kind,
            flags: 0,
            small: 0,
            request,
            large: 0,
        }
    }

    /// The same with these flags.
    pub fn flags(self, flags: u8) -> Head {
        Head { flags, ..self }
    }

    /// The same with this small number.
    pub fn small(self, small: u16) -> Head {
        Head { small, ..self }
    }

    /// The same with this large number.
    pub fn large(self, large: u32) -> Head {
        Head { large, ..self }
    }

    /// The same for a payload of that length.
    ///
    /// # Panics
    ///
    /// When the length is more than the kind allows: whoever sends cuts what is long.
    pub fn sized(self, len: usize) -> Head {
        assert!(
            len <= self.kind.payload_bytes_max(),
            "a sender cuts payloads to what their kind allows"
        );
        Head {
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
    /// [`Malformed`] says what does not hold.
    pub fn decode(
        bytes: &[u8; HEAD_BYTES],
        side: Side,
        carrier: Carrier,
    ) -> Result<Head, Malformed> {
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let rule = PLACES
            .get(usize::from(bytes[4]))
            .and_then(|&place| RULES.get(usize::from(place)))
            .filter(|rule| rule.side == side)
            .ok_or(Malformed::Kind(bytes[4]))?;
        let head = Head {
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

    fn check(&self, rule: &Rule, carrier: Carrier) -> Result<(), Malformed> {
        let kind = self.kind;
        if self.len as usize > rule.payload_bytes_max {
            return Err(Malformed::Length {
                kind,
                bytes: self.len,
                bytes_max: rule.payload_bytes_max as u32,
            });
        }
        let is_chunk = self.has(CHUNK);
        let ends_half = kind == Kind::Data && self.has(TUNNEL);
        if self.flags & !rule.flags != 0
            || (is_chunk && carrier != Carrier::Shm)
            || (ends_half && !self.is_last())
        {
            return Err(Malformed::Flags(kind, self.flags));
        }
        if is_chunk && self.len as usize != CHUNK_REFERENCE_BYTES {
            return Err(Malformed::ChunkReference(self.len));
        }
        if kind == Kind::File && self.len as usize != FILE_BYTES {
            return Err(Malformed::File);
        }
        let is_about_worker = self.request == 0;
        match rule.about {
            About::Worker if !is_about_worker => Err(Malformed::Request(kind, self.request)),
            About::Request if is_about_worker => Err(Malformed::Request(kind, 0)),
            _ => self.check_status(),
        }
    }

    fn check_status(&self) -> Result<(), Malformed> {
        let is_good = match self.kind {
            Kind::Head => matches!(self.small, 0 | 101 | 200..=599),
            Kind::Info => matches!(self.small, 100 | 102..=199),
            _ => true,
        };
        if is_good {
            Ok(())
        } else {
            Err(Malformed::Status(self.kind, self.small))
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
            if number == Kind::File as u8 {
                bytes[0] = FILE_BYTES as u8;
            }
            for side in [Side::Server, Side::Worker] {
                if let Ok(head) = Head::decode(&bytes, side, Carrier::Stream) {
                    assert_eq!((head.kind as u8, head.kind.side()), (number, side));
                    assert_eq!(head.encode(), bytes);
                }
            }
        }
    }

    #[test]
    fn what_a_kind_does_not_have_is_malformed() {
        let data = Head::new(Kind::Data, 7);
        let decode = |head: Head, side, carrier| Head::decode(&head.encode(), side, carrier);
        let stream = |head| decode(head, Side::Worker, Carrier::Stream);
        assert_eq!(stream(data.flags(LAST)), Ok(data.flags(LAST)));
        assert_eq!(
            stream(data.flags(LAST | TUNNEL)),
            Ok(data.flags(LAST | TUNNEL))
        );
        assert_eq!(
            stream(data.flags(TUNNEL)),
            Err(Malformed::Flags(Kind::Data, TUNNEL))
        );
        assert_eq!(
            stream(data.flags(CHUNK)),
            Err(Malformed::Flags(Kind::Data, CHUNK))
        );
        assert_eq!(
            decode(data.flags(CHUNK), Side::Worker, Carrier::Shm),
            Err(Malformed::ChunkReference(0))
        );
        assert_eq!(
            decode(data, Side::Server, Carrier::Stream),
            Err(Malformed::Kind(35))
        );
        assert_eq!(
            stream(Head { request: 0, ..data }),
            Err(Malformed::Request(Kind::Data, 0))
        );
        let long = Head {
            len: 65_537,
            ..data
        };
        assert_eq!(
            stream(long).expect_err("too long").to_string(),
            "a data message of 65537 bytes, 65536 are allowed"
        );
        assert_eq!(
            stream(Head::new(Kind::Info, 1).small(101)),
            Err(Malformed::Status(Kind::Info, 101))
        );
    }
}
