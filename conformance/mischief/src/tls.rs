//! Acts below TLS: handshakes that are none, that stop, and that are followed by something else.

use super::act::{Allowed, Doing, Draw, Kind, Layer, Leave, Opening, Script, Step};
use crate::limits::FLOOD_CONNECTION_COUNT_MAX;

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("no handshake", nothing),
    ("cut in the handshake", cut),
    ("garbage for a handshake", garbage),
    ("garbage in the handshake", garbage_within),
    ("broken records", records),
    ("garbage after the handshake", garbage_after),
    ("flood of handshakes", flood),
];

fn nothing(draw: &mut Draw<'_>) -> Script {
    let leave = draw.leave();
    let steps = vec![Step::Leave(leave)];
    Script::h1(leave.name(), steps, Allowed::anything()).below(Layer::Bare)
}

fn cut(draw: &mut Draw<'_>) -> Script {
    let share = draw.within(1..=254) as u8;
    let end = draw.pick(&[Some(Leave::Close), Some(Leave::Reset), None]);
    let name = end.map_or("half-closed", Leave::name);
    let detail = format!("{share}/256 of its first message, {name}");
    let steps = vec![end.map_or(Step::HalfClose, Step::Leave)];
    let allowed = Allowed::anything().and_ends();
    Script::h1(detail, steps, allowed).below(Layer::Hello(share))
}

fn garbage(draw: &mut Draw<'_>) -> Script {
    let (detail, bytes) = match draw.below(3) {
        0 => ("random bytes", draw.bytes(1000)),
        1 => ("NULs", vec![0; 1000]),
        _ => ("HTTP in clear text", super::h1::get(draw).into_bytes()),
    };
    let steps = vec![Step::Send(bytes), Step::HalfClose];
    let allowed = Allowed::anything().and_ends();
    Script::h1(detail, steps, allowed).below(Layer::Bare)
}

fn garbage_within(draw: &mut Draw<'_>) -> Script {
    let share = draw.within(10..=255) as u8;
    let count = draw.pick(&[10, 1000, 100_000]);
    let detail = format!("{count} bytes after {share}/256 of its first message");
    let steps = vec![Step::Send(draw.bytes(count)), Step::HalfClose];
    let allowed = Allowed::anything().and_ends();
    Script::h1(detail, steps, allowed).below(Layer::Hello(share))
}

fn records(draw: &mut Draw<'_>) -> Script {
    // Kind, version, length. //= rfc8446#5.1
    let (detail, bytes) = draw.pick::<(&str, &[u8])>(&[
        ("of an unknown kind", &[99, 3, 3, 0, 1, 0]),
        ("of an unknown version", &[22, 9, 9, 0, 1, 0]),
        ("longer than any", &[22, 3, 3, 255, 255]),
        ("empty handshakes", &[22, 3, 3, 0, 0, 22, 3, 3, 0, 0]),
        ("data before the handshake", &[23, 3, 3, 0, 3, 1, 2, 3]),
        ("an alert of no known level", &[21, 3, 3, 0, 2, 9, 9]),
        (
            "a hello that is longer than it may be",
            &[22, 3, 1, 0, 4, 1, 255, 255, 255],
        ),
        ("a change of cipher at once", &[20, 3, 3, 0, 1, 1]),
    ]);
    let steps = vec![Step::Send(bytes.to_vec()), Step::HalfClose];
    let allowed = Allowed::anything().and_ends();
    Script::h1(detail, steps, allowed).below(Layer::Bare)
}

fn garbage_after(draw: &mut Draw<'_>) -> Script {
    let count = draw.pick(&[5, 1000, 50_000]);
    let steps = vec![Step::Strip, Step::Send(draw.bytes(count)), Step::HalfClose];
    let allowed = Allowed::anything().and_ends();
    Script::h1(format!("{count} bytes"), steps, allowed).blind()
}

fn flood(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(8..=FLOOD_CONNECTION_COUNT_MAX);
    let openings = (0..count).map(|_| (Opening::Hello, draw.leave()));
    Script {
        doing: Doing::Flood(openings.collect()),
        detail: format!("{count} connections"),
        allowed: Allowed::anything(),
    }
}
