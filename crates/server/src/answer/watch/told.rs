//! The events every request has, written from what is known of it.

use hob_http::{Known, Request};
use hob_trace::verdict::SlownessVerdict;
use hob_trace::watch::{Hidden, Pen, RequestStage, Station, TextPart, Trail};
use hob_trace::{CacheOutcome, Fault, ProgramEnd, Record, TlsVersion};

use crate::route::host::ChosenBy;
use crate::serve::sites::{ServedRoute, ServedSite};

/// Bytes of a head that are shown.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// What is known of a request.
pub(super) struct RequestContext<'a> {
    request: &'a Request,
    record: &'a Record,
    site: &'a str,
    route: &'a str,
}

impl<'a> RequestContext<'a> {
    pub(super) fn new(
        request: &'a Request,
        record: &'a Record,
        site: Option<&'a ServedSite>,
        route: Option<&'a ServedRoute>,
    ) -> RequestContext<'a> {
        RequestContext {
            request,
            record,
            site: site.map_or("", |site| &site.name),
            route: route.map_or("", |route| &route.label),
        }
    }
}

/// How a request began: its connection, if it is the first one there, and what was asked for.
pub(super) fn opening(
    station: &Station,
    trail: &Trail,
    known: &RequestContext<'_>,
    out: &mut Vec<u8>,
    hidden: Option<&Hidden>,
) {
    let started_us = trail.started_us;
    if known.record.request == 0 {
        station.write(trail, RequestStage::Connection, started_us, out, |pen| {
            connection(pen, known.request);
        });
        if known.record.tls_version != TlsVersion::None {
            station.write(trail, RequestStage::Tls, started_us, out, |pen| {
                tls(pen, known)
            });
        }
    }
    station.write(trail, RequestStage::Request, started_us, out, |pen| {
        request(pen, known, hidden)
    });
}

fn connection(pen: &mut Pen<'_>, request: &Request) {
    let facts = request.facts();
    match (facts.peer, facts.local) {
        (Some(peer), Some(local)) => {
            pen.format("text", format_args!("from {peer} to {local}"));
        }
        _ => pen.text("text", b"over a Unix socket"),
    }
    pen.number("listener", facts.listener.into());
}

fn tls(pen: &mut Pen<'_>, known: &RequestContext<'_>) {
    let record = known.record;
    let (version, how) = (record.tls_version.word(), record.tls_handshake.word());
    let time_us = record.handshake_us;
    pen.format(
        "text",
        format_args!("{version}, {how} handshake in {time_us} us"),
    );
    pen.text("suite", record.tls_suite.as_bytes());
    if let Some(tls) = &known.request.facts().tls {
        pen.text_if_any(
            "server_name",
            tls.server_name.as_deref().unwrap_or("").as_bytes(),
        );
    }
}

fn request(pen: &mut Pen<'_>, known: &RequestContext<'_>, hidden: Option<&Hidden>) {
    let (head, record) = (known.request.sent_head(), known.record);
    let mut target = Vec::new();
    let target = match hidden {
        Some(hidden) if head.query().is_some() => {
            hidden.push_target(known.request.shown_target(), &mut target);
            &target[..]
        }
        _ => known.request.shown_target(),
    };
    pen.parts(
        "text",
        [
            TextPart::Text(head.method()),
            TextPart::Word(" "),
            TextPart::Text(target),
            TextPart::Word(" "),
            TextPart::Word(record.protocol.word()),
        ],
    );
    pen.text("method", head.method());
    pen.text("target", target);
    pen.text_if_any("host", head.host());
    if !record.client.is_unspecified() {
        pen.address("client", record.client);
        pen.number("client_port", record.client_port.into());
    }
    pen.number("started_unix_ms", record.started_unix_ms);
    pen.text_if_any(
        "user_agent",
        head.value(Known::UserAgent).unwrap_or_default(),
    );
    pen.text_if_any("site", known.site.as_bytes());
    pen.text_if_any("route", known.route.as_bytes());
    pen.word("handler", record.handler.word());
}

/// Why its site and its route answer, in words. Routes are counted from 1.
pub(super) fn route(pen: &mut Pen<'_>, by: ChosenBy, (index, count): (u32, usize)) {
    let by = match by {
        ChosenBy::Name => "the host is a name of the site; route ",
        ChosenBy::Wildcard { .. } => "the host is below a name of the site; route ",
        ChosenBy::Default | ChosenBy::Unknown => "no site has the host's name; route ",
    };
    pen.parts(
        "text",
        [
            TextPart::Word(by),
            TextPart::Number(u64::from(index) + 1),
            TextPart::Word(" of "),
            TextPart::Number(count as u64),
            TextPart::Word(" fits first"),
        ],
    );
}

