//! Formats against golden files: `format/NAME.txt` is a format, an empty line, and the lines it
//! makes of the records below.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use hob_trace::format::{
    ASKED_VALUE_BYTES_MAX, AskedValue, AskedValueWriter, ClientCountrySource, LineCache,
};
use hob_trace::traceparent::Trace;
use hob_trace::{
    AccessLogFormat, CacheOutcome, Fault, HandlerKind, Outcome, ProgramEnd, Protocol, Record,
    RecordNames, Texts, TlsHandshake, TlsVersion,
};

fn names() -> RecordNames {
    let mut names = RecordNames::new();
    names.add_site("example.org", ["/*".to_owned()]);
    names.add_site(
        "two words",
        ["/a/{name}".to_owned(), "/\"quoted\"/*".to_owned()],
    );
    names.set_countries(Arc::new(OneCountry));
    names
}

/// Knows of which country one address is.
#[derive(Debug)]
struct OneCountry;

impl ClientCountrySource for OneCountry {
    fn country(&self, client: IpAddr) -> Option<[u8; 2]> {
        (client == Ipv4Addr::new(192, 0, 2, 7)).then_some(*b"DE")
    }
}

/// A plain request, one from a cache over IPv6, refusals, and one that tries to break the line.
fn samples() -> Vec<(Record, Texts<'static>)> {
    let plain = Record {
        started_unix_ms: 1_795_295_587_250,
        total_us: 1_234,
        first_byte_us: 56,
        bytes_in: 78,
        head_bytes_out: 200,
        body_bytes_out: 612,
        status: 200,
        handler: HandlerKind::Files,
        cache: CacheOutcome::Hit,
        site: 0,
        route: 0,
        client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
        client_port: 40_000,
        connection: 12,
        ..Record::empty()
    };
    let plain_texts = Texts {
        method: b"GET",
        target: b"/index.html?a=b",
        host: b"example.org",
        referer: b"http://example.org/",
        user_agent: b"Mozilla/5.0 (X11; Linux x86_64)",
        user: b"frank",
        detail: b"",
        asked: b"",
    };
    let second = Record {
        started_unix_ms: 1_795_305_600_000,
        status: 304,
        body_bytes_out: 0,
        protocol: Protocol::Http2,
        cache: CacheOutcome::Revalidated,
        client: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        request: 3,
        site: 1,
        route: 1,
        disk_wait_us: 2_000_000,
        queue_us: 9,
        program_us: 10,
        program_end: ProgramEnd::Failed,
        end_number: 1,
        tls_version: TlsVersion::Tls13,
        tls_suite: "TLS_AES_128_GCM_SHA256",
        tls_handshake: TlsHandshake::Resumed,
        handshake_us: 1_500,
        note: Some("it said \"too much\""),
        trace: Trace {
            id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes(),
            ..Trace::NONE
        },
        ..plain
    };
    let mapped = Record {
        client: IpAddr::V6(Ipv4Addr::new(192, 0, 2, 200).to_ipv6_mapped()),
        outcome: Outcome::ClientLeft,
        fault: Fault::Client,
        route: 99,
        ..plain
    };
    let refused = Record {
        started_unix_ms: 1_795_305_600_001,
        status: 400,
        fault: Fault::Client,
        outcome: Outcome::Timeout,
        reason: Some("head is not well-formed"),
        ..Record::empty()
    };
    let hostile = Texts {
        method: b"G\"T",
        target: b"/\\x22 \xff\n127.0.0.1 - - [now] \"GET / HTTP/1.1\" 200 1",
        host: b"a b",
        referer: "\u{1b}[2Jgr\u{fc}n\u{2028}".as_bytes(),
        user_agent: b"\" 200 1 \"\t\x80",
        user: b"x - [now]",
        detail: b"a.cgi: 1 \"\n2\0",
        asked: b"",
    };
    let largest = Record {
        started_us: u64::MAX,
        started_unix_ms: u64::MAX,
        total_us: u64::MAX,
        first_byte_us: u64::MAX,
        queue_us: u64::MAX,
        program_us: u64::MAX,
        disk_wait_us: u64::MAX,
        bytes_in: u64::MAX,
        head_bytes_out: u64::MAX,
        body_bytes_out: u64::MAX,
        status: u16::MAX,
        route: u32::MAX,
        client_port: u16::MAX,
        connection: u64::MAX,
        request: u32::MAX,
        ..plain
    };
    vec![
        (plain, plain_texts),
        (
            second,
            Texts {
                user: b"",
                referer: b"",
                ..plain_texts
            },
        ),
        (mapped, plain_texts),
        (refused, Texts::default()),
        (plain, hostile),
        (largest, plain_texts),
    ]
}

