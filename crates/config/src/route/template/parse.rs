//! Templates from text. Which part of a URL a brace stands in is decided here, once.

use std::fmt;

use super::{Leads, Location, Rewrite, TemplatePiece, TemplateVariable};
use crate::route::pattern::Pattern;
use crate::route::percent::{UrlPart, decode_pair, encode};
use crate::route::target::ENCODED_SLASH;

/// A template that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Where in the text, in bytes from its start.
    pub at: usize,
    /// What is wrong.
    pub fault: TemplateFault,
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateFault {
    /// It begins neither with a scheme and host nor with `/`, `{path}` or `{uri}`.
    Start,
    /// A scheme without a host behind it.
    NoHost,
    /// A rewrite does not begin with `/` or `{path}`.
    RewriteStart,
    /// A brace without its partner.
    Brace,
    /// The pattern has no such capture.
    Unknown {
        /// As written.
        name: String,
        /// Names that could stand here.
        known: Vec<String>,
    },
    /// A capture or a part other than `{host}` in a URL's host.
    InHost(String),
    /// `{query}` in a path.
    QueryInPath,
    /// Something stands behind `{uri}`, in which a query may be.
    BehindUri,
    /// `{uri}` in a rewrite's path, which is decoded.
    UriInRewrite,
    /// A control byte or a backslash.
    Control,
    /// A fragment in a rewrite.
    Fragment,
    /// A percent-encoded byte in a rewrite's path.
    Encoded,
    /// A second capture in one name of a path on the disk.
    SecondInName,
    /// `..` behind a capture in such a path.
    WayUp,
    /// A capture of several names as one of such a path.
    RestInName(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            TemplateFault::Start => f.write_str(
                "a redirect leads to `https://host/...`, to `/...`, to `{path}` or to `{uri}`; begin \
                 with one",
            ),
            TemplateFault::NoHost => f.write_str("a URL needs a host; write `https://{host}/...`"),
            TemplateFault::RewriteStart => {
                f.write_str("a rewrite leads to a path; begin with `/` or `{path}`")
            }
            TemplateFault::Brace => f.write_str("a brace without its partner; write `{name}`"),
            TemplateFault::Unknown { name, known } => {
                write!(
                    f,
                    "the route captures no `{{{name}}}`; known here: {}",
                    known.join(", ")
                )
            }
            TemplateFault::InHost(name) => write!(
                f,
                "`{{{name}}}` in the host would let a request choose where it is sent; \
                 write `/` before it"
            ),
            TemplateFault::QueryInPath => {
                f.write_str("`{query}` stands behind a `?`; write `?{query}`")
            }
            TemplateFault::BehindUri => f.write_str(
                "`{uri}` ends with the query, so nothing can stand behind it; write \
                 `{path}` and `?{query}`",
            ),
            TemplateFault::UriInRewrite => f.write_str(
                "a rewrite makes a path, and the query stays; write `{path}`, not `{uri}`",
            ),
            TemplateFault::Control => {
                f.write_str("a control byte or a backslash cannot be part of a URL; remove it")
            }
            TemplateFault::Fragment => {
                f.write_str("a rewrite cannot have a fragment; remove `#` and what follows it")
            }
            TemplateFault::Encoded => f.write_str(
                "a rewrite's path is decoded; write the character itself, not `%XX` (only `%2F` \
                     stands for itself)",
            ),
            TemplateFault::SecondInName => f.write_str(
                "a folder's name has one capture at most; write a slash between the two",
            ),
            TemplateFault::WayUp => {
                f.write_str("`..` behind a capture would leave its folder; write the path without")
            }
            TemplateFault::RestInName(name) => write!(
                f,
                "`{{{name}*}}` stands for several names, and a folder has one; capture one with \
                 `{{{name}}}`"
            ),
        }
    }
}

impl std::error::Error for TemplateError {}

