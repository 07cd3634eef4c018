//! Connections that are cut, and requests that are unusual and not wrong.

use std::time::Duration;

use hob_load::parts::h2::frame::{PREFACE, flag, kind};

use super::{begun, fields, frame, get, packed, script};
use crate::act::{Allowed, Draw, Kind, Script, Step};
use crate::limits::SIP_COUNT_MAX;

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("cut in the preface", in_preface),
    ("cut in a frame", in_frame),
    ("cut before the answer", before_answer),
    ("slow frames", slow),
    ("tiny windows", tiny_windows),
    ("many streams", many_streams),
    ("head in pieces", pieces),
    ("unknown frames", unknown),
];

/// Streams that are begun at once: no server allows fewer.
const STREAM_COUNT_MAX: usize = 100;

fn in_preface(draw: &mut Draw<'_>) -> Script {
    let len = draw.within(1..=PREFACE.len() - 1);
    let leave = draw.leave();
    let steps = vec![Step::Send(PREFACE[..len].to_vec()), Step::Leave(leave)];
    let detail = format!("{len} bytes, {}", leave.name());
    Script::h1(detail, steps, Allowed::anything()).blind()
}

fn in_frame(draw: &mut Draw<'_>) -> Script {
    let mut bytes = get(draw, 1);
    let len = draw.within(1..=bytes.len() - 1);
    bytes.truncate(len);
    let leave = draw.leave();
    let detail = format!("{len} bytes, {}", leave.name());
    let steps = vec![Step::Send(bytes), Step::Leave(leave)];
    begun(detail, 0, steps, Vec::new(), Allowed::anything())
}

fn before_answer(draw: &mut Draw<'_>) -> Script {
    let leave = draw.leave();
    let steps = vec![Step::Send(get(draw, 1)), Step::Leave(leave)];
    begun(
        leave.name(),
        1 << 20,
        steps,
        Vec::new(),
        Allowed::anything(),
    )
}

fn slow(draw: &mut Draw<'_>) -> Script {
    let bytes = get(draw, 1);
    let at = bytes.len().saturating_sub(SIP_COUNT_MAX);
    let detail = format!("{} bytes one by one", bytes.len() - at);
    let drip = Step::Drip {
        bytes: bytes[at..].to_vec(),
        pause: Duration::from_millis(5),
    };
    let steps = vec![Step::Send(bytes[..at].to_vec()), drip];
    begun(detail, 1 << 30, steps, vec![1], Allowed::usual(1))
}

fn tiny_windows(draw: &mut Draw<'_>) -> Script {
    let window = draw.below(3) as u32;
    let count = draw.within(1..=SIP_COUNT_MAX);
    let mut steps = vec![Step::Send(get(draw, 1))];
    // A stream that is over is not told of any more: the server ignores that.
    let more = |bytes: u32| frame(kind::WINDOW_UPDATE, 0, 1, &bytes.to_be_bytes());
    steps.push(Step::Send(more(1).repeat(count)));
    steps.push(Step::Send(more(1 << 30)));
    let detail = format!("of {window} bytes, then {count} more one by one");
    begun(detail, window, steps, vec![1], Allowed::usual(1))
}

fn many_streams(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(2..=STREAM_COUNT_MAX);
    let streams: Vec<u32> = (0..count as u32).map(|at| 2 * at + 1).collect();
    let bytes = streams.iter().map(|stream| get(draw, *stream));
    let bytes = bytes.collect::<Vec<_>>().concat();
    // One that takes fewer refuses the others.
    let allowed = Allowed {
        answers: 1..=count,
        ..Allowed::usual(count)
    };
    script(format!("{count} at once"), bytes, streams, allowed)
}

/// A head may be cut anywhere, and a server may find that too many pieces are an attack.
fn pieces(draw: &mut Draw<'_>) -> Script {
    let block = packed(&fields(draw));
    let size = draw.within(1..=block.len());
    let mut bytes = frame(kind::HEADERS, flag::END_STREAM, 1, &[]);
    let count = block.len().div_ceil(size);
    for (at, piece) in block.chunks(size).enumerate() {
        let flags = if at + 1 == count {
            flag::END_HEADERS
        } else {
            0
        };
        bytes.extend(frame(kind::CONTINUATION, flags, 1, piece));
    }
    let allowed = Allowed {
        answers: 0..=1,
        ..Allowed::usual(1)
    };
    script(format!("{count} pieces"), bytes, vec![1], allowed)
}

//= rfc9113#5.5: frames and settings of unknown kinds are ignored.
fn unknown(draw: &mut Draw<'_>) -> Script {
    let detail = draw.pick(&["frames", "settings", "priorities"]);
    let mut bytes = match detail {
        "frames" => {
            let kind = draw.within(32..=255) as u8;
            let payload = draw.bytes(100);
            frame(kind, 255, 0, &payload)
        }
        "settings" => frame(kind::SETTINGS, 0, 0, &[0xfa, 0xfa, 1, 2, 3, 4]),
        _ => frame(2, 0, 1, &[0, 0, 0, 0, 9]),
    };
    bytes.extend(get(draw, 1));
    script(detail, bytes, vec![1], Allowed::usual(1))
}
