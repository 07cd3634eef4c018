//! HTTP/1 as a client reads it (RFC 9112): an answer's bytes in, piece by piece; its head, its body
//! and what follows out. Knows no socket and no time.
//!
//! ```text
//! Head --1xx--> Head        101, where a tunnel was asked for --> Tunnel
//!   |--- no body: HEAD, 204, 304 ---------------------------> Over
//!   |--- Content-Length --> Sized ------- so many bytes ----> Over
//!   |--- chunked ---------> Chunked ----- the last chunk ---> Over
//!   `--- neither ---------> ToEnd ------- the end ----------> Over
//! ```

use std::mem::MaybeUninit;

use hob_http::Fields;
use hob_http::h1::chunked::{ChunkedDecoder, Decoded};
use hob_http::limits::{ANSWER_FIELDS_MAX, ANSWER_INTERIM_MAX, HttpLimits};

/// What was asked for, as far as that says where an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// HEAD: there is no body.
    pub is_head: bool,
    /// A tunnel may be opened.
    pub tunnel: bool,
}

/// Reads an answer.
#[derive(Debug)]
pub struct AnswerReader {
    asked: Asked,
    head_bytes_max: usize,
    state: State,
    /// A head, or a line of a chunked body, that has not ended.
    held: Vec<u8>,
    /// Bytes of `held` in which no end of a head stands.
    seen: usize,
    chunked: ChunkedDecoder,
    interim: usize,
    /// The connection may be used again once the answer has ended.
    is_lasting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Sized(u64),
    Chunked,
    ToEnd,
    Tunnel,
    Over,
}

/// A piece of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// An interim answer's status and fields.
    Interim(u16, Fields),
    /// The head.
    Head(AnswerHead),
    /// Bytes of the body, or of a tunnel.
    Body(&'a [u8]),
    /// Fields after the body, without those that a connection or a framing has.
    Trailers(Fields),
}

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct AnswerHead {
    /// Status code, 200 to 599; 101 where a tunnel is open.
    pub status: u16,
    /// Fields for the client, without those of framing and connection, date and server.
    pub fields: Fields,
    /// Size of the body, when announced.
    pub body_bytes: Option<u64>,
    /// The protocol of a tunnel.
    pub upgrade: Option<Box<[u8]>>,
}

/// Why what came is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFault(pub &'static str);

/// What every answer begins with.
const VERSION: &[u8] = b"HTTP/1.";
const NO_VERSION: WireFault = WireFault("it does not begin with a version of HTTP/1");
const TOO_MANY_FIELDS: WireFault = WireFault("the head has too many fields");
/// How many fields answers usually have at most.
const FIELDS_USUAL: usize = 32;
/// The head is longer than it may be.
pub const HEAD_TOO_LONG: WireFault = WireFault("the head is longer than `head`");

impl AnswerReader {
    /// A reader that refuses heads of more than so many bytes.
    pub fn new(asked: Asked, head_bytes_max: usize) -> AnswerReader {
        AnswerReader {
            asked,
            head_bytes_max,
            state: State::Head,
            held: Vec::new(),
            seen: 0,
            chunked: ChunkedDecoder::default(),
            interim: 0,
            is_lasting: false,
        }
    }

    /// The answer has ended.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The connection may be used again: nothing but its end is left to come.
    pub fn may_rest(&self) -> bool {
        self.is_over() && self.is_lasting
    }

    /// What is left of a body whose length was announced, where that is what comes.
    pub fn left(&self) -> Option<usize> {
        match self.state {
            State::Sized(left) => Some(usize::try_from(left).unwrap_or(usize::MAX)),
            _ => None,
        }
    }

    /// Raw bytes come, up to the end.
    pub fn is_tunnel(&self) -> bool {
        self.state == State::Tunnel
    }

