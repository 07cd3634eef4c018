//! One event: a line of JSON, framed as a server-sent event.

use std::fmt::{self, Write};

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

const BEGIN: &[u8] = b"event: event\ndata: {\"t_us\":";
const END: &[u8] = b"}\n\n";
/// What ends every event.
pub(super) const GAP: &[u8] = b"\n\n";

/// Writes the fields of an event.
pub struct Pen<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Pen<'a> {
    /// Begins an event, `t_us` microseconds after its request began.
    pub(super) fn begin(
        out: &'a mut Vec<u8>,
        t_us: u64,
        id: (u64, u64, u32),
        stage: Stage,
    ) -> Pen<'a> {
        out.extend_from_slice(BEGIN);
        push_decimal(t_us, out);
        out.extend_from_slice(b",\"id\":\"");
        push_decimal(id.0, out);
        out.push(b'.');
        push_decimal(id.1, out);
        out.push(b'.');
        push_decimal(id.2.into(), out);
        out.extend_from_slice(b"\",\"stage\":\"");
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

    /// The same unless it is empty.
    pub fn text_if_any(&mut self, key: &str, text: &[u8]) {
        if !text.is_empty() {
            self.text(key, text);
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

    /// A text made of parts.
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

fn push_decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

/// A text within JSON: what is no UTF-8 is replaced, control characters become codes.
fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| matches!(byte, 0x20..=0x7e) && !matches!(byte, b'"' | b'\\');
    // Many at a time: only the end of a piece decides.
    let are_plain = |piece: &[u8]| piece.iter().fold(true, |all, byte| all & is_plain(byte));
    if text.chunks(32).all(are_plain) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_json_whatever_is_in_it() {
        let mut out = Vec::new();
        let mut pen = Pen::begin(&mut out, 12, (1, 5, 3), Stage::Stderr);
        pen.text("text", b"a\"b\\c\n\x1b[2J\xff\xc3\xa9\xc2\x85");
        pen.number("n", u64::MAX);
        pen.number_above_zero("zero", 0);
        pen.parts("parts", &[b"x", b"\"", b"y"]);
        pen.format("format", format_args!("{}\"{:>3}\n", 'é', 7));
        pen.dump(b"\x00ab", 2);
        pen.end();
        let text = String::from_utf8(out).unwrap();
        let data = text.strip_prefix("event: event\ndata: ").unwrap();
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
        assert_eq!(value["parts"], "x\"y");
        assert_eq!(value["format"], "é\"  7\n");
        assert_eq!(value["hex"], "0061");
        assert_eq!(value["bytes"], 3);
        assert_eq!(value["zero"], serde_json::Value::Null);
    }
}
