//! Heads: a request's as one buffer with offsets, a response's as ready-made lines.
//!
//! Both keep their bytes in one allocation. HTTP/1 fills a [`RequestHead`] straight from the
//! socket's bytes; HTTP/2 appends decoded names and values to the same buffer.

use std::fmt;

use hob_trace::Protocol;
use hob_trace::watch::FieldsOf;

use crate::limits::{HEAD_KEPT_BYTES_MAX, HEADS_BYTES_MAX};

/// A piece of a head's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadSpan {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl HeadSpan {
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        bytes
            .get(start..start + self.len as usize)
            .unwrap_or_default()
    }

    /// Where it stands in its buffer.
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        let start = self.start as usize;
        start..start + self.len as usize
    }
}

/// A request's head: one counted buffer and offsets into it.
#[derive(PartialEq, Eq)]
pub struct RequestHead {
    pub(crate) bytes: Vec<u8>,
    pub(crate) method: HeadSpan,
    pub(crate) target: HeadSpan,
    pub(crate) path: HeadSpan,
    pub(crate) query: Option<HeadSpan>,
    pub(crate) host: HeadSpan,
    pub(crate) protocol: Protocol,
    /// What an extended CONNECT asks to speak.
    pub(crate) connect_protocol: Option<HeadSpan>,
    pub(crate) fields: Vec<(HeadSpan, HeadSpan)>,
    /// Index + 1 of the first field with a known name; 0 is absent.
    known: [u16; Known::COUNT],
    /// Bit per known name: it came more than once.
    repeated: u64,
}

impl FieldsOf for RequestHead {
    fn any(&self, name: &str, is_accepted: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.values(name.as_bytes()).any(is_accepted)
    }
}

impl RequestHead {
    /// A head of which nothing is known.
    pub fn empty() -> RequestHead {
        RequestHead {
            bytes: Vec::new(),
            method: HeadSpan::default(),
            target: HeadSpan::default(),
            path: HeadSpan::default(),
            query: None,
            host: HeadSpan::default(),
            protocol: Protocol::Http11,
            connect_protocol: None,
            fields: Vec::new(),
            known: [0; Known::COUNT],
            repeated: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        if self.bytes.capacity() > HEAD_KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.fields.clear();
        self.method = HeadSpan::default();
        self.target = HeadSpan::default();
        self.path = HeadSpan::default();
        self.query = None;
        self.host = HeadSpan::default();
        self.protocol = Protocol::Http11;
        self.connect_protocol = None;
        self.known = [0; Known::COUNT];
        self.repeated = 0;
    }

    /// True when it may be held beside the heads of other requests of its connection.
    pub(crate) fn has_room_beside<'h>(
        &self,
        others: impl Iterator<Item = &'h RequestHead>,
    ) -> bool {
        let own = self.bytes.capacity();
        if own <= HEAD_KEPT_BYTES_MAX {
            return true;
        }
        let others: usize = others.map(|head| head.bytes.capacity()).sum();
        others == 0 || own + others <= HEADS_BYTES_MAX
    }

    /// The head of a request for another target with the same fields, but for those that speak of
    /// a body, and those `is_dropped` names.
    pub(crate) fn detour(
        &self,
        method: &[u8],
        target: &[u8],
        is_dropped: impl Fn(Known) -> bool,
    ) -> RequestHead {
        let mut head = RequestHead::empty();
        head.bytes.clone_from(&self.bytes);
        head.host = self.host;
        head.protocol = self.protocol;
        for &(name, value) in &self.fields {
            let text = name.of(&self.bytes);
            let is_dropped = Known::of(text).is_some_and(&is_dropped);
            if !is_dropped && !speaks_of_body(text) {
                head.push_field(name, value);
            }
        }
        head.method = head.append(method);
        head.target = head.append(target);
        head.path = head.target;
        if let Some(mark) = memchr::memchr(b'?', target) {
            let (path, query) = (&target[..mark], &target[mark + 1..]);
            head.path.len = path.len() as u32;
            head.query = Some(HeadSpan {
                start: head.path.start + head.path.len + 1,
                len: query.len() as u32,
            });
        }
        head
    }

    fn append(&mut self, text: &[u8]) -> HeadSpan {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(text);
        HeadSpan {
            start,
            len: text.len() as u32,
        }
    }

    pub(crate) fn push_field(&mut self, name: HeadSpan, value: HeadSpan) {
        self.push_known(Known::of(name.of(&self.bytes)), name, value);
    }

