//! Streams that go one way, and how a connection is left.

use super::{frame, integer};
use crate::h3::frame::{
    CANCEL_PUSH, DATA, GOAWAY, HEADERS, HeaderReader, INTEGER_MAX, MAX_PUSH_ID, PRIORITY_UPDATE,
    SETTINGS, take_integer,
};
use crate::h3::{
    ControlEvent, Flood, Http3Connection, Http3ConnectionError, Http3ErrorCode, Uni, UniStreamKind,
};
use crate::limits::HttpLimits;
use crate::priority::Priority;

fn conn() -> Http3Connection {
    Http3Connection::new(HttpLimits::default().into(), 0)
}

/// Reads `input` from one stream of a new connection, byte by byte.
fn read(input: &[u8]) -> Result<Vec<ControlEvent>, Http3ConnectionError> {
    read_on(&mut conn(), &mut Uni::default(), input)
}

fn read_on(
    conn: &mut Http3Connection,
    uni: &mut Uni,
    input: &[u8],
) -> Result<Vec<ControlEvent>, Http3ConnectionError> {
    let mut events = Vec::new();
    for byte in input.chunks(1) {
        conn.read(uni, byte, 0, |event| events.push(event))?;
    }
    Ok(events)
}

/// The code that a control stream with these bytes ends with.
fn broken(frames: &[&[u8]]) -> Http3ErrorCode {
    let input = [&integer(0)[..], &frames.concat()].concat();
    read(&input).unwrap_err().code
}

#[test]
fn control_stream_of_a_usual_client_asks_for_nothing_but_order() {
    let settings = [integer(6), integer(65536), integer(0x33), integer(1)].concat();
    let urgent = [integer(8), b"u=1, i".to_vec()].concat();
    let input = [
        integer(0),
        frame(SETTINGS, &settings),
        frame(0x21, b"unknown"),
        frame(MAX_PUSH_ID, &integer(3)),
        frame(PRIORITY_UPDATE, &urgent),
        frame(GOAWAY, &integer(0)),
    ]
    .concat();
    let priority = Priority {
        urgency: 1,
        is_incremental: true,
    };
    assert_eq!(read(&input), Ok(vec![ControlEvent::Priority(8, priority)]));
}

//= rfc9114#6.2.1
#[test]
fn control_stream_begins_with_settings_and_has_them_once() {
    let settings = &frame(SETTINGS, b"")[..];
    assert_eq!(
        broken(&[&frame(GOAWAY, &integer(0))]),
        Http3ErrorCode::MissingSettings
    );
    assert_eq!(
        broken(&[&frame(0x21, b"")]),
        Http3ErrorCode::MissingSettings
    );
    assert_eq!(
        broken(&[settings, settings]),
        Http3ErrorCode::FrameUnexpected
    );
    for kind in [DATA, HEADERS, 2, 5, 6, 8, 9] {
        assert_eq!(
            broken(&[settings, &frame(kind, b"")]),
            Http3ErrorCode::FrameUnexpected
        );
    }
}

//= rfc9114#7.2.4.1
#[test]
fn settings_of_http2_twice_or_cut_short_are_errors() {
    let settings = |pairs: &[u64]| {
        let pairs: Vec<_> = pairs.iter().map(|value| integer(*value)).collect();
        broken(&[&frame(SETTINGS, &pairs.concat())])
    };
    for id in [0, 2, 3, 4, 5] {
        assert_eq!(settings(&[id, 1]), Http3ErrorCode::Settings);
    }
    assert_eq!(settings(&[6, 1, 6, 1]), Http3ErrorCode::Settings);
    assert_eq!(settings(&[8, 2]), Http3ErrorCode::Settings);
    assert_eq!(settings(&[6]), Http3ErrorCode::Frame);
}

#[test]
fn numbers_that_make_no_sense_are_errors() {
    let settings = &frame(SETTINGS, b"")[..];
    let after = |frames: &[&[u8]]| broken(&[&[settings], frames].concat());
    let one = |kind, value| frame(kind, &integer(value));
    assert_eq!(after(&[&one(CANCEL_PUSH, 0)]), Http3ErrorCode::Id);
    assert_eq!(
        after(&[&one(MAX_PUSH_ID, 5), &one(MAX_PUSH_ID, 4)]),
        Http3ErrorCode::Id
    );
    assert_eq!(
        after(&[&one(GOAWAY, 5), &one(GOAWAY, 6)]),
        Http3ErrorCode::Id
    );
    assert_eq!(after(&[&frame(GOAWAY, b"")]), Http3ErrorCode::Frame);
    assert_eq!(after(&[&frame(GOAWAY, &[1, 1])]), Http3ErrorCode::Frame);
    assert_eq!(
        after(&[&one(PRIORITY_UPDATE, 1)]),
        Http3ErrorCode::Id,
        "no request"
    );
    assert_eq!(after(&[&one(PRIORITY_UPDATE + 1, 0)]), Http3ErrorCode::Id);
    let long = [integer(SETTINGS), integer(1 << 20)].concat();
    assert_eq!(broken(&[&long]), Http3ErrorCode::ExcessiveLoad);
}

