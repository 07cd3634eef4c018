//! A regular expression in the place of a pattern: bytes and no characters, so that a path that is
//! no UTF-8 is held against it as any other, in time linear in the path.

use regex::bytes::{CaptureLocations, Regex, RegexBuilder};

use super::parse::PatternFault;
use super::{CAPTURES_MAX, Captures};

/// Memory that a regular expression of a path may take, in bytes.
pub const REGEX_BYTES_MAX: usize = 256 * 1024;

/// A regular expression of paths.
#[derive(Clone, Debug)]
pub struct PathRegex(Regex);

impl PathRegex {
    /// Reads one; letters are the same in both cases where `ignores_case`.
    pub(super) fn parse(text: &str, ignores_case: bool) -> Result<PathRegex, PatternFault> {
        let text = match ignores_case {
            true => format!("(?i){text}"),
            false => text.to_owned(),
        };
        let mut builder = RegexBuilder::new(&text);
        let builder = builder.unicode(false).dot_matches_new_line(true);
        let regex = builder
            .size_limit(REGEX_BYTES_MAX)
            .dfa_size_limit(REGEX_BYTES_MAX)
            .build()
            .map_err(|error| PatternFault::BadRegex(why(&error)))?;
        match regex.captures_len() > CAPTURES_MAX + 1 {
            true => Err(PatternFault::TooManyCaptures),
            false => Ok(PathRegex(regex)),
        }
    }

    /// Names of its groups in their order: those without one are called by their numbers from 1.
    pub(super) fn names(&self) -> Vec<Box<str>> {
        let groups = self.0.capture_names().enumerate().skip(1);
        let name = |(number, name): (usize, Option<&str>)| match name {
            Some(name) => name.into(),
            None => number.to_string().into(),
        };
        groups.map(name).collect()
    }

    /// Whether it is found in a path.
    pub fn is_match(&self, path: &[u8]) -> bool {
        path.starts_with(b"/") && self.0.is_match(path)
    }

    /// The same, with what its groups stand for; of one that took no part, nothing.
    pub(super) fn capture(&self, path: &[u8], captures: &mut Captures) -> bool {
        let mut found: CaptureLocations = self.0.capture_locations();
        if !path.starts_with(b"/") || self.0.captures_read(&mut found, path).is_none() {
            return false;
        }
        for group in 1..found.len() {
            let (begin, end) = found.get(group).unwrap_or_default();
            captures.add(begin, end);
        }
        true
    }
}

impl PartialEq for PathRegex {
    fn eq(&self, other: &PathRegex) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for PathRegex {}

/// What is wrong with a regular expression, without the drawing of it.
fn why(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