    /// Adds a field whose name has been looked up.
    #[inline]
    pub(crate) fn push_known(&mut self, known: Option<Known>, name: HeadSpan, value: HeadSpan) {
        if let Some(known) = known {
            let slot = &mut self.known[known as usize];
            if *slot != 0 {
                self.repeated |= 1 << known as u32;
            } else {
                debug_assert!(self.fields.len() < crate::limits::HEADER_COUNT_MAX);
                *slot = (self.fields.len() + 1) as u16;
            }
        }
        self.fields.push((name, value));
    }

    /// Where name and value of the first field with a known name stand.
    pub(crate) fn field_mut(&mut self, known: Known) -> Option<&mut (HeadSpan, HeadSpan)> {
        let index = usize::from(self.known[known as usize]).checked_sub(1)?;
        self.fields.get_mut(index)
    }

    /// The method as sent; methods are case-sensitive.
    pub fn method(&self) -> &[u8] {
        self.method.of(&self.bytes)
    }

    /// The request target as sent.
    pub fn target(&self) -> &[u8] {
        self.target.of(&self.bytes)
    }

    /// The path of the target as sent (still percent-encoded); `*` for the asterisk form, empty for
    /// the authority form.
    pub fn path(&self) -> &[u8] {
        self.path.of(&self.bytes)
    }

    /// What follows the first `?` of the target; `None` without one.
    pub fn query(&self) -> Option<&[u8]> {
        self.query.map(|span| span.of(&self.bytes))
    }

    /// Host and port the request is for: the target's own, else `Host`; empty when there was none.
    pub fn host(&self) -> &[u8] {
        self.host.of(&self.bytes)
    }

    /// HTTP version of the request.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// What an extended CONNECT (RFC 8441) asks to speak through its tunnel, such as `websocket`.
    /// `None` for every other request.
    pub fn connect_protocol(&self) -> Option<&[u8]> {
        self.connect_protocol.map(|span| span.of(&self.bytes))
    }

    /// The protocol that the client would rather speak over this connection: the first of
    /// `Upgrade`, where `Connection` names that. `None` before HTTP/1.1, and after it, where a
    /// tunnel is asked for by [`RequestHead::connect_protocol`].
    //= rfc9110#7.8
    pub fn upgrade(&self) -> Option<&[u8]> {
        let value = self.value(Known::Upgrade)?;
        let options = self.values(Known::Connection.name().as_bytes());
        let is_asked = options
            .flat_map(|value| value.split(|&byte| byte == b','))
            .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
        if !is_asked || self.protocol != Protocol::Http11 {
            return None;
        }
        let first = value.split(|&byte| byte == b',').next()?.trim_ascii();
        let name = first.split(|&byte| byte == b'/').next()?;
        is_name(name).then_some(first)
    }

    /// All fields in the order sent; names are as sent, compare them without case.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|(name, value)| (name.of(&self.bytes), value.of(&self.bytes)))
    }

    /// The first value of a known field; costs one array look-up.
    pub fn value(&self, known: Known) -> Option<&[u8]> {
        match self.known[known as usize] {
            0 => None,
            index => self
                .fields
                .get(index as usize - 1)
                .map(|(_, value)| value.of(&self.bytes)),
        }
    }

    /// True when a known field came more than once.
    pub fn is_repeated(&self, known: Known) -> bool {
        self.repeated & (1 << known as u32) != 0
    }

    /// All values of a field, by name without case.
    pub fn values<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.fields()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// All values of a known field joined by `, ` (RFC 9110 section 5.3); `None` when absent.
    pub fn joined(&self, known: Known) -> Option<std::borrow::Cow<'_, [u8]>> {
        let first = self.value(known)?;
        if !self.is_repeated(known) {
            return Some(first.into());
        }
        let all: Vec<&[u8]> = self.values(known.name().as_bytes()).collect();
        Some(all.join(&b", "[..]).into())
    }

    /// Bytes of the head as sent.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }
}

impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {}",
            self.method().escape_ascii(),
            self.target().escape_ascii(),
            self.protocol.word()
        )
    }
}

