//! Spans of a finished request: its own, and below it what it waited for, as far as that is known.
//!
//! Attributes have the names of OpenTelemetry's conventions for HTTP; what those have no name for
//! begins with `hob.`. The query is left out: it may hold secrets.

use hob_trace::series::SeriesName;
use hob_trace::{CacheOutcome, Fault, Protocol, Record, Texts, TlsVersion};

use super::message::{KeyValue, Span, SpanKind, SpanStatusCode, Status};

/// The parent's flag bits: known, and from another process.
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;
const SAMPLED: u32 = 1;
/// Methods that need no other name.
const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY",
];

/// All spans of a request. `unix_us` is what a record's time is to be moved by.
pub(super) fn spans(
    record: &Record,
    texts: &Texts<'_>,
    name: &SeriesName,
    unix_us: i64,
) -> Vec<Span> {
    let start_us = record.started_us.saturating_add_signed(unix_us);
    let own = own(record, texts, name, start_us);
    let mut all = vec![own];
    let mut part = |part: ChildSpan| {
        let index = all.len() as u64;
        all.push(child(record, part, start_us, index));
    };
    // The head of a program's answer is there when its time ends; before its time is the queue.
    let answered_us = match record.first_byte_us {
        0 => record.total_us,
        first_byte_us => first_byte_us,
    };
    let program_us = record.program_us.min(answered_us);
    let asked_us = answered_us - program_us;
    if record.queue_us > 0 {
        let queue_us = record.queue_us.min(asked_us);
        part(ChildSpan::new("queue", asked_us - queue_us, asked_us));
    }
    if program_us > 0 {
        let start_us = record.start_us.min(program_us);
        if start_us > 0 {
            part(ChildSpan::new("start", asked_us, asked_us + start_us));
        }
        part(ChildSpan::new("program", asked_us + start_us, answered_us));
    }
    all
}

/// A part of a request's time, from its begin.
struct ChildSpan {
    name: &'static str,
    from_us: u64,
    to_us: u64,
}

impl ChildSpan {
    fn new(name: &'static str, from_us: u64, to_us: u64) -> ChildSpan {
        ChildSpan {
            name,
            from_us,
            to_us,
        }
    }
}

fn own(record: &Record, texts: &Texts<'_>, name: &SeriesName, start_us: u64) -> Span {
    let method = method(texts.method);
    let shown = if method == "_OTHER" { "HTTP" } else { &method };
    let trace = &record.trace;
    let (parent, remote) = match trace.parent {
        [0, 0, 0, 0, 0, 0, 0, 0] => (Vec::new(), PARENT_IS_KNOWN),
        parent => (parent.to_vec(), PARENT_IS_KNOWN | PARENT_IS_REMOTE),
    };
    Span {
        trace_id: trace.id.to_vec(),
        span_id: trace.span.to_vec(),
        parent_span_id: parent,
        name: match &*name.route {
            "" => shown.to_owned(),
            route => format!("{shown} {route}"),
        },
        kind: SpanKind::Server.into(),
        start_unix_ns: start_us * 1000,
        end_unix_ns: (start_us + record.total_us) * 1000,
        attributes: attributes(record, texts, name, &method),
        status: status(record),
        flags: SAMPLED | remote,
    }
}

fn child(record: &Record, part: ChildSpan, start_us: u64, index: u64) -> Span {
    let trace = &record.trace;
    // Of the request's own, which is random: two requests of one trace have different ones.
    let id = u64::from_be_bytes(trace.span)
        .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .max(1);
    Span {
        trace_id: trace.id.to_vec(),
        span_id: id.to_be_bytes().to_vec(),
        parent_span_id: trace.span.to_vec(),
        name: part.name.to_owned(),
        kind: SpanKind::Internal.into(),
        start_unix_ns: (start_us + part.from_us) * 1000,
        end_unix_ns: (start_us + part.to_us) * 1000,
        attributes: Vec::new(),
        status: None,
        flags: SAMPLED | PARENT_IS_KNOWN,
    }
}

fn attributes(
    record: &Record,
    texts: &Texts<'_>,
    name: &SeriesName,
    method: &str,
) -> Vec<KeyValue> {
    let mut all = Vec::with_capacity(20);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut say = |key: &str, value: String| {
        if !value.is_empty() {
            all.push(KeyValue::text(key, value));
        }
    };
    say("http.request.method", method.to_owned());
    if method == "_OTHER" {
        say("http.request.method_original", text(texts.method));
    }
    say("url.path", text(path(texts.target)));
    let is_tls = record.tls_version != TlsVersion::None;
    say(
        "url.scheme",
        if is_tls { "https" } else { "http" }.to_owned(),
    );
    say("http.route", name.route.clone());
    say("server.address", text(texts.host));
    if record.client_port != 0 {
        say("client.address", record.client.to_string());
        say("network.peer.address", record.client.to_string());
    }
    let version = match record.protocol {
        Protocol::Http10 => "1.0",
        Protocol::Http11 => "1.1",
        Protocol::Http2 => "2",
        Protocol::Http3 => "3",
    };
    say("network.protocol.version", version.to_owned());
    say("user_agent.original", text(texts.user_agent));
    let tls_version = record.tls_version.word().trim_start_matches("TLSv");
    say("tls.protocol.version", tls_version.to_owned());
    if record.status >= 500 {
        say("error.type", record.status.to_string());
    } else if record.fault != Fault::None {
        say("error.type", record.fault.word().to_owned());
    }
    say("hob.site", name.site.clone());
    say("hob.handler", record.handler.word().to_owned());
    say("hob.program", name.program.clone());
    if record.cache != CacheOutcome::None {
        say("hob.cache", record.cache.word().to_owned());
    }
    say("hob.outcome", record.outcome.word().to_owned());
    say("hob.reason", record.reason.unwrap_or_default().to_owned());
    for (key, number) in [
        ("http.response.status_code", u64::from(record.status)),
        ("network.peer.port", u64::from(record.client_port)),
        ("http.request.size", record.bytes_in),
        ("http.response.body.size", record.body_bytes_out),
        ("hob.program.cpu_us", record.cpu_us),
        ("hob.client_take_us", record.client_take_us),
        ("hob.client_body_us", record.client_body_us),
        ("hob.disk_wait_us", record.disk_wait_us),
    ] {
        if number > 0 {
            all.push(KeyValue::number(key, number));
        }
    }
    all
}

