//! Finding and reading a request's head (RFC 9112 sections 2 to 6, RFC 9110 section 7).
//!
//! Two steps: a [`HeadScanner`] finds the end of the head line by line as bytes come in, each byte
//! looked at once; then [`read_head`] reads the whole head once. Strict where another reading of
//! the same bytes is possible: such a request is refused, never repaired. Most heads do not come
//! here: see `quick`.

use std::mem::MaybeUninit;

use hob_trace::Protocol;

use crate::framing::{expects_continue, read_decimal};
use crate::h1::target::{read_host, read_target};
use crate::head::{self, HeadSpan, Known, RequestHead};
use crate::limits::{HEADER_COUNT_MAX, HEADERS_INLINE, HttpLimits};
use crate::refusal::{HEAD_TOO_LONG, Refusal, TARGET_TOO_LONG, TOO_MANY_HEADERS};

/// Method, two spaces and version of a request line may have so many bytes beside the target.
const REQUEST_LINE_REST_BYTES: usize = 64;

/// How a request's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes; 0 is no body.
    Bytes(u64),
    /// Chunked coding.
    Chunked,
}

/// What the head says about the rest of the message and of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// The body's framing.
    pub length: Length,
    /// The connection may carry another request.
    pub keep_alive: bool,
    /// The client waits for `100 Continue`.
    pub expects_continue: bool,
}

/// Finds the end of a head as bytes come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadScanner {
    scanned: usize,
    line_start: usize,
    line_count: usize,
}

/// What a [`HeadScanner`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// The head goes on.
    Incomplete,
    /// An empty line of so many bytes stands before the head: to be dropped.
    Blank(usize),
    /// The head is complete and has so many bytes.
    Complete(usize),
    /// No head this server accepts begins like this.
    Refused(Refusal),
}

impl HeadScanner {
    /// True when it has looked at nothing yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.scanned == 0
    }

    /// Looks at the bytes of `input` it has not seen; `input` begins where the head begins.
    pub fn scan(&mut self, input: &[u8], limits: &HttpLimits) -> Scan {
        if self.scanned == 0 {
            match input.first() {
                None => return Scan::Incomplete,
                Some(&byte) if !head::is_token_byte(byte) && byte != b'\r' && byte != b'\n' => {
                    return Scan::Refused(Refusal::bad("the request does not begin with a method"));
                }
                Some(_) => {}
            }
        }
        // Nothing beyond the limit is looked at, so that bytes that come at once and bytes that
        // come one by one are judged alike.
        let window = &input[..input.len().min(limits.head_bytes)];
        while let Some(found) = memchr::memchr(b'\n', &window[self.scanned..]) {
            let at = self.scanned + found;
            if self.line_count == 0 && at > limits.target_bytes + REQUEST_LINE_REST_BYTES {
                return Scan::Refused(line_too_long(window));
            }
            //= rfc9112#2.2
            // A line ended by LF alone is read differently by different servers.
            if at == 0 || window[at - 1] != b'\r' {
                return Scan::Refused(Refusal::bad("a line ends with LF without CR"));
            }
            let is_empty = at - 1 == self.line_start;
            self.scanned = at + 1;
            self.line_start = at + 1;
            match (is_empty, self.line_count) {
                (true, 0) => {
                    *self = HeadScanner::default();
                    return Scan::Blank(at + 1);
                }
                (true, _) => return Scan::Complete(at + 1),
                (false, _) => self.line_count += 1,
            }
            if self.line_count > limits.header_count + 1 {
                return Scan::Refused(TOO_MANY_HEADERS);
            }
        }
        self.scanned = window.len();
        if self.line_count == 0 && window.len() > limits.target_bytes + REQUEST_LINE_REST_BYTES {
            return Scan::Refused(line_too_long(window));
        }
        if input.len() >= limits.head_bytes {
            return Scan::Refused(HEAD_TOO_LONG);
        }
        Scan::Incomplete
    }
}

/// Which part of a request line makes it too long.
//= rfc9112#3
fn line_too_long(line: &[u8]) -> Refusal {
    let start = &line[..line.len().min(REQUEST_LINE_REST_BYTES)];
    match memchr::memchr(b' ', start) {
        Some(_) => TARGET_TOO_LONG,
        None => Refusal::of(501, "the method is longer than any that is known"),
    }
}

