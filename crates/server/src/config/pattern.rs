//! Path patterns of routes, and texts with `{name}` in them (`rewrite`, a redirect's `to`).
//!
//! ```text
//! /about             that path           /user/{name}/posts   one segment captured
//! /docs/*            all below /docs/    /files/{rest*}       all below /files/, captured
//! *.php  /old/*.php  paths that end so
//! ```

/// A path pattern, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The segments before the tail; `/a/` has two, the second is empty.
    pub(crate) segments: Vec<Segment>,
    /// What follows them.
    pub(crate) tail: Tail,
}

/// A part of a path between slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// This text.
    Literal(String),
    /// Any text but none, captured under this name.
    Capture(String),
}

/// How a pattern ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With its last segment.
    Exact,
    /// `/*`: with a slash and anything.
    Anything,
    /// `/{name*}`: with a slash and anything, captured under this name.
    Rest(String),
    /// `*.php`: with anything that ends in this, the dot included.
    Ending(String),
}

/// Why a text is no pattern: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternError {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

fn wrong<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, PatternError> {
    Err(PatternError {
        message: message.into(),
        hint: hint.into(),
    })
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it and what to do.
    pub(crate) fn parse(text: &str) -> Result<Pattern, PatternError> {
        check_characters(text)?;
        let Some(path) = text.strip_prefix('/') else {
            return ending_anywhere(text);
        };
        let mut pattern = Pattern {
            segments: Vec::new(),
            tail: Tail::Exact,
        };
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            match tail(part)? {
                Some(tail) if is_last => pattern.tail = tail,
                Some(_) => {
                    return wrong(
                        format!("`{part}` stands before the last `/`"),
                        "`*` and `{name*}` end a pattern; one segment is `{name}`",
                    );
                }
                None => {
                    let segment = segment(part)?;
                    if is_last || segment != Segment::Literal(String::new()) {
                        pattern.segments.push(segment);
                    } else {
                        return wrong("the path has an empty segment (`//`)", "remove one `/`");
                    }
                }
            }
        }
        pattern.unique_captures()?;
        Ok(pattern)
    }

    /// Names of its captures, in order.
    pub(crate) fn captures(&self) -> impl Iterator<Item = &str> {
        let segments = self.segments.iter().filter_map(|segment| match segment {
            Segment::Capture(name) => Some(name.as_str()),
            Segment::Literal(_) => None,
        });
        let rest = match &self.tail {
            Tail::Rest(name) => Some(name.as_str()),
            _ => None,
        };
        segments.chain(rest)
    }

    fn unique_captures(&self) -> Result<(), PatternError> {
        let names: Vec<&str> = self.captures().collect();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return wrong(
                    format!("`{{{name}}}` is captured twice"),
                    "give them two names",
                );
            }
        }
        Ok(())
    }
}

fn check_characters(text: &str) -> Result<(), PatternError> {
    if text.is_empty() {
        return wrong(
            "the path is empty",
            "write `/` for the start page, `/*` for every path",
        );
    }
    if let Some(c) = text.chars().find(|c| c.is_control()) {
        return wrong(
            format!("the path holds the control character {c:?}"),
            "remove it",
        );
    }
    if let Some(c) = text.chars().find(|c| ['?', '#', '\\'].contains(c)) {
        return wrong(
            format!("a path holds no `{c}`"),
            "patterns match the path only, without query and fragment",
        );
    }
    let bytes = text.as_bytes();
    let is_encoded = |at: usize| {
        bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit)
            && bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit)
    };
    if let Some((at, _)) = text.match_indices('%').find(|(at, _)| is_encoded(*at)) {
        return wrong(
            format!("`{}` is percent-encoded", &text[at..at + 3]),
            "paths are matched decoded: write the character itself",
        );
    }
    Ok(())
}

/// `*.php`, for paths in every folder.
fn ending_anywhere(text: &str) -> Result<Pattern, PatternError> {
    match tail(text) {
        Ok(Some(tail @ Tail::Ending(_))) => Ok(Pattern {
            segments: Vec::new(),
            tail,
        }),
        Err(error) if !text.contains('/') => Err(error),
        _ => {
            let hint = if text == "*" {
                "write `/*` for every path".to_owned()
            } else {
                format!(
                    "write `/{}`; an ending is written `*.php`",
                    text.trim_start_matches('*')
                )
            };
            wrong("a path begins with `/`, or with `*.`", hint)
        }
    }
}

