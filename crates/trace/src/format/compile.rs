//! Compiling a format, and what is wrong with one that does not compile.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::asked::{ASKED_COUNT_MAX, AskedValue, SOURCES, ValueSource};
use crate::escape::{put_json, put_text};
use crate::pen::{Literal, Pen, PenBuffer};

/// A compiled access log format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogFormat {
    pub(super) parts: Vec<PrefixedField>,
    /// What follows the last field; ends in a line break.
    pub(super) end: Literal,
    pub(super) style: EscapeStyle,
    /// So many parts at the start are the same for all lines of one client, one second and no user.
    pub(super) steady: usize,
    /// Values that no record has by itself; fields name them by their place.
    pub(super) asked: Vec<AskedValue>,
    pub(super) identity: FormatIdentity,
}

/// Tells formats apart faster than their parts do; of no interest to those who compare formats.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormatIdentity(pub(super) u64);

impl FormatIdentity {
    fn next() -> FormatIdentity {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        FormatIdentity(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl PartialEq for FormatIdentity {
    fn eq(&self, _: &FormatIdentity) -> bool {
        true
    }
}

impl Eq for FormatIdentity {}

/// A field and the text before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrefixedField {
    pub(super) before: Literal,
    pub(super) field: Field,
}

/// How values are escaped, and what stands for one that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapeStyle {
    /// `\xHH`, and `-`.
    Text,
    /// As JSON strings need it, and an empty string.
    Json,
}

/// The Common Log Format.
const COMMON: &str = r#"{client} - {user} {time} "{request_line}" {status} {bytes_clf}"#;
/// The Common Log Format with referer and user agent.
const COMBINED: &str =
    r#"{client} - {user} {time} "{request_line}" {status} {bytes_clf} "{referer}" "{user_agent}""#;

/// Members of a JSON line, in order.
const JSON: &[(&str, Field)] = &[
    ("time", Field::TimeIso),
    ("client", Field::Client),
    ("client_port", Field::ClientPort),
    ("method", Field::Method),
    ("target", Field::Target),
    ("protocol", Field::Protocol),
    ("status", Field::Status),
    ("bytes", Field::Bytes),
    ("bytes_in", Field::BytesIn),
    ("bytes_out", Field::BytesOut),
    ("host", Field::Host),
    ("referer", Field::Referer),
    ("user_agent", Field::UserAgent),
    ("user", Field::User),
    ("total_us", Field::TotalUs),
    ("first_byte_us", Field::FirstByteUs),
    ("queue_us", Field::QueueUs),
    ("program_us", Field::ProgramUs),
    ("program_end", Field::ProgramEnd),
    ("disk_wait_us", Field::DiskWaitUs),
    ("site", Field::Site),
    ("route", Field::Route),
    ("handler", Field::Handler),
    ("cache", Field::Cache),
    ("fault", Field::Fault),
    ("outcome", Field::Outcome),
    ("reason", Field::Reason),
    ("detail", Field::Detail),
    ("note", Field::Note),
    ("tls_version", Field::TlsVersion),
    ("tls_suite", Field::TlsSuite),
    ("tls_handshake", Field::TlsHandshake),
    ("handshake_us", Field::HandshakeUs),
    ("trace_id", Field::TraceId),
    ("connection", Field::Connection),
    ("request", Field::Request),
];

/// Names of whole formats.
const WHOLE: [&str; 3] = ["common", "combined", "json"];

impl AccessLogFormat {
    /// The longest format, in bytes.
    pub const BYTES_MAX: usize = 4096;

    /// Compiles `common`, `combined`, `json`, or a line of text with `{field}` words. `{{` and `}}`
    /// stand for the braces themselves. Fields behind `json` are members besides. No variable of
    /// the environment is set.
    ///
    /// # Errors
    /// Says which word is not a field, or where a brace is wrong.
    pub fn parse(text: &str) -> Result<AccessLogFormat, FormatError> {
        Self::parse_with(text, &|_| None)
    }