    /// So many bytes came of it. Returns how many of them are its own.
    pub fn take_body(&mut self, came: u64) -> usize {
        let State::Sized(left) = self.state else {
            return 0;
        };
        self.state = match left.saturating_sub(came) {
            0 => State::Over,
            left => State::Sized(left),
        };
        usize::try_from(came.min(left)).unwrap_or(usize::MAX)
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// The answer has not.
    pub fn end(&mut self) -> Result<(), WireFault> {
        match self.state {
            State::ToEnd | State::Tunnel | State::Over => {
                self.state = State::Over;
                Ok(())
            }
            State::Head | State::Sized(_) | State::Chunked => {
                Err(WireFault("the connection ended before the answer"))
            }
        }
    }

    /// The next piece; `None` when all of `input` was used, or the answer has ended.
    ///
    /// # Errors
    /// What came is no answer.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, WireFault> {
        match self.state {
            State::Over => Ok(None),
            State::Head => self.next_of_head(input),
            State::Chunked => self.next_of_chunks(input),
            _ if input.is_empty() => Ok(None),
            State::ToEnd | State::Tunnel => Ok(Some(Piece::Body(std::mem::take(input)))),
            State::Sized(_) => {
                let (piece, rest) = input.split_at(self.take_body(input.len() as u64));
                *input = rest;
                Ok(Some(Piece::Body(piece)))
            }
        }
    }

    fn next_of_head<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, WireFault> {
        if input.is_empty() {
            return Ok(None);
        }
        // Who speaks something else may wait for an answer in that: nothing ends its head.
        let begin = self.held.iter().chain(*input);
        if begin.zip(VERSION).any(|(came, wanted)| came != wanted) {
            return Err(NO_VERSION);
        }
        if self.held.is_empty()
            && let Some(len) = find_end(input, 0)
        {
            let (head, rest) = input.split_at(len);
            *input = rest;
            return self.take_head(head).map(Some);
        }
        let before = self.held.len();
        self.held.extend_from_slice(input);
        let Some(len) = find_end(&self.held, self.seen) else {
            if self.held.len() > self.head_bytes_max {
                return Err(HEAD_TOO_LONG);
            }
            self.seen = self.held.len();
            *input = &[];
            return Ok(None);
        };
        *input = &input[len - before..];
        let mut head = std::mem::take(&mut self.held);
        head.truncate(len);
        self.seen = 0;
        self.take_head(&head).map(Some)
    }

    fn take_head<'a>(&mut self, bytes: &[u8]) -> Result<Piece<'a>, WireFault> {
        if bytes.len() > self.head_bytes_max {
            return Err(HEAD_TOO_LONG);
        }
        let draft = Draft::read(bytes)?;
        let Draft {
            status,
            fields,
            body_bytes,
            is_chunked,
            is_lasting,
            upgrade,
        } = draft;
        if status == 101 && !self.asked.tunnel {
            return Err(WireFault("it opened a tunnel that was not asked for"));
        }
        if status < 200 && status != 101 {
            self.interim += 1;
            return match self.interim > ANSWER_INTERIM_MAX {
                true => Err(WireFault("too many interim answers")),
                false => Ok(Piece::Interim(status, fields)),
            };
        }
        self.is_lasting = is_lasting;
        //= rfc9112#6.3
        self.state = match body_bytes {
            _ if status == 101 => State::Tunnel,
            _ if self.asked.is_head || matches!(status, 204 | 304) => State::Over,
            _ if is_chunked => State::Chunked,
            Some(0) => State::Over,
            Some(bytes) => State::Sized(bytes),
            None => State::ToEnd,
        };
        if self.state == State::ToEnd {
            self.is_lasting = false;
        }
        Ok(Piece::Head(AnswerHead {
            status,
            fields,
            body_bytes,
            upgrade: upgrade.filter(|_| status == 101),
        }))
    }

    fn next_of_chunks<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, WireFault> {
        const BAD: WireFault = WireFault("the body is not in chunks, as its head says");
        let limits = HttpLimits::default();
        loop {
            if !self.held.is_empty() {
                // A line that has begun: what belongs to it is added, and it is read alone.
                let end = memchr::memchr(b'\n', input).map_or(input.len(), |at| at + 1);
                let (more, rest) = input.split_at(end);
                self.held.extend_from_slice(more);
                *input = rest;
                let (used, decoded) = self.chunked.read(&self.held, &limits);
                self.held.drain(..used);
                match decoded {
                    Decoded::End => return self.end_chunks().map(Some),
                    Decoded::NeedMore if self.held.is_empty() => continue,
                    Decoded::NeedMore if input.is_empty() => return Ok(None),
                    Decoded::NeedMore | Decoded::Data(_) | Decoded::Refused(_) => return Err(BAD),
                }
            }
            let (used, decoded) = self.chunked.read(input, &limits);
            let (piece, rest) = input.split_at(used);
            *input = rest;
            match decoded {
                Decoded::Data(count) => {
                    return Ok(Some(Piece::Body(&piece[used - count..])));
                }
                Decoded::End => return self.end_chunks().map(Some),
                Decoded::NeedMore => {
                    self.held.extend_from_slice(rest);
                    *input = &[];
                    return Ok(None);
                }
                Decoded::Refused(_) => return Err(BAD),
            }
        }
    }

