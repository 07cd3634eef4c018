//! Requests that are unusual and not wrong: they are answered, each once and in order.

use super::{SMUGGLED, request, send};
use crate::act::{Allowed, Draw, Kind, Script, Statuses, Step};

/// These acts.
pub(crate) const KINDS: &[Kind] = &[
    ("methods", methods),
    ("pipelined", pipelined),
    ("pipelined with a bad one", pipelined_bad),
    ("odd but legal", legal),
    ("versions", versions),
    ("expectations", expectations),
];

/// Requests that are sent at once.
const PIPELINE_COUNT_MAX: usize = 16;

fn methods(draw: &mut Draw<'_>) -> Script {
    let method = draw.pick(&[
        "HEAD",
        "OPTIONS",
        "OPTIONS *",
        "TRACE",
        "get",
        "BREW",
        "!#$%&'*+-.^_`|~9",
    ]);
    let bytes = match method {
        "OPTIONS *" => format!("OPTIONS * HTTP/1.1\r\nHost: {}\r\n\r\n", draw.url.authority),
        method => request(draw, method, ""),
    };
    let statuses = match method {
        "HEAD" => Statuses::UsualOrRefusal,
        _ => Statuses::Any,
    };
    let heads = vec![method == "HEAD"];
    Script::pipelined(method, heads, vec![send(bytes)], Allowed::one(statuses))
}

fn pipelined(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(2..=PIPELINE_COUNT_MAX);
    let heads: Vec<bool> = (0..count).map(|_| draw.below(3) == 0).collect();
    let is_last = draw.below(2) == 0;
    let mut bytes = String::new();
    for (at, is_head) in heads.iter().enumerate() {
        let method = if *is_head { "HEAD" } else { "GET" };
        let fields = match is_last && at + 1 == count {
            true => "Connection: close\r\n",
            false => "",
        };
        bytes.push_str(&request(draw, method, fields));
    }
    let head_count = heads.iter().filter(|is_head| **is_head).count();
    let close = if is_last { ", the last with close" } else { "" };
    let detail = format!("{} GET and {head_count} HEAD{close}", count - head_count);
    let mut allowed = Allowed::usual(count);
    if is_last {
        allowed = allowed.and_ends();
    }
    Script::pipelined(detail, heads, vec![send(bytes)], allowed)
}

fn pipelined_bad(draw: &mut Draw<'_>) -> Script {
    let count = draw.within(1..=PIPELINE_COUNT_MAX / 2);
    let bad = draw.pick(&[
        "\0\0\0\0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
    ]);
    let mut bytes = request(draw, "GET", "").repeat(count);
    bytes.push_str(bad);
    bytes.push_str(&format!(
        "GET {SMUGGLED} HTTP/1.1\r\nHost: {}\r\n\r\n",
        draw.url.authority
    ));
    let allowed = Allowed {
        answers: count..=count + 1,
        usual_count: count,
        ..Allowed::refusal().and_ends()
    };
    let detail = format!("{count} good, then {:?}", shortened(bad));
    Script::h1(detail, vec![send(bytes)], allowed)
}

/// The last line that says something.
fn shortened(bad: &str) -> &str {
    bad.trim_end_matches("\r\n")
        .rsplit("\r\n")
        .next()
        .unwrap_or(bad)
}

fn legal(draw: &mut Draw<'_>) -> Script {
    let (target, host) = (draw.url.target.clone(), draw.url.authority.clone());
    let scheme = if draw.url.is_secure { "https" } else { "http" };
    let (detail, bytes, statuses) = match draw.below(6) {
        0 => (
            "an empty line before the request",
            format!("\r\n{}", request(draw, "GET", "")),
            Statuses::UsualOrRefusal,
        ),
        1 => (
            "the whole URL as target",
            format!("GET {scheme}://{host}{target} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            Statuses::UsualOrRefusal,
        ),
        //= rfc9110#5.5: white space around a value is no part of it.
        2 => (
            "white space around values",
            format!("GET {target} HTTP/1.1\r\nHost:\t {host} \t\r\nAccept:\r\n\r\n"),
            Statuses::Usual,
        ),
        3 => (
            "one length twice",
            request(draw, "GET", "Content-Length: 0\r\nContent-Length: 0\r\n"),
            Statuses::UsualOrRefusal,
        ),
        4 => (
            "bytes above 127 in a value",
            request(draw, "GET", "X-Name: h\u{e4}\u{df}lich\r\n"),
            Statuses::UsualOrRefusal,
        ),
        _ => (
            "line ends without CR",
            format!("GET {target} HTTP/1.1\nHost: {host}\n\n"),
            Statuses::UsualOrRefusal,
        ),
    };
    Script::h1(detail, vec![send(bytes)], Allowed::one(statuses))
}

fn versions(draw: &mut Draw<'_>) -> Script {
    let (target, host) = (draw.url.target.clone(), draw.url.authority.clone());
    let version = draw.pick(&["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9"]);
    let bytes = format!("GET {target} {version}\r\nHost: {host}\r\n\r\n");
    let allowed = match version {
        "HTTP/1.0" => Allowed::one(Statuses::Usual).and_ends(),
        //= rfc9110#2.5: a higher minor version is understood as the highest that is known.
        "HTTP/1.2" => Allowed::one(Statuses::UsualOrRefusal),
        // Nor need a higher major one be refused, though most do.
        _ => Allowed::at_most_one(Statuses::UsualOrRefusal),
    };
    Script::h1(version, vec![send(bytes)], allowed)
}

fn expectations(draw: &mut Draw<'_>) -> Script {
    let expectation = draw.pick(&["100-continue", "100-continue without waiting", "a-miracle"]);
    let (value, has_body) = match expectation {
        "100-continue" => ("100-continue", false),
        "100-continue without waiting" => ("100-continue", true),
        other => (other, true),
    };
    let fields = format!("Content-Length: 5\r\nExpect: {value}\r\n");
    let mut steps = vec![send(request(draw, "POST", &fields))];
    if !has_body {
        steps.push(Step::Await);
    }
    steps.push(send("hello"));
    let allowed = Allowed::at_most_one(Statuses::Any);
    Script::h1(expectation, steps, allowed)
}