fn method(sent: &[u8]) -> String {
    let known = METHODS.iter().find(|known| known.as_bytes() == sent);
    (*known.unwrap_or(&"_OTHER")).to_owned()
}

/// A target without its query, and without the host of an absolute one.
fn path(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|byte| *byte == b'?');
    let target = &target[..end.unwrap_or(target.len())];
    let Some(scheme) = memchr::memmem::find(target, b"://") else {
        return target;
    };
    let host = &target[scheme + 3..];
    host.iter()
        .position(|byte| *byte == b'/')
        .map_or(b"/", |slash| &host[slash..])
}

/// Only what is the server's fault is an error of the server's span.
fn status(record: &Record) -> Option<Status> {
    let is_error = record.status >= 500 || matches!(record.fault, Fault::Server | Fault::Script);
    is_error.then(|| Status {
        message: record.reason.unwrap_or_default().to_owned(),
        code: SpanStatusCode::Error.into(),
    })
}

#[cfg(test)]
mod tests {
    use hob_trace::HandlerKind;
    use hob_trace::traceparent::Trace;

    use super::super::message::{Any, AnyValue};
    use super::*;

    fn name() -> SeriesName {
        SeriesName {
            site: "*".to_owned(),
            route: "/cgi-bin/*".to_owned(),
            handler: HandlerKind::Cgi,
            program: String::new(),
        }
    }

    fn record() -> Record {
        Record {
            started_us: 1_000,
            total_us: 900,
            first_byte_us: 800,
            queue_us: 100,
            program_us: 600,
            start_us: 200,
            status: 502,
            handler: HandlerKind::Cgi,
            fault: Fault::Script,
            reason: Some("it printed nothing"),
            trace: Trace {
                id: [1; 16],
                span: [2; 8],
                parent: [3; 8],
                is_sampled: true,
            },
            ..Record::empty()
        }
    }

    #[test]
    fn parts_of_a_request_lie_one_after_another_below_its_own_span() {
        let texts = Texts {
            method: b"GET",
            target: b"/cgi-bin/a?secret=1",
            ..Texts::default()
        };
        let spans = spans(&record(), &texts, &name(), 5_000);
        let times = spans.iter().map(|span| {
            let (from, to) = (span.start_unix_ns / 1000, span.end_unix_ns / 1000);
            (&*span.name, from - 6_000, to - 6_000)
        });
        let wanted = [
            ("GET /cgi-bin/*", 0, 900),
            ("queue", 100, 200),
            ("start", 200, 400),
            ("program", 400, 800),
        ];
        assert_eq!(times.collect::<Vec<_>>(), wanted);
        assert_eq!(spans[0].parent_span_id, [3; 8]);
        assert_eq!(spans[0].flags, 0x301);
        assert!(spans[1..].iter().all(|one| one.parent_span_id == [2; 8]));
        assert!(spans[1..].iter().all(|one| one.span_id != [2; 8]));
        let error = spans[0].status.as_ref().unwrap();
        assert_eq!((error.code, &*error.message), (2, "it printed nothing"));
        let told = |key: &str| {
            let found = spans[0].attributes.iter().find(|one| one.key == key);
            found.and_then(|one| one.value.clone())
        };
        let text = |text: &str| {
            Some(AnyValue {
                value: Some(Any::Text(text.to_owned())),
            })
        };
        assert_eq!(told("url.path"), text("/cgi-bin/a"));
        assert_eq!(told("http.route"), text("/cgi-bin/*"));
        assert_eq!(told("error.type"), text("502"));
        assert!(!format!("{spans:?}").contains("secret"));
    }

    #[test]
    fn times_that_cannot_be_so_are_cut() {
        let odd = Record {
            queue_us: u64::MAX,
            program_us: u64::MAX,
            start_us: u64::MAX,
            ..record()
        };
        for span in spans(&odd, &Texts::default(), &name(), -500) {
            assert!(span.start_unix_ns <= span.end_unix_ns, "{span:?}");
        }
    }

    #[test]
    fn unknown_methods_and_absolute_targets_have_their_attributes() {
        assert_eq!(method(b"GET"), "GET");
        assert_eq!(method(b"get"), "_OTHER");
        for (target, wanted) in [
            ("/a?b", "/a"),
            ("http://h/a/b?c", "/a/b"),
            ("http://h", "/"),
            ("*", "*"),
            ("/a?u=http://x/y", "/a"),
        ] {
            assert_eq!(path(target.as_bytes()), wanted.as_bytes(), "{target}");
        }
    }
}
