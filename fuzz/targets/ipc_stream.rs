//! The stream: however it is cut into reads, the same messages come out, or the same refusal.
#![no_main]

use hob_ipc::Malformed;
use hob_ipc::message::{Head, Side};
use hob_ipc::stream::{self, Decoder};
use libfuzzer_sys::fuzz_target;

type Read = (Vec<(Head, Vec<u8>)>, Option<Malformed>);

fn read(bytes: &[u8], side: Side, step: usize) -> Read {
    let mut decoder = Decoder::new(side);
    let mut messages = Vec::new();
    for piece in bytes.chunks(step) {
        decoder.space()[..piece.len()].copy_from_slice(piece);
        decoder.filled(piece.len());
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push((message.head, message.payload.to_vec())),
                Ok(None) => break,
                Err(malformed) => return (messages, Some(malformed)),
            }
        }
    }
    (messages, decoder.finish().err())
}

fuzz_target!(|bytes: &[u8]| {
    for side in [Side::Server, Side::Worker] {
        let whole = read(bytes, side, 4096);
        assert_eq!(read(bytes, side, 1), whole);
        assert_eq!(read(bytes, side, 13), whole);
        let mut again = Vec::new();
        for (head, payload) in &whole.0 {
            stream::append(&mut again, *head, &[payload]);
        }
        assert!(bytes.starts_with(&again));
    }
});