/// The last part of a pattern as a tail, if it is one.
fn tail(part: &str) -> Result<Option<Tail>, PatternError> {
    if part == "*" {
        return Ok(Some(Tail::Anything));
    }
    if let Some(name) = part
        .strip_prefix('{')
        .and_then(|part| part.strip_suffix("*}"))
    {
        return capture_name(name).map(|name| Some(Tail::Rest(name)));
    }
    if let Some(ending) = part.strip_prefix('*') {
        if !ending.starts_with('.') || ending.len() < 2 || ending.contains(['*', '{', '}', '/']) {
            return wrong(
                format!("`{part}` is no ending"),
                "after `*` come a dot and plain text, as in `*.php`",
            );
        }
        return Ok(Some(Tail::Ending(ending.to_owned())));
    }
    Ok(None)
}

fn segment(part: &str) -> Result<Segment, PatternError> {
    if let Some(name) = part
        .strip_prefix('{')
        .and_then(|part| part.strip_suffix('}'))
    {
        return capture_name(name).map(Segment::Capture);
    }
    if part.contains(['{', '}']) {
        let hint = "a capture is a whole segment: `/user/{name}/posts`";
        return wrong(format!("`{part}` has `{{` or `}}` inside"), hint);
    }
    if part.contains('*') {
        let hint = "`*` ends a pattern after a `/` (`/docs/*`) or begins an ending (`*.php`)";
        return wrong(format!("`{part}` has `*` inside"), hint);
    }
    if part == "." || part == ".." {
        return wrong(
            format!("`{part}` is never part of a path here"),
            "paths arrive without it",
        );
    }
    Ok(Segment::Literal(part.to_owned()))
}

fn capture_name(name: &str) -> Result<String, PatternError> {
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        let hint = "a name has letters, digits and `_`";
        return wrong(format!("`{{{name}}}` has no right name"), hint);
    }
    Ok(name.to_owned())
}

/// A part of a text with `{name}` in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// As it stands.
    Plain(&'t str),
    /// To be replaced by what this name stands for.
    Name(&'t str),
}

/// Cuts a text at its `{name}`s.
///
/// # Errors
/// A brace without its other half, or without a name inside.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, PatternError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (plain, after) = rest.split_at(at);
        if !plain.is_empty() {
            pieces.push(Piece::Plain(plain));
        }
        let inside = after
            .strip_prefix('{')
            .and_then(|after| after.split_once('}'));
        let Some((name, after)) = inside else {
            return wrong(
                "a brace has no other half",
                "names stand in braces: `{name}`",
            );
        };
        capture_name(name)?;
        pieces.push(Piece::Name(name));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Plain(rest));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Segment {
        Segment::Literal(text.into())
    }

    #[test]
    fn each_shape_is_read() {
        let read = |text| Pattern::parse(text).unwrap();
        assert_eq!(
            read("/"),
            Pattern {
                segments: vec![literal("")],
                tail: Tail::Exact
            }
        );
        assert_eq!(
            read("/*"),
            Pattern {
                segments: vec![],
                tail: Tail::Anything
            }
        );
        let slash = Pattern {
            segments: vec![literal("a"), literal("")],
            tail: Tail::Exact,
        };
        assert_eq!(read("/a/"), slash);
        let below = Pattern {
            segments: vec![literal("a b")],
            tail: Tail::Anything,
        };
        assert_eq!(read("/a b/*"), below);
        let ending = Tail::Ending(".tar.gz".into());
        assert_eq!(
            read("*.tar.gz"),
            Pattern {
                segments: vec![],
                tail: ending
            }
        );
        let ending = Tail::Ending(".php".into());
        assert_eq!(
            read("/old/*.php"),
            Pattern {
                segments: vec![literal("old")],
                tail: ending
            }
        );
        let both = read("/u/{id}/{rest*}");
        assert_eq!(both.captures().collect::<Vec<_>>(), ["id", "rest"]);
        assert_eq!(both.tail, Tail::Rest("rest".into()));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "", "a", "*", "**", "/a*", "/a/*/b", "/*a", "/{a*}/b", "/{a}b", "/{}", "/{1}",
            "/{a}/{a}", "//", "/a//b", "/a/../b", "/%20", "/a?b", "/a#b", "/a\\b", "/a\nb", "*.",
            "*.p*", "/*.{a}", "a/*.php",
        ] {
            assert!(Pattern::parse(text).is_err(), "{text:?}");
        }
        assert!(Pattern::parse("/100%").is_ok());
    }

    #[test]
    fn texts_are_cut_at_their_names() {
        use Piece::{Name, Plain};
        assert_eq!(
            pieces("/a/{b}{c}.html").unwrap(),
            [Plain("/a/"), Name("b"), Name("c"), Plain(".html"),]
        );
        for text in ["{", "}", "{a", "a}", "{}", "{a b}"] {
            assert!(pieces(text).is_err(), "{text}");
        }
    }
}
