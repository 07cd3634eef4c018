//! What came of an act, and whether that is allowed.

use std::fmt::Write;

use super::act::{Allowed, Ending, Reading, Statuses};
use super::line::Ended;
use crate::send::h1::{AnswerReader, Asked, BadAnswer, Progress};

/// How an act ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// We have left.
    Left,
    /// The server has.
    Closed,
    Reset,
    /// TLS was refused, or what came is none.
    NoTls,
    /// Nothing came, nor did the connection end.
    Hung,
    /// There was no connection to begin with; why.
    NoConnection(String),
    /// What came is no answer; why.
    Malformed(String),
}

/// What came of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Statuses of final answers, in order; 0 for one that has none.
    pub(crate) statuses: Vec<u16>,
    /// What protocols with more to say than a status have said, such as `GOAWAY PROTOCOL_ERROR`.
    pub(crate) said: Vec<String>,
    pub(crate) end: End,
    /// The server would have taken another request.
    pub(crate) was_kept: bool,
}

/// Statuses by which a server says that it is not its fault.
const REFUSALS: &[u16] = &[
    400, 401, 403, 404, 405, 406, 408, 411, 413, 414, 415, 416, 417, 421, 422, 426, 429, 431, 501,
    503, 505,
];

impl Seen {
    pub(crate) fn only(end: End) -> Seen {
        Seen {
            statuses: Vec::new(),
            said: Vec::new(),
            end,
            was_kept: false,
        }
    }

    /// In few words, the same for alike outcomes.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut rest = &self.statuses[..];
        while let [first, ..] = rest {
            let count = rest.iter().take_while(|one| *one == first).count();
            rest = &rest[count..];
            let times = if count > 1 {
                format!("x{count}")
            } else {
                String::new()
            };
            // Writing to a text does not fail.
            let _ = write!(text, "{first}{times} ");
        }
        for said in &self.said {
            text.push_str(said);
            text.push(' ');
        }
        let end = match &self.end {
            End::Left => "left",
            End::Closed if text.is_empty() => "closed",
            End::Closed => "",
            End::Reset => "reset",
            End::NoTls => "no TLS",
            End::Hung => "hung",
            End::NoConnection(_) => "no connection",
            End::Malformed(_) => "malformed answer",
        };
        text.push_str(end);
        text.trim_end().to_owned()
    }

    /// What is wrong with it, if something is.
    pub(crate) fn fault(&self, allowed: &Allowed, usual: u16) -> Option<String> {
        match &self.end {
            End::Hung => {
                return Some("the server neither answered nor ended the connection".to_owned());
            }
            End::NoConnection(why) => return Some(why.clone()),
            End::Malformed(why) => return Some(why.clone()),
            End::Left | End::Closed | End::Reset | End::NoTls => {}
        }
        for (at, status) in self.statuses.iter().enumerate() {
            let statuses = match at < allowed.usual_count {
                true => Statuses::Usual,
                false => allowed.statuses,
            };
            if let Some(wanted) = statuses.wanted(*status, usual) {
                let which = match self.statuses.len() {
                    1 => "the answer".to_owned(),
                    count => format!("answer {} of {count}", at + 1),
                };
                return Some(format!("{which} is {status}, not {wanted}"));
            }
        }
        let (count, answers) = (self.statuses.len(), &allowed.answers);
        if count > *answers.end() {
            return Some(format!(
                "{count} answers, where {} at most may come",
                answers.end()
            ));
        }
        // RST takes away what was not read yet, which is no fault of answers that were sent.
        let is_excused = self.end == End::Reset && allowed.ending == Ending::Must;
        if count < *answers.start() && !is_excused && self.end != End::Left {
            return Some(format!(
                "{count} answers, where {} were due",
                answers.start()
            ));
        }
        if allowed.ending == Ending::Must && self.was_kept {
            return Some("the connection was kept, where it must end".to_owned());
        }
        None
    }
}

impl Statuses {
    /// What a status should have been, if it is not.
    fn wanted(self, status: u16, usual: u16) -> Option<String> {
        let is_usual = status == usual;
        let is_refusal = REFUSALS.contains(&status);
        let is_any = (100..500).contains(&status) || is_refusal;
        match self {
            Statuses::Usual if !is_usual => Some(usual.to_string()),
            Statuses::Refusal if !is_refusal => Some("a refusal".to_owned()),
            Statuses::UsualOrRefusal if !is_usual && !is_refusal => {
                Some(format!("{usual} or a refusal"))
            }
            Statuses::Any if !is_any => Some("one of a server that is well".to_owned()),
            _ => None,
        }
    }
}

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
    H1(H1),
    /// Counts bytes.
    Blind(u64),
}

impl Reader {
    pub(crate) fn new(reading: &Reading) -> Reader {
        match reading {
            Reading::H1(heads) => Reader::H1(H1 {
                reader: AnswerReader::default(),
                heads: heads.clone(),
                statuses: Vec::new(),
                is_reusable: true,
                is_within: false,
                bad: None,
            }),
            Reading::H2 | Reading::Blind => Reader::Blind(0),
        }
    }

    /// Takes bytes as they came.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        match self {
            Reader::H1(h1) => h1.take(bytes),
            Reader::Blind(count) => *count += bytes.len() as u64,
        }
    }

    /// Has anything come?
    pub(crate) fn has_something(&self) -> bool {
        match self {
            Reader::H1(h1) => h1.is_within || !h1.statuses.is_empty() || h1.bad.is_some(),
            Reader::Blind(count) => *count > 0,
        }
    }

    /// Reading on makes no sense.
    pub(crate) fn is_bad(&self) -> bool {
        matches!(self, Reader::H1(H1 { bad: Some(_), .. }))
    }

    /// So many answers are there, and the connection could carry another request.
    pub(crate) fn is_kept_after(&self, count: usize) -> bool {
        match self {
            Reader::H1(h1) => h1.statuses.len() >= count && h1.is_reusable && !h1.is_within,
            Reader::Blind(_) => false,
        }
    }

    /// What came, when nothing more does.
    pub(crate) fn seen(self, end: End) -> Seen {
        let Reader::H1(mut h1) = self else {
            return Seen::only(end);
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
            let asked = Asked {
                is_head: is_head.copied().unwrap_or(false),
                fields: &[],
                is_hashed: false,
            };
            self.is_within = true;
            match self.reader.read(rest, asked) {
                Ok(Progress::More) => return,
                Ok(Progress::Complete(used)) => {
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

impl From<Ended> for End {
    fn from(ended: Ended) -> End {
        match ended {
            Ended::Closed => End::Closed,
            Ended::Reset => End::Reset,
            Ended::NoTls => End::NoTls,
        }
    }
}
