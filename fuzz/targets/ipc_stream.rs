//! The stream: however it is cut into reads, the same messages come out, or the same refusal.
#![no_main]

use hob_ipc::MalformedMessage;
use hob_ipc::message::{MessageHead, MessageSender};
use hob_ipc::stream::{self, MessageDecoder};
use libfuzzer_sys::fuzz_target;

type Read = (Vec<(MessageHead, Vec<u8>)>, Option<MalformedMessage>);

fn read(bytes: &[u8], side: MessageSender, step: usize) -> Read {
    let mut decoder = MessageDecoder::new(side);
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
    for side in [MessageSender::Server, MessageSender::Worker] {
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
