//! Answers as the load generator reads them: nothing panics, an answer that comes in pieces is read
//! as one that comes at once, and no more is taken than there is.
//!
//! The first byte says how the rest is cut, and whether HEAD was asked.
#![no_main]

use hob_load::{AnswerProgress, AnswerReadOptions, AnswerReader, AnswerSummary, BadAnswer};
use libfuzzer_sys::fuzz_target;

/// Reads in pieces until an answer is complete, then to the end of the connection.
fn read(bytes: &[u8], step: usize, is_head: bool) -> Result<(AnswerSummary, usize), BadAnswer> {
    let asked = AnswerReadOptions {
        is_head,
        fields: &[],
        is_hashed: true,
    };
    let mut reader = AnswerReader::default();
    let mut at = 0;
    for piece in bytes.chunks(step) {
        if let AnswerProgress::Complete(used) = reader.read(piece, asked)? {
            assert!(used <= piece.len());
            return Ok((*reader.answer(), at + used));
        }
        at += piece.len();
    }
    reader.end()?;
    Ok((*reader.answer(), at))
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let is_head = first & 128 != 0;
    let whole = read(bytes, bytes.len().max(1), is_head);
    let pieces = read(bytes, usize::from(first & 63) + 1, is_head);
    match (whole, pieces) {
        // Of what is wrong in two ways, the pieces may show the other one first.
        (Err(_), Err(_)) => {}
        (whole, pieces) => assert_eq!(whole, pieces),
    }
    if let Ok((answer, used)) = whole {
        assert!((101..600).contains(&answer.status));
        assert!(answer.body_bytes <= used as u64);
    }
});