    fn end_chunks<'a>(&mut self) -> Result<Piece<'a>, WireFault> {
        const BAD: WireFault = WireFault("a trailer is malformed");
        self.state = State::Over;
        let trailers = self.chunked.trailers().map_err(|_| BAD)?;
        let mut fields = Fields::new();
        for (name, value) in &trailers {
            if is_passed(name) && !fields.add(name, value) {
                return Err(BAD);
            }
        }
        Ok(Piece::Trailers(fields))
    }
}

/// The length of a head with its empty line; no end begins before `from`, except one that goes on
/// there.
fn find_end(bytes: &[u8], from: usize) -> Option<usize> {
    let from = from.saturating_sub(3);
    memchr::memmem::find(&bytes[from..], b"\r\n\r\n").map(|at| from + at + 4)
}

/// What a head says.
struct Draft {
    status: u16,
    fields: Fields,
    body_bytes: Option<u64>,
    is_chunked: bool,
    is_lasting: bool,
    upgrade: Option<Box<[u8]>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    ContentLength,
    TransferEncoding,
    Connection,
    Upgrade,
    /// The connection's, or the server's own.
    Dropped,
    Passed,
}

/// Whether a field is for the client, and not of framing and connection, nor what hob says itself.
pub(super) fn is_passed(name: &[u8]) -> bool {
    role(name) == Role::Passed
}

fn role(name: &[u8]) -> Role {
    const NAMED: &[(&[u8], Role)] = &[
        (b"content-length", Role::ContentLength),
        (b"transfer-encoding", Role::TransferEncoding),
        (b"connection", Role::Connection),
        (b"keep-alive", Role::Dropped),
        (b"proxy-connection", Role::Dropped),
        (b"te", Role::Dropped),
        (b"trailer", Role::Dropped),
        (b"upgrade", Role::Upgrade),
        (b"date", Role::Dropped),
        (b"server", Role::Dropped),
    ];
    let is_it = |(known, _): &&(&[u8], Role)| known.eq_ignore_ascii_case(name);
    NAMED
        .iter()
        .find(is_it)
        .map_or(Role::Passed, |(_, role)| *role)
}

impl Draft {
    fn read(bytes: &[u8]) -> Result<Draft, WireFault> {
        // Few answers have many fields.
        let mut few = [const { MaybeUninit::uninit() }; FIELDS_USUAL];
        match Draft::read_with(bytes, &mut few) {
            Err(TOO_MANY_FIELDS) => {
                let mut many = [const { MaybeUninit::uninit() }; ANSWER_FIELDS_MAX];
                Draft::read_with(bytes, &mut many)
            }
            read => read,
        }
    }