//= rfc9114#6.2
#[test]
fn there_is_one_stream_of_each_kind_and_none_for_pushes() {
    for (kind, wanted) in [
        (0, UniStreamKind::Control),
        (2, UniStreamKind::Encoder),
        (3, UniStreamKind::Decoder),
    ] {
        let mut conn = conn();
        let mut uni = Uni::default();
        read_on(&mut conn, &mut uni, &integer(kind)).unwrap();
        assert_eq!(uni.kind(), wanted);
        assert_eq!(
            uni.end().unwrap_err().code,
            Http3ErrorCode::ClosedCriticalStream
        );
        let second = read_on(&mut conn, &mut Uni::default(), &integer(kind));
        assert_eq!(second.unwrap_err().code, Http3ErrorCode::StreamCreation);
    }
    assert_eq!(
        read(&integer(1)).unwrap_err().code,
        Http3ErrorCode::StreamCreation
    );
    let mut uni = Uni::default();
    read_on(&mut conn(), &mut uni, &integer(0x1234_5678)).unwrap();
    assert_eq!((uni.kind(), uni.end()), (UniStreamKind::Foreign, Ok(())));
}

//= rfc9204#4.3
#[test]
fn encoder_and_decoder_have_nothing_to_say_about_tables_that_are_not_there() {
    assert_eq!(read(&[2, 0x20, 0x20]), Ok(vec![]));
    for entry in [&[0x3f, 0x01][..], &[0x80], &[0x41, b'a', 0], &[0x00]] {
        let input = [&[2], entry].concat();
        assert_eq!(
            read(&input).unwrap_err().code,
            Http3ErrorCode::EncoderStream
        );
    }
    // Streams that are not read any more: small and large numbers.
    assert_eq!(read(&[3, 0x44, 0x7f, 0xff, 0x80, 0x01, 0x40]), Ok(vec![]));
    for entry in [&[0x80][..], &[0x01], &[0x00]] {
        let input = [&[3], entry].concat();
        assert_eq!(
            read(&input).unwrap_err().code,
            Http3ErrorCode::DecoderStream
        );
    }
    let endless = [&[3, 0x7f][..], &[0xff; 20]].concat();
    assert_eq!(
        read(&endless).unwrap_err().code,
        Http3ErrorCode::DecoderStream
    );
}

#[test]
fn opening_is_a_control_stream_with_settings() {
    let mut out = Vec::new();
    conn().push_opening(&mut out);
    let mut rest = &out[..];
    assert_eq!(take_integer(&mut rest), Some(0));
    assert_eq!(HeaderReader::default().read(&mut rest), Some((SETTINGS, 5)));
    assert_eq!(take_integer(&mut rest), Some(6));
    assert_eq!(take_integer(&mut rest), Some(64 * 1024));
    assert!(rest.is_empty());
}

//= rfc9114#5.2
#[test]
fn leaving_takes_two_steps_and_loses_no_request_in_between() {
    let mut conn = conn();
    assert!(conn.open(0));
    let mut out = Vec::new();
    conn.announce_leaving(&mut out);
    conn.announce_leaving(&mut out);
    assert_eq!(out, frame(GOAWAY, &integer(INTEGER_MAX - 3)));
    assert!(conn.open(8), "it was on its way");
    out.clear();
    conn.leave(&mut out);
    conn.leave(&mut out);
    assert_eq!(out, frame(GOAWAY, &integer(12)));
    assert!(conn.open(4), "it came late, but below what was named");
    assert!(!conn.open(12));
}

#[test]
fn floods_are_counted_and_answers_give_back() {
    let mut conn = conn();
    for _ in 0..200 {
        assert_eq!(conn.note_reset(0), Ok(()));
    }
    conn.note_answered();
    assert_eq!(conn.note_reset(0), Ok(()));
    let failure = conn.note_reset(0).unwrap_err();
    assert_eq!(
        (failure.code, failure.flood),
        (Http3ErrorCode::ExcessiveLoad, Some(Flood::Resets))
    );
    assert_eq!(conn.note_reset(1000), Ok(()), "time gives back too");
    let idle = (0..2000).find_map(|_| conn.note_idle(0).err()).unwrap();
    assert_eq!(idle.flood, Some(Flood::Empty));
    let tiny = (0..5000)
        .find_map(|_| conn.note_tiny_data(0).err())
        .unwrap();
    assert_eq!(tiny.flood, Some(Flood::TinyData));
}