    /// The same; `variable` knows the values of `{env:NAME}`.
    ///
    /// # Errors
    /// As [`AccessLogFormat::parse`].
    pub fn parse_with(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<AccessLogFormat, FormatError> {
        if text.len() > Self::BYTES_MAX {
            return Err(FormatError::TooLong { bytes: text.len() });
        }
        let compiler = |style| FormatCompiler {
            variable,
            style,
            parts: Vec::new(),
            before: Vec::new(),
            asked: Vec::new(),
        };
        match text {
            "common" => compiler(EscapeStyle::Text).line(COMMON),
            "combined" => compiler(EscapeStyle::Text).line(COMBINED),
            "json" => compiler(EscapeStyle::Json).object(""),
            own => match own.strip_prefix("json ") {
                Some(members) if members.trim_start().starts_with('{') => {
                    compiler(EscapeStyle::Json).object(own)
                }
                _ => compiler(EscapeStyle::Text).line(own),
            },
        }
    }

    /// What its lines need beside what every record has, for [`crate::Texts::asked`].
    pub fn asked(&self) -> &[AskedValue] {
        &self.asked
    }

    fn of(
        parts: Vec<PrefixedField>,
        end: Vec<u8>,
        style: EscapeStyle,
        asked: Vec<AskedValue>,
    ) -> AccessLogFormat {
        let is_steady =
            |part: &&PrefixedField| matches!(part.field, Field::Client | Field::User | Field::Time);
        AccessLogFormat {
            steady: parts.iter().take_while(is_steady).count(),
            identity: FormatIdentity::next(),
            parts,
            end: Literal::new(end),
            style,
            asked,
        }
    }
}

/// A format while it is compiled.
struct FormatCompiler<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    style: EscapeStyle,
    parts: Vec<PrefixedField>,
    /// What stands before the next field.
    before: Vec<u8>,
    asked: Vec<AskedValue>,
}

/// A word in braces.
enum FormatWord<'t> {
    Field(Field),
    /// A variable of the environment, by its name.
    Variable(&'t str),
}

impl FormatCompiler<'_> {
    fn line(mut self, text: &str) -> Result<AccessLogFormat, FormatError> {
        let mut has_variable = false;
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let at = text.len() - rest.len();
            let mut taken = next.len_utf8();
            match next {
                '{' | '}' if rest[1..].starts_with(next) => {
                    self.before.push(next as u8);
                    taken = 2;
                }
                '{' => {
                    let end = rest.find('}').ok_or(FormatError::BraceNotClosed { at })?;
                    match self.word(&rest[1..end], at)? {
                        FormatWord::Field(field) => self.put_field(field),
                        FormatWord::Variable(name) => {
                            self.put_variable(name);
                            has_variable = true;
                        }
                    }
                    taken = end + 1;
                }
                '}' => return Err(FormatError::BraceNotOpened { at }),
                '\0'..='\x1f' | '\x7f' => return Err(FormatError::ControlCharacter { at }),
                _ => self.before.extend_from_slice(&rest.as_bytes()[..taken]),
            }
            rest = &rest[taken..];
        }
        if self.parts.is_empty() && !has_variable {
            let nearest = nearest(text.trim(), WHOLE.into_iter());
            return Err(FormatError::NoField { nearest });
        }
        self.before.push(b'\n');
        Ok(AccessLogFormat::of(
            self.parts,
            self.before,
            self.style,
            self.asked,
        ))
    }

    /// A line of JSON; `text` is empty, or `json` and the words of members it has besides.
    fn object(mut self, text: &str) -> Result<AccessLogFormat, FormatError> {
        self.before.push(b'{');
        for (name, field) in JSON {
            self.member(name, FormatWord::Field(*field));
        }
        let mut rest = text.strip_prefix("json").unwrap_or_default().trim_start();
        let mut names: Vec<&str> = JSON.iter().map(|(name, _)| *name).collect();
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            let Some(after) = rest.strip_prefix('{') else {
                return Err(FormatError::NoMember { at });
            };
            let (name, after) = after
                .split_once('}')
                .ok_or(FormatError::BraceNotClosed { at })?;
            let word = self.word(name, at)?;
            if names.contains(&name) {
                return Err(FormatError::MemberTwice { at });
            }
            names.push(name);
            self.member(name, word);
            rest = after.trim_start();
        }
        // A comma is behind the last member.
        self.before.pop();
        self.before.extend_from_slice(b"}\n");
        Ok(AccessLogFormat::of(
            self.parts,
            self.before,
            self.style,
            self.asked,
        ))
    }

    /// The word in braces; `at` is where its brace stands.
    fn word<'t>(&mut self, word: &'t str, at: usize) -> Result<FormatWord<'t>, FormatError> {
        let Some((source, name)) = ValueSource::of(word) else {
            return Field::named(word, at).map(FormatWord::Field);
        };
        if !source.takes(name) {
            return Err(FormatError::WrongName {
                word: word.to_owned(),
                at,
            });
        }
        let Some(value) = AskedValue::of(source, name) else {
            return Ok(FormatWord::Variable(name));
        };
        let place = self.asked.iter().position(|known| *known == value);
        let place = place.unwrap_or_else(|| {
            self.asked.push(value);
            self.asked.len() - 1
        });
        match u8::try_from(place) {
            Ok(place) if usize::from(place) < ASKED_COUNT_MAX => {
                Ok(FormatWord::Field(Field::Asked(place)))
            }
            _ => Err(FormatError::TooManyValues { at }),
        }
    }

    fn member(&mut self, name: &str, word: FormatWord<'_>) {
        let is_number = matches!(word, FormatWord::Field(field) if field.is_number());
        let quote = if is_number { "" } else { "\"" };
        self.before
            .extend_from_slice(format!("\"{name}\":{quote}").as_bytes());
        match word {
            FormatWord::Field(field) => self.put_field(field),
            FormatWord::Variable(name) => self.put_variable(name),
        }
        self.before.extend_from_slice(quote.as_bytes());
        self.before.push(b',');
    }

    fn put_field(&mut self, field: Field) {
        let before = Literal::new(std::mem::take(&mut self.before));
        self.parts.push(PrefixedField { before, field });
    }

    /// What the environment has is escaped as what clients send.
    fn put_variable(&mut self, name: &str) {
        let value = (self.variable)(name).unwrap_or_default();
        let mut block = PenBuffer::new();
        let mut pen = Pen::new(&mut block, &mut self.before);
        match self.style {
            EscapeStyle::Text if value.is_empty() => pen.put_array(b"-"),
            EscapeStyle::Text => put_text(value.as_bytes(), &mut pen),
            EscapeStyle::Json => put_json(value.as_bytes(), &mut pen),
        }
        pen.finish();
    }
}

