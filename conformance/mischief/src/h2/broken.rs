//! Frames that are wrong: those of the connection end it, those of a stream end that at least.

use hob_load::parts::h2::frame::{PAYLOAD_BYTES_MAX, flag, kind, setting};

use super::{fields, frame, get, packed, script};
use crate::act::{Allowed, Draw, Kind, Script, Statuses, Step};

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("broken preface", preface),
    ("frame on a wrong stream", wrong_stream),
    ("frame of a wrong size", wrong_size),
    ("bad setting", bad_setting),
    ("stream out of order", wrong_order),
    ("bad window", bad_window),
    ("broken block", broken_block),
    ("bad compression", bad_compression),
    ("bad fields", bad_fields),
    ("body after the end", after_end),
    ("random frames", random),
];

/// A frame of a kind that is no longer spoken of. //= rfc9113#5.3.2
const PRIORITY: u8 = 2;
const WHOLE: u8 = flag::END_HEADERS | flag::END_STREAM;

/// What makes everything that follows impossible to understand: the connection must end, and the
/// request behind it is not answered.
fn fatal(detail: impl Into<String>, mut bytes: Vec<u8>, draw: &Draw<'_>) -> Script {
    bytes.extend(get(draw, 101));
    let allowed = Allowed {
        answers: 0..=0,
        ..Allowed::anything()
    };
    script(detail, bytes, Vec::new(), allowed)
}

fn preface(draw: &mut Draw<'_>) -> Script {
    let (detail, first) = draw.pick(&[
        ("another ending", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"),
        ("another version", "PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n"),
        ("none", ""),
    ]);
    let mut bytes = first.as_bytes().to_vec();
    bytes.extend(draw.bytes(100));
    let steps = vec![Step::Send(bytes), Step::HalfClose];
    Script::h1(detail, steps, Allowed::anything().and_ends()).blind()
}

fn wrong_stream(draw: &mut Draw<'_>) -> Script {
    let block = packed(&fields(draw));
    let (detail, bytes) = match draw.below(8) {
        0 => ("HEADERS on 0", frame(kind::HEADERS, WHOLE, 0, &block)),
        1 => ("DATA on 0", frame(kind::DATA, 0, 0, b"x")),
        2 => ("RST_STREAM on 0", frame(kind::RST_STREAM, 0, 0, &[0; 4])),
        3 => ("SETTINGS on 1", frame(kind::SETTINGS, 0, 1, &[])),
        4 => ("PING on 1", frame(kind::PING, 0, 1, &[0; 8])),
        5 => ("GOAWAY on 1", frame(kind::GOAWAY, 0, 1, &[0; 8])),
        6 => ("PRIORITY on 0", frame(PRIORITY, 0, 0, &[0; 5])),
        _ => (
            "PUSH_PROMISE",
            frame(kind::PUSH_PROMISE, WHOLE, 1, &[0, 0, 0, 2]),
        ),
    };
    fatal(detail, bytes, draw)
}

fn wrong_size(draw: &mut Draw<'_>) -> Script {
    let long = vec![0; PAYLOAD_BYTES_MAX + 1];
    let (detail, bytes) = match draw.below(8) {
        0 => ("PING of 7 bytes", frame(kind::PING, 0, 0, &[0; 7])),
        1 => ("SETTINGS of 5 bytes", frame(kind::SETTINGS, 0, 0, &[0; 5])),
        2 => (
            "SETTINGS acknowledged with 6 bytes",
            frame(kind::SETTINGS, flag::ACK, 0, &[0; 6]),
        ),
        3 => (
            "WINDOW_UPDATE of 3 bytes",
            frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3]),
        ),
        4 => ("GOAWAY of 7 bytes", frame(kind::GOAWAY, 0, 0, &[0; 7])),
        5 => (
            "HEADERS longer than allowed",
            frame(kind::HEADERS, WHOLE, 1, &long),
        ),
        6 => (
            "SETTINGS longer than allowed",
            frame(kind::SETTINGS, 0, 0, &long),
        ),
        _ => {
            let bytes = [&get(draw, 1)[..], &frame(kind::RST_STREAM, 0, 1, &[0; 3])].concat();
            let mut script = fatal("RST_STREAM of 3 bytes", bytes, draw);
            // The request before it may be answered.
            script.allowed = Allowed::at_most_one(Statuses::Usual);
            return script;
        }
    };
    fatal(detail, bytes, draw)
}

fn bad_setting(draw: &mut Draw<'_>) -> Script {
    let (detail, name, value) = draw.pick(&[
        ("ENABLE_PUSH 2", setting::PUSH, 2u32),
        ("INITIAL_WINDOW_SIZE 2^31", setting::WINDOW, 1 << 31),
        ("MAX_FRAME_SIZE 16383", setting::PAYLOAD_BYTES, 16_383),
        ("MAX_FRAME_SIZE 2^24", setting::PAYLOAD_BYTES, 1 << 24),
    ]);
    let payload = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    fatal(detail, frame(kind::SETTINGS, 0, 0, &payload), draw)
}

//= rfc9113#5.1.1: streams of a client have odd numbers that grow.
fn wrong_order(draw: &mut Draw<'_>) -> Script {
    let block = packed(&fields(draw));
    let (detail, bytes) = match draw.below(5) {
        0 => ("an even stream", frame(kind::HEADERS, WHOLE, 2, &block)),
        1 => (
            "DATA before HEADERS",
            frame(kind::DATA, flag::END_STREAM, 1, b"x"),
        ),
        2 => (
            "RST_STREAM before HEADERS",
            frame(kind::RST_STREAM, 0, 1, &[0; 4]),
        ),
        3 => (
            "WINDOW_UPDATE before HEADERS",
            frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        ),
        _ => {
            let bytes = [get(draw, 5), get(draw, 3)].concat();
            let mut script = fatal("stream 3 after stream 5", bytes, draw);
            script.allowed = Allowed::at_most_one(Statuses::Usual);
            return script;
        }
    };
    fatal(detail, bytes, draw)
}

