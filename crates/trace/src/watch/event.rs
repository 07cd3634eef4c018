//! One event: a line of JSON, framed as a server-sent event.

use std::fmt::{self, Write};
use std::net::IpAddr;

use crate::digits::{DIGITS_MAX, decimal, push_decimal};
use crate::escape::put_json;
use crate::pen::{self, PenBuffer};

/// What an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStage {
    /// The connection of a first request.
    Connection,
    /// Its TLS handshake.
    Tls,
    /// The request as it was read.
    Request,
    /// Site and route, and why.
    Route,
    /// A step before or after the handler.
    Step,
    /// What the cache did.
    Cache,
    /// Waiting for a program.
    Queue,
    /// A program's start.
    Start,
    /// A worker has the request.
    Worker,
    /// The program has said its head.
    Program,
    /// The program asks the server for something.
    Callout,
    /// What the program prints on standard error.
    Stderr,
    /// Fields of the request.
    RequestHead,
    /// Bytes of the request's body.
    RequestBody,
    /// Status and fields of the answer.
    Answer,
    /// Bytes of the answer's body.
    AnswerBody,
    /// The end.
    Done,
}

impl RequestStage {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            RequestStage::Connection => "connection",
            RequestStage::Tls => "tls",
            RequestStage::Request => "request",
            RequestStage::Route => "route",
            RequestStage::Step => "step",
            RequestStage::Cache => "cache",
            RequestStage::Queue => "queue",
            RequestStage::Start => "start",
            RequestStage::Worker => "worker",
            RequestStage::Program => "program",
            RequestStage::Callout => "callout",
            RequestStage::Stderr => "stderr",
            RequestStage::RequestHead => "request-head",
            RequestStage::RequestBody => "request-body",
            RequestStage::Answer => "answer",
            RequestStage::AnswerBody => "answer-body",
            RequestStage::Done => "done",
        }
    }
}

// Without a name: there are many of them, and few of the others, which have one.
const BEGIN: &[u8] = b"data: {\"id\":\"";
const TIME: &[u8] = b"\",\"t_us\":";
const END: &[u8; 3] = b"}\n\n";
/// What ends every event.
pub(super) const GAP: &[u8] = b"\n\n";

/// How the events of a request begin, its id first: written once for those that follow each other.
pub(super) struct Begin {
    of: (u64, u64, u32),
    text: [u8; Begin::BYTES],
    len: usize,
}

impl Default for Begin {
    fn default() -> Begin {
        let mut begin = Begin {
            of: (0, 0, 0),
            text: [0; Begin::BYTES],
            len: 0,
        };
        begin.write();
        begin
    }
}

impl Begin {
    /// Room for the largest numbers.
    const BYTES: usize = 80;

    /// Makes it that of a request: of a server, a connection, and its number there.
    pub(super) fn set(&mut self, of: (u64, u64, u32)) {
        if self.of != of {
            self.of = of;
            self.write();
        }
    }

    fn write(&mut self) {
        self.len = 0;
        let (server, connection, request) = self.of;
        self.put(BEGIN);
        for (number, after) in [
            (server, &b"."[..]),
            (connection, b"."),
            (request.into(), TIME),
        ] {
            self.put(decimal(number, &mut [0; DIGITS_MAX]));
            self.put(after);
        }
    }

    fn put(&mut self, text: &[u8]) {
        let end = self.len + text.len();
        self.text[self.len..end].copy_from_slice(text);
        self.len = end;
    }
}

/// Writes the fields of an event. Keys need no escaping.
pub struct Pen<'a> {
    line: pen::Pen<'a>,
}