pub(super) fn location(text: &str, pattern: &Pattern) -> Result<Location, TemplateError> {
    let mut parser = Parser {
        pattern,
        encoding: Encoding::Url,
        zone: Zone::Path,
        pieces: Vec::new(),
    };
    let host = if text.starts_with("//") {
        2
    } else if ["/", "{path}", "{uri}"]
        .iter()
        .any(|begin| text.starts_with(begin))
    {
        parser.run(text, 0)?;
        return Ok(Location {
            pieces: parser.pieces,
            leads: Leads::Path,
        });
    } else {
        match text.split_once("://") {
            Some((scheme, _)) if is_scheme(scheme) => scheme.len() + 3,
            _ => {
                return Err(TemplateError {
                    at: 0,
                    fault: TemplateFault::Start,
                });
            }
        }
    };
    if text[host..].is_empty() || text[host..].starts_with(['/', '?', '#', ':']) {
        return Err(TemplateError {
            at: host,
            fault: TemplateFault::NoHost,
        });
    }
    parser.zone = Zone::Scheme;
    parser.literal(&text[..host], 0)?;
    parser.zone = Zone::Host;
    parser.run(&text[host..], host)?;
    let same_host = text[host..].starts_with("{host}");
    let leads = if same_host {
        Leads::OwnHost
    } else {
        Leads::NamedHost
    };
    Ok(Location {
        pieces: parser.pieces,
        leads,
    })
}

pub(super) fn rewrite(text: &str, pattern: &Pattern) -> Result<Rewrite, TemplateError> {
    if !text.starts_with('/') && !text.starts_with("{path}") {
        return Err(TemplateError {
            at: 0,
            fault: TemplateFault::RewriteStart,
        });
    }
    if let Some(at) = text.find('#') {
        return Err(TemplateError {
            at,
            fault: TemplateFault::Fragment,
        });
    }
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    let mut parser = Parser {
        pattern,
        encoding: Encoding::Decoded,
        zone: Zone::Path,
        pieces: Vec::new(),
    };
    parser.run(path, 0)?;
    let path_pieces = std::mem::take(&mut parser.pieces);
    let Some(query) = query else {
        return Ok(Rewrite {
            path: path_pieces,
            query: None,
        });
    };
    parser.encoding = Encoding::Url;
    parser.zone = Zone::Query;
    parser.run(query, path.len() + 1)?;
    Ok(Rewrite {
        path: path_pieces,
        query: Some(parser.pieces),
    })
}

/// How literals are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// As they are sent in a URL.
    Url,
    /// As handlers see a path.
    Decoded,
}

/// The part of the URL that the parser is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    Scheme,
    Host,
    Path,
    Query,
    Fragment,
}

struct Parser<'a> {
    pattern: &'a Pattern,
    encoding: Encoding,
    zone: Zone,
    pieces: Vec<TemplatePiece>,
}