/// Reads a complete head (`bytes` is exactly the head) into `head`, which is empty.
pub fn read_head(
    bytes: &[u8],
    head: &mut RequestHead,
    limits: &HttpLimits,
) -> Result<Framing, Refusal> {
    if limits.header_count <= HEADERS_INLINE {
        let mut slots = [const { MaybeUninit::uninit() }; HEADERS_INLINE];
        read_with(bytes, head, limits, &mut slots[..limits.header_count])
    } else {
        let mut slots = vec![MaybeUninit::uninit(); limits.header_count.min(HEADER_COUNT_MAX)];
        read_with(bytes, head, limits, &mut slots)
    }
}

fn read_with<'b>(
    bytes: &'b [u8],
    head: &mut RequestHead,
    limits: &HttpLimits,
    slots: &mut [MaybeUninit<httparse::Header<'b>>],
) -> Result<Framing, Refusal> {
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(bytes, slots) {
        Ok(httparse::Status::Complete(used)) if used == bytes.len() => {}
        Ok(_) => return Err(Refusal::bad("the request head is malformed")),
        Err(error) => {
            if let (httparse::Error::Version, Some(at)) = (error, later_minor(bytes)) {
                let mut known = bytes.to_vec();
                known[at] = b'1';
                return read_head(&known, head, limits);
            }
            keep_refused_line(bytes, head);
            return Err(refusal_of(error, bytes));
        }
    }
    fill(&parsed, bytes, head, limits)
}

/// Where the minor version stands, if it is a later one of HTTP/1: it is read as the latest known.
//= rfc9110#2.5
fn later_minor(bytes: &[u8]) -> Option<usize> {
    let line_len = memchr::memchr(b'\r', bytes)?;
    let minor_at = line_len.checked_sub(1)?;
    let is_later =
        matches!(bytes[minor_at], b'2'..=b'9') && bytes[..minor_at].ends_with(b" HTTP/1.");
    is_later.then_some(minor_at)
}

/// Takes over what was parsed of `bytes` and checks what the head says as a whole.
fn fill(
    parsed: &httparse::Request<'_, '_>,
    bytes: &[u8],
    head: &mut RequestHead,
    limits: &HttpLimits,
) -> Result<Framing, Refusal> {
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(Refusal::bad("the request line is malformed"));
    };
    head.bytes.extend_from_slice(bytes);
    head.protocol = if version == 0 {
        Protocol::Http10
    } else {
        Protocol::Http11
    };
    head.method = span_in(bytes, method.as_bytes());
    head.target = span_in(bytes, target.as_bytes());
    for header in parsed.headers.iter() {
        head.push_field(
            span_in(bytes, header.name.as_bytes()),
            span_in(bytes, header.value),
        );
    }
    if target.len() > limits.target_bytes {
        return Err(TARGET_TOO_LONG);
    }
    read_target(head)?;
    read_host(head)?;
    read_framing(head)
}

/// Where `part`, a piece of `whole`, stands in it.
pub(crate) fn span_in(whole: &[u8], part: &[u8]) -> HeadSpan {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    debug_assert!(start + part.len() <= whole.len());
    HeadSpan {
        start: start as u32,
        len: part.len() as u32,
    }
}

/// Keeps method and target of a refused head for the record, as far as they can be told apart.
pub(crate) fn keep_refused_line(bytes: &[u8], head: &mut RequestHead) {
    let line = bytes
        .split(|&byte| byte == b'\r' || byte == b'\n')
        .next()
        .unwrap_or_default();
    head.bytes.extend_from_slice(line);
    let mut words = line.split(|&byte| byte == b' ');
    if let (Some(method), Some(target)) = (words.next(), words.next()) {
        head.method = span_in(line, method);
        head.target = span_in(line, target);
    }
}

