//! Patterns from text. Everything that could never match, or that would match something else than
//! it seems to, is an error with its place and a way out.

use std::fmt;

use super::path_regex::PathRegex;
use super::regex_meant;
use super::{CAPTURES_MAX, Pattern, PatternSegment, SEGMENTS_MAX, Tail};
use crate::route::percent::decode_pair;
use crate::route::target::{has_dots_beside_encoded_slash, with_encoded_slashes};

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Where in the text, in bytes from its start.
    pub at: usize,
    /// What is wrong.
    pub fault: PatternFault,
}

/// What is wrong with a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternFault {
    /// A regular expression without `~`; the pattern that says the same, if there is one.
    Regex(Option<String>),
    /// Behind `~` stands what is no regular expression, and why not.
    BadRegex(String),
    /// Neither `/` nor `*.` at the start.
    Start,
    /// `*` where it has no meaning.
    Star,
    /// A brace without its partner.
    Brace,
    /// Two captures in one segment.
    TwoInSegment,
    /// `{rest*}` with something beside it in its segment.
    RestInSegment,
    /// A capture's name is not a letter or `_` followed by letters, digits and `_`.
    Name(String),
    /// A capture's name means something else in redirects.
    NameReserved(String),
    /// Two captures of one name.
    NameTwice(String),
    /// `{rest*}` is not the last segment.
    RestNotLast,
    /// A percent-encoded byte.
    Encoded,
    /// `?` or `#`.
    NotPath(char),
    /// A segment that no normalised path has.
    NeverMatches,
    /// More than [`CAPTURES_MAX`] captures.
    TooManyCaptures,
    /// More than [`SEGMENTS_MAX`] segments.
    TooManySegments,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            PatternFault::Regex(Some(meant)) => {
                write!(
                    f,
                    "patterns are no regular expressions, unless they begin with `~`; \
                     write `{meant}`"
                )
            }
            PatternFault::Regex(None) => f.write_str(
                "a regular expression begins with `~`, as in `~ ^/(de|en)/`; without one write \
                 `/name`, `/name/*`, `/{name}` for one segment, or `*.php` for an ending",
            ),
            PatternFault::BadRegex(why) => {
                write!(f, "what follows `~` is no regular expression here: {why}")
            }
            PatternFault::Start => f.write_str(
                "a path pattern begins with `/` or `*.`; write `/name`, `/name/*` or `*.suffix`",
            ),
            PatternFault::Star => f.write_str(
                "`*` stands only at the end, as `/*` or `/*.suffix`; write `{name}` for one segment",
            ),
            PatternFault::Brace => f.write_str(
                "a brace without its partner: write `/{name}/`, `/{name}.html`, or `/{name*}` at \
                 the end",
            ),
            PatternFault::TwoInSegment => f.write_str(
                "a segment has one capture; for more write a regular expression, as in \
                 `~ ^/(?<year>[0-9]+)-(?<month>[0-9]+)$`",
            ),
            PatternFault::RestInSegment => f.write_str(
                "`{name*}` takes whole segments; write a `/` before it, and nothing behind it",
            ),
            PatternFault::Name(name) => write!(
                f,
                "`{name}` cannot name a capture; use letters, digits and `_`, no digit first"
            ),
            PatternFault::NameReserved(name) => write!(
                f,
                "a capture cannot be called `{name}`, which stands for a part of the request; \
                 choose another name"
            ),
            PatternFault::NameTwice(name) => {
                write!(f, "two captures are called `{name}`; rename one")
            }
            PatternFault::RestNotLast => f.write_str(
                "`{name*}` takes all that follows, so it must be last; write `{name}` for one segment",
            ),
            PatternFault::Encoded => f.write_str(
                "patterns are compared with the decoded path; write the character itself, not `%XX` \
                 (only `%2F` stands for itself)",
            ),
            PatternFault::NotPath(mark) => {
                write!(f, "a pattern matches the path only; remove `{mark}` and what follows it")
            }
            PatternFault::NeverMatches => f.write_str(
                "this can never match: empty, `.` and `..` segments are taken out of paths, and \
                 backslashes and control bytes are refused; remove it",
            ),
            PatternFault::TooManyCaptures => {
                write!(f, "more than {CAPTURES_MAX} captures; use `{{rest*}}` for what follows")
            }
            PatternFault::TooManySegments => {
                write!(f, "more than {SEGMENTS_MAX} segments; use `/*` for what follows")
            }
        }
    }
}

impl std::error::Error for PatternError {}

pub(super) fn parse(text: &str) -> Result<Pattern, PatternError> {
    if let Some(regex) = text.strip_prefix('~') {
        return parse_regex(regex);
    }
    let parsed = parse_plain(text);
    if !regex_meant::is_meant(text, parsed.is_err()) {
        return parsed;
    }
    let meant = regex_meant::as_pattern(text).filter(|pattern| parse_plain(pattern).is_ok());
    Err(PatternError {
        at: 0,
        fault: PatternFault::Regex(meant),
    })
}

/// What stands behind `~`: `*` where the case of letters says nothing, then the expression.
fn parse_regex(text: &str) -> Result<Pattern, PatternError> {
    let (regex, ignores_case) = match text.strip_prefix('*') {
        Some(regex) => (regex, true),
        None => (text, false),
    };
    let error = |fault| PatternError { at: 0, fault };
    let regex = PathRegex::parse(regex.trim_start(), ignores_case).map_err(error)?;
    let names = regex.names();
    for name in &names {
        if RESERVED_NAMES.contains(&&**name) {
            return Err(error(PatternFault::NameReserved(name.to_string())));
        }
    }
    Ok(Pattern {
        segments: Vec::new(),
        tail: Tail::Regex(regex),
        names,
    })
}

