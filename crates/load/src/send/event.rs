//! What comes of requests on a connection that carries several.

use super::h1::Answer;
use super::kept::Kept;

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Event {
    /// The answer is complete.
    Answered {
        lane: u32,
        answer: Answer,
        /// What of it is read, where somebody does.
        kept: Option<Box<Kept>>,
    },
    /// The server has broken it off; why.
    Reset { lane: u32, why: &'static str },
    /// The answer is none.
    Malformed { lane: u32, why: &'static str },
    /// The server has not looked at it: it may be sent again.
    Again { lane: u32 },
}