fn refusal_of(error: httparse::Error, bytes: &[u8]) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => TOO_MANY_HEADERS,
        httparse::Error::HeaderName => Refusal::bad("a field name is malformed"),
        httparse::Error::HeaderValue => Refusal::bad("a field value has a control character"),
        httparse::Error::Version => {
            let line = bytes
                .split(|&byte| byte == b'\r')
                .next()
                .unwrap_or_default();
            // What stands after the second space: a third one makes the line malformed, not its
            // version.
            let version = line.splitn(3, |&byte| byte == b' ').nth(2);
            match version {
                Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
                    if major.is_ascii_digit() && minor.is_ascii_digit() =>
                {
                    Refusal::of(505, "this HTTP version is not spoken here")
                }
                _ => Refusal::bad("the HTTP version is malformed"),
            }
        }
        _ => Refusal::bad("the request line is malformed"),
    }
}

/// Body framing, persistence, expectations.
//= rfc9112#6.3
pub(crate) fn read_framing(head: &RequestHead) -> Result<Framing, Refusal> {
    let is_11 = head.protocol == Protocol::Http11;
    let length = match (
        head.value(Known::TransferEncoding),
        head.value(Known::ContentLength),
    ) {
        (None, None) => {
            //= rfc1945#7.2.2
            if !is_11 && matches!(head.method(), b"POST" | b"PUT" | b"PATCH") {
                return Err(Refusal::of(
                    411,
                    "an HTTP/1.0 request with a body needs Content-Length",
                ));
            }
            Length::Bytes(0)
        }
        (Some(_), Some(_)) => {
            return Err(Refusal::bad(
                "Content-Length together with Transfer-Encoding",
            ));
        }
        (None, Some(_)) if head.is_repeated(Known::ContentLength) => {
            return Err(Refusal::bad("more than one Content-Length field"));
        }
        (None, Some(value)) => Length::Bytes(read_decimal(value)?),
        (Some(_), None) if !is_11 => {
            return Err(Refusal::bad("Transfer-Encoding in an HTTP/1.0 request"));
        }
        (Some(value), None) => read_transfer_encoding(head, value)?,
    };
    let is_connect = head.method() == b"CONNECT";
    //= rfc9110#9.3.6
    if is_connect && length != Length::Bytes(0) {
        return Err(Refusal::bad("CONNECT with a body"));
    }
    Ok(Framing {
        length,
        // What follows an answer to CONNECT may be meant for someone else.
        keep_alive: is_persistent(head, is_11) && !is_connect,
        expects_continue: expects_continue(head)? && is_11 && length != Length::Bytes(0),
    })
}

/// Chunked alone is understood. A list that ends with it names others before it (501), and anything
/// else leaves open where the body ends (400).
//= rfc9112#6.1
fn read_transfer_encoding(head: &RequestHead, value: &[u8]) -> Result<Length, Refusal> {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if is_chunked(value) && !head.is_repeated(Known::TransferEncoding) {
        return Ok(Length::Chunked);
    }
    let values = head.values(b"transfer-encoding");
    let codings = values.flat_map(|value| value.split(|&byte| byte == b','));
    let mut codings: Vec<_> = codings.map(<[u8]>::trim_ascii).collect();
    let ends_chunked = codings.pop().is_some_and(is_chunked);
    let is_other = |coding: &&[u8]| {
        let name = coding
            .split(|&byte| byte == b';')
            .next()
            .unwrap_or_default();
        head::is_name(name.trim_ascii_end()) && !is_chunked(name.trim_ascii_end())
    };
    //= rfc9112#6.3
    if !ends_chunked || codings.is_empty() || !codings.iter().all(is_other) {
        return Err(Refusal::bad(
            "Transfer-Encoding does not end with chunked, once",
        ));
    }
    Err(Refusal::of(501, "a transfer coding other than chunked"))
}

//= rfc9112#9.3
fn is_persistent(head: &RequestHead, is_11: bool) -> bool {
    if head.value(Known::Connection).is_none() {
        return is_11;
    }
    let has = |token: &[u8]| {
        head.values(b"connection")
            .flat_map(|value| value.split(|&byte| byte == b','))
            .any(|word| word.trim_ascii().eq_ignore_ascii_case(token))
    };
    if is_11 {
        !has(b"close")
    } else {
        has(b"keep-alive") && !has(b"close")
    }
}