    fn read_with<'b>(
        bytes: &'b [u8],
        slots: &mut [MaybeUninit<httparse::Header<'b>>],
    ) -> Result<Draft, WireFault> {
        let mut parsed = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let read = config.parse_response_with_uninit_headers(&mut parsed, bytes, slots);
        let status = match read {
            Ok(httparse::Status::Complete(used)) if used == bytes.len() => parsed.code,
            Ok(_) => None,
            Err(httparse::Error::TooManyHeaders) => {
                return Err(TOO_MANY_FIELDS);
            }
            Err(error) => return Err(fault_of(error)),
        };
        let status = status
            .filter(|status| (100..600).contains(status))
            .ok_or(WireFault("the status is no number from 100 to 599"))?;
        let mut draft = Draft {
            status,
            fields: Fields::new(),
            body_bytes: None,
            is_chunked: false,
            is_lasting: parsed.version == Some(1),
            upgrade: None,
        };
        let mut of_connection: Vec<&[u8]> = Vec::new();
        for header in parsed.headers.iter() {
            let (name, value) = (header.name.as_bytes(), header.value.trim_ascii());
            match role(name) {
                Role::Passed => {
                    if !draft.fields.add(name, value) {
                        return Err(WireFault("a field holds a control character"));
                    }
                }
                Role::ContentLength => draft.content_length(value)?,
                //= rfc9112#6.1
                Role::TransferEncoding if parsed.version == Some(0) || draft.is_chunked => {
                    return Err(WireFault("its framing can be read in two ways"));
                }
                Role::TransferEncoding if value.eq_ignore_ascii_case(b"chunked") => {
                    draft.is_chunked = true;
                }
                Role::TransferEncoding => {
                    return Err(WireFault(
                        "it uses a transfer coding that was not asked for",
                    ));
                }
                Role::Connection => {
                    let options = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
                    for option in options {
                        match option {
                            _ if option.eq_ignore_ascii_case(b"close") => draft.is_lasting = false,
                            _ if option.eq_ignore_ascii_case(b"keep-alive") => {
                                draft.is_lasting = true;
                            }
                            _ => of_connection.push(option),
                        }
                    }
                }
                Role::Upgrade => draft.upgrade = Some(value.into()),
                Role::Dropped => {}
            }
        }
        if draft.is_chunked && draft.body_bytes.is_some() {
            return Err(WireFault("its framing can be read in two ways"));
        }
        for name in of_connection {
            draft.fields.remove(name);
        }
        Ok(draft)
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), WireFault> {
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let bytes = std::str::from_utf8(value).ok().filter(|_| is_number);
        let bytes = bytes
            .and_then(|digits| digits.parse().ok())
            .ok_or(WireFault("Content-Length is no number of bytes"))?;
        if self.body_bytes.is_some_and(|before| before != bytes) {
            return Err(WireFault("it has two different Content-Lengths"));
        }
        self.body_bytes = Some(bytes);
        Ok(())
    }
}