impl Parser<'_> {
    fn run(&mut self, text: &str, begin: usize) -> Result<(), TemplateError> {
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let plain = rest.find(['{', '}']).unwrap_or(rest.len());
            self.literal(&rest[..plain], begin + at)?;
            at += plain;
            let Some(inner) = text[at..].strip_prefix('{') else {
                if at < text.len() {
                    return Err(TemplateError {
                        at: begin + at,
                        fault: TemplateFault::Brace,
                    });
                }
                break;
            };
            let Some((name, _)) = inner
                .split_once('}')
                .filter(|(name, _)| !name.contains('{'))
            else {
                return Err(TemplateError {
                    at: begin + at,
                    fault: TemplateFault::Brace,
                });
            };
            let filled = self.filled(name).map_err(|fault| TemplateError {
                at: begin + at,
                fault,
            })?;
            let ends_here = filled == TemplatePiece::Filled(TemplateVariable::Uri, UrlPart::Query);
            self.pieces.push(filled);
            at += name.len() + 2;
            if ends_here && at < text.len() {
                return Err(TemplateError {
                    at: begin + at,
                    fault: TemplateFault::BehindUri,
                });
            }
        }
        Ok(())
    }

    /// Keeps literal text and learns from it which part of the URL follows.
    fn literal(&mut self, text: &str, begin: usize) -> Result<(), TemplateError> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut read = text.bytes().enumerate();
        while let Some((index, byte)) = read.next() {
            let error = |fault| {
                Err(TemplateError {
                    at: begin + index,
                    fault,
                })
            };
            match byte {
                0..0x20 | 0x7f | b'\\' => return error(TemplateFault::Control),
                b'/' if self.zone == Zone::Host => self.zone = Zone::Path,
                b'?' if self.zone != Zone::Fragment => self.zone = Zone::Query,
                b'#' => self.zone = Zone::Fragment,
                _ => {}
            }
            if self.encoding == Encoding::Url {
                self.url_byte(byte, &mut bytes);
            } else {
                match encoded(&text.as_bytes()[index..]) {
                    None => bytes.push(byte),
                    Some(b'/') => {
                        bytes.push(ENCODED_SLASH);
                        read.nth(1);
                    }
                    Some(_) => return error(TemplateFault::Encoded),
                }
            }
        }
        if !bytes.is_empty() {
            self.pieces.push(TemplatePiece::Literal(bytes));
        }
        Ok(())
    }

    /// What the config's author wrote as URL stays, apart from bytes that cannot be sent.
    fn url_byte(&self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'#' | b'[' | b']' => out.push(byte),
            _ => encode(&[byte], UrlPart::Query, out),
        }
    }

    fn filled(&mut self, name: &str) -> Result<TemplatePiece, TemplateFault> {
        let source = match name {
            "path" => TemplateVariable::Path,
            "query" => TemplateVariable::Query,
            "host" => TemplateVariable::Host,
            "uri" => TemplateVariable::Uri,
            _ => match self.pattern.names().position(|known| known == name) {
                Some(index) => TemplateVariable::Capture(index),
                None => return Err(self.unknown(name)),
            },
        };
        let part = match (self.zone, source) {
            (Zone::Host, TemplateVariable::Host) => UrlPart::Host,
            (Zone::Path, TemplateVariable::Uri) if self.encoding == Encoding::Decoded => {
                return Err(TemplateFault::UriInRewrite);
            }
            (Zone::Host, TemplateVariable::Uri) if !self.host_is_empty() => UrlPart::Query,
            (Zone::Path, TemplateVariable::Uri) => UrlPart::Query,
            (Zone::Host, TemplateVariable::Path) if !self.host_is_empty() => {
                self.zone = Zone::Path;
                UrlPart::Path
            }
            (Zone::Scheme | Zone::Host, _) => return Err(TemplateFault::InHost(name.to_owned())),
            (Zone::Path, TemplateVariable::Query) => return Err(TemplateFault::QueryInPath),
            (Zone::Path, _) => UrlPart::Path,
            (Zone::Query | Zone::Fragment, TemplateVariable::Query) => UrlPart::Query,
            (Zone::Query | Zone::Fragment, _) => UrlPart::Value,
        };
        Ok(TemplatePiece::Filled(source, part))
    }

    /// True right behind the scheme: `https://{path}` would make the path's first name the host.
    fn host_is_empty(&self) -> bool {
        self.pieces.len() < 2
    }

    fn unknown(&self, name: &str) -> TemplateFault {
        let own = self.pattern.names();
        let known = own
            .chain(["path", "query", "host", "uri"])
            .map(|known| format!("`{{{known}}}`"));
        TemplateFault::Unknown {
            name: name.to_owned(),
            known: known.collect(),
        }
    }
}

/// The byte that text begins with in percent-encoding.
fn encoded(text: &[u8]) -> Option<u8> {
    let pair = text.strip_prefix(b"%")?.get(..2)?;
    decode_pair(pair)
}

/// `http`, `https` and the like.
//= rfc3986#3.1
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}
