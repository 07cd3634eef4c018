//! Where a redirect or a rewrite leads: text with `{name}` captures and parts of the request.
//!
//! A [`Location`] is a URL or an absolute path. What is filled in is percent-encoded for the part
//! of the URL it stands in, so no request can add a header line, a query parameter, a fragment or
//! another host: captures and `{path}` may not stand in the host, and what is written as a path
//! stays a path on this host. A [`Rewrite`] is a path as handlers see it (decoded) and, after a
//! `?`, a query. `{path}` is the normal path with its leading slash, `{query}` the query as it
//! came, without `?`, `{uri}` path and query as they came, and `{host}` the request's host without
//! its port. A [`PathTemplate`] is a path on the disk.

mod names;
mod parse;

pub use names::{
    CapturedName, CapturedPath, HOST, NAME_BYTES_MAX, PathTemplate, UnsafeName, has_captures,
    is_safe_name,
};
pub use parse::{TemplateError, TemplateFault};

use super::pattern::{Captures, Pattern};
use super::percent::{UrlPart, encode};
use super::target::{BadPath, Normal, collapse};

/// What a template is filled with.
#[derive(Clone, Copy, Debug)]
pub struct TemplateValues<'a> {
    /// The path in normal form, the one that `captures` belong to.
    pub path: &'a [u8],
    /// The path as it came.
    pub raw_path: &'a [u8],
    /// The query as it came.
    pub query: Option<&'a [u8]>,
    /// The host as it came; empty when there was none.
    pub host: &'a [u8],
    /// What the route's pattern captured.
    pub captures: &'a Captures,
}

/// The target of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pieces: Vec<TemplatePiece>,
    leads: Leads,
}

/// The target of a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    path: Vec<TemplatePiece>,
    query: Option<Vec<TemplatePiece>>,
}

/// How far a redirect leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leads {
    /// To a path of the same server.
    Path,
    /// To a URL whose host begins with the request's.
    OwnHost,
    /// To a URL whose host the config names.
    NamedHost,
}

/// A redirect needs the request's host and there was none (400, the client's fault).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMissing;

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    /// Bytes ready to be sent (in a rewrite's path: decoded).
    Literal(Vec<u8>),
    /// Something of the request, encoded for the part of the URL it stands in.
    Filled(TemplateVariable, UrlPart),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplateVariable {
    /// The capture with this index.
    Capture(usize),
    Path,
    Query,
    Host,
    /// Path and query as they came.
    Uri,
}

impl Location {
    /// Reads the target of a redirect on a route with this pattern.
    pub fn parse(text: &str, pattern: &Pattern) -> Result<Location, TemplateError> {
        parse::location(text, pattern)
    }

    /// Appends the value of a `Location` field to `out`.
    //= rfc9110#10.2.2
    pub fn expand(&self, facts: &TemplateValues<'_>, out: &mut Vec<u8>) -> Result<(), HostMissing> {
        // Without a host, the first name of the path would take its place.
        if self.leads == Leads::OwnHost && without_port(facts.host).is_empty() {
            return Err(HostMissing);
        }
        let begin = out.len();
        fill(&self.pieces, facts, out);
        // `//name` would be another host; an empty capture between two slashes makes one.
        while self.leads == Leads::Path && out[begin..].starts_with(b"//") {
            out.remove(begin);
        }
        Ok(())
    }
}

impl Rewrite {
    /// Reads the target of a rewrite on a route with this pattern.
    pub fn parse(text: &str, pattern: &Pattern) -> Result<Rewrite, TemplateError> {
        parse::rewrite(text, pattern)
    }

    /// Replaces the content of `out` by the new path, in normal form.
    pub fn expand_path(
        &self,
        facts: &TemplateValues<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), BadPath> {
        let mut raw = Vec::with_capacity(facts.path.len() + 32);
        for piece in &self.path {
            match piece {
                TemplatePiece::Literal(bytes) => raw.extend_from_slice(bytes),
                TemplatePiece::Filled(source, _) => raw.extend_from_slice(source.bytes(facts)),
            }
        }
        if collapse(&raw, out)? == Normal::Clean {
            *out = raw;
        }
        Ok(())
    }

    /// The new query; `None` when the query stays what it was.
    pub fn expand_query(&self, facts: &TemplateValues<'_>) -> Option<Vec<u8>> {
        let query = self.query.as_ref()?;
        let mut out = Vec::new();
        fill(query, facts, &mut out);
        Some(out)
    }
}

fn fill(pieces: &[TemplatePiece], facts: &TemplateValues<'_>, out: &mut Vec<u8>) {
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            TemplatePiece::Literal(bytes) => out.extend_from_slice(bytes),
            TemplatePiece::Filled(source, part) => {
                let bytes = source.bytes(facts);
                let is_end = index + 1 == pieces.len();
                // `/new?{query}` without a query is `/new`.
                if bytes.is_empty() && is_end && *source == TemplateVariable::Query {
                    out.pop_if(|last| matches!(last, b'?' | b'&'));
                }
                encode(bytes, *part, out);
                if let (TemplateVariable::Uri, Some(query)) = (source, facts.query) {
                    encode(b"?", *part, out);
                    encode(query, *part, out);
                }
            }
        }
    }
}

impl TemplateVariable {
    /// What it stands for; of [`TemplateVariable::Uri`] the path, to which [`fill`] adds the query.
    fn bytes<'a>(self, facts: &TemplateValues<'a>) -> &'a [u8] {
        match self {
            TemplateVariable::Capture(index) => {
                facts.captures.text(index, facts.path).unwrap_or_default()
            }
            TemplateVariable::Path => facts.path,
            TemplateVariable::Query => facts.query.unwrap_or_default(),
            TemplateVariable::Host => without_port(facts.host),
            TemplateVariable::Uri => facts.raw_path,
        }
    }
}

/// The host without `:port`. An IPv6 literal keeps its brackets.
pub fn without_port(host: &[u8]) -> &[u8] {
    let Some(colon) = memchr::memrchr(b':', host) else {
        return host;
    };
    if host[colon + 1..].iter().all(u8::is_ascii_digit) {
        &host[..colon]
    } else {
        host
    }
}

#[cfg(test)]
mod tests;