/// Why a text is not a format. Positions are in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// A word in braces is not a field.
    UnknownField {
        /// The word.
        name: String,
        /// The field whose name is most like it, if one is.
        nearest: Option<&'static str>,
        /// Where its brace stands.
        at: usize,
    },
    /// There is no field in it, and it is not the name of a whole format.
    NoField {
        /// The whole format whose name is most like it, if one is.
        nearest: Option<&'static str>,
    },
    /// A `{` has no `}`.
    BraceNotClosed {
        /// Where it stands.
        at: usize,
    },
    /// A `}` has no `{`.
    BraceNotOpened {
        /// Where it stands.
        at: usize,
    },
    /// A line break, tab or other control character.
    ControlCharacter {
        /// Where it stands.
        at: usize,
    },
    /// What stands behind `header:`, `response:`, `cookie:` or `env:` can be no name there.
    WrongName {
        /// The word.
        word: String,
        /// Where its brace stands.
        at: usize,
    },
    /// More values of requests and answers than [`ASKED_COUNT_MAX`].
    TooManyValues {
        /// Where the first that is too many stands.
        at: usize,
    },
    /// Something other than a `{field}` stands behind `json`.
    NoMember {
        /// Where it stands.
        at: usize,
    },
    /// A `{field}` behind `json` is a member already.
    MemberTwice {
        /// Where it stands.
        at: usize,
    },
    /// Longer than [`AccessLogFormat::BYTES_MAX`].
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl FormatError {
    /// The word to suggest instead.
    pub fn nearest(&self) -> Option<&'static str> {
        match self {
            Self::UnknownField { nearest, .. } | Self::NoField { nearest } => *nearest,
            _ => None,
        }
    }

    /// Where in the text the mistake is, in bytes from its start.
    pub fn at(&self) -> usize {
        match self {
            Self::UnknownField { at, .. }
            | Self::BraceNotClosed { at }
            | Self::BraceNotOpened { at }
            | Self::ControlCharacter { at }
            | Self::WrongName { at, .. }
            | Self::TooManyValues { at }
            | Self::NoMember { at }
            | Self::MemberTwice { at } => *at,
            Self::NoField { .. } | Self::TooLong { .. } => 0,
        }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { name, .. } => write!(f, "unknown log field {{{name}}}")?,
            Self::NoField { .. } => {
                let names = WHOLE.join(", ");
                write!(f, "log format is not one of {names} and has no {{field}}")?;
            }
            Self::BraceNotClosed { .. } => {
                f.write_str("log format has a { without a }; write {{ for the brace itself")?;
            }
            Self::BraceNotOpened { .. } => {
                f.write_str("log format has a } without a {; write }} for the brace itself")?;
            }
            Self::ControlCharacter { .. } => {
                f.write_str("log format has a control character; a record is one line of text")?;
            }
            Self::WrongName { word, .. } => write!(f, "log field {{{word}}} has no right name")?,
            Self::TooManyValues { .. } => write!(
                f,
                "log format asks for more than {ASKED_COUNT_MAX} fields and cookies"
            )?,
            Self::NoMember { .. } => {
                f.write_str("log format has something other than a {field} behind json")?;
            }
            Self::MemberTwice { .. } => {
                f.write_str("log format has a member behind json that is there already")?;
            }
            Self::TooLong { bytes } => {
                let limit = AccessLogFormat::BYTES_MAX;
                write!(
                    f,
                    "log format has {bytes} bytes; at most {limit} are allowed"
                )?;
            }
        }
        match self.nearest() {
            Some(nearest) => write!(f, "; did you mean {nearest}?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FormatError {}

macro_rules! fields {
    ($($variant:ident = $name:literal, $kind:ident, $help:literal;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Field {
            $(#[doc = $help] $variant,)+
            /// The value at this place among those that the format asks for.
            Asked(u8),
        }

        impl Field {
            const ALL: &[(&str, Field, &str)] = &[$(($name, Field::$variant, $help)),+];

            /// A JSON number.
            fn is_number(self) -> bool {
                match self {
                    $(Field::$variant => matches!(FieldKind::$kind, FieldKind::Number),)+
                    Field::Asked(_) => false,
                }
            }
        }
    };
}

enum FieldKind {
    Number,
    Text,
}

fields! {
    Client = "client", Text, "The client's address; `-` for a Unix socket.";
    ClientName = "client_name", Text, "The client's name, where `names` is on: the log waits for it, 1 s at most.";
    Country = "country", Text, "The two letters of the country of the client's address, where a file of `countries` says it.";
    ClientPort = "client_port", Number, "The client's port.";
    Time = "time", Text, "When the request began, `[21/Nov/2026:21:13:07 +0000]`, UTC.";
    TimeIso = "time_iso", Text, "When the request began, `2026-11-21T21:13:07.250Z`.";
    UnixMs = "unix_ms", Number, "When the request began, in milliseconds since 1970.";
    RequestLine = "request_line", Text, "Method, target and protocol, as in the request's first line.";
    Method = "method", Text, "The method, as sent.";
    Target = "target", Text, "The target, as sent.";
    Protocol = "protocol", Text, "HTTP/1.0, HTTP/1.1, HTTP/2.0 or HTTP/3.0.";
    Status = "status", Number, "The answer's status code; 0 when none was sent.";
    Bytes = "bytes", Number, "Bytes of the answer's body.";
    BytesClf = "bytes_clf", Text, "Bytes of the answer's body; `-` for none.";
    BytesIn = "bytes_in", Number, "Bytes of the request, head and body.";
    BytesOut = "bytes_out", Number, "Bytes of the answer, head and body.";
    Host = "host", Text, "The host asked for.";
    Referer = "referer", Text, "The Referer header.";
    UserAgent = "user_agent", Text, "The User-Agent header.";
    User = "user", Text, "The authenticated user.";
    TotalUs = "total_us", Number, "Microseconds until the whole answer was handed to the kernel.";
    TotalMs = "total_ms", Number, "The same in milliseconds, three digits after the point.";
    FirstByteUs = "first_byte_us", Number, "Microseconds until the answer's head was handed to the kernel.";
    QueueUs = "queue_us", Number, "Microseconds in a program's queue.";
    ProgramUs = "program_us", Number, "Microseconds from asking for a program's start to the head of its answer.";
    ProgramEnd = "program_end", Text, "How the process that ran for the request ended: `clean`, `code 1`, `failed 1`, `killed 9`.";
    DiskWaitUs = "disk_wait_us", Number, "Microseconds waited for a disk.";
    Site = "site", Text, "The site's first name.";
    Route = "route", Text, "The route's path pattern.";
    Handler = "handler", Text, "Who answered.";
    Cache = "cache", Text, "What the cache did.";
    Fault = "fault", Text, "Whose fault a failure was.";
    Outcome = "outcome", Text, "How the exchange ended.";
    TlsVersion = "tls_version", Text, "Version of TLS, `TLSv1.3`; `-` in clear text.";
    TlsSuite = "tls_suite", Text, "Cipher suite of TLS by its IANA name.";
    TlsHandshake = "tls_handshake", Text, "How TLS began on the connection: `full` or `resumed`.";
    HandshakeUs = "handshake_us", Number, "Microseconds of the TLS handshake, in the first request of its connection.";
    TraceId = "trace_id", Text, "The trace it belongs to, 32 hexadecimal digits; needs `[otlp]`.";
    Connection = "connection", Number, "The connection's number in this server process.";
    Request = "request", Number, "The request's number on its connection, from 0.";
    Reason = "reason", Text, "What went wrong, in words.";
    Detail = "detail", Text, "What belongs to the reason: what a program printed, which file it was.";
    Note = "note", Text, "What was strange and did not go wrong, in words.";
}

impl AccessLogFormat {
    /// Every field's name and what it is, for the reference page.
    pub fn fields() -> impl Iterator<Item = (&'static str, &'static str)> {
        let own = Field::ALL.iter().map(|(name, _, help)| (*name, *help));
        own.chain(SOURCES.iter().map(|(name, _, help)| (*name, *help)))
    }
}

impl Field {
    fn named(name: &str, at: usize) -> Result<Field, FormatError> {
        match Field::ALL.iter().find(|(known, ..)| *known == name) {
            Some((_, field, _)) => Ok(*field),
            None => {
                let nearest = nearest(name, AccessLogFormat::fields().map(|(known, _)| known));
                Err(FormatError::UnknownField {
                    name: name.to_owned(),
                    nearest,
                    at,
                })
            }
        }
    }
}

/// The known name that is fewest changed letters away, if those are few for its length.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    const NAME_BYTES_MAX: usize = 32;
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase().replace('-', "_");
    known
        .map(|known| (changes(name.as_bytes(), known.as_bytes()), known))
        .filter(|(changes, known)| *changes <= 1 + known.len() / 4)
        .min()
        .map(|(_, known)| known)
}

/// Letters to insert, remove or replace to make one text of the other.
fn changes(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}
