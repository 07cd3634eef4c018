//! Acts over HTTP/3: datagrams that are none of QUIC's, connections that are left, requests that
//! are given up, and frames that are wrong.

use super::act::{
    Allowed, Doing, Draw, Ending, Kind, Quic, QuicLeave, QuicRequest, QuicStreams, Script, Statuses,
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
    ("wrong control stream", control),
    ("critical stream that ends", ended),
    ("stream that may not be", stream),
    ("wrong QPACK instruction", instruction),
    ("unknown streams", unknown),
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

/// Streams that must end the connection.
fn fatal(detail: &str, streams: QuicStreams) -> Script {
    quic(detail, Quic::Streams(streams), Allowed::end())
}

//= rfc9114#6.2.1: a control stream begins with SETTINGS.
//= rfc9114#7.2: which frames it may have besides.
fn control(draw: &mut Draw<'_>) -> Script {
    let (detail, bytes) = draw.pick::<(&str, &[u8])>(&[
        ("DATA first", &[0, 0, 1, b'x']),
        ("GOAWAY first", &[0, 7, 1, 0]),
        ("SETTINGS twice", &[0, 4, 0, 4, 0]),
        ("DATA", &[0, 4, 0, 0, 1, b'x']),
        ("HEADERS", &[0, 4, 0, 1, 1, 0]),
        ("PUSH_PROMISE", &[0, 4, 0, 5, 2, 0, 0]),
        ("PING of HTTP/2", &[0, 4, 0, 6, 0]),
        ("a setting of HTTP/2", &[0, 4, 2, 2, 0]),
        ("GOAWAY without a number", &[0, 4, 0, 7, 0]),
        ("MAX_PUSH_ID that shrinks", &[0, 4, 0, 13, 1, 5, 13, 1, 3]),
        ("a setting that is cut", &[0, 4, 1, 6]),
    ]);
    let control = Some(bytes.to_vec());
    let streams = QuicStreams {
        control,
        ..QuicStreams::default()
    };
    fatal(detail, streams)
}

//= rfc9114#6.2.1: closing it is an error.
//= rfc9204#4.2: so it is of the streams of QPACK.
fn ended(draw: &mut Draw<'_>) -> Script {
    let (detail, kind) = draw.pick::<(&str, Option<u8>)>(&[
        ("the control stream", None),
        ("QPACK's encoder stream", Some(2)),
        ("QPACK's decoder stream", Some(3)),
    ]);
    let streams = QuicStreams {
        is_control_ended: kind.is_none(),
        others: kind.map(|kind| (vec![kind], true)).into_iter().collect(),
        ..QuicStreams::default()
    };
    fatal(detail, streams)
}

//= rfc9114#6.2: one of each that is critical; clients push nothing.
fn stream(draw: &mut Draw<'_>) -> Script {
    let (detail, others) = draw.pick::<(&str, &[&[u8]])>(&[
        ("a second control stream", &[&[0, 4, 0]]),
        ("a push", &[&[1, 0]]),
        ("a second encoder stream", &[&[2], &[2]]),
        ("a second decoder stream", &[&[3], &[3]]),
    ]);
    let others = others.iter().map(|bytes| (bytes.to_vec(), false));
    let streams = QuicStreams {
        others: others.collect(),
        ..QuicStreams::default()
    };
    fatal(detail, streams)
}

//= rfc9204#6: instructions that cannot be followed are errors of the connection.
fn instruction(draw: &mut Draw<'_>) -> Script {
    let (detail, bytes) = draw.pick::<(&str, &[u8])>(&[
        (
            "a table larger than any",
            &[2, 0x3f, 0xff, 0xff, 0xff, 0x7f],
        ),
        ("a copy of nothing", &[2, 0]),
        ("the name of nothing", &[2, 0x85, 0]),
        (
            "more than the table holds",
            &[2, 0x43, b'a', b'b', b'c', 1, b'x'],
        ),
        ("an acknowledgment of nothing", &[3, 0x84]),
        ("an increment of 0", &[3, 0]),
        ("an increment beyond what there is", &[3, 5]),
    ]);
    let streams = QuicStreams {
        others: vec![(bytes.to_vec(), false)],
        ..QuicStreams::default()
    };
    fatal(detail, streams)
}

//= rfc9114#6.2: streams of unknown types are read no further, and no error.
fn unknown(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(1..=20);
    let others = (0..count).map(|_| {
        // Types that are reserved to have no meaning. //= rfc9114#6.2.3
        let kind = 0x21 + 0x1f * draw.below(100) as u16;
        let len = draw.below(500);
        let mut bytes = (0x4000 | kind).to_be_bytes().to_vec();
        bytes.extend(draw.bytes(len));
        (bytes, draw.below(2) == 0)
    });
    let streams = QuicStreams {
        others: others.collect(),
        is_legal: true,
        ..QuicStreams::default()
    };
    let detail = format!("{count} streams");
    quic(detail, Quic::Streams(streams), Allowed::usual(1))
}
