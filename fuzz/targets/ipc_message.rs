//! Heads, hellos and request blocks: nothing panics, what is read is within its limits, and
//! writing it again gives the same bytes.
#![no_main]

use hob_ipc::hello::{HELLO_BYTES, Hello};
use hob_ipc::limits::HEAD_BYTES;
use hob_ipc::message::{Carrier, MessageHead, MessageSender};
use hob_ipc::request::{BlockBuilder, RequestBlock};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(head) = bytes.first_chunk::<HEAD_BYTES>() {
        for side in [MessageSender::Server, MessageSender::Worker] {
            for carrier in [Carrier::Stream, Carrier::Shm] {
                if let Ok(read) = MessageHead::decode(head, side, carrier) {
                    assert_eq!(read.encode(), *head);
                    assert!(read.len as usize <= read.kind.payload_bytes_max());
                    assert_eq!(read.kind.side(), side);
                }
            }
        }
    }
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        assert!(bytes.len() >= HELLO_BYTES);
    }
    let Ok(block) = RequestBlock::check(bytes) else {
        return;
    };
    let mut builder = BlockBuilder::new(block.content_length());
    let mut is_good = true;
    let mut offset = 0;
    for (name, value) in block.variables() {
        let found = block.variable_at(offset).expect("as many by offset");
        assert_eq!((found.0, found.1), (name, value));
        offset = found.2;
        is_good &= builder.push(name, value).is_ok();
        block.value(name);
    }
    assert_eq!(block.variables().count(), block.count());
    for place in 0..=16 {
        assert!(
            block
                .indexed(place)
                .is_none_or(|value| value.len() < bytes.len())
        );
    }
    if is_good {
        let again = builder.finish().expect("pushed without NUL");
        let again = RequestBlock::check(&again).expect("built by us");
        assert!(again.variables().eq(block.variables()));
    }
});
