//! What a server sends on its streams over HTTP/3, as the load generator reads it: nothing panics,
//! and what comes in pieces comes to what it does when it comes at once.
//!
//! The first byte chooses what it is (an answer, a control stream, a section of fields alone) and
//! says how long the pieces are.
#![no_main]

use std::fmt::Debug;

use hob_load::{replay_h3_answer, replay_h3_control};
use libfuzzer_sys::fuzz_target;

fn hold<T: Debug + PartialEq>(
    bytes: &[u8],
    step: usize,
    read: impl Fn(&[&[u8]]) -> Result<T, String>,
) {
    let pieces: Vec<&[u8]> = bytes.chunks(step).collect();
    match (read(&[bytes]), read(&pieces)) {
        // Of what is wrong in two ways, the pieces may show the other one first.
        (Err(_), Err(_)) => {}
        (whole, pieces) => assert_eq!(whole, pieces),
    }
}

/// A section of fields as the head of an answer.
fn framed(section: &[u8]) -> Vec<u8> {
    let len = u32::try_from(section.len()).unwrap_or(0) & 0x3fff_ffff;
    let mut frame = vec![1];
    frame.extend_from_slice(&(len | 0x8000_0000).to_be_bytes());
    frame.extend_from_slice(section);
    frame
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let step = usize::from(first & 63) + 1;
    match first >> 6 {
        0 | 1 => hold(bytes, step, replay_h3_answer),
        2 => hold(bytes, step, replay_h3_control),
        _ => hold(&framed(bytes), step, replay_h3_answer),
    }
});
