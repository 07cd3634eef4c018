//! What server and spawner say to each other: no packet panics, what is read is within its limits,
//! and writing it again gives the same packet.
#![no_main]

use hob_keeper::process::message::{STRINGS_BYTES_MAX, STRINGS_COUNT_MAX, ToServer, ToSpawner};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| {
    let mut again = Vec::new();
    if let Ok(message) = ToSpawner::decode(packet) {
        message.encode(&mut again);
        assert_eq!(again, packet);
        if let ToSpawner::Start(head, strings) = message {
            assert!(head.argument_count >= 1 && head.string_count() <= STRINGS_COUNT_MAX + 2);
            assert!(head.string_bytes as usize <= STRINGS_BYTES_MAX);
            assert!(head.in_memory || strings.len() == head.string_bytes as usize);
        }
    }
    let mut rest = packet;
    while let Ok((message, others)) = ToServer::decode(rest) {
        again.clear();
        message.encode(&mut again);
        assert_eq!(ToServer::decode(&again), Ok((message, &[][..])));
        rest = others;
    }
});