macro_rules! known {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        /// Request fields with an index of their own in every head.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Known { $($(#[$doc])* $variant),+ }

        impl Known {
            const NAMES: &'static [&'static str] = &[$($text),+];
            /// How many there are.
            pub const COUNT: usize = Self::NAMES.len();
            #[cfg(test)]
            const ALL: [Known; Self::COUNT] = [$(Known::$variant),+];
            // `RequestHead::repeated` has one bit for each.
            const _FITS: () = assert!(Self::COUNT <= 64);

            /// The field's name, in lower case.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}

known! {
    /// `Accept`
    Accept = "accept",
    /// `Accept-Encoding`
    AcceptEncoding = "accept-encoding",
    /// `Authorization`
    Authorization = "authorization",
    /// `Connection`
    Connection = "connection",
    /// `Content-Length`
    ContentLength = "content-length",
    /// `Content-Type`
    ContentType = "content-type",
    /// `Cookie`
    Cookie = "cookie",
    /// `Expect`
    Expect = "expect",
    /// `Host`
    Host = "host",
    /// `If-Match`
    IfMatch = "if-match",
    /// `If-Modified-Since`
    IfModifiedSince = "if-modified-since",
    /// `If-None-Match`
    IfNoneMatch = "if-none-match",
    /// `If-Range`
    IfRange = "if-range",
    /// `If-Unmodified-Since`
    IfUnmodifiedSince = "if-unmodified-since",
    /// `Range`
    Range = "range",
    /// `Referer`
    Referer = "referer",
    /// `Transfer-Encoding`
    TransferEncoding = "transfer-encoding",
    /// `Upgrade`
    Upgrade = "upgrade",
    /// `User-Agent`
    UserAgent = "user-agent",
}

impl Known {
    /// The known field of this name, without case.
    pub fn of(name: &[u8]) -> Option<Known> {
        // Length and first letter leave at most one candidate.
        let known = match (name.len(), name.first()?.to_ascii_lowercase()) {
            (4, b'h') => Known::Host,
            (5, b'r') => Known::Range,
            (6, b'a') => Known::Accept,
            (6, b'c') => Known::Cookie,
            (6, b'e') => Known::Expect,
            (7, b'r') => Known::Referer,
            (7, b'u') => Known::Upgrade,
            (8, b'i') if name[3].eq_ignore_ascii_case(&b'm') => Known::IfMatch,
            (8, b'i') => Known::IfRange,
            (10, b'c') => Known::Connection,
            (10, b'u') => Known::UserAgent,
            (12, b'c') => Known::ContentType,
            (13, b'a') => Known::Authorization,
            (13, b'i') => Known::IfNoneMatch,
            (14, b'c') => Known::ContentLength,
            (15, b'a') => Known::AcceptEncoding,
            (17, b'i') => Known::IfModifiedSince,
            (17, b't') => Known::TransferEncoding,
            (19, b'i') => Known::IfUnmodifiedSince,
            _ => return None,
        };
        known
            .name()
            .as_bytes()
            .eq_ignore_ascii_case(name)
            .then_some(known)
    }
}

/// Header fields of an answer, kept as HTTP/1 lines (`name: value CRLF`) with offsets.
///
/// HTTP/1 copies the lines as they are; the other versions walk the offsets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields {
    lines: Vec<u8>,
    entries: Vec<FieldLineSpan>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct FieldLineSpan {
    start: u32,
    name_len: u16,
    value_len: u32,
}

impl FieldLineSpan {
    fn end(&self) -> usize {
        self.start as usize + self.name_len as usize + 2 + self.value_len as usize + 2
    }
}

impl Fields {
    /// No fields.
    pub const fn new() -> Fields {
        Fields {
            lines: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds a field. Returns false, and adds nothing, for a name that is no token or a value with
    /// control characters (RFC 9110 section 5.5), so that no answer can be split.
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> bool {
        if !is_name(name)
            || !is_value(value)
            || self.lines.len() + value.len() > u32::MAX as usize / 2
        {
            return false;
        }
        let (Ok(start), Ok(name_len), Ok(value_len)) = (
            u32::try_from(self.lines.len()),
            u16::try_from(name.len()),
            u32::try_from(value.len()),
        ) else {
            return false;
        };
        if self.entries.is_empty() {
            // For a few usual fields at once.
            self.lines.reserve(256);
            self.entries.reserve(8);
        }
        self.lines.reserve(name.len() + value.len() + 4);
        self.lines.extend_from_slice(name);
        self.lines.extend_from_slice(b": ");
        self.lines.extend_from_slice(value);
        self.lines.extend_from_slice(b"\r\n");
        self.entries.push(FieldLineSpan {
            start,
            name_len,
            value_len,
        });
        true
    }

    /// Removes every field of this name and adds one.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.remove(name);
        self.add(name, value)
    }

    /// Removes every field of this name, without case.
    pub fn remove(&mut self, name: &[u8]) {
        if self.value(name).is_some() {
            self.retain(|n, _| !n.eq_ignore_ascii_case(name));
        }
    }

    /// Keeps the fields for which `is_kept` holds, in their order.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&[u8], &[u8]) -> bool) {
        let mut kept = Fields::new();
        for (name, value) in self.iter() {
            if is_kept(name, value) {
                kept.add(name, value);
            }
        }
        *self = kept;
    }

    /// The first value of this name, without case.
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| {
            let line = &self.lines[entry.start as usize..entry.end()];
            let (name, rest) = line.split_at(entry.name_len as usize);
            (name, &rest[2..2 + entry.value_len as usize])
        })
    }

    /// The lines as HTTP/1 sends them, each ended by CRLF.
    pub fn lines(&self) -> &[u8] {
        match (self.entries.first(), self.entries.last()) {
            (Some(first), Some(last)) => &self.lines[first.start as usize..last.end()],
            _ => &[],
        }
    }

    /// The same fields where a longer text has their lines, from `start` on: one text for both.
    pub(crate) fn within(mut self, lines: Vec<u8>, start: usize) -> Fields {
        let before = self.entries.first().map_or(0, |first| first.start);
        for entry in &mut self.entries {
            entry.start = entry.start - before + start as u32;
        }
        self.lines = lines;
        self
    }

    /// The same fields in a text of their own.
    pub(crate) fn alone(&self) -> Fields {
        let placed = Fields {
            lines: Vec::new(),
            entries: self.entries.clone(),
        };
        placed.within(self.lines().to_vec(), 0)
    }

    /// All of the text that has their lines.
    pub(crate) fn text(&self) -> &[u8] {
        &self.lines
    }

    /// True when there is no field.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.escape_ascii().to_string())
    }
}

