//! Acts over HTTP/3: datagrams that are none of QUIC's, connections that are left, requests that
//! are given up, and frames that are wrong.

use super::act::{
    Allowed, Doing, Draw, Ending, Kind, Quic, QuicLeave, QuicRequest, Script, Statuses,
};

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("garbage datagrams", garbage),
    ("cut in the handshake", cut),
    ("left before the answers", left),
    ("requests given up", given_up),
    ("many streams", many),
    ("frame out of place", frame),
    ("broken frame", broken),
    ("bad compression", compression),
];

/// Requests at once on a connection.
const REQUEST_COUNT_MAX: usize = 50;

fn quic(detail: impl Into<String>, quic: Quic, allowed: Allowed) -> Script {
    Script {
        detail: detail.into(),
        doing: Doing::Quic(quic),
        allowed,
    }
}

fn garbage(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(1..=50);
    let detail = draw.pick(&[
        "random",
        "beginnings of an unknown version",
        "beginnings",
        "data",
    ]);
    let datagrams = (0..count).map(|_| {
        let len = draw.within(1..=1400);
        let mut bytes = draw.bytes(len);
        // The first byte says what it is, the next four are a version. //= rfc8999#5.1
        let first: &[u8] = match detail {
            "beginnings of an unknown version" => &[0xc0, 0xfa, 0xfa, 0xfa, 0xfa, 8],
            "beginnings" => &[0xc0, 0, 0, 0, 1, 8],
            "data" => &[0x40],
            _ => &[],
        };
        bytes.splice(..first.len().min(bytes.len()), first.iter().copied());
        bytes
    });
    let datagrams = Quic::Datagrams(datagrams.collect());
    quic(format!("{count}, {detail}"), datagrams, Allowed::anything())
}

fn cut(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(1..=4);
    quic(
        format!("after {count} datagrams"),
        Quic::Vanish(count),
        Allowed::anything(),
    )
}

fn left(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(1..=REQUEST_COUNT_MAX);
    let leave = draw.pick(&[QuicLeave::Close, QuicLeave::Silently]);
    let requests = vec![QuicRequest::Good; count];
    let how = if leave == QuicLeave::Close {
        "closed"
    } else {
        "silently"
    };
    let detail = format!("{count} requests, {how}");
    quic(
        detail,
        Quic::Requests { requests, leave },
        Allowed::anything(),
    )
}

fn given_up(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(1..=REQUEST_COUNT_MAX);
    let mut requests: Vec<_> = (0..count)
        .map(|_| match draw.below(3) {
            0 => QuicRequest::Good,
            _ => QuicRequest::Cancelled,
        })
        .collect();
    requests.push(QuicRequest::Good);
    let good = requests
        .iter()
        .filter(|one| **one == QuicRequest::Good)
        .count();
    let leave = QuicLeave::Answered;
    let detail = format!("{} of {}", requests.len() - good, requests.len());
    quic(
        detail,
        Quic::Requests { requests, leave },
        Allowed::usual(good),
    )
}

fn many(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(2..=REQUEST_COUNT_MAX);
    let requests = vec![QuicRequest::Good; count];
    let leave = QuicLeave::Answered;
    let detail = format!("{count} at once");
    quic(
        detail,
        Quic::Requests { requests, leave },
        Allowed::usual(count),
    )
}

/// A request whose stream has these bytes: no answer but a refusal.
fn wrong(detail: &str, bytes: &[u8]) -> Script {
    let requests = vec![QuicRequest::Bytes(bytes.to_vec())];
    let leave = QuicLeave::Answered;
    let allowed = Allowed {
        ending: Ending::Free,
        ..Allowed::at_most_one(Statuses::Refusal)
    };
    quic(detail, Quic::Requests { requests, leave }, allowed)
}

//= rfc9114#7.2: which frames a stream of a request may have.
fn frame(draw: &mut Draw<'_>) -> Script {
    let (detail, bytes) = draw.pick::<(&str, &[u8])>(&[
        ("DATA first", &[0, 1, b'x']),
        ("SETTINGS", &[4, 0]),
        ("GOAWAY", &[7, 1, 0]),
        ("CANCEL_PUSH", &[3, 1, 0]),
        ("MAX_PUSH_ID", &[13, 1, 0]),
        ("PUSH_PROMISE", &[5, 2, 0, 0]),
        ("PING of HTTP/2", &[6, 0]),
        ("PRIORITY of HTTP/2", &[2, 0]),
    ]);
    wrong(detail, bytes)
}

//= rfc9114#7.1: a frame that ends with its stream before its length is over.
fn broken(draw: &mut Draw<'_>) -> Script {
    let (detail, bytes) = draw.pick::<(&str, &[u8])>(&[
        ("HEADERS that are cut", &[1, 100, 0, 0]),
        ("a head alone", &[1]),
        ("HEADERS of nothing", &[1, 0]),
        (
            "HEADERS of 2^62 bytes",
            &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ),
        ("nothing", &[]),
    ]);
    wrong(detail, bytes)
}

//= rfc9204#2.2.3: what cannot be unpacked ends the connection.
fn compression(draw: &mut Draw<'_>) -> Script {
    let (detail, bytes) = draw.pick::<(&str, &[u8])>(&[
        ("an index beyond the fixed table", &[1, 4, 0, 0, 0xff, 0x7f]),
        ("an index of a table that is empty", &[1, 3, 0, 0, 0x80]),
        ("more insertions than there are", &[1, 3, 0x05, 0, 0x80]),
        ("a text that is cut", &[1, 4, 0, 0, 0x2f, 0x7f]),
    ]);
    wrong(detail, bytes)
}
