//! The head of a program's output: bytes in, a status, fields and a place to go out (RFC 3875
//! section 6).
//!
//! ```text
//! [HTTP/1.x SP status [SP reason] NL]      `nph-` programs; a head of 1xx is passed over
//! *(name ":" value NL)                     NL is LF or CRLF, no line goes on in the next
//! NL
//! body
//! ```
//!
//! What describes the connection is taken out, whoever prints it: the answer is framed by the
//! server, in whatever protocol the client speaks.

use std::fmt;

use hob_http::Fields;
use hob_http::head::is_name;

/// What a program says of its answer before the body.
#[derive(Debug, PartialEq, Eq)]
pub struct CgiHead {
    /// Status code, 200 to 599.
    pub status: u16,
    /// Fields for the client, without those of framing, date, server and CGI itself.
    pub fields: Fields,
    /// A path and query of this server that answers instead (RFC 3875 section 6.2.2).
    pub local: Option<Box<[u8]>>,
    /// Size of the body, when announced.
    pub body_bytes: Option<u64>,
    /// The body comes in chunks and has to be decoded.
    pub is_chunked: bool,
}

/// Why output cannot be an answer: the program's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHead {
    /// The reason in words, for the record.
    pub reason: &'static str,
    /// The line that is wrong, cut to [`SHOWN_BYTES_MAX`]; empty when it is no line's fault.
    pub line: Box<[u8]>,
}

/// Bytes of a wrong line that are kept.
pub const SHOWN_BYTES_MAX: usize = 200;

/// Reads a head that arrives in pieces.
#[derive(Debug)]
pub struct HeadReader {
    bytes_max: usize,
    /// Bytes of interim heads, which are passed over.
    begin: usize,
    /// Bytes in which no end of the head stands.
    seen: usize,
}

/// What a [`HeadReader`] made of the output so far.
#[derive(Debug, PartialEq, Eq)]
pub enum CgiHeadProgress {
    /// More output is needed.
    NeedMore,
    /// The head, and how many bytes it took; the body follows.
    Head(CgiHead, usize),
    /// It is none.
    Refused(BadHead),
}

impl HeadReader {
    /// A reader that refuses heads of more than `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> HeadReader {
        HeadReader {
            bytes_max,
            begin: 0,
            seen: 0,
        }
    }

    /// Looks at all output so far: what was seen before, and perhaps more.
    pub fn read(&mut self, output: &[u8]) -> CgiHeadProgress {
        loop {
            let begin = self.begin;
            let from = self.seen.max(begin);
            let Some(end) = find_end(&output[begin..], from - begin) else {
                self.seen = output.len();
                if output.len() > self.bytes_max {
                    return CgiHeadProgress::Refused(BadHead::of(TOO_LONG));
                }
                return CgiHeadProgress::NeedMore;
            };
            let end = begin + end;
            if end > self.bytes_max {
                return CgiHeadProgress::Refused(BadHead::of(TOO_LONG));
            }
            match parse(&output[begin..end]) {
                Ok(Some(head)) => return CgiHeadProgress::Head(head, end),
                Ok(None) => (self.begin, self.seen) = (end, end),
                Err(bad) => return CgiHeadProgress::Refused(bad),
            }
        }
    }

    /// Why output that ended here has no head.
    pub fn at_end(&self, output: &[u8]) -> BadHead {
        if output.iter().all(u8::is_ascii_whitespace) {
            return BadHead::of("the program ended without output");
        }
        let first = output.split(|&byte| byte == b'\n').next();
        BadHead {
            reason: "the program's output ended before the empty line that ends a head",
            line: shown(first.unwrap_or_default()),
        }
    }
}

const TOO_LONG: &str = "limits: the head of the program's output is longer than `head`";

impl BadHead {
    /// It is longer than its limit.
    pub fn is_too_long(&self) -> bool {
        self.reason == TOO_LONG
    }

    fn of(reason: &'static str) -> BadHead {
        BadHead {
            reason,
            line: Box::default(),
        }
    }

    fn at(reason: &'static str, line: &[u8]) -> BadHead {
        BadHead {
            reason,
            line: shown(line),
        }
    }
}

impl fmt::Display for BadHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)?;
        if self.line.is_empty() {
            return Ok(());
        }
        write!(
            f,
            ": {}",
            String::from_utf8_lossy(&self.line).escape_debug()
        )
    }
}

impl std::error::Error for BadHead {}

