//! Bytes that are no request: they are refused, once at most, and what follows them is no request
//! either.

use super::{SMUGGLED, request, send};
use crate::act::{Allowed, Draw, Kind, Script, Statuses, Step};

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("bad request line", request_line),
    ("bad field", field),
    ("bad host", host),
    ("long target", long_target),
    ("long head", long_head),
    ("many fields", many_fields),
    ("bad length", length),
    ("contradicting lengths", lengths),
    ("bad transfer coding", coding),
    ("length beside chunks", smuggled),
    ("bad chunk", chunk),
    ("garbage", garbage),
];

/// A request line that is wrong, and what is wrong with it.
fn request_line(draw: &mut Draw<'_>) -> Script {
    let (line, is_loose) = draw.pick(&[
        ("GET", false),
        ("GET /", true),
        ("GET / HTTP/1.1 x", false),
        ("GET / HTTP/1.1x", false),
        ("GET / HTTP/1", false),
        ("GET / HTTP/11.1", false),
        ("GET / JUNK/1.1", false),
        ("GET / HTTP/", false),
        ("GET /a b HTTP/1.1", false),
        ("GET /\0 HTTP/1.1", false),
        ("GET /\x01 HTTP/1.1", false),
        ("GET /\x7f HTTP/1.1", false),
        ("G\0T / HTTP/1.1", false),
        ("G(T / HTTP/1.1", false),
        (": / HTTP/1.1", false),
        ("/ HTTP/1.1", false),
        // White space that a lenient server may take for what it looks like. //= rfc9112#3
        ("GET  / HTTP/1.1", true),
        ("GET\t/\tHTTP/1.1", true),
        (" GET / HTTP/1.1", true),
        ("GET x HTTP/1.1", false),
        ("GET http:// HTTP/1.1", false),
        ("GET //\\..\\.. HTTP/1.1", true),
        ("GET /../../etc/passwd HTTP/1.1", true),
        ("GET /%00 HTTP/1.1", true),
        ("GET /%zz HTTP/1.1", true),
        ("CONNECT / HTTP/1.1", false),
    ]);
    let bytes = format!("{line}\r\nHost: {}\r\n\r\n", draw.url.authority);
    // What is answered as HTTP/0.9 has no head, and ends with the connection.
    let is_old = line == "GET /";
    let allowed = match is_loose {
        true => Allowed::at_most_one(Statuses::Any),
        false => Allowed::refusal(),
    };
    let steps = vec![send(bytes)];
    let mut script = Script::h1(format!("{line:?}"), steps, allowed);
    if is_old {
        script = script.blind();
    }
    script
}

fn field(draw: &mut Draw<'_>) -> Script {
    let (line, is_loose) = draw.pick(&[
        ("no colon", false),
        (": no name", false),
        //= rfc9112#5.1: white space before the colon must be refused.
        ("Accept : x", false),
        ("Accept\t: x", false),
        ("Acc ept: x", false),
        ("Acc\0ept: x", false),
        // Names that are no tokens, which nobody has to refuse.
        ("Acc(ept: x", true),
        //= rfc9110#5.5: CR, LF and NUL in values are refused or replaced by a space.
        ("X-A: a\0b", true),
        ("X-A: a\rb", true),
        ("X-A: a\x01b", true),
        //= rfc9112#5.2: a folded line is refused or unfolded.
        ("X-A: a\r\n b", true),
        ("\x7f: x", true),
        ("X-\u{e4}: x", true),
    ]);
    let bytes = request(draw, "GET", &format!("{line}\r\n"));
    let allowed = match is_loose {
        true => Allowed::at_most_one(Statuses::UsualOrRefusal),
        false => Allowed::refusal(),
    };
    Script::h1(format!("{line:?}"), vec![send(bytes)], allowed)
}

