//! Protocol tests: bytes and time in, bytes and events out, no sockets.

mod floods;
mod flow;
mod frames;
mod heads;
mod hpack;
mod order;
pub(crate) mod random;

use std::fmt::Write;
use std::rc::Rc;

use crate::date::DateLine;
use crate::fields_coding::hpack::{HpackDecoder, Stored, encode_field};
use crate::h2::conn::{Http2Connection, Http2Event};
use crate::h2::frame::{self, HEADER_BYTES, Header, Http2ErrorCode, PREFACE};
use crate::head::{Fields, RequestHead};
use crate::limits::HttpLimits;
use crate::response::ResponseHead;

/// The server's side of a connection, fed a client's frames; it writes down what it saw, a line
/// each, and answers when it is told to.
struct Server {
    core: Http2Connection,
    head: RequestHead,
    carry: Vec<u8>,
    body: Vec<u8>,
    seen: String,
    out: Vec<u8>,
    client: HpackDecoder,
    now_ms: u64,
    is_over: bool,
}

impl Server {
    /// One that has been greeted; what it says first is dropped.
    fn greeted() -> Server {
        Server::greeted_within(HttpLimits::default())
    }

    fn greeted_within(limits: HttpLimits) -> Server {
        let mut server = Server::new(limits);
        server.feed(PREFACE);
        server.feed(&settings(&[]));
        assert_eq!(server.sent().lines().last(), Some("SETTINGS ACK"));
        server
    }

    fn new(limits: HttpLimits) -> Server {
        let mut out = Vec::new();
        Server {
            core: Http2Connection::new(Rc::new(limits), 0, &mut out),
            head: RequestHead::empty(),
            carry: Vec::new(),
            body: Vec::new(),
            seen: String::new(),
            out,
            client: HpackDecoder::default(),
            now_ms: 0,
            is_over: false,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.carry.extend_from_slice(bytes);
        while !self.is_over {
            let (used, event) =
                self.core
                    .read(&self.carry, &mut self.head, &mut self.out, self.now_ms);
            assert!(used <= self.carry.len(), "only what was given is used");
            if let Http2Event::Data(_, len) = event {
                self.body.extend_from_slice(&self.carry[used - len..used]);
            }
            self.carry.drain(..used);
            if event == Http2Event::NeedMore {
                return;
            }
            self.note(event);
        }
    }

    fn note(&mut self, event: Http2Event) {
        let seen = &mut self.seen;
        match event {
            Http2Event::NeedMore => {}
            Http2Event::Data(..) => return,
            Http2Event::Request(opened) => {
                let head = &self.head;
                let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
                let (method, target) = (text(head.method()), text(head.target()));
                let host = text(head.host());
                let length = match opened.length {
                    Some(0) => String::new(),
                    Some(length) => format!(" {length} bytes"),
                    None => " body".to_owned(),
                };
                let id = opened.stream;
                writeln!(seen, "{id} {method} {target} host={host}{length}").unwrap();
            }
            Http2Event::Refused(id, refusal) => {
                writeln!(seen, "{id} {} {}", refusal.status, refusal.reason).unwrap();
            }
            Http2Event::Malformed(reason) => writeln!(seen, "malformed: {reason}").unwrap(),
            Http2Event::TooMany => writeln!(seen, "too many").unwrap(),
            Http2Event::BodyEnd(id, trailers) => {
                let body = std::mem::take(&mut self.body);
                writeln!(seen, "{id} body {}", body.escape_ascii()).unwrap();
                for (name, value) in trailers {
                    let (name, value) = (name.escape_ascii(), value.escape_ascii());
                    writeln!(seen, "{id} trailer {name}: {value}").unwrap();
                }
            }
            Http2Event::Left(id) => writeln!(seen, "{id} left").unwrap(),
            Http2Event::Broken(id, reason) => writeln!(seen, "{id} broken: {reason}").unwrap(),
            Http2Event::Over(failure) => {
                writeln!(seen, "over: {}", failure.reason).unwrap();
                self.is_over = true;
            }
        }
        self.head.clear();
    }

    /// What was seen since the last time.
    fn seen(&mut self) -> String {
        std::mem::take(&mut self.seen)
    }

    /// What was sent since the last time, a line for each frame.
    fn sent(&mut self) -> String {
        let out = std::mem::take(&mut self.out);
        shown(&out, &mut self.client)
    }

    /// Answers a request with a body of so many bytes.
    fn answer(&mut self, stream: u32, len: usize) {
        let head = ResponseHead::Fields(200, Fields::new());
        self.core
            .push_head(stream, &head, Some(len as u64), &date(), &mut self.out);
        self.core.set_ready(stream, true);
    }

    /// Sends whatever the windows have room for, of bodies that are announced.
    fn fill(&mut self) {
        while let Some(turn) = self.core.next_turn() {
            let len = turn.bytes_max.min(self.left(turn.stream));
            self.core
                .push_data(turn.stream, len, &mut self.out)
                .unwrap();
            self.out.extend(std::iter::repeat_n(b'x', len));
            if self.left(turn.stream) == 0 {
                assert!(self.core.push_end(turn.stream, None, &mut self.out));
            }
        }
    }

    fn left(&mut self, stream: u32) -> usize {
        match self.core.streams.find(stream).map(|open| open.sending) {
            Some(super::stream::Writing::Body(Some(left))) => left as usize,
            _ => 0,
        }
    }
}

fn date() -> DateLine {
    DateLine::new(std::time::Duration::ZERO)
}

/// Frames in words, a line each.
fn shown(mut bytes: &[u8], client: &mut HpackDecoder) -> String {
    let mut text = String::new();
    while let Some(header) = Header::read(bytes) {
        let payload = &bytes[HEADER_BYTES..HEADER_BYTES + header.len];
        bytes = &bytes[HEADER_BYTES + header.len..];
        let id = header.stream;
        let number = frame::number(payload);
        let end = if header.has(frame::END_STREAM) {
            " END"
        } else {
            ""
        };
        match header.kind {
            frame::DATA => writeln!(text, "{id} DATA {}{end}", payload.len()),
            frame::HEADERS => {
                assert!(header.has(frame::END_HEADERS));
                let mut buffer = Vec::new();
                let mut line = format!("{id} HEADERS");
                let decoded = client.decode(payload, &mut buffer, |buffer, field| {
                    let (name, value) = field.texts(buffer);
                    if name != b"date" {
                        let (name, value) = (name.escape_ascii(), value.escape_ascii());
                        write!(line, " {name}={value}").unwrap();
                    }
                });
                decoded.unwrap();
                writeln!(text, "{line}{end}")
            }
            frame::RST_STREAM => writeln!(text, "{id} RST {number}"),
            frame::SETTINGS if header.has(frame::ACK) => writeln!(text, "SETTINGS ACK"),
            frame::SETTINGS => writeln!(text, "SETTINGS {}", payload.len() / 6),
            frame::PING => writeln!(text, "PING {} {}", header.flags, payload.escape_ascii()),
            frame::GOAWAY => writeln!(text, "GOAWAY {number} {}", frame::number(&payload[4..])),
            frame::WINDOW_UPDATE => writeln!(text, "{id} WINDOW {number}"),
            kind => panic!("a frame of kind {kind}"),
        }
        .unwrap();
    }
    assert!(bytes.is_empty(), "frames are whole");
    text
}

/// A frame as a client sends it.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::push_header(payload.len(), kind, flags, stream, &mut out);
    out.extend_from_slice(payload);
    out
}