fn shown(line: &[u8]) -> Box<[u8]> {
    line[..line.len().min(SHOWN_BYTES_MAX)].into()
}

/// The length of a head with its empty line. No end begins before `from`, except one that goes on
/// there.
fn find_end(output: &[u8], from: usize) -> Option<usize> {
    if output.starts_with(b"\n") {
        return Some(1);
    }
    if output.starts_with(b"\r\n") {
        return Some(2);
    }
    let from = from.saturating_sub(2);
    memchr::memchr_iter(b'\n', &output[from..]).find_map(|at| {
        let after = from + at + 1;
        match output[after..] {
            [b'\n', ..] => Some(after + 1),
            [b'\r', b'\n', ..] => Some(after + 2),
            _ => None,
        }
    })
}

/// Reads a whole head. `None` is an interim one, after which another follows.
fn parse(head: &[u8]) -> Result<Option<CgiHead>, BadHead> {
    let mut lines = head
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .take_while(|line| !line.is_empty())
        .peekable();
    let mut draft = Draft::default();
    if let Some(line) = lines.next_if(|line| line.starts_with(b"HTTP/")) {
        match status_line(line)? {
            100..200 => return Ok(None),
            status => draft.status = Some(status),
        }
    } else if lines.peek().is_none() {
        return Err(BadHead::of(
            "the program's output begins with an empty line, where a head should stand",
        ));
    }
    for line in lines {
        draft.add(line)?;
    }
    draft.finish().map(Some)
}

/// Reads the fields of a head that came apart from its body: lines without an empty one at the end,
/// and a status, or 0 where the fields say it.
///
/// # Errors
/// Why they are none.
pub fn read_fields(status: u16, lines: &[u8]) -> Result<CgiHead, BadHead> {
    let mut draft = Draft {
        status: (status != 0).then_some(status),
        ..Draft::default()
    };
    for line in lines.split(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\r").unwrap_or(line) {
            b"" => {}
            line => draft.add(line)?,
        }
    }
    draft.finish()
}

/// A head while its lines are read.
#[derive(Default)]
struct Draft {
    status: Option<u16>,
    is_status_field: bool,
    fields: Fields,
    has_type: bool,
    location: Option<Box<[u8]>>,
    body_bytes: Option<u64>,
    is_chunked: bool,
    /// Names of fields that are the connection's, says its `Connection` field.
    of_connection: Vec<Box<[u8]>>,
}

/// What becomes of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CgiFieldRole {
    Status,
    Location,
    ContentType,
    ContentLength,
    TransferEncoding,
    Connection,
    /// Taken out: the server's own, or the connection's.
    Dropped,
    /// For the client.
    Passed,
}

fn role(name: &[u8]) -> CgiFieldRole {
    //= rfc3875#6.3
    const NAMED: &[(&[u8], CgiFieldRole)] = &[
        (b"status", CgiFieldRole::Status),
        (b"location", CgiFieldRole::Location),
        (b"content-type", CgiFieldRole::ContentType),
        (b"content-length", CgiFieldRole::ContentLength),
        (b"transfer-encoding", CgiFieldRole::TransferEncoding),
        (b"connection", CgiFieldRole::Connection),
        (b"keep-alive", CgiFieldRole::Dropped),
        (b"proxy-connection", CgiFieldRole::Dropped),
        (b"te", CgiFieldRole::Dropped),
        (b"trailer", CgiFieldRole::Dropped),
        (b"upgrade", CgiFieldRole::Dropped),
        (b"date", CgiFieldRole::Dropped),
        (b"server", CgiFieldRole::Dropped),
    ];
    let named = NAMED
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    match named {
        Some((_, role)) => *role,
        // For the server, and this one knows none.
        //= rfc3875#6.3.5
        None if starts_with(name, b"x-cgi-") => CgiFieldRole::Dropped,
        None => CgiFieldRole::Passed,
    }
}

