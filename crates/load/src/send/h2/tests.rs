//! What a server sends, whole and in every two pieces, and what is refused.

use super::frame::{self, flag, kind};
use super::replay;

/// A frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(kind, flags, stream, payload, &mut out);
    out
}

/// A head with `:status: 200` and what follows it.
fn head(flags: u8, stream: u32, more: &[u8]) -> Vec<u8> {
    frame(
        kind::HEADERS,
        flags | flag::END_HEADERS,
        stream,
        &[&[0x88], more].concat(),
    )
}

/// What comes of these frames behind the server's SETTINGS, cut in any way.
fn said(frames: &[Vec<u8>]) -> String {
    let bytes = [frame(kind::SETTINGS, 0, 0, &[]), frames.concat()].concat();
    let whole = replay(&[&bytes]);
    for cut in 0..bytes.len() {
        let (front, back) = bytes.split_at(cut);
        assert_eq!(replay(&[front, back]), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(replay(&bytes), whole, "byte by byte");
    whole
}

fn answered(lane: u32, body_bytes: u64) -> String {
    format!(
        "Answered {{ lane: {lane}, answer: AnswerSummary {{ status: 200, body_bytes: {body_bytes}, \
         is_reusable: true, fields_seen: 0, body_hash: None }}, kept: None }}\n"
    )
}

#[test]
fn answers_come_in_any_order_and_any_pieces() {
    let frames = [
        head(0, 1, &[]),
        head(flag::END_STREAM, 3, &[]),
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::DATA, flag::PADDED, 1, b"\x02hello\0\0"),
        frame(99, 0, 5, b"a kind that nobody knows"),
        frame(
            kind::HEADERS,
            flag::END_STREAM | flag::PADDED,
            7,
            b"\x01\x88\0",
        ),
        frame(kind::CONTINUATION, flag::END_HEADERS, 7, b"\x0f\x0d\x010"),
        frame(kind::DATA, flag::END_STREAM, 1, b""),
    ];
    assert_eq!(
        said(&frames),
        [answered(1, 0), answered(3, 0), answered(0, 5)].concat()
    );
}

#[test]
fn interim_answers_and_trailers_are_no_answers() {
    let frames = [
        frame(kind::HEADERS, flag::END_HEADERS, 1, b"\x08\x03103"),
        head(0, 1, &[]),
        frame(kind::DATA, 0, 1, b"x"),
        frame(
            kind::HEADERS,
            flag::END_HEADERS | flag::END_STREAM,
            1,
            b"\x00\x01a\x01b",
        ),
    ];
    assert_eq!(said(&frames), answered(0, 1));
}

#[test]
fn what_was_not_begun_is_sent_again() {
    let frames = [
        frame(kind::RST_STREAM, 0, 1, &7u32.to_be_bytes()),
        frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]),
        head(flag::END_STREAM, 3, &[]),
    ];
    let said = said(&frames);
    let again = |lane: u32| format!("Again {{ lane: {lane} }}\n");
    assert_eq!(
        said,
        [again(0), again(2), again(3), answered(1, 0)].concat()
    );
}

#[test]
fn answer_that_is_none_leaves_the_others_alone() {
    for (wrong, why) in [
        (
            frame(kind::DATA, 0, 1, b"x"),
            "the body comes before the head",
        ),
        (
            head(flag::END_STREAM, 1, b"\x0f\x0d\x013"),
            "the body is not as long as its",
        ),
        (head(0, 1, b"\x00\x01A\x01b"), "capital letters"),
        (head(0, 1, b"\x88"), "the status comes twice"),
        (
            frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4]),
            "window cannot be so",
        ),
    ] {
        let said = said(&[wrong, head(flag::END_STREAM, 3, &[])]);
        let (first, second) = said.split_once('\n').unwrap();
        assert!(
            first.starts_with("Malformed { lane: 0, ") && first.contains(why),
            "{first}"
        );
        assert_eq!(second, answered(1, 0));
    }
}

#[test]
fn connection_that_breaks_the_rules_ends() {
    let open = frame(kind::HEADERS, 0, 1, &[0x88]);
    for (frames, why) in [
        (vec![head(0, 9, &[])], "never begun"),
        (vec![head(0, 2, &[])], "never begun"),
        (vec![frame(kind::DATA, 0, 0, b"x")], "never begun"),
        (vec![frame(kind::PUSH_PROMISE, 0, 1, &[0; 4])], "pushes"),
        (vec![frame(kind::PING, 0, 0, b"x")], "PING"),
        (vec![frame(kind::SETTINGS, 0, 0, b"x")], "SETTINGS"),
        (
            vec![frame(kind::SETTINGS, 0, 0, &[0, 4, 255, 255, 255, 255])],
            "window",
        ),
        (
            vec![frame(kind::SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1])],
            "longest payload",
        ),
        (vec![frame(kind::RST_STREAM, 0, 1, b"x")], "RST_STREAM"),
        (vec![frame(kind::GOAWAY, 0, 0, b"x")], "GOAWAY"),
        (vec![frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4])], "window"),
        (
            vec![frame(kind::DATA, flag::PADDED, 1, b"\x05abc")],
            "padding",
        ),
        (
            vec![frame(kind::CONTINUATION, 0, 1, b"")],
            "continues nothing",
        ),
        (
            vec![open.clone(), frame(kind::PING, 0, 0, &[0; 8])],
            "interrupted",
        ),
        (vec![head(0, 1, b"\xff")], "cut off"),
        (vec![head(0, 1, b"\xfe")], "no table"),
        (
            vec![b"\x00\x40\x01\x00\x00\0\0\0\x01".to_vec()],
            "longer than allowed",
        ),
    ] {
        let said = said(&frames);
        assert!(said.contains(why), "{said} instead of {why}");
    }
    let not_settings = replay(&[&frame(kind::PING, 0, 0, &[0; 8])]);
    assert!(
        not_settings.contains("does not begin with SETTINGS"),
        "{not_settings}"
    );
    assert!(replay(&[b"HTTP/1.1 400 Bad Request\r\n"]).contains("may not speak HTTP/2"));
    let long: Vec<u8> = [
        vec![frame(kind::SETTINGS, 0, 0, &[]), open],
        vec![frame(kind::CONTINUATION, 0, 1, &[0; 16_384]); 5],
    ]
    .concat()
    .concat();
    assert!(replay(&[&long]).contains("longer than 64 KiB"));
}