/// How it ended. Written for all at once: nothing of it is secret.
pub(super) fn ending(
    station: &Station,
    trail: &Trail,
    known: &RequestContext<'_>,
    out: &mut Vec<u8>,
) {
    let record = known.record;
    let end_us = trail.started_us + record.total_us;
    // A hit did nothing: the end names it.
    if !matches!(record.cache, CacheOutcome::None | CacheOutcome::Hit) {
        station.write(trail, RequestStage::Cache, end_us, out, |pen| {
            pen.word("text", record.cache.word());
            pen.number_above_zero("disk_wait_us", record.disk_wait_us);
        });
    }
    station.write(trail, RequestStage::Done, end_us, out, |pen| {
        done(pen, known)
    });
}

fn done(pen: &mut Pen<'_>, known: &RequestContext<'_>) {
    let record = known.record;
    let verdict = SlownessVerdict::of(record).map(|verdict| verdict.to_string());
    // Without one the outcome says it.
    if let Some(verdict) = &verdict {
        pen.parts(
            "text",
            [
                TextPart::Word(record.outcome.word()),
                TextPart::Word("; "),
                TextPart::Text(verdict.as_bytes()),
            ],
        );
    }
    pen.number("status", record.status.into());
    pen.word("outcome", record.outcome.word());
    if record.cache != CacheOutcome::None {
        pen.word("cache", record.cache.word());
    }
    pen.number("total_us", record.total_us);
    pen.number_above_zero("first_byte_us", record.first_byte_us);
    pen.number_above_zero("queue_us", record.queue_us);
    pen.number_above_zero("start_us", record.start_us);
    pen.number_above_zero("program_us", record.program_us);
    pen.number_above_zero("cpu_us", record.cpu_us);
    pen.number_above_zero("pid", record.pid.into());
    if record.program_end != ProgramEnd::Unknown {
        pen.word("program_end", record.program_end.word());
    }
    for (name, number) in [
        ("exit_code", record.exit_code()),
        ("signal", record.signal()),
    ] {
        if let Some(number) = number {
            pen.number(name, number.into());
        }
    }
    pen.number_above_zero("disk_wait_us", record.disk_wait_us);
    pen.number_above_zero("client_take_us", record.client_take_us);
    pen.number_above_zero("client_body_us", record.client_body_us);
    pen.number_above_zero("bytes_in", record.bytes_in);
    pen.number_above_zero("head_bytes_out", record.head_bytes_out);
    pen.number_above_zero("body_bytes_out", record.body_bytes_out);
    pen.number_above_zero("rtt_us", record.rtt_us.into());
    pen.number_above_zero("retransmits", record.retransmits.into());
    pen.number_above_zero("window_bytes", record.window_bytes.into());
    if record.fault != Fault::None {
        pen.word("fault", record.fault.word());
    }
    pen.text_if_any("reason", record.reason.unwrap_or("").as_bytes());
    pen.text_if_any("note", record.note.unwrap_or("").as_bytes());
    pen.text_if_any("detail", &known.request.detail());
    pen.text_if_any("verdict", verdict.as_deref().unwrap_or("").as_bytes());
}

/// The first line of a request, as HTTP/1 has it.
pub(super) fn request_line(request: &Request, hidden: Option<&Hidden>) -> Vec<u8> {
    let (head, target) = (request.sent_head(), request.shown_target());
    let mut line = head.method().to_vec();
    line.push(b' ');
    match hidden {
        Some(hidden) => hidden.push_target(target, &mut line),
        None => line.extend_from_slice(target),
    }
    line.push(b' ');
    line.extend_from_slice(head.protocol().word().as_bytes());
    line
}

/// A first line and fields, one a line.
pub(super) fn lines<'a>(
    mut lines: Vec<u8>,
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    hidden: Option<&Hidden>,
) -> Vec<u8> {
    lines.extend_from_slice(b"\r\n");
    for (name, value) in fields {
        if lines.len() > HEAD_BYTES_MAX {
            break;
        }
        lines.extend_from_slice(name);
        lines.extend_from_slice(b": ");
        match hidden {
            Some(hidden) => hidden.push_value(name, value, &mut lines),
            None => lines.extend_from_slice(value),
        }
        lines.extend_from_slice(b"\r\n");
    }
    lines
}