impl<'a> Pen<'a> {
    /// Begins an event, `t_us` microseconds after its request began.
    pub(super) fn begin(
        block: &'a mut PenBuffer,
        out: &'a mut Vec<u8>,
        (t_us, begin, stage): (u64, &Begin, RequestStage),
    ) -> Pen<'a> {
        let mut line = pen::Pen::new(block, out);
        line.put_start(&begin.text, begin.len);
        line.put_number(t_us);
        line.put_all([b",\"stage\":\"", stage.word().as_bytes(), b"\""]);
        Pen { line }
    }

    pub(super) fn end(mut self) {
        self.line.put_array(END);
        self.line.finish();
    }

    /// A number.
    #[inline]
    pub fn number(&mut self, key: &str, number: u64) {
        self.line.put_all([b",\"", key.as_bytes(), b"\":"]);
        self.line.put_number(number);
    }

    /// The same unless it is 0.
    #[inline]
    pub fn number_above_zero(&mut self, key: &str, number: u64) {
        if number > 0 {
            self.number(key, number);
        }
    }

    /// A text, whatever its bytes are.
    #[inline]
    pub fn text(&mut self, key: &str, text: &[u8]) {
        self.begin_text(key);
        self.put_text(text);
        self.line.put_array(b"\"");
    }

    /// One of hob's own words: nothing in it needs escaping.
    #[inline]
    pub fn word(&mut self, key: &str, word: &'static str) {
        self.begin_text(key);
        self.line.put_all([word.as_bytes(), b"\""]);
    }

    /// The same as [`Pen::text`] unless it is empty.
    #[inline]
    pub fn text_if_any(&mut self, key: &str, text: &[u8]) {
        if !text.is_empty() {
            self.text(key, text);
        }
    }

    /// An address as text.
    pub fn address(&mut self, key: &str, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.line.put_all([b",\"", key.as_bytes(), b"\":"]);
                for (octet, before) in address.octets().into_iter().zip(b"\"...") {
                    self.line.put_array(&[*before]);
                    self.line.put_number(octet.into());
                }
                self.line.put_array(b"\"");
            }
            IpAddr::V6(address) => self.format(key, format_args!("{address}")),
        }
    }

    /// A text that is written out only here.
    pub fn format(&mut self, key: &str, text: fmt::Arguments<'_>) {
        self.begin_text(key);
        // Nothing here fails; a part that does by itself ends the text.
        let _ = Escaping(&mut self.line).write_fmt(text);
        self.line.put_array(b"\"");
    }

    /// A text made of parts. Takes a third of what [`Pen::format`] does.
    #[inline]
    pub fn parts<const COUNT: usize>(&mut self, key: &str, parts: [TextPart<'_>; COUNT]) {
        self.begin_text(key);
        for part in parts {
            match part {
                TextPart::Word(word) => self.line.put(word.as_bytes()),
                TextPart::Number(number) => self.line.put_number(number),
                TextPart::Text(text) => self.put_text(text),
            }
        }
        self.line.put_array(b"\"");
    }

    /// Bytes: how many there are, and the first of them as text and in hex.
    pub fn dump(&mut self, bytes: &[u8], bytes_max: usize) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.number("bytes", bytes.len() as u64);
        let shown = &bytes[..bytes.len().min(bytes_max)];
        self.text("text", shown);
        self.begin_text("hex");
        for byte in shown {
            let digits = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            self.line.put_array(&digits);
        }
        self.line.put_array(b"\"");
    }

    /// Not inlined: it is long, and wanted in many places.
    #[inline(never)]
    fn put_text(&mut self, text: &[u8]) {
        put_json(text, &mut self.line);
    }

    #[inline(always)]
    fn begin_text(&mut self, key: &str) {
        self.line.put_all([b",\"", key.as_bytes(), b"\":\""]);
    }
}

/// A part of a text.
#[derive(Clone, Copy, Debug)]
pub enum TextPart<'a> {
    /// One of hob's own words: nothing in it needs escaping.
    Word(&'static str),
    /// A number in decimal.
    Number(u64),
    /// Whatever its bytes are.
    Text(&'a [u8]),
}

/// Escapes what is written into it.
struct Escaping<'a, 'b>(&'a mut pen::Pen<'b>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        put_json(text.as_bytes(), self.0);
        Ok(())
    }
}

/// Says that events did not fit.
pub(super) fn push_dropped(count: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: dropped\ndata: {\"count\":");
    push_decimal(count, out);
    out.extend_from_slice(END);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_json_whatever_is_in_it() {
        let mut out = Vec::new();
        let mut begin = Begin::default();
        begin.set((u64::MAX, u64::MAX, u32::MAX));
        begin.set((1, 5, 3));
        let mut block = PenBuffer::new();
        let mut pen = Pen::begin(&mut block, &mut out, (12, &begin, RequestStage::Stderr));
        pen.word("word", "complete");
        pen.text("text", b"a\"b\\c\n\x1b[2J\xff\xc3\xa9\xc2\x85");
        pen.number("n", u64::MAX);
        pen.number_above_zero("zero", 0);
        pen.parts(
            "parts",
            [
                TextPart::Word("x"),
                TextPart::Text(b"\""),
                TextPart::Number(7),
            ],
        );
        pen.format("format", format_args!("{}\"{:>3}\n", 'é', 7));
        pen.address("v4", [127, 0, 10, 255].into());
        pen.address("v6", [1, 0, 0, 0, 0, 0, 0, 2].into());
        pen.dump(b"\x00ab", 2);
        pen.end();
        let text = String::from_utf8(out).unwrap();
        let data = text.strip_prefix("data: ").unwrap();
        let data = data.strip_suffix("\n\n").unwrap();
        assert!(!data.contains('\n'));
        // `text` is there twice, and the last one counts.
        assert!(
            data.contains("a\\\"b\\\\c\\n\\u001b[2J\\ufffdé\\u0085"),
            "{data}"
        );
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(value["t_us"], 12);
        assert_eq!(value["id"], "1.5.3");
        assert_eq!(value["stage"], "stderr");
        assert_eq!(value["n"], u64::MAX);
        assert_eq!(value["word"], "complete");
        assert_eq!(value["parts"], "x\"7");
        assert_eq!(value["format"], "é\"  7\n");
        assert_eq!(
            (&value["v4"], &value["v6"]),
            (&"127.0.10.255".into(), &"1::2".into())
        );
        assert_eq!(value["hex"], "0061");
        assert_eq!(value["bytes"], 3);
        assert_eq!(value["zero"], serde_json::Value::Null);
    }
}