pub(crate) fn starts_with(name: &[u8], prefix: &[u8]) -> bool {
    name.get(..prefix.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
}

impl Draft {
    fn add(&mut self, line: &[u8]) -> Result<(), BadHead> {
        const NO_FIELD: &str = "a line of the head is no field (`Name: value`)";
        let colon = memchr::memchr(b':', line).ok_or_else(|| BadHead::at(NO_FIELD, line))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !is_name(name) {
            return Err(BadHead::at(NO_FIELD, line));
        }
        if line.contains(&0) {
            return Err(BadHead::at("a field of the head holds a NUL byte", line));
        }
        let twice = |reason| Err(BadHead::at(reason, line));
        match role(name) {
            //= rfc3875#6.3
            CgiFieldRole::Status if self.is_status_field => {
                return twice("the head has two statuses");
            }
            CgiFieldRole::Status => {
                let status = status_code(value, line)?;
                if status < 200 {
                    return Err(BadHead::at("an answer cannot end with status 1xx", line));
                }
                (self.status, self.is_status_field) = (Some(status), true);
            }
            CgiFieldRole::Location if self.location.is_some() => {
                return twice("the head has two locations");
            }
            CgiFieldRole::Location if value.is_empty() => {
                return Err(BadHead::at("Location is empty", line));
            }
            CgiFieldRole::Location => self.location = Some(value.into()),
            CgiFieldRole::ContentType if self.has_type => {
                return twice("the head has two content types");
            }
            CgiFieldRole::ContentType if value.is_empty() => {}
            CgiFieldRole::ContentType => {
                self.has_type = true;
                self.pass(name, value, line)?;
            }
            CgiFieldRole::ContentLength => self.content_length(value, line)?,
            CgiFieldRole::TransferEncoding if value.eq_ignore_ascii_case(b"chunked") => {
                self.is_chunked = true;
            }
            CgiFieldRole::TransferEncoding => {
                return Err(BadHead::at("the program uses a transfer coding", line));
            }
            CgiFieldRole::Connection => {
                let names = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
                self.of_connection.extend(names.map(Box::from));
            }
            CgiFieldRole::Dropped => {}
            CgiFieldRole::Passed => self.pass(name, value, line)?,
        }
        Ok(())
    }

    fn pass(&mut self, name: &[u8], value: &[u8], line: &[u8]) -> Result<(), BadHead> {
        if self.fields.add(name, value) {
            return Ok(());
        }
        let reason = "a field of the head holds a control character";
        Err(BadHead::at(reason, line))
    }

    fn content_length(&mut self, value: &[u8], line: &[u8]) -> Result<(), BadHead> {
        let bytes = decimal(value)
            .ok_or_else(|| BadHead::at("Content-Length is no number of bytes", line))?;
        if self.body_bytes.is_some_and(|before| before != bytes) {
            return Err(BadHead::at(
                "the head has two different Content-Lengths",
                line,
            ));
        }
        self.body_bytes = Some(bytes);
        Ok(())
    }

    fn finish(mut self) -> Result<CgiHead, BadHead> {
        for name in std::mem::take(&mut self.of_connection) {
            self.fields.remove(&name);
        }
        let mut local = None;
        match self.location.take() {
            //= rfc3875#6.2.2
            Some(place) if self.status.is_none() && is_local(&place) => local = Some(place),
            //= rfc3875#6.2.3
            Some(place) => {
                self.status.get_or_insert(302);
                self.pass(b"Location", &place, &place)?;
            }
            None => {}
        }
        Ok(CgiHead {
            status: self.status.unwrap_or(200),
            fields: self.fields,
            local,
            body_bytes: self.body_bytes.filter(|_| !self.is_chunked),
            is_chunked: self.is_chunked,
        })
    }
}

/// A path of this server. What has a fragment is for the client, who alone can follow it; two
/// slashes would name another host.
fn is_local(place: &[u8]) -> bool {
    place.starts_with(b"/")
        && !place.starts_with(b"//")
        && place
            .iter()
            .all(|&byte| byte != b'#' && byte != b'\\' && byte.is_ascii_graphic())
}

/// `HTTP/1.1 404 Not Found`
fn status_line(line: &[u8]) -> Result<u16, BadHead> {
    let rest = line.iter().position(|&byte| byte == b' ');
    let rest = rest.map_or(&b""[..], |at| line[at..].trim_ascii());
    status_code(rest, line)
}

/// `404 Not Found`, or the number alone. The words are not passed on: later versions of HTTP have
/// no place for them.
fn status_code(value: &[u8], line: &[u8]) -> Result<u16, BadHead> {
    let digits = value.split(|byte| byte.is_ascii_whitespace()).next();
    let digits = digits.filter(|digits| digits.len() == 3);
    let status = digits
        .and_then(decimal)
        .and_then(|code| u16::try_from(code).ok());
    status
        .filter(|status| (100..600).contains(status))
        .ok_or_else(|| BadHead::at("the status is no number from 200 to 599", line))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
