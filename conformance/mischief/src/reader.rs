//! Reads what comes back, as far as it matters whether it is allowed.

use hob_load::{AnswerProgress, AnswerReadOptions, AnswerReader, BadAnswer};

use super::act::Reading;
use super::h2::H2;
use super::seen::{End, Seen};

/// Reads what comes back over HTTP/1.
#[derive(Debug)]
pub(crate) struct H1 {
    reader: AnswerReader,
    heads: Vec<bool>,
    pub(crate) statuses: Vec<u16>,
    is_reusable: bool,
    is_within: bool,
    bad: Option<BadAnswer>,
}

/// Reads what comes back.
#[derive(Debug)]
pub(crate) enum Reader {
    H1(Box<H1>),
    H2(Box<H2>),
    /// Counts bytes.
    Blind(u64),
}

impl Reader {
    pub(crate) fn new(reading: &Reading) -> Reader {
        match reading {
            Reading::H1(heads) => Reader::H1(Box::new(H1 {
                reader: AnswerReader::default(),
                heads: heads.clone(),
                statuses: Vec::new(),
                is_reusable: true,
                is_within: false,
                bad: None,
            })),
            Reading::H2(awaited) => Reader::H2(Box::new(H2::new(awaited))),
            Reading::Blind => Reader::Blind(0),
        }
    }

    /// Takes bytes as they came.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        match self {
            Reader::H1(h1) => h1.take(bytes),
            Reader::H2(h2) => h2.take(bytes),
            Reader::Blind(count) => *count += bytes.len() as u64,
        }
    }

    /// Has anything come?
    pub(crate) fn has_something(&self) -> bool {
        match self {
            Reader::H1(h1) => h1.is_within || !h1.statuses.is_empty() || h1.bad.is_some(),
            Reader::H2(h2) => h2.has_something(),
            Reader::Blind(count) => *count > 0,
        }
    }

    /// Reading on makes no sense.
    pub(crate) fn is_bad(&self) -> bool {
        match self {
            Reader::H1(h1) => h1.bad.is_some(),
            Reader::H2(h2) => h2.is_bad(),
            Reader::Blind(_) => false,
        }
    }

    /// All is heard that was waited for; the connection need not end.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Reader::H2(h2) if h2.is_done())
    }

    /// So many answers are there, and the connection could carry another request.
    pub(crate) fn is_kept_after(&self, count: usize) -> bool {
        match self {
            Reader::H1(h1) => h1.statuses.len() >= count && h1.is_reusable && !h1.is_within,
            Reader::H2(_) | Reader::Blind(_) => false,
        }
    }

    /// What came, when nothing more does.
    pub(crate) fn seen(self, end: End) -> Seen {
        let mut h1 = match self {
            Reader::H1(h1) => h1,
            Reader::H2(h2) => return h2.seen(end),
            Reader::Blind(_) => return Seen::only(end),
        };
        let end = match (h1.bad, &end) {
            (Some(bad), _) => End::Malformed(bad.to_string()),
            (None, End::Closed) if h1.is_within => match h1.reader.end() {
                Ok(()) => {
                    h1.statuses.push(h1.reader.answer().status);
                    end
                }
                Err(bad) => End::Malformed(bad.to_string()),
            },
            _ => end,
        };
        Seen {
            statuses: h1.statuses,
            said: Vec::new(),
            end,
            was_kept: false,
        }
    }
}

impl H1 {
    fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && self.bad.is_none() {
            let is_head = self.heads.get(self.statuses.len());
            let asked = AnswerReadOptions {
                is_head: is_head.copied().unwrap_or(false),
                fields: &[],
                is_hashed: false,
            };
            self.is_within = true;
            match self.reader.read(rest, asked) {
                Ok(AnswerProgress::More) => return,
                Ok(AnswerProgress::Complete(used)) => {
                    let answer = self.reader.answer();
                    self.statuses.push(answer.status);
                    self.is_reusable = answer.is_reusable;
                    self.is_within = false;
                    rest = &rest[used..];
                }
                Err(bad) => self.bad = Some(bad),
            }
        }
    }
}
