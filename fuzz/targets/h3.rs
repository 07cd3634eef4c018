//! HTTP/3 with random frames: nothing panics, all bytes are used, bodies are as long as their
//! frames say, and bytes that come at once are read as those that come in pieces.
//!
//! The first byte says what the stream is, 0 one of a request and 1 one of the client's own; the
//! second how the input is cut. The rest are raw bytes.
#![no_main]

use std::rc::Rc;

use hob_http::RequestHead;
use hob_http::fields_coding::qpack;
use hob_http::h3::{ControlEvent, Http3Connection, Receiver, RequestStreamEvent, Uni};
use hob_http::limits::HttpLimits;
use libfuzzer_sys::fuzz_target;

const SECTION_BYTES_MAX: usize = 4096;

/// What a stream of a request means; pieces of bodies are joined.
fn request(input: &[u8], piece: usize) -> Vec<RequestStreamEvent> {
    let mut receiver = Receiver::new(SECTION_BYTES_MAX);
    let mut events: Vec<RequestStreamEvent> = Vec::new();
    for bytes in input.chunks(piece) {
        let mut used = 0;
        loop {
            let (count, event) = receiver.read(&bytes[used..]);
            used += count;
            assert!(used <= bytes.len());
            receiver.take_tiny();
            match (events.last_mut(), event) {
                (_, RequestStreamEvent::NeedMore) => break,
                (before, RequestStreamEvent::Data(len)) => {
                    assert!(len > 0 && len <= count);
                    match before {
                        Some(RequestStreamEvent::Data(before)) => *before += len,
                        _ => events.push(RequestStreamEvent::Data(len)),
                    }
                }
                (_, RequestStreamEvent::Head(section)) => {
                    assert!(section.len() <= SECTION_BYTES_MAX);
                    let mut head = RequestHead::empty();
                    if qpack::read_request(&section, &mut head, &HttpLimits::default()) {
                        assert!(!head.method().is_empty() && !head.host().is_empty());
                    }
                    events.push(RequestStreamEvent::Head(section));
                }
                (_, event @ RequestStreamEvent::Broken(_)) => {
                    events.push(event);
                    return events;
                }
                (_, event) => events.push(event),
            }
        }
        assert_eq!(used, bytes.len(), "all is used before more is asked for");
    }
    // Whether it may end here is for the receiver to say, not to panic about.
    let _ = receiver.end();
    events
}

/// What a stream that goes one way means, and how it ends.
fn control(input: &[u8], piece: usize) -> (Vec<ControlEvent>, String) {
    let mut conn = Http3Connection::new(Rc::new(HttpLimits::default()), 0);
    let mut uni = Uni::default();
    let mut events = Vec::new();
    for bytes in input.chunks(piece) {
        if let Err(failure) = conn.read(&mut uni, bytes, 0, |event| events.push(event)) {
            return (events, format!("{failure:?}"));
        }
    }
    (events, format!("{:?} {:?}", uni.kind(), uni.end().is_ok()))
}

fuzz_target!(|data: &[u8]| {
    let [kind, piece, input @ ..] = data else {
        return;
    };
    let (whole, piece) = (input.len().max(1), usize::from(*piece).max(1));
    if kind & 1 == 0 {
        assert_eq!(request(input, whole), request(input, piece));
    } else {
        assert_eq!(control(input, whole), control(input, piece));
    }
});
