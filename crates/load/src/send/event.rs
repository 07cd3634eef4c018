//! What comes of requests on a connection that carries several.

use super::kept::Kept;
use crate::measure::AnswerSummary;

/// What came of a request.
#[derive(Debug)]
pub enum AnswerEvent {
    /// The answer is complete.
    Answered {
        /// The request's place.
        lane: u32,
        /// The answer.
        answer: AnswerSummary,
        /// What of it is read, where somebody does.
        kept: Option<Box<Kept>>,
    },
    /// The server has broken it off; why.
    Reset {
        /// The request's place.
        lane: u32,
        /// The server's reason.
        why: &'static str,
    },
    /// The answer is none.
    Malformed {
        /// The request's place.
        lane: u32,
        /// What is wrong with it.
        why: &'static str,
    },
    /// So much of the answer has come that the client breaks it off, as it was told to.
    BrokenOff {
        /// The request's place.
        lane: u32,
    },
    /// The server has not looked at it: it may be sent again.
    Again {
        /// The request's place.
        lane: u32,
    },
}