fn fault_of(error: httparse::Error) -> WireFault {
    if error == httparse::Error::Version {
        return NO_VERSION;
    }
    WireFault(match error {
        httparse::Error::HeaderName => "the name of a field is malformed",
        httparse::Error::HeaderValue => "a field holds a control character",
        httparse::Error::Status | httparse::Error::Token => "the status line is malformed",
        _ => "the head is malformed",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1024;

    /// What an answer is made of, read in pieces of so many bytes: head, body, trailers, whether
    /// it has ended and may rest.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Read {
        interim: Vec<u16>,
        status: u16,
        fields: String,
        announced: Option<u64>,
        body: Vec<u8>,
        trailers: String,
        is_over: bool,
        may_rest: bool,
    }

    fn read(asked: Asked, bytes: &[u8], step: usize) -> Result<Read, WireFault> {
        let mut reader = AnswerReader::new(asked, MAX);
        let mut all = Read::default();
        let lines = |fields: &Fields| String::from_utf8(fields.lines().to_vec()).unwrap();
        for mut input in bytes.chunks(step) {
            while let Some(piece) = reader.next(&mut input)? {
                match piece {
                    Piece::Interim(status, _) => all.interim.push(status),
                    Piece::Head(head) => {
                        all.status = head.status;
                        all.fields = lines(&head.fields);
                        all.announced = head.body_bytes;
                    }
                    Piece::Body(bytes) => all.body.extend_from_slice(bytes),
                    Piece::Trailers(fields) => all.trailers = lines(&fields),
                }
            }
            all.may_rest = reader.may_rest() && input.is_empty();
        }
        all.is_over = reader.is_over();
        Ok(all)
    }

    /// The same in pieces of every size.
    fn answer(asked: Asked, bytes: &[u8]) -> Read {
        let whole = read(asked, bytes, bytes.len()).unwrap();
        for step in 1..bytes.len() {
            let pieces = read(asked, bytes, step).unwrap();
            assert_eq!(pieces, whole, "{step}");
        }
        whole
    }

    #[test]
    fn bodies_end_as_their_heads_say() {
        let sized = answer(
            Asked::default(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\nServer: x\r\n\r\nhello",
        );
        assert_eq!((sized.status, &*sized.body), (200, &b"hello"[..]));
        assert_eq!((&*sized.fields, sized.announced), ("X-A: b\r\n", Some(5)));
        assert!(sized.is_over && sized.may_rest);
        let chunked = answer(
            Asked::default(),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\
              Grpc-Status: 0\r\nConnection: x\r\n\r\n",
        );
        assert_eq!(&*chunked.body, b"abcde");
        assert_eq!(&*chunked.trailers, "Grpc-Status: 0\r\n");
        assert!(chunked.is_over && chunked.may_rest);
        let open = answer(Asked::default(), b"HTTP/1.0 200 OK\r\n\r\nall of it");
        assert_eq!(&*open.body, b"all of it");
        assert!(!open.is_over && !open.may_rest);
    }

    #[test]
    fn some_answers_have_no_body_whatever_they_announce() {
        let head = Asked {
            is_head: true,
            tunnel: false,
        };
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let answered = answer(head, bytes);
        assert!(answered.is_over && answered.announced == Some(5));
        for status in ["204 No Content", "304 Not Modified"] {
            let bytes = format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n");
            assert!(answer(Asked::default(), bytes.as_bytes()).is_over);
        }
        let empty = answer(
            Asked::default(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        );
        assert!(empty.is_over && empty.may_rest);
    }

    #[test]
    fn interim_answers_come_before_and_a_tunnel_only_where_one_was_asked_for() {
        let hints = answer(
            Asked::default(),
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        );
        assert_eq!((&*hints.interim, hints.status), (&[100, 103][..], 200));
        let open = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                     Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nraw";
        let tunnel = Asked {
            is_head: false,
            tunnel: true,
        };
        let opened = answer(tunnel, open);
        assert_eq!((opened.status, &*opened.body), (101, &b"raw"[..]));
        assert_eq!(&*opened.fields, "Sec-WebSocket-Accept: x\r\n");
        read(Asked::default(), open, 1).unwrap_err();
        let flood = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(ANSWER_INTERIM_MAX + 1);
        read(Asked::default(), &flood, 100).unwrap_err();
    }

    #[test]
    fn connection_rests_only_after_a_clean_end() {
        let rests = |bytes: &[u8]| answer(Asked::default(), bytes).may_rest;
        assert!(rests(
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"
        ));
        for wrong in [
            &b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"[..],
            b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        ] {
            assert!(!rests(wrong), "{}", wrong.escape_ascii());
        }
        let more = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1";
        assert!(!read(Asked::default(), more, more.len()).unwrap().may_rest);
    }

    #[test]
    fn fields_of_the_connection_are_taken_out() {
        let named = answer(
            Asked::default(),
            b"HTTP/1.1 200 OK\r\nConnection: X-Secret, close\r\nX-Secret: 1\r\nKeep-Alive: 5\r\n\
              Set-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
        );
        assert_eq!(&*named.fields, "Set-Cookie: a\r\nSet-Cookie: b\r\n");
    }

    #[test]
    fn what_could_be_read_in_two_ways_or_not_at_all_is_refused() {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(MAX));
        for wrong in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX : x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
            b"HTTP/1.1 099 Low\r\n\r\n",
            b"HTTP/2 200\r\n\r\n",
            b"SSH-2.0-OpenSSH\r\n",
            b"\x15\x03\x01\0\x02\x02\x46",
            b"\r\nHTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            long.as_bytes(),
        ] {
            for step in [1, 7, wrong.len()] {
                let refused = read(Asked::default(), wrong, step);
                assert!(refused.is_err(), "{} {step}", wrong.escape_ascii());
            }
        }
    }

    #[test]
    fn end_of_the_connection_ends_only_what_has_no_other_end() {
        let after = |bytes: &[u8]| {
            let mut reader = AnswerReader::new(Asked::default(), MAX);
            let mut input = bytes;
            while reader.next(&mut input).unwrap().is_some() {}
            reader.end()
        };
        after(b"HTTP/1.1 200 OK\r\n\r\nso far").unwrap();
        for short in [
            &b""[..],
            b"HTTP/1.1 200",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        ] {
            after(short).unwrap_err();
        }
    }
}
