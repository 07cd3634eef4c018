//! One event: a line of JSON, framed as a server-sent event.

use std::fmt::{self, Write};
use std::net::IpAddr;

use crate::digits::push_decimal;

/// What an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
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

impl Stage {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Stage::Connection => "connection",
            Stage::Tls => "tls",
            Stage::Request => "request",
            Stage::Route => "route",
            Stage::Step => "step",
            Stage::Cache => "cache",
            Stage::Queue => "queue",
            Stage::Start => "start",
            Stage::Worker => "worker",
            Stage::Program => "program",
            Stage::Callout => "callout",
            Stage::Stderr => "stderr",
            Stage::RequestHead => "request-head",
            Stage::RequestBody => "request-body",
            Stage::Answer => "answer",
            Stage::AnswerBody => "answer-body",
            Stage::Done => "done",
        }
    }
}

// Without a name: there are many of them, and few of the others, which have one.
const BEGIN: &[u8] = b"data: {\"t_us\":";
const END: &[u8] = b"}\n\n";
/// What ends every event.
pub(super) const GAP: &[u8] = b"\n\n";

/// Most events are shorter.
const USUAL_BYTES: usize = 512;

/// A request's id as it stands in its events, written once for those that follow each other.
#[derive(Default)]
pub(super) struct Id {
    of: (u64, u64, u32),
    text: Vec<u8>,
}

impl Id {
    /// Makes it that of a request: of a server, a connection, and its number there.
    pub(super) fn set(&mut self, of: (u64, u64, u32)) {
        if self.of == of && !self.text.is_empty() {
            return;
        }
        self.of = of;
        self.text.clear();
        self.text.extend_from_slice(b",\"id\":\"");
        push_decimal(of.0, &mut self.text);
        self.text.push(b'.');
        push_decimal(of.1, &mut self.text);
        self.text.push(b'.');
        push_decimal(of.2.into(), &mut self.text);
        self.text.extend_from_slice(b"\",\"stage\":\"");
    }
}

/// Writes the fields of an event.
pub struct Pen<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Pen<'a> {
    /// Begins an event, `t_us` microseconds after its request began.
    pub(super) fn begin(out: &'a mut Vec<u8>, t_us: u64, id: &Id, stage: Stage) -> Pen<'a> {
        out.reserve(USUAL_BYTES);
        out.extend_from_slice(BEGIN);
        push_decimal(t_us, out);
        out.extend_from_slice(&id.text);
        out.extend_from_slice(stage.word().as_bytes());
        out.push(b'"');
        Pen { out }
    }

    pub(super) fn end(self) {
        self.out.extend_from_slice(END);
    }

    /// A number. `key` needs no escaping.
    pub fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        push_decimal(number, self.out);
    }

    /// The same unless it is 0.
    pub fn number_above_zero(&mut self, key: &str, number: u64) {
        if number > 0 {
            self.number(key, number);
        }
    }

    /// A text, whatever its bytes are.
    pub fn text(&mut self, key: &str, text: &[u8]) {
        self.key(key);
        self.out.push(b'"');
        push_escaped(text, self.out);
        self.out.push(b'"');
    }

    /// One of hob's own words: nothing in it needs escaping.
    pub fn word(&mut self, key: &str, word: &'static str) {
        debug_assert!(is_plain(word.as_bytes()));
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(word.as_bytes());
        self.out.push(b'"');
    }

    /// The same unless it is empty.
    pub fn text_if_any(&mut self, key: &str, text: &[u8]) {
        if !text.is_empty() {
            self.text(key, text);
        }
    }

    /// An address as text.
    pub fn address(&mut self, key: &str, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.key(key);
                for (octet, before) in address.octets().into_iter().zip(b"\"...") {
                    self.out.push(*before);
                    push_decimal(octet.into(), self.out);
                }
                self.out.push(b'"');
            }
            IpAddr::V6(address) => self.format(key, format_args!("{address}")),
        }
    }

    /// A text that is written out only here.
    pub fn format(&mut self, key: &str, text: fmt::Arguments<'_>) {
        self.key(key);
        self.out.push(b'"');
        // Nothing here fails; a part that does by itself ends the text.
        let _ = Escaping(self.out).write_fmt(text);
        self.out.push(b'"');
    }

    /// A text made of parts. Takes a third of what [`Pen::format`] does.
    pub fn parts(&mut self, key: &str, parts: &[&[u8]]) {
        self.key(key);
        self.out.push(b'"');
        for part in parts {
            push_escaped(part, self.out);
        }
        self.out.push(b'"');
    }

    /// Bytes: how many there are, and the first of them as text and in hex.
    pub fn dump(&mut self, bytes: &[u8], bytes_max: usize) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.number("bytes", bytes.len() as u64);
        let shown = &bytes[..bytes.len().min(bytes_max)];
        self.text("text", shown);
        self.key("hex");
        self.out.push(b'"');
        for byte in shown {
            self.out.push(DIGITS[usize::from(byte >> 4)]);
            self.out.push(DIGITS[usize::from(byte & 15)]);
        }
        self.out.push(b'"');
    }

    fn key(&mut self, key: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

/// Escapes what is written into it.
struct Escaping<'a>(&'a mut Vec<u8>);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        push_escaped(text.as_bytes(), self.0);
        Ok(())
    }
}