fn parse_plain(text: &str) -> Result<Pattern, PatternError> {
    let mut parser = Parser {
        pattern: Pattern {
            segments: Vec::new(),
            tail: Tail::End,
            names: Vec::new(),
        },
    };
    if let Some(at) = impossible_byte(text) {
        return Err(at);
    }
    if text.starts_with("*.") {
        parser.star(text, 0, PiecePosition::Last)?;
        return Ok(parser.pattern);
    }
    let Some(inner) = text.strip_prefix('/') else {
        return Err(PatternError {
            at: 0,
            fault: PatternFault::Start,
        });
    };
    let mut at = 1;
    let mut pieces = inner.split('/').peekable();
    while let Some(piece) = pieces.next() {
        let place = if pieces.peek().is_some() {
            PiecePosition::Inner
        } else {
            PiecePosition::Last
        };
        parser.piece(piece, at, place)?;
        at += piece.len() + 1;
    }
    Ok(parser.pattern)
}

/// Bytes that mean a mistake wherever they stand.
fn impossible_byte(text: &str) -> Option<PatternError> {
    text.bytes().enumerate().find_map(|(at, byte)| {
        let fault = match byte {
            b'%' => match decode_pair(text.as_bytes().get(at + 1..at + 3)?)? {
                b'/' => return None,
                _ => PatternFault::Encoded,
            },
            b'?' | b'#' => PatternFault::NotPath(char::from(byte)),
            b'\\' | 0..0x20 | 0x7f => PatternFault::NeverMatches,
            _ => return None,
        };
        Some(PatternError { at, fault })
    })
}

/// Where a piece stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PiecePosition {
    Inner,
    Last,
}

struct Parser {
    pattern: Pattern,
}

impl Parser {
    fn piece(&mut self, piece: &str, at: usize, place: PiecePosition) -> Result<(), PatternError> {
        let error = |fault| Err(PatternError { at, fault });
        if piece.contains(['{', '}']) {
            return self.capture(piece, at, place);
        }
        if piece.contains('*') {
            return self.star(piece, at, place);
        }
        let literal = with_encoded_slashes(piece.as_bytes());
        if matches!(piece, "." | "..")
            || (piece.is_empty() && place == PiecePosition::Inner)
            || has_dots_beside_encoded_slash(&literal)
        {
            return error(PatternFault::NeverMatches);
        }
        if self.pattern.segments.len() == SEGMENTS_MAX {
            return error(PatternFault::TooManySegments);
        }
        self.pattern
            .segments
            .push(PatternSegment::Literal(literal.into()));
        Ok(())
    }

    fn star(&mut self, piece: &str, at: usize, place: PiecePosition) -> Result<(), PatternError> {
        let after = piece.strip_prefix('*').unwrap_or("*");
        let is_suffix = after.len() > 1 && after.starts_with('.') && !after.contains(['*', '/']);
        self.pattern.tail = match after {
            "" if place == PiecePosition::Last => Tail::Rest,
            _ if place == PiecePosition::Last && is_suffix => {
                Tail::Suffix(with_encoded_slashes(after.as_bytes()).into())
            }
            _ => {
                return Err(PatternError {
                    at,
                    fault: PatternFault::Star,
                });
            }
        };
        Ok(())
    }

    fn capture(
        &mut self,
        piece: &str,
        at: usize,
        place: PiecePosition,
    ) -> Result<(), PatternError> {
        let error = |fault| Err(PatternError { at, fault });
        let parts = { piece.split_once('{') }
            .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
        let Some((before, (inner, after))) = parts else {
            return error(PatternFault::Brace);
        };
        if before.contains('}') || inner.contains('{') {
            return error(PatternFault::Brace);
        }
        if after.contains(['{', '}']) {
            return error(PatternFault::TwoInSegment);
        }
        if before.contains('*') || after.contains('*') {
            return error(PatternFault::Star);
        }
        let name = inner.strip_suffix('*').unwrap_or(inner);
        self.check_name(name).or_else(error)?;
        if name.len() != inner.len() {
            if !before.is_empty() || !after.is_empty() {
                return error(PatternFault::RestInSegment);
            }
            if place == PiecePosition::Inner {
                return error(PatternFault::RestNotLast);
            }
            self.pattern.tail = Tail::NamedRest;
            self.pattern.names.push(name.into());
            return Ok(());
        }
        if self.pattern.segments.len() == SEGMENTS_MAX {
            return error(PatternFault::TooManySegments);
        }
        let [before, after] = [before, after].map(|text| with_encoded_slashes(text.as_bytes()));
        if has_dots_beside_encoded_slash(&[&*before, b"_", &*after].concat()) {
            return error(PatternFault::NeverMatches);
        }
        self.pattern.segments.push(PatternSegment::Capture {
            before: before.into(),
            after: after.into(),
        });
        self.pattern.names.push(name.into());
        Ok(())
    }

    /// Whether one more capture may be called so.
    fn check_name(&self, name: &str) -> Result<(), PatternFault> {
        if !is_name(name) {
            return Err(PatternFault::Name(name.to_owned()));
        }
        if RESERVED_NAMES.contains(&name) {
            return Err(PatternFault::NameReserved(name.to_owned()));
        }
        if self.pattern.names().any(|known| known == name) {
            return Err(PatternFault::NameTwice(name.to_owned()));
        }
        match self.pattern.names.len() == CAPTURES_MAX {
            true => Err(PatternFault::TooManyCaptures),
            false => Ok(()),
        }
    }
}

/// What in templates stands for parts of the request.
const RESERVED_NAMES: [&str; 4] = ["path", "query", "host", "uri"];

/// True for a letter or `_`, then letters, digits and `_`.
pub(crate) fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
