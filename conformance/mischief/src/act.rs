//! An act of mischief: steps on a connection, and what may come of them. What is drawn for a number
//! follows from the seed alone, so that one act can be repeated without those before it.

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::time::Duration;

use hob_load::parts::Random;
use hob_load::{Protocol, Url};

/// One thing that is done on a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Sends a byte at a time.
    Drip {
        bytes: Vec<u8>,
        pause: Duration,
    },
    /// Reads a byte at a time, so many at most.
    Sip {
        byte_count: usize,
        pause: Duration,
    },
    /// Waits until something has come.
    Await,
    /// What is sent from now on goes past TLS.
    Strip,
    /// Ends our direction alone.
    HalfClose,
    Leave(Leave),
}

/// How a connection is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Leave {
    /// In order: FIN, or RST from the kernel where there is something unread.
    Close,
    /// RST.
    Reset,
}

/// What lies below the bytes that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Layer {
    /// What the URL says: TLS for https.
    Usual,
    /// The socket itself, whatever the URL says.
    Bare,
    /// The socket, over which this share of a handshake's first message was sent, in 1/256.
    Hello(u8),
}

/// How answers are read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reading {
    /// HTTP/1.1; which of the requests are HEAD.
    H1(Vec<bool>),
    /// HTTP/2; streams of which something is to be heard, and the connection is of no more
    /// interest.
    H2(Vec<u32>),
    /// Nothing that comes is understood.
    Blind,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    /// Steps on one connection.
    Script {
        layer: Layer,
        reading: Reading,
        steps: Vec<Step>,
    },
    /// Many connections at once: what each sends, past TLS, and how it is left.
    Flood(Vec<(Opening, Leave)>),
    /// Something over QUIC.
    Quic(Quic),
}

/// What a connection of a flood begins with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Opening {
    Bytes(Vec<u8>),
    /// The first message of a handshake.
    Hello,
}

/// What is done over QUIC.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Quic {
    /// Datagrams that are none of QUIC's.
    Datagrams(Vec<Vec<u8>>),
    /// A connection that is left alone after so many datagrams of ours.
    Vanish(usize),
    /// Streams on which clients alone speak.
    Streams(QuicStreams),
    /// Requests on one connection.
    Requests {
        requests: Vec<QuicRequest>,
        leave: QuicLeave,
    },
}

/// Streams on which clients alone speak, besides a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct QuicStreams {
    /// What the control stream has instead of settings.
    pub(crate) control: Option<Vec<u8>>,
    pub(crate) is_control_ended: bool,
    /// Others, and whether each is ended.
    pub(crate) others: Vec<(Vec<u8>, bool)>,
    /// Nothing is wrong with them: a request is asked besides.
    pub(crate) is_legal: bool,
}

/// A request over QUIC.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum QuicRequest {
    Good,
    /// A good one that is given up at once.
    Cancelled,
    /// What is sent on its stream instead.
    Bytes(Vec<u8>),
}

/// How a connection over QUIC is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum QuicLeave {
    /// When all answers are there that were not given up.
    Answered,
    /// At once, and the server is told.
    Close,
    /// At once, without a word.
    Silently,
}

/// Statuses that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Statuses {
    /// What the URL is usually answered with.
    Usual,
    /// A refusal of what cannot be understood or is too much.
    Refusal,
    UsualOrRefusal,
    /// Whatever is no fault of the server.
    Any,
}

/// Does the connection have to end?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Free,
    /// Nobody knows where the next request would begin.
    Must,
}

/// What may come of an act.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Allowed {
    /// How many final answers.
    pub(crate) answers: RangeInclusive<usize>,
    /// The first ones have the usual status.
    pub(crate) usual_count: usize,
    /// The others.
    pub(crate) statuses: Statuses,
    pub(crate) ending: Ending,
}

impl Allowed {
    /// We are gone before it matters.
    pub(crate) fn anything() -> Allowed {
        Allowed {
            answers: 0..=usize::MAX,
            usual_count: 0,
            statuses: Statuses::Any,
            ending: Ending::Free,
        }
    }

    /// All of them are answered.
    pub(crate) fn usual(count: usize) -> Allowed {
        Allowed {
            answers: count..=count,
            usual_count: count,
            statuses: Statuses::Any,
            ending: Ending::Free,
        }
    }

    /// The connection ends without an answer.
    pub(crate) fn end() -> Allowed {
        Allowed {
            answers: 0..=0,
            ..Allowed::usual(0)
        }
        .and_ends()
    }

    /// One answer with such a status.
    pub(crate) fn one(statuses: Statuses) -> Allowed {
        Allowed {
            answers: 1..=1,
            usual_count: 0,
            statuses,
            ending: Ending::Free,
        }
    }

    /// One answer with such a status, or the end of the connection.
    pub(crate) fn at_most_one(statuses: Statuses) -> Allowed {
        Allowed {
            answers: 0..=1,
            ..Allowed::one(statuses)
        }
    }