fn lines(format: &AccessLogFormat) -> String {
    let (names, mut cache, mut out) = (names(), LineCache::new(), Vec::new());
    for (record, texts) in samples() {
        format.push_line(&mut cache, &names, &record, &texts, &mut out);
    }
    String::from_utf8(out).expect("lines are UTF-8")
}

fn compare(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/format")
        .join(name);
    let golden = std::fs::read_to_string(&path).expect("a golden file");
    let (format, expected) = golden
        .split_once("\n\n")
        .expect("an empty line after the format");
    let got = lines(&AccessLogFormat::parse(format).expect("a format"));
    assert!(
        got == expected,
        "{name} expects\n{expected}\nbut got\n{got}"
    );
    assert_eq!(got.lines().count(), samples().len(), "one line each");
}

#[test]
fn common_is_as_expected() {
    compare("common.txt");
}

#[test]
fn combined_is_as_expected() {
    compare("combined.txt");
}

#[test]
fn json_is_as_expected() {
    compare("json.txt");
}

#[test]
fn own_format_with_every_field_is_as_expected() {
    compare("every-field.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/every-field.txt");
    let golden = std::fs::read_to_string(path).unwrap();
    for (name, _) in AccessLogFormat::fields() {
        assert!(
            golden.contains(&format!("{{{name}}}")),
            "{name} is missing there"
        );
    }
}