//= rfc9112#3.2: a request of HTTP/1.1 without Host, with two, or with one that is none gets a 400.
fn host(draw: &mut Draw<'_>) -> Script {
    let (fields, is_loose) = draw.pick(&[
        ("", false),
        ("Host: a\r\nHost: b\r\n", false),
        ("Host: a b\r\n", false),
        ("Host: a/b\r\n", false),
        ("Host: a@b\r\n", true),
        ("Host: a,b\r\n", true),
        ("Host: a:b\r\n", true),
        ("Host: [::\r\n", true),
        ("Host: a\0\r\n", false),
        ("Host : a\r\n", false),
    ]);
    let bytes = format!("GET {} HTTP/1.1\r\n{fields}\r\n", draw.url.target);
    let allowed = match is_loose {
        true => Allowed::at_most_one(Statuses::Any),
        false => Allowed::refusal(),
    };
    Script::h1(format!("{fields:?}"), vec![send(bytes)], allowed)
}

fn long_target(draw: &mut Draw<'_>) -> Script {
    let len = draw.pick(&[70_000, 200_000, 900_000]);
    let target = "/".to_owned() + &"a".repeat(len);
    let bytes = format!(
        "GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n",
        draw.url.authority
    );
    Script::h1(
        format!("{len} bytes"),
        vec![send(bytes)],
        Allowed::refusal(),
    )
}

fn long_head(draw: &mut Draw<'_>) -> Script {
    let len = draw.pick(&[150_000, 300_000, 900_000]);
    let is_name = draw.below(4) == 0;
    let (name, value) = match is_name {
        true => ("a".repeat(len), "x".to_owned()),
        false => ("X-Long".to_owned(), "a".repeat(len)),
    };
    let bytes = request(draw, "GET", &format!("{name}: {value}\r\n"));
    let what = if is_name { "name" } else { "value" };
    let detail = format!("a {what} of {len} bytes");
    Script::h1(detail, vec![send(bytes)], Allowed::refusal())
}

fn many_fields(draw: &mut Draw<'_>) -> Script {
    let count = draw.pick(&[2000, 10_000, 50_000]);
    let bytes = request(draw, "GET", &"X-A: b\r\n".repeat(count));
    // A server without such a limit may take what fits into its limit of the head.
    let allowed = Allowed::at_most_one(Statuses::UsualOrRefusal);
    Script::h1(format!("{count} fields"), vec![send(bytes)], allowed)
}

/// A body that would be a request, if a server lost its place.
fn follower(draw: &Draw<'_>) -> String {
    format!(
        "GET {SMUGGLED} HTTP/1.1\r\nHost: {}\r\n\r\n",
        draw.url.authority
    )
}

//= rfc9112#6.3: a length that is none is refused, and the connection ends.
fn length(draw: &mut Draw<'_>) -> Script {
    let value = draw.pick(&[
        "+5",
        "-1",
        "0x5",
        "5 5",
        "5;",
        "1e3",
        "",
        "5\0",
        "five",
        "99999999999999999999999999",
        "18446744073709551616",
        "5, 6",
    ]);
    let bytes = request(draw, "POST", &format!("Content-Length: {value}\r\n")) + &follower(draw);
    let allowed = Allowed::refusal().and_ends();
    Script::h1(format!("{value:?}"), vec![send(bytes)], allowed)
}

fn lengths(draw: &mut Draw<'_>) -> Script {
    let (one, other) = draw.pick(&[(0, 5), (5, 0), (5, 6), (1, 1000)]);
    let fields = format!("Content-Length: {one}\r\nContent-Length: {other}\r\n");
    let bytes = request(draw, "POST", &fields) + &follower(draw);
    let allowed = Allowed::refusal().and_ends();
    Script::h1(format!("{one} and {other}"), vec![send(bytes)], allowed)
}

//= rfc9112#6.3: where chunked is not the last coding, where the message ends cannot be known.
fn coding(draw: &mut Draw<'_>) -> Script {
    let (field, is_loose) = draw.pick(&[
        ("Transfer-Encoding: identity", false),
        ("Transfer-Encoding: xchunked", false),
        ("Transfer-Encoding: chunked, identity", false),
        ("Transfer-Encoding: chunked, chunked", true),
        ("Transfer-Encoding: gzip", false),
        ("Transfer-Encoding: \x0bchunked", false),
        ("Transfer-Encoding : chunked", false),
        ("Transfer-Encoding: chunked\0", false),
        ("Transfer-Encoding: \"chunked\"", false),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            false,
        ),
        ("Transfer-Encoding:\r\n chunked", true),
    ]);
    let body = "0\r\n\r\n".to_owned() + &follower(draw);
    let bytes = request(draw, "POST", &format!("{field}\r\n")) + &body;
    let allowed = match is_loose {
        // Understood, it is a request without a body and another one.
        true => Allowed {
            answers: 0..=2,
            ..Allowed::at_most_one(Statuses::Any)
        },
        false => Allowed::refusal().and_ends(),
    };
    let mut steps = vec![send(bytes)];
    if is_loose {
        steps.push(Step::HalfClose);
    }
    Script::h1(format!("{field:?}"), steps, allowed)
}

