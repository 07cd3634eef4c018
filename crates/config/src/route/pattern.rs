//! A route's path pattern: what it matches, what it captures, which other patterns it covers.
//!
//! | written | matches |
//! | --- | --- |
//! | `/a/b` | this path only |
//! | `/a/*` | `/a/` and everything below; not `/a` |
//! | `*.php` | every path that ends in `.php` |
//! | `/a/*.php` | every path below `/a/`, at any depth, that ends in `.php` |
//! | `/a/{name}/b` | any one segment, not empty, between `/a/` and `/b` |
//! | `/a/{rest*}` | like `/a/*`, and captures what follows `/a/` |
//! | `/a/{name}.html`, `/~{name}/*` | one segment that begins and ends so, with one byte more |
//! | `~ ^/a/(?<name>[0-9]+)$` | every path in which the regular expression is found |
//! | `~* \.png$` | the same, whatever the case of letters |
//!
//! Captures and a final star may be combined: `/{user}/*`. Patterns are compared byte by byte with
//! the normal form of a path (see `target`), so they are written decoded: `/a b`, not `/a%20b`.
//! Only a slash that is no separator is written as it is sent: `%2F`.
//!
//! Every pattern is a list of segments and a tail. A path is cut at its slashes into pieces, at
//! least one (`/` is one empty piece); the segments take the first pieces, the tail says what may
//! follow.

mod parse;
mod path_regex;
mod regex_meant;

pub(crate) use parse::is_name;
pub use parse::{PatternError, PatternFault};
pub use path_regex::{PathRegex, REGEX_BYTES_MAX};

/// Most captures of one pattern.
pub const CAPTURES_MAX: usize = 16;
/// Most segments of one pattern.
pub const SEGMENTS_MAX: usize = 64;

/// A path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// What the first pieces of a path must be.
    pub segments: Vec<PatternSegment>,
    /// What may follow them.
    pub tail: Tail,
    /// Names of the captures, in the order of the path; that of `{rest*}` is last.
    names: Vec<Box<str>>,
}

/// What one piece of a path must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternSegment {
    /// These bytes; empty only for a final slash.
    Literal(Box<[u8]>),
    /// Any bytes, at least one, between these two texts.
    Capture {
        /// What the piece begins with.
        before: Box<[u8]>,
        /// What it ends in.
        after: Box<[u8]>,
    },
}

/// What may follow the segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    End,
    /// One piece or more.
    Rest,
    /// One piece or more, captured as one text.
    NamedRest,
    /// One piece or more, the last of which ends in these bytes (`.` first, no slash).
    Suffix(Box<[u8]>),
    /// Anything, without segments before it, where the regular expression is found in the path.
    Regex(PathRegex),
}

/// What a pattern found in a path: ranges of that path, copied nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captures {
    below: usize,
    count: usize,
    ranges: [(usize, usize); CAPTURES_MAX],
}

/// Where a path and a pattern differ first, from the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch<'p> {
    /// A segment of the path, as a range of it, is not the pattern's.
    Segment {
        /// The pattern's segment.
        wanted: &'p [u8],
        /// Where the path's begins.
        begin: usize,
        /// Where it ends.
        end: usize,
    },
    /// A segment of the path, as a range of it, does not begin and end as the pattern's.
    Part {
        /// What it has to begin with,
        before: &'p [u8],
        /// and to end in.
        after: &'p [u8],
        /// Where the path's begins.
        begin: usize,
        /// Where it ends.
        end: usize,
    },
    /// A capture would be empty.
    Empty,
    /// The path ends before the pattern does.
    Short,
    /// The pattern ends before the path does: the rest begins here.
    Long {
        /// Index of the rest's first byte.
        begin: usize,
    },
    /// The path does not end in these bytes.
    Suffix(&'p [u8]),
    /// The regular expression is not found in the path.
    Regex,
}

impl Captures {
    /// The text of the capture with this index, or `None` beyond the last. `path` is the one
    /// matched.
    pub fn text<'a>(&self, index: usize, path: &'a [u8]) -> Option<&'a [u8]> {
        let &(begin, end) = self.ranges[..self.count].get(index)?;
        path.get(begin..end)
    }

    /// Where the path leaves the pattern's fixed folder: the index of the first byte that `*`,
    /// `{rest*}` or, in a pattern without them, the last segment stands for.
    pub fn below(&self) -> usize {
        self.below
    }

    fn add(&mut self, begin: usize, end: usize) {
        self.ranges[self.count] = (begin, end);
        self.count += 1;
    }

    /// Captures what a piece of the path has between two texts.
    fn add_part<'p>(
        &mut self,
        (before, after): (&'p [u8], &'p [u8]),
        path: &[u8],
        (begin, end): (usize, usize),
    ) -> Result<(), Mismatch<'p>> {
        let piece = &path[begin..end];
        let inner = { piece.strip_prefix(before) }.and_then(|rest| rest.strip_suffix(after));
        match inner {
            Some([]) => Err(Mismatch::Empty),
            Some(_) => {
                self.add(begin + before.len(), end - after.len());
                Ok(())
            }
            None => Err(Mismatch::Part {
                before,
                after,
                begin,
                end,
            }),
        }
    }
}

