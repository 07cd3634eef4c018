//! FastCGI 1.0 as bytes: a request as records, and what comes back, piece by piece. Knows no socket
//! and no time.
//!
//! ```text
//! record   0 version (1) | 1 type | 2 u16 request | 4 u16 content bytes | 6 padding bytes | 7 -
//!          8 content | padding                                    numbers are big-endian
//! there    BEGIN_REQUEST  PARAMS... PARAMS(empty)  STDIN... STDIN(empty)
//! back     STDOUT... STDERR...  END_REQUEST
//! ```
//!
//! Source: FastCGI Specification 1.0 (Brown, 1996), sections 3 and 5. One request at a time is on a
//! connection: no server in use today takes more.

use crate::handle::script::variables::{ProgramRequest, VariableSink};
use crate::handle::upstream::fail::upstream_reasons;
use crate::handle::upstream::program::check::CheckedPath;
use crate::handle::upstream::program::fail::ProgramFailure;
use crate::handle::upstream::program::protocol::{
    ProgramProtocol, ProtocolWords, ReadsAnswer, UnfitVariables, write_variables,
};
use crate::handle::upstream::sending::BodyFraming;

/// Bytes before the content of a record.
pub const HEADER_BYTES: usize = 8;
/// Largest content of a record, in bytes.
pub const CONTENT_BYTES_MAX: usize = 0xffff;

const VERSION: u8 = 1;
/// The number of every request: a connection has one at a time.
const REQUEST: u16 = 1;
/// Of records that belong to no request.
const NO_REQUEST: u16 = 0;
const ROLE_RESPONDER: u16 = 1;
/// The connection stays open after the request.
const KEEP_CONNECTION: u8 = 1;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

const REQUEST_COMPLETE: u8 = 0;
const CANT_MULTIPLEX: u8 = 1;
const OVERLOADED: u8 = 2;
const UNKNOWN_ROLE: u8 = 3;

/// FastCGI, as it is spoken with one program.
#[derive(Debug)]
pub(crate) struct FastCgiProtocol {
    /// Connections stay open between requests.
    pub(crate) keeps: bool,
}

static WORDS: ProtocolWords = ProtocolWords {
    key: "fastcgi",
    dev: "fastcgi.dev",
    reasons: upstream_reasons!("fastcgi", "program"),
};

impl ProgramProtocol for FastCgiProtocol {
    fn words(&self) -> &'static ProtocolWords {
        &WORDS
    }

    fn head(
        &self,
        asked: &ProgramRequest<'_>,
        env: &[(String, String)],
    ) -> Result<Vec<u8>, UnfitVariables> {
        let mut head = RequestHead::new(self.keeps);
        write_variables(asked, env, &mut head);
        Ok(head.finish())
    }

    /// As php-fpm has its `ping.path`.
    fn check(&self, asked: &CheckedPath<'_>) -> Vec<u8> {
        let mut head = RequestHead::new(false);
        asked.write(&["SCRIPT_NAME", "SCRIPT_FILENAME"], &mut head);
        let mut bytes = head.finish();
        push_body_end(&mut bytes);
        bytes
    }

    fn framing(&self) -> BodyFraming {
        BodyFraming {
            is_plain: false,
            piece: push_body,
            end: push_body_end,
        }
    }

    fn reader(&self) -> Box<dyn ReadsAnswer> {
        Box::new(RecordReader::default())
    }
}

