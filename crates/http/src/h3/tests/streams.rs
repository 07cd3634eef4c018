//! Frames on the stream of a request.

use super::{frame, integer};
use crate::h3::frame::{DATA, HEADERS, INTEGER_MAX, PRIORITY_UPDATE};
use crate::h3::{Http3ConnectionError, Http3ErrorCode, Receiver, RequestStreamEvent};

const SECTION_BYTES_MAX: usize = 100;

/// What `input` means when it comes in pieces of `piece` bytes; pieces of bodies are joined.
fn read(input: &[u8], piece: usize) -> (Vec<RequestStreamEvent>, Receiver) {
    let mut receiver = Receiver::new(SECTION_BYTES_MAX);
    let mut events: Vec<RequestStreamEvent> = Vec::new();
    for bytes in input.chunks(piece.max(1)) {
        let mut used = 0;
        loop {
            let (count, event) = receiver.read(&bytes[used..]);
            used += count;
            match (events.last_mut(), event) {
                (_, RequestStreamEvent::NeedMore) => break,
                (Some(RequestStreamEvent::Data(before)), RequestStreamEvent::Data(len)) => {
                    *before += len
                }
                (_, event @ RequestStreamEvent::Broken(_)) => {
                    events.push(event);
                    return (events, receiver);
                }
                (_, event) => events.push(event),
            }
        }
        assert_eq!(used, bytes.len(), "all is used before more is asked for");
    }
    (events, receiver)
}

fn broken(input: &[u8]) -> Http3ErrorCode {
    match read(input, input.len()).0.pop() {
        Some(RequestStreamEvent::Broken(Http3ConnectionError { code, .. })) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn message_is_read_however_it_is_cut() {
    let message = [
        frame(0x21, b"unknown"),
        frame(HEADERS, b"head"),
        frame(DATA, b"first"),
        frame(DATA, b"second"),
        frame(0x40, b""),
        frame(DATA, b"third"),
        frame(HEADERS, b"trailers"),
        frame(0x21, b"unknown"),
    ]
    .concat();
    for piece in 1..message.len() {
        let (events, receiver) = read(&message, piece);
        let wanted = [
            RequestStreamEvent::Idle,
            RequestStreamEvent::Head(b"head".to_vec()),
            RequestStreamEvent::Data(11),
            RequestStreamEvent::Idle,
            RequestStreamEvent::Data(5),
            RequestStreamEvent::Trailers(b"trailers".to_vec()),
            RequestStreamEvent::Idle,
        ];
        assert_eq!(events, wanted, "{piece}");
        assert_eq!(receiver.end(), Ok(()));
    }
}

//= rfc9114#4.1
#[test]
fn frames_out_of_order_end_the_connection() {
    let head = frame(HEADERS, b"head");
    let headers = |count| head.repeat(count);
    for message in [
        frame(DATA, b"body"),
        headers(3),
        [headers(2), frame(DATA, b"body")].concat(),
    ] {
        assert_eq!(
            broken(&message),
            Http3ErrorCode::FrameUnexpected,
            "{message:?}"
        );
    }
}

//= rfc9114#7.2
#[test]
fn frames_of_control_streams_and_of_http2_end_the_connection() {
    for kind in [
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        0xd,
        PRIORITY_UPDATE,
        PRIORITY_UPDATE + 1,
    ] {
        assert_eq!(
            broken(&frame(kind, b"")),
            Http3ErrorCode::FrameUnexpected,
            "{kind}"
        );
    }
}

//= rfc9114#7.1
#[test]
fn end_within_a_frame_is_an_error() {
    let message = [frame(HEADERS, b"head"), frame(DATA, b"body")].concat();
    let whole = [0, 6, message.len()];
    for end in 0..message.len() {
        let (_, receiver) = read(&message[..end], 100);
        assert_eq!(receiver.end().is_ok(), whole.contains(&end), "{end}");
    }
}

#[test]
fn section_that_is_too_long_is_passed_over_without_room_for_it() {
    let long = [integer(HEADERS), integer(SECTION_BYTES_MAX as u64 + 1)].concat();
    let (events, _) = read(&[&long[..], &[0; SECTION_BYTES_MAX + 1]].concat(), 7);
    assert_eq!(events, [RequestStreamEvent::TooLong]);
    // The body of what is refused may follow.
    let body = frame(DATA, b"body");
    let (events, _) = read(
        &[&long[..], &[0; SECTION_BYTES_MAX + 1], &body].concat(),
        1000,
    );
    assert_eq!(
        events,
        [RequestStreamEvent::TooLong, RequestStreamEvent::Data(4)]
    );
    let announced = [integer(HEADERS), integer(INTEGER_MAX)].concat();
    assert_eq!(read(&announced, 100).0, [RequestStreamEvent::TooLong]);
    let fits = frame(HEADERS, &[7; SECTION_BYTES_MAX]);
    let (events, _) = read(&fits, 9);
    assert_eq!(
        events,
        [RequestStreamEvent::Head(vec![7; SECTION_BYTES_MAX])]
    );
}

#[test]
fn only_frames_with_little_in_them_are_tiny_not_pieces_of_large_ones() {
    let head = frame(HEADERS, b"head");
    let tiny_of = |body: Vec<u8>| {
        let mut receiver = Receiver::new(SECTION_BYTES_MAX);
        receiver.read(&head);
        let mut tiny = 0;
        for byte in body.chunks(1) {
            receiver.read(byte);
            tiny += usize::from(receiver.take_tiny());
        }
        tiny
    };
    assert_eq!(tiny_of(frame(DATA, &[1; 3000])), 0);
    assert_eq!(tiny_of(frame(DATA, b"x").repeat(5)), 5);
}

//= rfc9114#4.4
#[test]
fn tunnel_has_data_and_nothing_else() {
    let mut receiver = Receiver::new(SECTION_BYTES_MAX);
    receiver.read(&frame(HEADERS, b"connect"));
    receiver.begin_tunnel();
    let bytes = frame(DATA, b"raw");
    assert_eq!(
        receiver.read(&bytes),
        (bytes.len(), RequestStreamEvent::Data(3))
    );
    let (_, event) = receiver.read(&frame(HEADERS, b"trailers"));
    assert!(matches!(event, RequestStreamEvent::Broken(_)), "{event:?}");
}

#[test]
fn frames_that_do_nothing_behind_a_head_are_no_body() {
    // What the `h3` crate ends a request with.
    let unknown = frame(0x1f * 7 + 0x21, b"grease");
    for nothing in [&[][..], &unknown, &frame(DATA, b"")] {
        assert!(Receiver::is_idle(nothing), "{nothing:?}");
        assert!(Receiver::is_idle(&[nothing, &unknown].concat()));
    }
    let cut = &unknown[..unknown.len() - 1];
    for something in [
        &frame(DATA, b"x"),
        &frame(HEADERS, b""),
        &frame(PRIORITY_UPDATE, b""),
        &frame(2, b""),
        cut,
        &cut[..1],
    ] {
        assert!(!Receiver::is_idle(something), "{something:?}");
        assert!(!Receiver::is_idle(&[&unknown, something].concat()));
    }
}
