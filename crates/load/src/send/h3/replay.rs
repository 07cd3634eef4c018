//! What streams of a server come to, without a connection: tests and the fuzz target hold against
//! each other what comes whole and what comes in pieces.

use super::frames::{Frames, Uni, answer};
use super::qpack::QpackContext;
use crate::send::fields::Arriving;

/// What a request comes to when its stream brings these pieces, and then ends.
pub fn replay_answer(pieces: &[&[u8]]) -> Result<String, String> {
    let known = QpackContext::new(&[]);
    let (mut frames, mut arriving) = (Frames::new(), Arriving::new(true));
    for piece in pieces {
        let read = answer(&mut frames, &mut arriving, piece, &known);
        read.map_err(|fault| format!("{fault:?}"))?;
    }
    if !frames.is_between() {
        return Err("a frame is cut off".to_owned());
    }
    Ok(format!("{:?}", arriving.end(false)?))
}

/// From which stream on the server answers no requests, if it says so on a stream of its own that
/// brings these pieces.
pub fn replay_control(pieces: &[&[u8]]) -> Result<Option<u64>, String> {
    let mut uni = Uni::new();
    let mut last = None;
    for piece in pieces {
        last = uni.read(piece)?.or(last);
    }
    Ok(last)
}
