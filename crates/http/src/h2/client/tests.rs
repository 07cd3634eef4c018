//! Our client's side against our server's, and against frames written by hand.

use std::fmt::Write;
use std::rc::Rc;

use crate::date::DateLine;
use crate::fields_coding::hpack::{Encoder, Stored, encode_field};
use crate::h2::client::conn::{Http2Client, Http2ClientEvent};
use crate::h2::conn::{Http2Connection, Http2Event};
use crate::h2::frame::{self, HEADER_BYTES, Http2ErrorCode};
use crate::head::{Fields, RequestHead};
use crate::limits::{ANSWER_INTERIM_MAX, H2_STREAMS_MAX, HttpLimits};
use crate::response::ResponseHead;

const HEAD_BYTES_MAX: usize = 8 * 1024;

/// The client's side, fed a server's frames; it writes down what it saw, a line each.
struct Client {
    core: Http2Client,
    seen: String,
    body: Vec<u8>,
    out: Vec<u8>,
    carry: Vec<u8>,
}

impl Client {
    fn new() -> Client {
        let mut out = Vec::new();
        Client {
            core: Http2Client::new(HEAD_BYTES_MAX, 0, &mut out),
            seen: String::new(),
            body: Vec::new(),
            out,
            carry: Vec::new(),
        }
    }

    /// One whose server allows what these settings say.
    fn greeted(settings: &[(u16, u32)]) -> Client {
        let mut client = Client::new();
        client.feed(&settings_frame(settings));
        assert_eq!(client.take_seen(), "settings\n");
        client.out.clear();
        client
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.carry.extend_from_slice(bytes);
        loop {
            let (used, event) = self.core.read(&self.carry, &mut self.out, 0);
            if let Http2ClientEvent::Data(_, len) = event {
                self.body.extend_from_slice(&self.carry[used - len..used]);
            }
            self.carry.drain(..used);
            let line = match event {
                Http2ClientEvent::NeedMore => return,
                Http2ClientEvent::Settings => "settings".to_owned(),
                Http2ClientEvent::Window(id) => format!("{id} window"),
                Http2ClientEvent::Interim(id, status, fields) => {
                    format!("{id} interim {status} {}", shown(&fields))
                }
                Http2ClientEvent::Head(id, head) => {
                    let length = head
                        .body_bytes
                        .map_or("-".to_owned(), |len| len.to_string());
                    let end = if head.is_all { " all" } else { "" };
                    format!("{id} {} {length} {}{end}", head.status, shown(&head.fields))
                }
                Http2ClientEvent::Data(id, len) => format!("{id} data {len}"),
                Http2ClientEvent::End(id, fields) => format!("{id} end {}", shown(&fields)),
                Http2ClientEvent::Broken(id, fault) => format!("{id} broken {fault:?}"),
                Http2ClientEvent::Leaving(last) => format!("leaving after {last}"),
                Http2ClientEvent::Over(error) => format!("over: {}", error.reason),
            };
            writeln!(self.seen, "{}", line.trim_end()).unwrap();
        }
    }

    fn get(&mut self, path: &str) -> u32 {
        self.ask(("GET", path), true)
    }

    fn ask(&mut self, (method, path): (&str, &str), ends: bool) -> u32 {
        let terms = (method == "HEAD", ends);
        self.core.open(terms, &mut self.out, |block| {
            let what = (method.as_bytes(), None);
            block.target(what, false, (b"example.com", path.as_bytes()));
            block.field(b"User-Agent", b"test");
            block.field(b"Cookie", b"a=b");
            block.field(b"Connection", b"close");
        })
    }

    fn take_seen(&mut self) -> String {
        std::mem::take(&mut self.seen)
    }

    /// What it sent since, in frames: kind, stream, length of payload.
    fn take_frames(&mut self) -> Vec<(u8, u32, usize)> {
        let out = std::mem::take(&mut self.out);
        let (mut rest, mut frames) = (&out[..], Vec::new());
        while let Some(header) = frame::Header::read(rest) {
            frames.push((header.kind, header.stream, header.len));
            rest = &rest[HEADER_BYTES + header.len..];
        }
        frames
    }
}

fn shown(fields: &Fields) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let lines = fields
        .iter()
        .map(|(name, value)| text(name) + "=" + &text(value));
    lines.collect::<Vec<_>>().join(",")
}

fn frame_of(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::push_header(payload.len(), kind, flags, stream, &mut out);
    out.extend_from_slice(payload);
    out
}

