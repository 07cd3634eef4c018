//! Floods of frames, each bounded: a server does the little that is asked, or ends the connection.

use hob_load::parts::h2::frame::{PAYLOAD_BYTES_MAX, code, flag, kind, setting};

use super::{REQUEST_COUNT_MAX, fields, frame, get, packed, script};
use crate::act::{Allowed, Draw, Kind, Script, Statuses};

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("rapid resets", resets),
    ("flood of pings", pings),
    ("flood of settings", settings),
    ("flood of empty frames", empties),
    ("flood of window updates", windows),
    ("flood of continuations", continuations),
    ("huge head", huge_head),
];

/// A request after a flood: it is answered, or the connection has ended by then.
fn and_asked(mut bytes: Vec<u8>, detail: String, stream: u32, draw: &Draw<'_>) -> Script {
    bytes.extend(get(draw, stream));
    let allowed = Allowed::at_most_one(Statuses::Usual);
    script(detail, bytes, vec![stream], allowed)
}

fn resets(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(10..=REQUEST_COUNT_MAX - 1) as u32;
    let mut bytes = Vec::new();
    for stream in (0..count).map(|at| 2 * at + 1) {
        bytes.extend(get(draw, stream));
        bytes.extend(frame(
            kind::RST_STREAM,
            0,
            stream,
            &code::CANCEL.to_be_bytes(),
        ));
    }
    let mut script = and_asked(bytes, format!("{count} requests"), 2 * count + 1, draw);
    // Some may be answered before they are given up.
    script.allowed.answers = 0..=count as usize + 1;
    script
}

fn pings(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(100..=5000);
    let bytes = frame(kind::PING, 0, 0, &[1; 8]).repeat(count);
    and_asked(bytes, format!("{count} frames"), 1, draw)
}

fn settings(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(100..=5000);
    let window = [
        setting::WINDOW.to_be_bytes().to_vec(),
        (1u32 << 20).to_be_bytes().to_vec(),
    ];
    let payload = match draw.below(2) {
        0 => Vec::new(),
        _ => window.concat(),
    };
    let bytes = frame(kind::SETTINGS, 0, 0, &payload).repeat(count);
    and_asked(
        bytes,
        format!("{count} frames of {} bytes", payload.len()),
        1,
        draw,
    )
}

/// Empty DATA of a body that goes on.
fn empties(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(100..=5000);
    let mut post = fields(draw);
    "POST".clone_into(&mut post[0].1);
    let mut bytes = frame(kind::HEADERS, flag::END_HEADERS, 1, &packed(&post));
    bytes.extend(frame(kind::DATA, 0, 1, &[]).repeat(count));
    let mut script = and_asked(bytes, format!("{count} frames"), 3, draw);
    // The first is answered in whatever way, and before the other or after it.
    script.allowed = Allowed {
        answers: 0..=2,
        ..Allowed::at_most_one(Statuses::Any)
    };
    script
}

fn windows(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(100..=5000);
    let bytes = frame(kind::WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes()).repeat(count);
    and_asked(bytes, format!("{count} frames"), 1, draw)
}

fn continuations(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(100..=5000);
    let mut bytes = frame(kind::HEADERS, flag::END_STREAM, 1, &packed(&fields(draw)));
    bytes.extend(frame(kind::CONTINUATION, 0, 1, &[]).repeat(count));
    bytes.extend(frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[]));
    let allowed = Allowed::at_most_one(Statuses::UsualOrRefusal);
    script(format!("{count} empty frames"), bytes, vec![1], allowed)
}

fn huge_head(draw: &mut Draw<'_>) -> Script {
    let frame_count = draw.within(10..=50);
    let mut long = fields(draw);
    long.push((
        "x-long".to_owned(),
        "~".repeat(frame_count * PAYLOAD_BYTES_MAX),
    ));
    let block = packed(&long);
    let mut bytes = Vec::new();
    let last = block.len().div_ceil(PAYLOAD_BYTES_MAX) - 1;
    for (at, piece) in block.chunks(PAYLOAD_BYTES_MAX).enumerate() {
        let end = if at == last { flag::END_HEADERS } else { 0 };
        let (kind, first) = match at {
            0 => (kind::HEADERS, flag::END_STREAM),
            _ => (kind::CONTINUATION, 0),
        };
        bytes.extend(frame(kind, first | end, 1, piece));
    }
    let allowed = Allowed::at_most_one(Statuses::Refusal);
    script(format!("{} bytes", block.len()), bytes, vec![1], allowed)
}
