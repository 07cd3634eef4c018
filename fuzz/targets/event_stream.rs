//! Server-sent events as `hob watch` reads them: nothing panics, and a stream that comes in pieces
//! is read as one that comes at once.
//!
//! The first byte says how the rest is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/hob/src/control/event_stream.rs"]
mod event_stream;

use event_stream::{EventStream, ServerSentEvent, TooLong};

fn read(bytes: &[u8], step: usize) -> Result<Vec<ServerSentEvent>, TooLong> {
    let mut stream = EventStream::default();
    let mut events = Vec::new();
    for piece in bytes.chunks(step) {
        stream.read(piece, &mut events)?;
    }
    Ok(events)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let whole = read(bytes, bytes.len().max(1));
    let pieces = read(bytes, usize::from(first & 63) + 1);
    assert_eq!(whole, pieces);
    for event in whole.into_iter().flatten() {
        assert!(!event.name.is_empty());
        assert!(!event.name.contains(['\r', '\n']));
        assert!(!event.data.contains('\r'));
    }
});