/// True for fields that mean nothing without a body.
fn speaks_of_body(name: &[u8]) -> bool {
    let begins = name.get(..8);
    begins.is_some_and(|begin| begin.eq_ignore_ascii_case(b"content-"))
        || [&b"transfer-encoding"[..], b"expect", b"trailer"]
            .iter()
            .any(|other| other.eq_ignore_ascii_case(name))
}

/// True for a token (RFC 9110 section 5.6.2).
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| is_token_byte(byte))
}

/// True for a byte a token may hold.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[byte as usize]
}

const TOKEN_BYTES: [bool; 256] = letters_digits_and(b"!#$%&'*+-.^_`|~");

/// A table of ASCII letters, digits and some other bytes.
pub(crate) const fn letters_digits_and(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
}

/// True for a field value without control characters (HTAB is allowed) and outer white space.
fn is_value(value: &[u8]) -> bool {
    value
        .iter()
        .all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_found_in_any_case() {
        for known in Known::ALL {
            let upper = known.name().to_ascii_uppercase();
            assert_eq!(Known::of(upper.as_bytes()), Some(known));
        }
        assert_eq!(Known::of(b"x-forwarded-for"), None);
        assert_eq!(Known::of(b""), None);
    }

    #[test]
    fn fields_refuse_what_would_split_an_answer() {
        let mut fields = Fields::new();
        assert!(fields.add(b"A", b"1"));
        assert!(!fields.add(b"A", b"1\r\nB: 2"));
        assert!(!fields.add(b"A b", b"1"));
        assert!(!fields.add(b"", b"1"));
        assert!(!fields.add(b"A", b"\0"));
        assert_eq!(fields.lines(), b"A: 1\r\n");
    }

    #[test]
    fn removing_keeps_the_order_of_the_rest() {
        let mut fields = Fields::new();
        for (name, value) in [("A", "1"), ("B", "2"), ("a", "3"), ("C", "")] {
            assert!(fields.add(name.as_bytes(), value.as_bytes()));
        }
        fields.remove(b"A");
        assert_eq!(fields.lines(), b"B: 2\r\nC: \r\n");
        assert_eq!(fields.value(b"c"), Some(&b""[..]));
        assert!(fields.set(b"b", b"4"));
        assert_eq!(fields.lines(), b"C: \r\nb: 4\r\n");
    }
}