fn settings_frame(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for &(id, value) in settings {
        frame::push_setting(id, value, &mut payload);
    }
    frame_of(frame::SETTINGS, 0, 0, &payload)
}

fn head_frame(stream: u32, fields: &[(&str, &str)], flags: u8) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        encode_field(
            name.as_bytes(),
            value.as_bytes(),
            Stored::AsText,
            &mut block,
        );
    }
    frame_of(frame::HEADERS, flags | frame::END_HEADERS, stream, &block)
}

fn ok(stream: u32) -> Vec<u8> {
    head_frame(stream, &[(":status", "200")], 0)
}

#[test]
fn our_server_is_understood_and_understands() {
    let mut client = Client::new();
    let mut out = Vec::new();
    let mut server = Http2Connection::new(Rc::new(HttpLimits::default()), 0, &mut out);
    client.feed(&out);
    out.clear();
    assert!(client.core.may_open());
    let body = vec![b'x'; 30_000];
    let first = client.ask(("POST", "/a?b"), false);
    let second = client.get("/");
    let (head, tail) = body.split_at(16 * 1024);
    client.core.push_data(first, head, false, &mut client.out);
    client.core.push_data(first, tail, true, &mut client.out);
    let input = std::mem::take(&mut client.out);
    let (mut at, mut told, mut came) = (0, String::new(), 0);
    loop {
        let mut head = RequestHead::empty();
        let (used, event) = server.read(&input[at..], &mut head, &mut out, 0);
        at += used;
        match event {
            Http2Event::NeedMore => break,
            Http2Event::Request(opened) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let fields: Vec<_> = head.fields().map(|(name, _)| text(name)).collect();
                let target = text(head.target());
                writeln!(told, "{} {target} {fields:?}", opened.stream).unwrap();
            }
            Http2Event::Data(1, len) => came += len,
            Http2Event::BodyEnd(1, _) => told += "1 end\n",
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((at, came), (input.len(), body.len()));
    let fields = r#"["user-agent", "cookie", "host"]"#;
    assert_eq!(told, format!("1 /a?b {fields}\n3 / {fields}\n1 end\n"));
    let date = DateLine::new(std::time::Duration::ZERO);
    let mut fields = Fields::new();
    fields.add(b"X-A", b"1");
    let head = ResponseHead::Fields(200, fields);
    server.push_head(second, &head, Some(5), &date, &mut out);
    server.push_data(second, 5, &mut out);
    out.extend_from_slice(b"hello");
    server.push_end(second, None, &mut out);
    client.feed(&out);
    let seen = client.take_seen();
    let lines: Vec<_> = seen.lines().filter(|line| line.starts_with("3 ")).collect();
    assert_eq!(lines[0].split(" date=").next(), Some("3 200 5"), "{seen}");
    assert!(lines[0].ends_with("x-a=1"), "{seen}");
    assert_eq!(lines[1..], ["3 data 5", "3 end"], "{seen}");
    assert_eq!(
        (&client.body[..], client.core.open_count()),
        (&b"hello"[..], 1)
    );
}

#[test]
fn other_side_says_how_many_streams_there_may_be_and_how_much_is_sent() {
    use crate::h2::settings::{INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS};
    let mut client = Client::greeted(&[(MAX_CONCURRENT_STREAMS, 2), (INITIAL_WINDOW_SIZE, 10)]);
    let id = client.ask(("POST", "/"), false);
    assert!(client.core.may_open());
    client.get("/");
    assert!(!client.core.may_open() && client.core.is_lasting());
    assert_eq!(client.core.room(id), Some(10));
    client.core.push_data(id, &[0; 10], false, &mut client.out);
    assert_eq!(client.core.room(id), Some(0));
    client.feed(&settings_frame(&[(INITIAL_WINDOW_SIZE, 4)]));
    assert_eq!(client.core.room(id), Some(0), "six are owed");
    client.feed(&frame_of(frame::WINDOW_UPDATE, 0, id, &7_u32.to_be_bytes()));
    assert_eq!(client.core.room(id), Some(1));
    assert_eq!(client.take_seen(), "settings\n1 window\n");
    // A stream that has ended makes room for another.
    client.feed(&head_frame(3, &[(":status", "204")], frame::END_STREAM));
    assert!(client.core.may_open());
    client.feed(&settings_frame(&[(MAX_CONCURRENT_STREAMS, 1 << 20)]));
    for _ in 1..H2_STREAMS_MAX {
        client.get("/");
    }
    assert!(!client.core.may_open(), "there is a limit of ours");
    client.feed(&settings_frame(&[(MAX_CONCURRENT_STREAMS, 0)]));
    assert!(!client.core.is_lasting());
}

#[test]
fn what_was_not_looked_at_is_told_from_what_broke() {
    let mut client = Client::greeted(&[]);
    for _ in 0..4 {
        client.get("/");
    }
    let reset = |id, code: u32| frame_of(frame::RST_STREAM, 0, id, &code.to_be_bytes());
    client.feed(&reset(1, Http2ErrorCode::Refused as u32));
    client.feed(&reset(3, Http2ErrorCode::Internal as u32));
    client.feed(&reset(3, Http2ErrorCode::Internal as u32));
    let goaway = [5_u32.to_be_bytes(), 0_u32.to_be_bytes()].concat();
    client.feed(&frame_of(frame::GOAWAY, 0, 0, &goaway));
    assert_eq!(
        client.take_seen(),
        "1 broken Refused\n3 broken Reset(2)\nleaving after 5\n"
    );
    // What it has looked at is still answered.
    client.feed(&head_frame(5, &[(":status", "200")], frame::END_STREAM));
    assert_eq!(client.take_seen(), "5 200 -  all\n");
    assert_eq!(
        (client.core.open_count(), client.core.is_lasting()),
        (0, false)
    );
}

#[test]
fn answers_have_interim_ones_before_and_trailers_behind() {
    let mut client = Client::greeted(&[]);
    client.get("/");
    client.feed(&head_frame(1, &[(":status", "103"), ("link", "</a>")], 0));
    client.feed(&head_frame(1, &[(":status", "200"), ("grpc", "x")], 0));
    client.feed(&frame_of(frame::DATA, frame::PADDED, 1, b"\x02abc\0\0"));
    client.feed(&head_frame(1, &[("grpc-status", "0")], frame::END_STREAM));
    let seen = "1 interim 103 link=</a>\n1 200 - grpc=x\n1 data 3\n1 end grpc-status=0\n";
    assert_eq!(
        (client.take_seen().as_str(), &client.body[..]),
        (seen, &b"abc"[..])
    );
    for _ in 0..2 {
        client.get("/");
    }
    for _ in 0..=ANSWER_INTERIM_MAX {
        client.feed(&head_frame(3, &[(":status", "102")], 0));
    }
    let seen = client.take_seen();
    assert!(
        seen.ends_with("3 broken Malformed(\"too many interim answers\")\n"),
        "{seen}"
    );
    assert_eq!(client.core.open_count(), 1);
}

#[test]
fn answer_to_head_announces_what_does_not_come() {
    let mut client = Client::greeted(&[]);
    client.ask(("HEAD", "/"), true);
    let fields = [(":status", "200"), ("content-length", "9")];
    client.feed(&head_frame(1, &fields, frame::END_STREAM));
    assert_eq!(client.take_seen(), "1 200 9  all\n");
    client.ask(("HEAD", "/"), true);
    client.feed(&head_frame(3, &fields, 0));
    client.feed(&frame_of(frame::DATA, frame::END_STREAM, 3, b"x"));
    assert!(client.take_seen().contains("not the size"));
}

#[test]
fn what_is_no_answer_costs_its_stream_alone() {
    const END: u8 = frame::END_STREAM;
    let cases: &[(&[(&str, &str)], u8)] = &[
        (&[], END),
        (&[("a", "b")], END),
        (&[(":status", "20")], END),
        (&[(":status", "2000")], END),
        (&[(":status", "600")], END),
        (&[(":status", "099")], END),
        (&[(":status", "101")], 0),
        (&[(":status", "103")], END),
        (&[(":status", "200"), (":status", "200")], END),
        (&[("a", "b"), (":status", "200")], END),
        (&[(":status", "200"), (":path", "/")], END),
        (&[(":status", "200"), ("connection", "close")], END),
        (&[(":status", "200"), ("transfer-encoding", "chunked")], END),
        (&[(":status", "200"), ("a", "b\nc")], END),
        (&[(":status", "200"), ("content-length", "x")], END),
        (
            &[
                (":status", "200"),
                ("content-length", "1"),
                ("content-length", "2"),
            ],
            END,
        ),
        (&[(":status", "200"), ("content-length", "1")], END),
        (
            &[(":status", "200"), ("a", &"x".repeat(HEAD_BYTES_MAX))],
            END,
        ),
    ];
    for (fields, flags) in cases {
        let mut client = Client::greeted(&[]);
        let (wrong, right) = (client.get("/"), client.get("/"));
        client.out.clear();
        client.feed(&head_frame(wrong, fields, *flags));
        let seen = client.take_seen();
        assert!(
            seen.starts_with("1 broken Malformed("),
            "{fields:?}: {seen}"
        );
        assert_eq!(
            client.take_frames(),
            [(frame::RST_STREAM, 1, 4)],
            "{fields:?}"
        );
        client.feed(&head_frame(right, &[(":status", "200")], END));
        assert_eq!(client.take_seen(), "3 200 -  all\n");
    }
}

#[test]
fn bodies_have_the_size_that_was_announced_and_keep_to_their_window() {
    let sized = |stream| head_frame(stream, &[(":status", "200"), ("content-length", "3")], 0);
    let mut client = Client::greeted(&[]);
    for _ in 0..4 {
        client.get("/");
    }
    for stream in [1, 3, 5] {
        client.feed(&sized(stream));
    }
    client.feed(&frame_of(frame::DATA, 0, 1, b"abcd"));
    client.feed(&frame_of(frame::DATA, frame::END_STREAM, 3, b"ab"));
    client.feed(&head_frame(5, &[("a", "b")], frame::END_STREAM));
    client.feed(&frame_of(frame::DATA, frame::END_STREAM, 7, b""));
    let seen = client.take_seen();
    assert_eq!(
        seen.matches("not the size that was announced").count(),
        3,
        "{seen}"
    );
    assert_eq!(seen.matches("DATA before a head").count(), 1, "{seen}");
    let id = client.get("/");
    client.feed(&ok(id));
    client.take_seen();
    for _ in 0..3 {
        client.feed(&frame_of(frame::DATA, 0, id, &[0; 16 * 1024]));
    }
    assert_eq!(client.take_seen(), "9 data 16384\n".repeat(3));
    client.feed(&frame_of(frame::DATA, 0, id, &[0; 16 * 1024]));
    assert!(client.take_seen().contains("beyond the window"));
}

#[test]
fn window_grows_where_what_comes_is_taken() {
    let mut client = Client::greeted(&[]);
    let id = client.get("/");
    client.feed(&ok(id));
    client.out.clear();
    let data = frame_of(frame::DATA, 0, id, &[0; 16 * 1024]);
    client.feed(&data);
    assert!(
        !client.core.taken(id, 16 * 1024, &mut client.out),
        "little is not worth a frame"
    );
    client.feed(&data);
    assert!(client.core.taken(id, 16 * 1024, &mut client.out));
    let update = client.out.split_off(client.out.len() - 4);
    let more = u32::from_be_bytes(update.try_into().unwrap());
    assert_eq!(
        more,
        65_535 + 32 * 1024,
        "what was taken, and as much again"
    );
    // What is held keeps the window as it is.
    for _ in 0..7 {
        client.feed(&data);
    }
    assert!(client.core.taken(id, 5 * 16 * 1024, &mut client.out));
    let update = client.out.split_off(client.out.len() - 4);
    let more = u32::from_be_bytes(update.try_into().unwrap());
    assert_eq!(more, 5 * 16 * 1024);
}

#[test]
fn connection_ends_with_who_breaks_its_rules() {
    let long = vec![0; 16 * 1024 + 1];
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (frame_of(frame::PUSH_PROMISE, 0, 1, &[0; 8]), "PUSH_PROMISE"),
        (frame_of(frame::DATA, 0, 2, b"x"), "not opened"),
        (frame_of(frame::DATA, 0, 0, b"x"), "not opened"),
        (ok(3), "not opened"),
        (ok(2), "not opened"),
        (frame_of(frame::RST_STREAM, 0, 3, &[0; 4]), "not opened"),
        (
            frame_of(frame::DATA, frame::PADDED, 1, b"\x05ab"),
            "padding",
        ),
        (frame_of(frame::DATA, 0, 1, &long), "longer"),
        (frame_of(frame::WINDOW_UPDATE, 0, 0, &[0; 4]), "nothing"),
        (frame_of(frame::WINDOW_UPDATE, 0, 0, &[0xff; 4]), "large"),
        (frame_of(frame::GOAWAY, 0, 1, &[0; 8]), "GOAWAY"),
        (frame_of(frame::GOAWAY, 0, 0, &[0; 7]), "GOAWAY"),
        (frame_of(frame::PING, 0, 0, &[0; 7]), "PING"),
        (frame_of(frame::SETTINGS, 0, 1, &[]), "SETTINGS"),
        (settings_frame(&[(2, 1)]), "ENABLE_PUSH"),
        (settings_frame(&[(4, 1 << 31)]), "window"),
        (settings_frame(&[(5, 1)]), "MAX_FRAME_SIZE"),
        (settings_frame(&[(8, 2)]), "ENABLE_CONNECT"),
        (frame_of(frame::CONTINUATION, 0, 1, &[]), "CONTINUATION"),
        (
            frame_of(frame::HEADERS, frame::END_HEADERS, 1, &[0x80]),
            "not there",
        ),
        (frame_of(frame::PING, 0, 0, &[0; 8]).repeat(100), "h2_ping"),
        (settings_frame(&[]).repeat(100), "h2_settings"),
        (frame_of(0x99, 0, 0, &[]).repeat(2000), "h2_empty"),
    ];
    for (bytes, why) in cases {
        let mut client = Client::greeted(&[]);
        client.get("/");
        client.feed(&bytes);
        let seen = client.take_seen();
        let last = seen.lines().last().unwrap_or_default();
        let is_it = last.starts_with("over: ") && last.contains(why);
        assert!(is_it, "{why}: {last}");
        assert!(!client.core.is_lasting());
        let frames = client.take_frames();
        assert_eq!(
            frames.last().map(|(kind, ..)| *kind),
            Some(frame::GOAWAY),
            "{why}"
        );
    }
    let mut client = Client::new();
    client.feed(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(client.take_seen().contains("speaks no HTTP/2"));
}

#[test]
fn field_blocks_come_in_pieces_but_not_without_end() {
    let mut client = Client::greeted(&[]);
    client.get("/");
    let whole = head_frame(1, &[(":status", "200"), ("a", "b")], 0);
    let block = &whole[HEADER_BYTES..];
    let (first, second) = block.split_at(3);
    client.feed(&frame_of(frame::HEADERS, frame::END_STREAM, 1, first));
    client.feed(&frame_of(
        frame::CONTINUATION,
        frame::END_HEADERS,
        1,
        second,
    ));
    assert_eq!(client.take_seen(), "1 200 - a=b all\n");
    client.get("/");
    client.feed(&frame_of(frame::HEADERS, 0, 3, first));
    for _ in 0..40 {
        client.feed(&frame_of(frame::CONTINUATION, 0, 3, b""));
    }
    assert!(client.take_seen().contains("h2_continuation"));
}

#[test]
fn cancelled_stream_is_told_once_and_passed_over_then() {
    let mut client = Client::greeted(&[]);
    let id = client.get("/");
    client.out.clear();
    assert!(client.core.cancel(id, &mut client.out));
    assert!(!client.core.cancel(id, &mut client.out));
    assert_eq!(client.take_frames(), [(frame::RST_STREAM, id, 4)]);
    client.feed(&ok(id));
    client.feed(&frame_of(frame::DATA, frame::END_STREAM, id, b"late"));
    assert_eq!((client.take_seen().as_str(), client.body.len()), ("", 0));
}

#[test]
fn cut_anywhere_it_says_the_same() {
    let mut encoder = Encoder::default();
    let mut block = Vec::new();
    encoder.begin(200, &mut block);
    encoder.field(b"x-a", b"1", &mut block);
    let mut bytes = settings_frame(&[(3, 9)]);
    bytes.extend(frame_of(frame::HEADERS, frame::END_HEADERS, 1, &block));
    bytes.extend(frame_of(frame::DATA, frame::PADDED, 1, b"\x01ab\0"));
    bytes.extend(head_frame(1, &[("t", "1")], frame::END_STREAM));
    let run = |step: usize| {
        let mut client = Client::new();
        client.get("/");
        bytes.chunks(step).for_each(|piece| client.feed(piece));
        let seen = client.take_seen();
        let told: Vec<_> = seen.lines().filter(|line| !line.contains("data")).collect();
        (told.join("\n"), client.body, client.out)
    };
    let whole = run(bytes.len());
    assert!(whole.0.ends_with("1 end t=1"), "{}", whole.0);
    for step in 1..bytes.len() {
        assert_eq!(run(step), whole, "{step}");
    }
}