impl ReadsAnswer for RecordReader {
    fn take(
        &mut self,
        mut bytes: &[u8],
        output: &mut Vec<u8>,
        printed: &mut Vec<u8>,
    ) -> Result<(), ProgramFailure> {
        loop {
            match self.next(&mut bytes)? {
                None => return Ok(()),
                Some(Piece::Output(piece)) => output.extend_from_slice(piece),
                Some(Piece::Error(text)) => printed.extend_from_slice(text),
                // What a script leaves as its exit code says nothing of its answer: scripts of PHP
                // that end with an error have one, and a page that says so.
                Some(Piece::End(_)) => {}
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn ends_with_connection(&self) -> bool {
        false
    }
}

impl From<WireFault> for ProgramFailure {
    fn from(fault: WireFault) -> ProgramFailure {
        match fault {
            WireFault::Malformed(how) => {
                ProgramFailure::Wire(502, "what the program sent is not FastCGI", how)
            }
            WireFault::Refused(why) => {
                ProgramFailure::Wire(503, "the program takes no more requests", why)
            }
        }
    }
}

/// The head of a request: what begins it, and its variables.
pub struct RequestHead {
    bytes: Vec<u8>,
    /// Where the variables begin.
    params_at: usize,
}

impl RequestHead {
    /// A request without variables yet. With `keeps`, the other side leaves the connection open.
    pub fn new(keeps: bool) -> RequestHead {
        let mut bytes = Vec::with_capacity(2048);
        push_header(&mut bytes, BEGIN_REQUEST, 8);
        bytes.extend_from_slice(&ROLE_RESPONDER.to_be_bytes());
        bytes.push(if keeps { KEEP_CONNECTION } else { 0 });
        bytes.extend_from_slice(&[0; 5]);
        let params_at = bytes.len() + HEADER_BYTES;
        push_header(&mut bytes, PARAMS, 0);
        RequestHead { bytes, params_at }
    }

    /// The records, the empty one that ends the variables among them.
    pub fn finish(mut self) -> Vec<u8> {
        let len = self.bytes.len() - self.params_at;
        if len <= CONTENT_BYTES_MAX {
            let header = self.params_at - HEADER_BYTES;
            self.bytes[header..self.params_at].copy_from_slice(&header_of(PARAMS, len as u16));
            if len > 0 {
                push_header(&mut self.bytes, PARAMS, 0);
            }
            return self.bytes;
        }
        let params = self.bytes.split_off(self.params_at);
        self.bytes.truncate(self.params_at - HEADER_BYTES);
        push_stream(&mut self.bytes, PARAMS, &params);
        push_header(&mut self.bytes, PARAMS, 0);
        self.bytes
    }
}

impl VariableSink for RequestHead {
    fn add(&mut self, name: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>) -> bool) {
        let begin = self.bytes.len();
        // Both lengths at their longest; shortened once they are known.
        self.bytes.extend_from_slice(&[0; 8]);
        name(&mut self.bytes);
        let name_end = self.bytes.len();
        if !value(&mut self.bytes) {
            self.bytes.truncate(begin);
            return;
        }
        let (name, value) = (name_end - begin - 8, self.bytes.len() - name_end);
        let mut lengths = Vec::with_capacity(8);
        push_length(&mut lengths, name);
        push_length(&mut lengths, value);
        self.bytes.splice(begin..begin + 8, lengths);
    }
}

/// A piece of the request's body, in as many records as it takes.
pub fn push_body(out: &mut Vec<u8>, piece: &[u8]) {
    push_stream(out, STDIN, piece);
}

/// The end of the request's body.
pub fn push_body_end(out: &mut Vec<u8>) {
    push_header(out, STDIN, 0);
}

fn push_stream(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    for content in bytes.chunks(CONTENT_BYTES_MAX) {
        push_header(out, kind, content.len() as u16);
        out.extend_from_slice(content);
    }
}

fn push_header(out: &mut Vec<u8>, kind: u8, len: u16) {
    out.extend_from_slice(&header_of(kind, len));
}

fn header_of(kind: u8, len: u16) -> [u8; HEADER_BYTES] {
    let ([r0, r1], [l0, l1]) = (REQUEST.to_be_bytes(), len.to_be_bytes());
    [VERSION, kind, r0, r1, l0, l1, 0, 0]
}

/// One byte up to 127, else four with the highest bit set.
fn push_length(out: &mut Vec<u8>, len: usize) {
    match u8::try_from(len) {
        Ok(short) if short < 0x80 => out.push(short),
        // A head is far below 2 GiB.
        _ => out.extend_from_slice(&(len as u32 | 0x8000_0000).to_be_bytes()),
    }
}

/// What comes back, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Of the answer.
    Output(&'a [u8]),
    /// Of what the program prints on standard error.
    Error(&'a [u8]),
    /// The request is over; the program's exit code.
    End(u32),
}

/// Why what came is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFault {
    /// It breaks the protocol; how.
    Malformed(&'static str),
    /// The program takes no more requests, of this kind or for now; why.
    Refused(&'static str),
}

/// Takes what comes apart. Holds no content: of a record it remembers how much is to come.
#[derive(Debug, Default)]
pub struct RecordReader {
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that are there; all of them within a record.
    header_bytes: usize,
    content_left: usize,
    padding_left: usize,
    end: [u8; 8],
    end_bytes: usize,
    is_over: bool,
}

impl RecordReader {
    /// Takes the next piece off the bytes; `None` when all of them are taken.
    ///
    /// # Errors
    /// They are none of this protocol, or say that the request is refused.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Piece<'a>>, WireFault> {
        loop {
            if self.header_bytes < HEADER_BYTES {
                if self.is_over && !bytes.is_empty() {
                    return Err(WireFault::Malformed(
                        "a record after the end of the request",
                    ));
                }
                let taken = take(bytes, HEADER_BYTES - self.header_bytes);
                self.header[self.header_bytes..][..taken.len()].copy_from_slice(taken);
                self.header_bytes += taken.len();
                if self.header_bytes < HEADER_BYTES {
                    return Ok(None);
                }
                self.begin()?;
            }
            if self.content_left > 0 {
                let content = take(bytes, self.content_left);
                self.content_left -= content.len();
                if let Some(piece) = self.content(content)? {
                    return Ok(Some(piece));
                }
                if self.content_left > 0 {
                    return Ok(None);
                }
            }
            self.padding_left -= take(bytes, self.padding_left).len();
            if self.padding_left > 0 {
                return Ok(None);
            }
            self.header_bytes = 0;
            if self.kind() == END_REQUEST && self.is_of_request() {
                self.is_over = true;
                return self.ended().map(Some);
            }
        }
    }

    /// The end of the request has come.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn kind(&self) -> u8 {
        self.header[1]
    }

    fn is_of_request(&self) -> bool {
        u16::from_be_bytes([self.header[2], self.header[3]]) == REQUEST
    }

    fn begin(&mut self) -> Result<(), WireFault> {
        let [version, kind, r0, r1, l0, l1, padding, _] = self.header;
        if version != VERSION {
            return Err(WireFault::Malformed("a record of another version"));
        }
        self.content_left = u16::from_be_bytes([l0, l1]).into();
        self.padding_left = padding.into();
        match (u16::from_be_bytes([r0, r1]), kind) {
            // What belongs to no request is none of ours; nobody has asked for it.
            (NO_REQUEST, _) | (REQUEST, STDOUT | STDERR) => Ok(()),
            (REQUEST, END_REQUEST) if self.content_left == self.end.len() => Ok(()),
            (REQUEST, END_REQUEST) => Err(WireFault::Malformed("an end of another size")),
            (REQUEST, _) => Err(WireFault::Malformed("a record that only servers send")),
            _ => Err(WireFault::Malformed("a record of another request")),
        }
    }

    fn content<'a>(&mut self, content: &'a [u8]) -> Result<Option<Piece<'a>>, WireFault> {
        if content.is_empty() || !self.is_of_request() {
            return Ok(None);
        }
        Ok(match self.kind() {
            STDOUT => Some(Piece::Output(content)),
            STDERR => Some(Piece::Error(content)),
            _ => {
                self.end[self.end_bytes..][..content.len()].copy_from_slice(content);
                self.end_bytes += content.len();
                None
            }
        })
    }

