//! What came of an act, and whether that is allowed.

use super::act::{Allowed, Ending, Statuses};
use super::line::Ended;

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

    /// In few words.
    pub(crate) fn text(&self) -> String {
        self.told(|count| format!("x{count}"))
    }

    /// The same for outcomes that are alike but for how often something came.
    pub(crate) fn kind(&self) -> String {
        self.told(|_| " x n".to_owned())
    }

    fn told(&self, times: impl Fn(usize) -> String) -> String {
        let mut words = Vec::new();
        let statuses: Vec<String> = self.statuses.iter().map(u16::to_string).collect();
        for all in [&statuses, &self.said] {
            for same in all.chunk_by(|one, other| one == other) {
                words.push(match same.len() {
                    1 => same[0].clone(),
                    count => format!("{}{}", same[0], times(count)),
                });
            }
        }
        let end = match &self.end {
            // What was said says more than how it ended in order.
            End::Left | End::Closed if !words.is_empty() => return words.join(" "),
            End::Left => "left",
            End::Closed => "closed",
            End::Reset => "reset",
            End::NoTls => "no TLS",
            End::Hung => "hung",
            End::NoConnection(_) => "no connection",
            End::Malformed(_) => "malformed answer",
        };
        words.push(end.to_owned());
        words.join(" ")
    }

    /// What is wrong with it, if something is.
    pub(crate) fn fault(&self, allowed: &Allowed, usual: u16) -> Option<String> {
        if let End::NoConnection(why) | End::Malformed(why) = &self.end {
            return Some(why.clone());
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
            return Some(match answers.end() {
                0 => format!("{count} answered, where nothing may be"),
                most => format!("{count} answers, where {most} at most may come"),
            });
        }
        if self.end == End::Hung {
            return Some(match count {
                0 => "the server neither answered nor ended the connection".to_owned(),
                _ => "the server did not end the connection".to_owned(),
            });
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

impl From<Ended> for End {
    fn from(ended: Ended) -> End {
        match ended {
            Ended::Closed => End::Closed,
            Ended::Reset => End::Reset,
            Ended::NoTls => End::NoTls,
        }
    }
}