//= rfc9112#6.1: whoever answers such a request must end the connection afterwards.
fn smuggled(draw: &mut Draw<'_>) -> Script {
    let follower = follower(draw);
    let is_chunked_first = draw.below(2) == 0;
    let is_old = draw.below(4) == 0;
    let body = format!("0\r\n\r\n{follower}");
    let length = format!("Content-Length: {}\r\n", draw.pick(&[5, body.len()]));
    let chunked = "Transfer-Encoding: chunked\r\n";
    let fields = match is_chunked_first {
        true => format!("{chunked}{length}"),
        false => format!("{length}{chunked}"),
    };
    let mut head = request(draw, "POST", &fields);
    if is_old {
        head = head.replacen("HTTP/1.1", "HTTP/1.0", 1);
    }
    let allowed = Allowed::at_most_one(Statuses::Any).and_ends();
    let version = if is_old { ", HTTP/1.0" } else { "" };
    let detail = format!("{:?}{version}", fields.trim_end());
    Script::h1(detail, vec![send(head + &body)], allowed)
}

/// Whoever answers before it has read the body has not seen what is wrong with it; nobody can know
/// where the next request begins.
fn chunk(draw: &mut Draw<'_>) -> Script {
    let (body, is_loose) = draw.pick(&[
        ("g\r\nhello\r\n0\r\n\r\n", false),
        ("-5\r\nhello\r\n0\r\n\r\n", false),
        ("+5\r\nhello\r\n0\r\n\r\n", false),
        ("0x5\r\nhello\r\n0\r\n\r\n", false),
        ("\r\nhello\r\n0\r\n\r\n", false),
        ("5\r\nhelloworld\r\n0\r\n\r\n", false),
        ("ffffffffffffffffff\r\nhello\r\n0\r\n\r\n", false),
        ("fffffffffffffffe\r\nhello\r\n0\r\n\r\n", false),
        ("5\0\r\nhello\r\n0\r\n\r\n", false),
        ("5 5\r\nhello\r\n0\r\n\r\n", false),
        (" 5\r\nhello\r\n0\r\n\r\n", true),
        ("5 ;a\r\nhello\r\n0\r\n\r\n", true),
        ("5\nhello\n0\n\n", true),
        ("5;\0\r\nhello\r\n0\r\n\r\n", true),
    ]);
    let bytes = request(draw, "POST", "Transfer-Encoding: chunked\r\n") + body;
    let allowed = Allowed::at_most_one(Statuses::Any);
    // One that is too large goes on until the connection ends.
    let steps = vec![send(bytes + &follower(draw)), Step::HalfClose];
    let allowed = match is_loose {
        // Understood, another request follows it.
        true => Allowed {
            answers: 0..=2,
            ..allowed
        },
        false => allowed.and_ends(),
    };
    Script::h1(format!("{body:?}"), steps, allowed)
}

fn garbage(draw: &mut Draw<'_>) -> Script {
    let len = draw.pick(&[1, 10, 100, 1000, 50_000]);
    let kind = draw.below(4);
    let (what, bytes) = match kind {
        0 => ("random bytes", draw.bytes(len)),
        1 => ("NULs", vec![0; len]),
        2 => ("line ends", b"\r\n".repeat(len)),
        _ => {
            let line: Vec<u8> = draw.bytes(len).iter().map(|byte| 33 + byte % 94).collect();
            ("letters and lines", [&line[..], b"\r\n\r\n"].concat())
        }
    };
    let steps = vec![send(bytes), Step::HalfClose];
    let allowed = Allowed::refusal().and_ends();
    Script::h1(format!("{len} {what}"), steps, allowed)
}
