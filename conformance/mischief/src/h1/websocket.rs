//! Acts around WebSockets: openings that are wrong, frames that are broken, and connections that
//! end in between. A server that has none at the URL answers as ever, and takes what follows for a
//! request that is none. //= rfc6455

use super::{request, send};
use crate::act::{Allowed, Draw, Kind, Leave, Script, Statuses, Step};

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("websocket, odd opening", opening),
    ("websocket, broken frame", broken),
    ("websocket, cut", cut),
    ("websocket, many frames", many),
];

/// Frames that are sent at once.
const FRAME_COUNT_MAX: usize = 2000;
/// What a frame of a client is masked with.
const MASK: [u8; 4] = [1, 2, 3, 4];

/// A request to change to WebSocket, with these fields for its own.
fn change(draw: &Draw<'_>, fields: &str) -> String {
    let upgrade = format!("Connection: Upgrade\r\nUpgrade: websocket\r\n{fields}");
    request(draw, "GET", &upgrade)
}

/// One that is as it should be. //= rfc6455#4.1
fn good(draw: &Draw<'_>) -> String {
    change(
        draw,
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    )
}

/// A frame of less than 126 bytes, masked as clients must. //= rfc6455#5.2
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first, 0x80 | payload.len() as u8];
    bytes.extend(MASK);
    let masked = payload.iter().zip(MASK.iter().cycle());
    bytes.extend(masked.map(|(byte, mask)| byte ^ mask));
    bytes
}

/// Whoever speaks WebSocket has one answer, the change; who does not has its usual one, and perhaps
/// a refusal of what follows.
fn changed() -> Allowed {
    Allowed {
        answers: 0..=2,
        ..Allowed::one(Statuses::Any)
    }
}

fn opening(draw: &mut Draw<'_>) -> Script {
    const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const VERSION: &str = "Sec-WebSocket-Version: 13\r\n";
    let detail = draw.pick(&[
        "an unknown version",
        "no key",
        "a key that is too short",
        "two keys",
        "another protocol",
        "no Connection field",
        "HTTP/1.0",
        "a body",
    ]);
    let bytes = match detail {
        "an unknown version" => change(draw, &format!("Sec-WebSocket-Version: 99\r\n{KEY}")),
        "no key" => change(draw, VERSION),
        "a key that is too short" => change(draw, &format!("{VERSION}Sec-WebSocket-Key: AAAA\r\n")),
        "two keys" => change(draw, &format!("{VERSION}{KEY}{KEY}")),
        "another protocol" => request(draw, "GET", "Connection: Upgrade\r\nUpgrade: gopher\r\n"),
        "no Connection field" => request(
            draw,
            "GET",
            &format!("Upgrade: websocket\r\n{VERSION}{KEY}"),
        ),
        "HTTP/1.0" => good(draw).replace("HTTP/1.1", "HTTP/1.0"),
        _ => good(draw).replace("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\nhello"),
    };
    // What stands behind a change that is refused is a request, or the connection ends.
    let allowed = Allowed::at_most_one(Statuses::Any);
    Script::h1(detail, vec![send(bytes), Step::HalfClose], allowed)
}

//= rfc6455#5: what fails the connection.
fn broken(draw: &mut Draw<'_>) -> Script {
    let (detail, bytes) = match draw.below(12) {
        0 => ("not masked", vec![0x81, 2, b'h', b'i']),
        1 => ("reserved bits", frame(0xf1, b"hi")),
        2 => ("an unknown kind", frame(0x83, b"hi")),
        3 => ("an unknown kind of control", frame(0x8b, b"hi")),
        4 => ("a ping in parts", frame(0x09, b"hi")),
        5 => {
            let mut bytes = vec![0x89, 0xfe, 0, 126];
            bytes.extend(MASK);
            bytes.extend([0; 126]);
            ("a ping that is too long", bytes)
        }
        6 => ("a part of nothing", frame(0x80, b"hi")),
        7 => (
            "a message within another",
            [frame(0x01, b"hi"), frame(0x81, b"ho")].concat(),
        ),
        8 => ("text that is none", frame(0x81, &[0xc3, 0x28, 0xff])),
        9 => ("a reason of one byte", frame(0x88, &[3])),
        10 => ("a reason that nobody may send", frame(0x88, &[0x03, 0xed])),
        _ => {
            let mut bytes = vec![0x82, 0xff];
            bytes.extend([0xff; 8]);
            bytes.extend(MASK);
            ("2^64 - 1 bytes", bytes)
        }
    };
    let steps = vec![send(good(draw)), Step::Await, send(bytes), Step::HalfClose];
    Script::h1(detail, steps, changed())
}

fn cut(draw: &mut Draw<'_>) -> Script {
    let (detail, bytes) = draw.pick::<(&str, &[u8])>(&[
        ("at once", &[]),
        ("in a head", &[0x81]),
        ("in a length", &[0x82, 0xfe, 1]),
        ("in a mask", &[0x81, 0x85, 1, 2]),
        ("in a message", &[0x81, 0x85, 1, 2, 3, 4, b'h']),
        ("between two parts", &[0x01, 0x81, 1, 2, 3, 4, b'h']),
        ("after a ping", &[0x89, 0x80, 1, 2, 3, 4]),
    ]);
    let end = draw.pick(&[Some(Leave::Close), Some(Leave::Reset), None]);
    let name = end.map_or("half-closed", Leave::name);
    let steps = vec![
        send(good(draw)),
        Step::Await,
        send(bytes),
        end.map_or(Step::HalfClose, Step::Leave),
    ];
    Script::h1(format!("{detail}, {name}"), steps, changed())
}

fn many(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(100..=FRAME_COUNT_MAX);
    let (detail, one) = match draw.below(3) {
        0 => ("pings", frame(0x89, b"are you there")),
        1 => ("empty parts", frame(0x00, b"")),
        _ => ("empty texts", frame(0x81, b"")),
    };
    let mut bytes = match detail {
        "empty parts" => frame(0x01, b""),
        _ => Vec::new(),
    };
    bytes.extend(one.repeat(count));
    let steps = vec![send(good(draw)), Step::Await, send(bytes), Step::HalfClose];
    Script::h1(format!("{count} {detail}"), steps, changed())
}