/// Says that events did not fit.
pub(super) fn push_dropped(count: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: dropped\ndata: {\"count\":");
    push_decimal(count, out);
    out.extend_from_slice(END);
}

/// A text within JSON: what is no UTF-8 is replaced, control characters become codes.
fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    if is_plain(text) {
        return out.extend_from_slice(text);
    }
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                character if character.is_control() => {
                    out.extend_from_slice(format!("\\u{:04x}", character as u32).as_bytes());
                }
                character => {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Nothing in it has to be escaped: printable ASCII without quote and backslash. Looks at eight
/// bytes at a time.
fn is_plain(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    let odd = words
        .iter()
        .fold(odd_bits(last), |odd, word| odd | odd_bits(*word));
    odd == 0
}

/// Has the highest bit of a byte set for some that are not plain, if any is not.
fn odd_bits(bytes: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(bytes);
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is_quote = below(word ^ (ONES * u64::from(b'"')), 1);
    let is_backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    // 0x7f plus one has the highest bit.
    let is_above = word | (word & !HIGH).wrapping_add(ONES);
    (below(word, 0x20) | is_quote | is_backslash | is_above) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_need_escaping_are_found_wherever_they_are() {
        for byte in 0..=255 {
            let expected = matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
            for (len, at) in [(1, 0), (7, 3), (8, 7), (9, 0), (9, 8), (40, 17)] {
                for other in [b' ', b'!', b'#', b'[', b'~'] {
                    let mut text = vec![other; len];
                    text[at] = byte;
                    assert_eq!(is_plain(&text), expected, "{byte} at {at} of {len}");
                }
            }
        }
        assert!(is_plain(b""));
    }

    #[test]
    fn event_is_json_whatever_is_in_it() {
        let mut out = Vec::new();
        let mut id = Id::default();
        id.set((1, 5, 2));
        id.set((1, 5, 3));
        let mut pen = Pen::begin(&mut out, 12, &id, Stage::Stderr);
        pen.word("word", "complete");
        pen.text("text", b"a\"b\\c\n\x1b[2J\xff\xc3\xa9\xc2\x85");
        pen.number("n", u64::MAX);
        pen.number_above_zero("zero", 0);
        pen.parts("parts", &[b"x", b"\"", b"y"]);
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
            data.contains("a\\\"b\\\\c\\n\\u001b[2J\u{fffd}é\\u0085"),
            "{data}"
        );
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(value["t_us"], 12);
        assert_eq!(value["id"], "1.5.3");
        assert_eq!(value["stage"], "stderr");
        assert_eq!(value["n"], u64::MAX);
        assert_eq!(value["word"], "complete");
        assert_eq!(value["parts"], "x\"y");
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