    fn ended(&self) -> Result<Piece<'static>, WireFault> {
        let [c0, c1, c2, c3, protocol, ..] = self.end;
        match protocol {
            REQUEST_COMPLETE => Ok(Piece::End(u32::from_be_bytes([c0, c1, c2, c3]))),
            CANT_MULTIPLEX => Err(WireFault::Refused("it says that a request is under way")),
            OVERLOADED => Err(WireFault::Refused("it says that it is overloaded")),
            UNKNOWN_ROLE => Err(WireFault::Refused("it is no responder")),
            _ => Err(WireFault::Malformed("an end of a kind that there is not")),
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], max: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(bytes.len().min(max));
    *bytes = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, request: u16, content: &[u8], padding: u8) -> Vec<u8> {
        let mut bytes = vec![VERSION, kind];
        bytes.extend_from_slice(&request.to_be_bytes());
        bytes.extend_from_slice(&(content.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&[padding, 0]);
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len() + usize::from(padding), 0);
        bytes
    }

    fn end(code: u32, protocol: u8) -> Vec<u8> {
        let [c0, c1, c2, c3] = code.to_be_bytes();
        record(END_REQUEST, 1, &[c0, c1, c2, c3, protocol, 0, 0, 0], 0)
    }

    /// Output and standard error, each as one, and the exit code.
    type Told = (Vec<u8>, Vec<u8>, Option<u32>);

    /// What comes back, in pieces of so many bytes.
    fn read(bytes: &[u8], step: usize) -> Result<Told, WireFault> {
        let mut reader = RecordReader::default();
        let (mut output, mut error, mut code) = (Vec::new(), Vec::new(), None);
        for mut part in bytes.chunks(step) {
            while let Some(piece) = reader.next(&mut part)? {
                match piece {
                    Piece::Output(bytes) => output.extend_from_slice(bytes),
                    Piece::Error(bytes) => error.extend_from_slice(bytes),
                    Piece::End(number) => code = Some(number),
                }
            }
            assert!(part.is_empty());
        }
        Ok((output, error, code))
    }

    #[test]
    fn answer_is_the_same_however_it_comes() {
        let bytes = [
            record(STDOUT, 1, b"Content-Type: text/plain\n\n", 6),
            record(STDERR, 1, b"careful\n", 0),
            // Of no request: an answer to what nobody asked.
            record(10, 0, b"whatever", 3),
            record(STDOUT, 1, b"body", 4),
            record(STDOUT, 1, b"", 8),
            end(3, REQUEST_COMPLETE),
        ]
        .concat();
        let whole = b"Content-Type: text/plain\n\nbody".to_vec();
        for step in 1..=bytes.len() {
            let told = read(&bytes, step).unwrap();
            assert_eq!(
                told,
                (whole.clone(), b"careful\n".to_vec(), Some(3)),
                "{step}"
            );
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let malformed = |bytes: &[u8]| {
            let told = read(bytes, bytes.len());
            assert!(matches!(told, Err(WireFault::Malformed(_))), "{told:?}");
        };
        malformed(b"HTTP/1.1 400 Bad Request\r\n");
        malformed(&record(STDOUT, 2, b"x", 0));
        malformed(&record(STDIN, 1, b"x", 0));
        malformed(&record(END_REQUEST, 1, b"short", 0));
        malformed(&end(0, 9));
        malformed(&[end(0, REQUEST_COMPLETE), record(STDOUT, 1, b"x", 0)].concat());
        for protocol in [CANT_MULTIPLEX, OVERLOADED, UNKNOWN_ROLE] {
            let told = read(&end(0, protocol), 16);
            assert!(matches!(told, Err(WireFault::Refused(_))), "{told:?}");
        }
        // It breaks off: nothing is wrong yet, and the request is not over.
        let mut reader = RecordReader::default();
        let mut part: &[u8] = &end(0, REQUEST_COMPLETE)[..15];
        assert_eq!(reader.next(&mut part), Ok(None));
        assert!(!reader.is_over());
    }

    /// The records of a request: type and content.
    fn records(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let len = u16::from_be_bytes([bytes[4], bytes[5]]) as usize;
            assert_eq!((bytes[0], &bytes[2..4], bytes[6]), (1, &[0, 1][..], 0));
            all.push((bytes[1], bytes[8..8 + len].to_vec()));
            bytes = &bytes[8 + len..];
        }
        all
    }

    #[test]
    fn request_is_what_the_specification_says() {
        let mut head = RequestHead::new(true);
        head.add(
            |out| out.push(b'A'),
            |out| {
                out.extend_from_slice(b"bc");
                true
            },
        );
        let long = vec![b'x'; 200];
        head.add(
            |out| out.extend_from_slice(b"LONG"),
            |out| {
                out.extend_from_slice(&long);
                true
            },
        );
        head.add(|out| out.extend_from_slice(b"NONE"), |_| false);
        let mut bytes = head.finish();
        push_body(&mut bytes, b"body");
        push_body_end(&mut bytes);
        let params = [b"\x01\x02Abc\x04\x80\0\0\xc8LONG".to_vec(), long].concat();
        let expected = [
            (BEGIN_REQUEST, vec![0, 1, 1, 0, 0, 0, 0, 0]),
            (PARAMS, params),
            (PARAMS, vec![]),
            (STDIN, b"body".to_vec()),
            (STDIN, vec![]),
        ];
        assert_eq!(records(&bytes), expected);
        // Without variables one empty record ends them.
        let bytes = RequestHead::new(false).finish();
        assert_eq!(records(&bytes)[1..], [(PARAMS, vec![])]);
    }

    #[test]
    fn what_is_longer_than_a_record_takes_several() {
        let mut head = RequestHead::new(false);
        let value = vec![b'v'; 100_000];
        head.add(
            |out| out.extend_from_slice(b"BIG"),
            |out| {
                out.extend_from_slice(&value);
                true
            },
        );
        let mut bytes = head.finish();
        push_body(&mut bytes, &value);
        let all = records(&bytes);
        let sizes: Vec<_> = all
            .iter()
            .map(|(kind, content)| (*kind, content.len()))
            .collect();
        let params = 100_000 + 3 + 5;
        assert_eq!(
            sizes,
            [
                (BEGIN_REQUEST, 8),
                (PARAMS, CONTENT_BYTES_MAX),
                (PARAMS, params - CONTENT_BYTES_MAX),
                (PARAMS, 0),
                (STDIN, CONTENT_BYTES_MAX),
                (STDIN, 100_000 - CONTENT_BYTES_MAX),
            ]
        );
    }
}