//= rfc9113#6.9: an increment of nothing, or beyond 2^31 - 1, is an error.
fn bad_window(draw: &mut Draw<'_>) -> Script {
    let most = 0x7fff_ffff_u32.to_be_bytes();
    let (detail, bytes) = match draw.below(3) {
        0 => ("0 more", frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4])),
        1 => ("too much", frame(kind::WINDOW_UPDATE, 0, 0, &most)),
        _ => {
            let bytes = [get(draw, 1), frame(kind::WINDOW_UPDATE, 0, 1, &most)].concat();
            let allowed = Allowed::at_most_one(Statuses::Usual);
            return script("too much on a stream", bytes, vec![1], allowed);
        }
    };
    fatal(detail, bytes, draw)
}

//= rfc9113#6.10: a block of fields is one piece, whatever it is cut into.
fn broken_block(draw: &mut Draw<'_>) -> Script {
    let block = packed(&fields(draw));
    let begun = frame(kind::HEADERS, flag::END_STREAM, 1, &block);
    let (detail, bytes) = match draw.below(5) {
        0 => (
            "CONTINUATION of nothing",
            frame(kind::CONTINUATION, flag::END_HEADERS, 1, &block),
        ),
        1 => (
            "PING within",
            [begun, frame(kind::PING, 0, 0, &[0; 8])].concat(),
        ),
        2 => {
            let other = frame(kind::CONTINUATION, flag::END_HEADERS, 3, &[]);
            ("CONTINUATION on another stream", [begun, other].concat())
        }
        3 => ("HEADERS within", [begun, get(draw, 3)].concat()),
        _ => {
            let payload = [&[200][..], &block].concat();
            let flags = WHOLE | flag::PADDED;
            (
                "padding longer than its frame",
                frame(kind::HEADERS, flags, 1, &payload),
            )
        }
    };
    fatal(detail, bytes, draw)
}

//= rfc7541#6.1, #5.1, #6.3: what cannot be unpacked ends the connection.
fn bad_compression(draw: &mut Draw<'_>) -> Script {
    let (detail, block) = draw.pick::<(&str, &[u8])>(&[
        ("an index of nothing", &[0x80]),
        ("an index beyond the tables", &[0xc8]),
        (
            "a number without end",
            &[
                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f,
            ],
        ),
        ("a table of 1 GiB", &[0x3f, 0xe1, 0xff, 0xff, 0xff, 0x03]),
        ("a text that is cut", &[0x40, 0x0a, b'a']),
        (
            "a code of Huffman that ends it all",
            &[0x40, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00],
        ),
    ]);
    fatal(detail, frame(kind::HEADERS, WHOLE, 1, block), draw)
}

//= rfc9113#8.1.1: a malformed request is an error of its stream; some answer 400.
fn bad_fields(draw: &mut Draw<'_>) -> Script {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut all = fields(draw);
    let (detail, added) = draw.pick(&[
        ("capital letters", ("X-Big", "x")),
        ("connection", ("connection", "close")),
        ("transfer-encoding", ("transfer-encoding", "chunked")),
        ("te", ("te", "gzip")),
        ("NUL in a value", ("x-a", "a\0b")),
        ("line end in a value", ("x-a", "a\r\nb: c")),
        ("space in a name", ("x a", "b")),
        (":status", (":status", "200")),
        ("an unknown field of the protocol", (":unknown", "x")),
        ("a second :path", (":path", "/")),
        ("a length without a body", ("content-length", "5")),
        ("a length that is none", ("content-length", "x")),
        ("no :path", ("", "")),
        ("no :method", ("", "")),
        ("no :scheme", ("", "")),
        ("an empty :path", ("", "")),
        (":path after others", ("", "")),
    ]);
    match detail {
        "no :path" => all.retain(|(name, _)| name != ":path"),
        "no :method" => all.retain(|(name, _)| name != ":method"),
        "no :scheme" => all.retain(|(name, _)| name != ":scheme"),
        "an empty :path" => all[3].1.clear(),
        ":path after others" => all.insert(3, field("accept", "*/*")),
        _ => all.push(field(added.0, added.1)),
    }
    let bytes = frame(kind::HEADERS, WHOLE, 1, &packed(&all));
    let allowed = Allowed::at_most_one(Statuses::Refusal);
    script(detail, bytes, vec![1], allowed)
}

fn after_end(draw: &mut Draw<'_>) -> Script {
    let bytes = [
        get(draw, 1),
        frame(kind::DATA, flag::END_STREAM, 1, b"more"),
    ]
    .concat();
    let allowed = Allowed::at_most_one(Statuses::Usual);
    script("DATA", bytes, vec![1], allowed)
}

/// Whatever they are, the connection ends when it ends for us.
fn random(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(1..=50);
    let mut bytes = Vec::new();
    for _ in 0..count {
        let (kind, flags) = (draw.below(12) as u8, draw.below(256) as u8);
        let (stream, len) = (draw.below(8) as u32, draw.below(64));
        let payload = draw.bytes(len);
        bytes.extend(frame(kind, flags, stream, &payload));
    }
    let mut script = script(
        format!("{count} frames"),
        bytes,
        Vec::new(),
        Allowed::anything(),
    );
    script.half_close();
    script
}
