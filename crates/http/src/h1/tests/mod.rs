//! Protocol tests: bytes and time in, bytes and events out, no sockets.

mod answers;
mod clocks;
mod refusals;
mod requests;

use std::rc::Rc;

use crate::date::DateLine;
use crate::h1::{AfterAnswer, Http1Connection, Http1Event, Length};
use crate::head::{Fields, RequestHead};
use crate::limits::HttpLimits;
use crate::response::ResponseHead;

/// One side of a connection: it is fed a client's bytes, answers each whole request with an empty
/// 200, and writes down what it saw, a line each.
struct Server {
    core: Http1Connection,
    head: RequestHead,
    carry: Vec<u8>,
    body: Vec<u8>,
    seen: String,
    out: Vec<u8>,
    is_over: bool,
}

impl Server {
    fn new(limits: HttpLimits) -> Server {
        Server {
            core: Http1Connection::new(Rc::new(limits), 0),
            head: RequestHead::empty(),
            carry: Vec::new(),
            body: Vec::new(),
            seen: String::new(),
            out: Vec::new(),
            is_over: false,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.carry.extend_from_slice(bytes);
        while !self.is_over {
            let (used, event) = self.core.read(&self.carry, &mut self.head, 0);
            assert!(used <= self.carry.len(), "only what was given is used");
            if let Http1Event::Data(len) = event {
                self.body.extend_from_slice(&self.carry[used - len..used]);
            }
            self.carry.drain(..used);
            match event {
                Http1Event::NeedMore => return,
                Http1Event::Request(framing) => {
                    self.note_request(framing);
                    if framing.length == Length::Bytes(0) {
                        self.answer();
                    }
                }
                Http1Event::Data(_) => {}
                Http1Event::BodyEnd(trailers) => {
                    self.note_body();
                    for (name, value) in trailers {
                        let (name, value) = (name.escape_ascii(), value.escape_ascii());
                        self.seen += &format!("trailer {name}: {value}\n");
                    }
                    self.answer();
                }
                Http1Event::Refused(refusal) => {
                    self.note_body();
                    self.seen += &format!("{} {}\n", refusal.status, refusal.reason);
                    self.is_over = true;
                }
                Http1Event::Busy => panic!("nothing is under way"),
            }
        }
    }

    fn note_request(&mut self, framing: crate::h1::Framing) {
        let head = &self.head;
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let query = head
            .query()
            .map_or(String::new(), |q| format!(" query={}", text(q)));
        self.seen += &format!(
            "{} path={}{query} host={}",
            text(head.method()),
            text(head.path()),
            text(head.host())
        );
        self.seen += match framing.length {
            Length::Bytes(0) => "",
            Length::Bytes(_) => " sized",
            Length::Chunked => " chunked",
        };
        self.seen += if framing.expects_continue {
            " continue"
        } else {
            ""
        };
        self.seen += if framing.keep_alive {
            " keep\n"
        } else {
            " last\n"
        };
    }

    fn note_body(&mut self) {
        if !self.body.is_empty() {
            self.seen += &format!("body {}\n", self.body.escape_ascii());
            self.body.clear();
        }
    }

    fn answer(&mut self) {
        let head = ResponseHead::Fields(200, Fields::new());
        self.core
            .push_head(&head, Some(0), false, &date(), &mut self.out);
        assert!(self.core.push_end(None, &mut self.out));
        match self.core.finish() {
            AfterAnswer::Request => self.head = RequestHead::empty(),
            next => {
                self.seen += &format!("{next:?}\n");
                self.is_over = true;
            }
        }
    }
}

fn date() -> DateLine {
    DateLine::new(std::time::Duration::ZERO)
}

/// What the server saw of these bytes when they came at once.
fn seen(input: &[u8]) -> String {
    seen_within(input, HttpLimits::default())
}

fn seen_within(input: &[u8], limits: HttpLimits) -> String {
    let mut server = Server::new(limits.clone());
    server.feed(input);
    // The same bytes one by one must be read the same.
    let mut slow = Server::new(limits);
    for byte in input {
        slow.feed(&[*byte]);
    }
    let shown = input[..input.len().min(200)].escape_ascii();
    assert_eq!(slow.seen, server.seen, "byte by byte: {shown}");
    assert_eq!(slow.out, server.out, "byte by byte: {shown}");
    server.seen
}