impl Pattern {
    /// Reads a pattern as written in the config.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        parse::parse(text)
    }

    /// Names of the captures, by index.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The captures of `path`, or `None` when it does not match. `path` is in normal form.
    pub fn matches(&self, path: &[u8]) -> Option<Captures> {
        self.compare(path).ok()
    }

    /// As [`Pattern::matches`], and where a path that does not match differs first.
    pub fn compare(&self, path: &[u8]) -> Result<Captures, Mismatch<'_>> {
        let mut captures = Captures {
            below: 1,
            count: 0,
            ranges: [(0, 0); CAPTURES_MAX],
        };
        if let Tail::Regex(regex) = &self.tail {
            let is_found = regex.capture(path, &mut captures);
            return is_found.then_some(captures).ok_or(Mismatch::Regex);
        }
        let mut pieces = Pieces::of(path).ok_or(Mismatch::Short)?;
        let mut last_begin = 1;
        for segment in &self.segments {
            let (begin, end) = pieces.next().ok_or(Mismatch::Short)?;
            last_begin = begin;
            match segment {
                PatternSegment::Literal(literal) if **literal != path[begin..end] => {
                    return Err(Mismatch::Segment {
                        wanted: literal,
                        begin,
                        end,
                    });
                }
                PatternSegment::Literal(_) => {}
                PatternSegment::Capture { before, after } => {
                    captures.add_part((before, after), path, (begin, end))?;
                }
            }
        }
        let Tail::End = self.tail else {
            captures.below = pieces.begin.ok_or(Mismatch::Short)?;
            match &self.tail {
                Tail::Suffix(suffix) if !path[captures.below..].ends_with(suffix) => {
                    return Err(Mismatch::Suffix(suffix));
                }
                Tail::NamedRest => captures.add(captures.below, path.len()),
                _ => {}
            }
            return Ok(captures);
        };
        captures.below = last_begin;
        match pieces.begin {
            None => Ok(captures),
            Some(begin) => Err(Mismatch::Long { begin }),
        }
    }

    /// True when it has no star: all that follows its last slash is one name.
    pub fn is_one_path(&self) -> bool {
        self.tail == Tail::End
    }

    /// What `/*` or `/{rest*}` stands behind, as a pattern of its own; `None` where there is no
    /// such end, or nothing before it.
    pub fn without_star(&self) -> Option<Pattern> {
        let has_star = matches!(self.tail, Tail::Rest | Tail::NamedRest);
        (has_star && !self.segments.is_empty()).then(|| Pattern {
            tail: Tail::End,
            ..self.clone()
        })
    }

    /// True when every path that `other` matches is matched by `self` too.
    pub fn covers(&self, other: &Pattern) -> bool {
        if let Tail::Regex(_) = &self.tail {
            return self.tail == other.tail;
        }
        let enough_pieces = match (&self.tail, &other.tail) {
            (Tail::End, Tail::End) => self.segments.len() == other.segments.len(),
            (Tail::End, _) => false,
            (_, Tail::End) => self.segments.len() < other.segments.len(),
            (_, _) => self.segments.len() <= other.segments.len(),
        };
        enough_pieces
            && self
                .segments
                .iter()
                .zip(&other.segments)
                .all(|(own, theirs)| own.covers(theirs))
            && self.tail_covers(other)
    }

    /// The tails' part of [`Pattern::covers`], when `other` has enough pieces.
    fn tail_covers(&self, other: &Pattern) -> bool {
        let Tail::Suffix(suffix) = &self.tail else {
            return true;
        };
        match (&other.tail, other.segments.last()) {
            (Tail::Suffix(theirs), _) => theirs.ends_with(suffix),
            (
                Tail::End,
                Some(PatternSegment::Literal(last) | PatternSegment::Capture { after: last, .. }),
            ) => last.ends_with(suffix),
            _ => false,
        }
    }
}

impl PatternSegment {
    fn covers(&self, other: &PatternSegment) -> bool {
        match (self, other) {
            (PatternSegment::Literal(own), PatternSegment::Literal(theirs)) => own == theirs,
            (PatternSegment::Capture { before, after }, PatternSegment::Literal(theirs)) => {
                theirs.len() > before.len() + after.len()
                    && theirs.starts_with(before)
                    && theirs.ends_with(after)
            }
            (
                PatternSegment::Capture { before, after },
                PatternSegment::Capture {
                    before: their_before,
                    after: their_after,
                },
            ) => their_before.starts_with(before) && their_after.ends_with(after),
            (PatternSegment::Literal(_), PatternSegment::Capture { .. }) => false,
        }
    }
}

/// The pieces of a path, as ranges of it.
struct Pieces<'a> {
    path: &'a [u8],
    /// Where the next piece begins; `None` after the last.
    begin: Option<usize>,
}

impl<'a> Pieces<'a> {
    fn of(path: &'a [u8]) -> Option<Pieces<'a>> {
        (path.first() == Some(&b'/')).then_some(Pieces {
            path,
            begin: Some(1),
        })
    }

    fn next(&mut self) -> Option<(usize, usize)> {
        let begin = self.begin?;
        let slash = memchr::memchr(b'/', &self.path[begin..]);
        self.begin = slash.map(|offset| begin + offset + 1);
        Some((
            begin,
            slash.map_or(self.path.len(), |offset| begin + offset),
        ))
    }
}

#[cfg(test)]
mod tests;