/// A field block, encoded without a table.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        if let Some(pseudo) = name.strip_prefix(':') {
            out.push(0);
            out.push(pseudo.len() as u8 + 1);
            out.extend_from_slice(name.as_bytes());
            assert!(value.len() < 127);
            out.push(value.len() as u8);
            out.extend_from_slice(value.as_bytes());
        } else {
            encode_field(name.as_bytes(), value.as_bytes(), Stored::AsText, &mut out);
        }
    }
    out
}

/// Fields every request has, and more.
fn fields<'f>(
    method: &'f str,
    path: &'f str,
    more: &[(&'f str, &'f str)],
) -> Vec<(&'f str, &'f str)> {
    let usual = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "h"),
    ];
    [&usual, more].concat()
}

/// A whole request without a body.
fn get(stream: u32, path: &str) -> Vec<u8> {
    request(stream, &fields("GET", path, &[]), true)
}

fn request(stream: u32, fields: &[(&str, &str)], ends: bool) -> Vec<u8> {
    let flags = frame::END_HEADERS | if ends { frame::END_STREAM } else { 0 };
    frame(frame::HEADERS, flags, stream, &block(fields))
}

/// The head of a request with a body.
fn post(stream: u32, more: &[(&str, &str)]) -> Vec<u8> {
    request(stream, &fields("POST", "/", more), false)
}

fn data(stream: u32, body: &[u8], ends: bool) -> Vec<u8> {
    let flags = if ends { frame::END_STREAM } else { 0 };
    frame(frame::DATA, flags, stream, body)
}

fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in settings {
        frame::push_setting(*id, *value, &mut payload);
    }
    frame(frame::SETTINGS, 0, 0, &payload)
}

fn window(stream: u32, increment: u32) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&increment.to_be_bytes());
    frame(frame::WINDOW_UPDATE, 0, stream, &out)
}

fn reset(stream: u32) -> Vec<u8> {
    let mut out = Vec::new();
    frame::push_reset(stream, Http2ErrorCode::Cancel, &mut out);
    out
}

/// What the server saw and sent of these bytes, in pieces of every size too.
fn seen_and_sent(input: &[u8]) -> (String, String) {
    let mut whole = Server::greeted();
    whole.feed(input);
    let result = (whole.seen(), whole.sent());
    for step in [1, 2, 7] {
        let mut slow = Server::greeted();
        for piece in input.chunks(step) {
            slow.feed(piece);
        }
        assert_eq!((slow.seen(), slow.sent()), result, "in pieces of {step}");
    }
    result
}