/// What a request gave for these values, in the order of a format.
fn asked(values: &[&[&[u8]]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = AskedValueWriter::new(&mut out, values.len());
    for pieces in values {
        writer.put(pieces.iter().copied());
    }
    writer.finish();
    out
}

fn line(format: &str, asked: &[u8]) -> String {
    let variable = |name: &str| (name == "ROOM").then(|| "the \"7\"\n".to_owned());
    let format = AccessLogFormat::parse_with(format, &variable).expect("a format");
    let texts = Texts {
        method: b"GET",
        target: b"/",
        asked,
        ..Texts::default()
    };
    let (mut cache, mut out) = (LineCache::new(), Vec::new());
    let names = RecordNames::new();
    format.push_line(&mut cache, &names, &Record::empty(), &texts, &mut out);
    String::from_utf8(out).expect("lines are UTF-8")
}

#[test]
fn values_of_requests_stand_where_the_format_asks_for_them() {
    let format = "{cookie:id} \"{header:Accept}\" {header:none} {method} \"{header:Accept}\"";
    assert_eq!(
        AccessLogFormat::parse(format).unwrap().asked(),
        [
            AskedValue::Cookie("id".into()),
            AskedValue::Header("Accept".into()),
            AskedValue::Header("none".into()),
        ]
    );
    let values = asked(&[&[b"7"], &[b"text/html", b"x/y"], &[]]);
    assert_eq!(
        line(format, &values),
        "7 \"text/html, x/y\" - GET \"text/html, x/y\"\n"
    );
}

#[test]
fn value_that_was_cut_ends_in_an_ellipsis() {
    let long = [b'x'; ASKED_VALUE_BYTES_MAX + 1];
    let values = asked(&[&[&long], &[&long[1..]]]);
    let kept = "x".repeat(ASKED_VALUE_BYTES_MAX);
    assert_eq!(
        line("{header:a} {header:b}", &values),
        format!("{kept}… {kept}\n")
    );
}

#[test]
fn values_of_requests_break_no_line_and_no_member() {
    let hostile = b"\" 200\r\n127.0.0.1 - - \"GET\x00 \\ \xff\x1b[2J";
    let values = asked(&[&[hostile], &[hostile]]);
    let text = line("\"{header:x}\" {cookie:y}", &values);
    let escaped = r"\x22 200\x0D\x0A127.0.0.1 - - \x22GET\x00 \x5C \xFF\x1B[2J";
    assert_eq!(text, format!("\"{escaped}\" {escaped}\n"));
    let json = line("json {header:x} {cookie:y}", &values);
    assert!(json.ends_with('\n') && json.lines().count() == 1);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let told = "\" 200\r\n127.0.0.1 - - \"GET\0 \\ \u{fffd}\u{1b}[2J";
    assert_eq!(
        (&json["header:x"], &json["cookie:y"]),
        (&told.into(), &told.into())
    );
}

#[test]
fn json_has_more_members_where_they_are_asked_for() {
    let usual: serde_json::Value = serde_json::from_str(&line("json", b"")).unwrap();
    let values = asked(&[&[b"a"]]);
    let text = line(
        "json {header:x}  {total_ms} {env:ROOM} {env:NOWHERE}",
        &values,
    );
    let mut more: serde_json::Value = serde_json::from_str(&text).unwrap();
    let members = more.as_object_mut().unwrap();
    assert_eq!(members.remove("header:x"), Some("a".into()));
    assert_eq!(members.remove("total_ms"), Some(0.0.into()));
    assert_eq!(members.remove("env:ROOM"), Some("the \"7\"\n".into()));
    assert_eq!(members.remove("env:NOWHERE"), Some("".into()));
    assert_eq!(more, usual);
}

#[test]
fn variable_of_the_environment_is_escaped_and_may_be_missing() {
    assert_eq!(
        line("{env:ROOM} {status} {env:NOWHERE}", b""),
        "the \\x227\\x22\\x0A 0 -\n"
    );
    assert_eq!(line("{env:ROOM}", b""), "the \\x227\\x22\\x0A\n");
}

#[test]
fn json_lines_are_json_and_lose_nothing_that_is_text() {
    let all = lines(&AccessLogFormat::parse("json").unwrap());
    let members: Vec<serde_json::Value> = all
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(members.len(), samples().len());
    assert_eq!(members[0]["target"], "/index.html?a=b");
    assert_eq!(members[0]["status"], 200);
    assert_eq!(members[4]["referer"], "\u{1b}[2Jgr\u{fc}n\u{2028}");
    assert_eq!(members[4]["user_agent"], "\" 200 1 \"\t\u{fffd}");
    assert_eq!(members[5]["bytes_out"], u64::MAX);
}

#[test]
fn any_bytes_make_one_line_of_text_and_valid_json() {
    let formats = ["combined", "json"].map(|name| AccessLogFormat::parse(name).unwrap());
    let (names, mut cache) = (RecordNames::new(), LineCache::new());
    let mut state: u64 = 1;
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..40)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let (a, b) = bytes.split_at(20);
        let texts = Texts {
            method: a,
            target: b,
            host: b,
            referer: a,
            user_agent: b,
            user: a,
            detail: b,
            asked: b"",
        };
        for (format, is_json) in formats.iter().zip([false, true]) {
            let mut out = Vec::new();
            format.push_line(&mut cache, &names, &Record::empty(), &texts, &mut out);
            let line = std::str::from_utf8(&out).expect("lines are UTF-8");
            let (text, end) = line.split_at(line.len() - 1);
            assert!(end == "\n" && !text.contains(char::is_control));
            match is_json {
                true => assert!(
                    serde_json::from_str::<serde_json::Value>(text).is_ok(),
                    "{text}"
                ),
                false => assert_eq!(text.matches('"').count(), 6, "{text}"),
            }
        }
    }
}
