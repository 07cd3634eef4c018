//! Connections that break part-way, that hardly move, and that come and go in numbers.

use std::time::Duration;

use super::{request, send};
use crate::act::{Allowed, Doing, Draw, Kind, Leave, Opening, Script, Statuses, Step};
use crate::limits::{FLOOD_CONNECTION_COUNT_MAX, SIP_COUNT_MAX};

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("cut before the head", before),
    ("cut in the head", in_head),
    ("cut in the body", in_body),
    ("cut in the chunks", in_chunks),
    ("cut in the answer", in_answer),
    ("slow head", slow_head),
    ("slow body", slow_body),
    ("slow reader", slow_reader),
    ("half-closed", half_closed),
    ("flood of connections", flood),
];

/// How long a byte takes.
const DRIP_PAUSE: Duration = Duration::from_millis(5);
const SIP_PAUSE: Duration = Duration::from_millis(2);

fn before(draw: &mut Draw<'_>) -> Script {
    let leave = draw.leave();
    let steps = vec![Step::Leave(leave)];
    Script::h1(leave.name(), steps, Allowed::anything())
}

/// Ends a connection after what was sent: by FIN, by RST, or by half, which is to be answered with
/// no more than one answer.
fn ended(draw: &mut Draw<'_>, detail: &str, bytes: Vec<u8>, statuses: Statuses) -> Script {
    let end = draw.pick(&[Some(Leave::Close), Some(Leave::Reset), None]);
    let name = end.map_or("half-closed", Leave::name);
    let detail = format!("{detail}, {name}");
    match end {
        Some(leave) => {
            let steps = vec![send(bytes), Step::Leave(leave)];
            Script::h1(detail, steps, Allowed::anything())
        }
        None => {
            let allowed = Allowed::at_most_one(statuses).and_ends();
            Script::h1(detail, vec![send(bytes), Step::HalfClose], allowed)
        }
    }
}

fn in_head(draw: &mut Draw<'_>) -> Script {
    let mut bytes = request(draw, "GET", "Accept: */*\r\n").into_bytes();
    // Not even the empty line's first byte, with which a lenient server may see the end.
    let len = draw.within(1..=bytes.len() - 3);
    bytes.truncate(len);
    ended(draw, &format!("{len} bytes"), bytes, Statuses::Refusal)
}

fn in_body(draw: &mut Draw<'_>) -> Script {
    let whole = draw.pick(&[2, 1000, 100_000]);
    let len = draw.below(whole);
    let mut bytes = request(draw, "POST", &format!("Content-Length: {whole}\r\n")).into_bytes();
    bytes.resize(bytes.len() + len, b'x');
    let detail = format!("{len} bytes of {whole}");
    ended(draw, &detail, bytes, Statuses::Any)
}

fn in_chunks(draw: &mut Draw<'_>) -> Script {
    let body = "5\r\nhello\r\n64;a=b\r\n".to_owned() + &"y".repeat(100) + "\r\n0\r\nA: b\r\n\r\n";
    let len = draw.within(0..=body.len() - 3);
    let mut bytes = request(draw, "POST", "Transfer-Encoding: chunked\r\n");
    bytes.push_str(&body[..len]);
    let detail = format!("{len} bytes of {}", body.len());
    ended(draw, &detail, bytes.into_bytes(), Statuses::Any)
}

fn in_answer(draw: &mut Draw<'_>) -> Script {
    let leave = draw.leave();
    let steps = vec![
        send(request(draw, "GET", "")),
        Step::Await,
        Step::Leave(leave),
    ];
    Script::h1(leave.name(), steps, Allowed::anything())
}

fn slow_head(draw: &mut Draw<'_>) -> Script {
    let bytes = request(draw, "GET", "").into_bytes();
    // Of long URLs only the end is slow.
    let at = bytes.len().saturating_sub(SIP_COUNT_MAX);
    let pause = DRIP_PAUSE;
    let bytes_last = bytes[at..].to_vec();
    let detail = format!(
        "{} bytes, one each {} ms",
        bytes_last.len(),
        pause.as_millis()
    );
    let steps = vec![
        send(&bytes[..at]),
        Step::Drip {
            bytes: bytes_last,
            pause,
        },
    ];
    Script::h1(detail, steps, Allowed::one(Statuses::UsualOrRefusal))
}

fn slow_body(draw: &mut Draw<'_>) -> Script {
    let len = draw.within(1..=SIP_COUNT_MAX);
    let head = request(draw, "POST", &format!("Content-Length: {len}\r\n"));
    let drip = Step::Drip {
        bytes: vec![b'x'; len],
        pause: DRIP_PAUSE,
    };
    let detail = format!("{len} bytes, one each {} ms", DRIP_PAUSE.as_millis());
    let allowed = Allowed::at_most_one(Statuses::Any);
    Script::h1(detail, vec![send(head), drip], allowed)
}

fn slow_reader(draw: &mut Draw<'_>) -> Script {
    let byte_count = draw.within(1..=SIP_COUNT_MAX);
    let detail = format!("{byte_count} bytes, one each {} ms", SIP_PAUSE.as_millis());
    let sip = Step::Sip {
        byte_count,
        pause: SIP_PAUSE,
    };
    let steps = vec![send(request(draw, "GET", "")), sip];
    Script::h1(detail, steps, Allowed::usual(1))
}

fn half_closed(draw: &mut Draw<'_>) -> Script {
    // Whether a client that says no more is still there is for the server to decide.
    let steps = vec![send(request(draw, "GET", "")), Step::HalfClose];
    let allowed = Allowed::at_most_one(Statuses::Usual).and_ends();
    Script::h1("after the request", steps, allowed)
}

fn flood(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(8..=FLOOD_CONNECTION_COUNT_MAX);
    let head = request(draw, "GET", "").into_bytes();
    let openings = (0..count).map(|_| {
        let len = draw.pick(&[0, 0, 1, head.len() / 2, head.len()]);
        (Opening::Bytes(head[..len].to_vec()), draw.leave())
    });
    Script {
        doing: Doing::Flood(openings.collect()),
        detail: format!("{count} connections"),
        allowed: Allowed::anything(),
    }
}