    /// A refusal or the end of the connection.
    pub(crate) fn refusal() -> Allowed {
        Allowed::at_most_one(Statuses::Refusal)
    }

    /// The connection ends.
    pub(crate) fn and_ends(mut self) -> Allowed {
        self.ending = Ending::Must;
        self
    }
}

/// What is drawn for an act.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Script {
    /// What is special about this one.
    pub(crate) detail: String,
    pub(crate) doing: Doing,
    pub(crate) allowed: Allowed,
}

impl Script {
    /// Steps over what the URL says, in HTTP/1.1.
    pub(crate) fn h1(detail: impl Into<String>, steps: Vec<Step>, allowed: Allowed) -> Script {
        Script::pipelined(detail, Vec::new(), steps, allowed)
    }

    /// The same with requests of which some are HEAD.
    pub(crate) fn pipelined(
        detail: impl Into<String>,
        heads: Vec<bool>,
        steps: Vec<Step>,
        allowed: Allowed,
    ) -> Script {
        Script {
            detail: detail.into(),
            doing: Doing::Script {
                layer: Layer::Usual,
                reading: Reading::H1(heads),
                steps,
            },
            allowed,
        }
    }
}

impl Script {
    /// The same past TLS or in the midst of it, without a look at what comes back.
    pub(crate) fn below(mut self, below: Layer) -> Script {
        if let Doing::Script { layer, .. } = &mut self.doing {
            *layer = below;
        }
        self.blind()
    }

    /// The same, and then our direction ends.
    pub(crate) fn half_close(&mut self) {
        if let Doing::Script { steps, .. } = &mut self.doing {
            steps.push(Step::HalfClose);
        }
    }

    /// The same without a look at what comes back.
    pub(crate) fn blind(mut self) -> Script {
        if let Doing::Script { reading, .. } = &mut self.doing {
            *reading = Reading::Blind;
        }
        self
    }
}

/// A kind of act: its name, and what draws one.
pub(crate) type Kind = (&'static str, fn(&mut Draw<'_>) -> Script);

/// One act.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Act {
    pub(crate) number: u64,
    pub(crate) name: &'static str,
    pub(crate) script: Script,
}

/// What scripts are drawn from.
pub(crate) struct Draw<'a> {
    pub(crate) random: Random,
    pub(crate) url: &'a Url,
}

impl Draw<'_> {
    /// A number below another, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.random.next() % limit as u64) as usize
    }

    /// A number of a range.
    pub(crate) fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// One of several.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Bytes of all values.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.random.next() as u8).collect()
    }

    /// How to leave.
    pub(crate) fn leave(&mut self) -> Leave {
        self.pick(&[Leave::Close, Leave::Reset])
    }
}

impl Leave {
    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Leave::Close => "FIN",
            Leave::Reset => "RST",
        }
    }
}

/// The kinds of acts that a server of the URL is exercised with.
pub(crate) fn kinds(protocol: Protocol, is_secure: bool) -> Vec<Kind> {
    let own: &[&[Kind]] = match protocol {
        Protocol::H1 => &[
            super::h1::CUT,
            super::h1::ODD,
            super::h1::MALFORMED,
            super::h1::WEBSOCKET,
        ],
        Protocol::H2 => &[super::h2::LEGAL, super::h2::FLOODS, super::h2::BROKEN],
        Protocol::H3 => &[super::h3::KINDS],
    };
    let mut kinds = own.concat();
    if is_secure && protocol != Protocol::H3 {
        kinds.extend_from_slice(super::tls::KINDS);
    }
    kinds
}

/// Draws the act of a number. Every kind comes once before one comes again.
pub(crate) fn draw(kinds: &[Kind], seed: u64, number: u64, url: &Url) -> Act {
    let count = kinds.len() as u64;
    let (round, place) = (number / count, (number % count) as usize);
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    let mut random = seeded(seed, round, 1);
    for at in (1..order.len()).rev() {
        order.swap(at, (random.next() % (at as u64 + 1)) as usize);
    }
    let (name, script) = kinds[order[place]];
    let mut draw = Draw {
        random: seeded(seed, number, 2),
        url,
    };
    Act {
        number,
        name,
        script: script(&mut draw),
    }
}

/// Numbers that follow from three others, and have nothing to do with those of their neighbours.
fn seeded(seed: u64, number: u64, purpose: u64) -> Random {
    let mixed = Random::new(seed).next() ^ Random::new(number.rotate_left(32) ^ purpose).next();
    Random::new(mixed)
}

/// A number that two sequences of acts share only when they are the same (FNV-1a).
#[derive(Debug)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn of<'a>(acts: impl Iterator<Item = &'a Act>) -> u64 {
        let mut fingerprint = Fingerprint(0xcbf2_9ce4_8422_2325);
        acts.for_each(|act| act.hash(&mut fingerprint));
        fingerprint.0
    }
}

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    }
}
