//! What is wrong with a config, and where: one [`Diagnostic`] per mistake, all of them kept.
//!
//! A fault is made from a [`Spot`] (a range of bytes in one source) and carries everything its
//! printing needs, so that it outlives the sources. Printing is for people; `to_json` for programs.

use std::collections::HashSet;
use std::fmt::{self, Display, Write as _};

use serde_json::{Value as Json, json};

use super::SourceLocation;
use super::sources::ConfigSources;

/// One mistake, or one warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where it stands; line 0 when the whole file is meant (it could not be read).
    pub place: SourceLocation,
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty when the message says it.
    pub hint: String,
    /// Other places that belong to it, each with a word on what is there.
    pub related: Vec<(SourceLocation, String)>,
    excerpt: Option<Excerpt>,
}

/// The name of a source that is made of the arguments of a command.
pub const COMMAND_LINE: &str = "command line";

/// The line a fault stands on, made printable, and what of it is underlined.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    text: String,
    skip: usize,
    width: usize,
}

/// A range of bytes in one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Index of the source.
    pub source: usize,
    /// First byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

/// Every mistake found in a config, in the order of its sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    faults: Vec<Diagnostic>,
}

/// What a config says that probably is not meant, but can be served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    faults: Vec<Diagnostic>,
}

impl Errors {
    /// The mistakes, in the order of the sources.
    pub fn faults(&self) -> &[Diagnostic] {
        &self.faults
    }

    /// For programs: `{"errors": [{"file", "line", "column", "message", "hint", "related"}]}`.
    pub fn to_json(&self) -> Json {
        json!({ "errors": self.faults.iter().map(Diagnostic::to_json).collect::<Vec<_>>() })
    }

    /// One mistake at a place, found when the config was complete.
    pub fn at(sources: &ConfigSources, spot: Spot, message: &str, hint: &str) -> Errors {
        let mut fault = Diagnostic::at(sources, spot, message);
        fault.hint = printable(hint);
        Errors {
            faults: vec![fault],
        }
    }

    /// One mistake that has no place in a text, as when a file cannot be read.
    pub fn of_file(file: &str, message: String, hint: &str) -> Errors {
        Errors {
            faults: vec![Diagnostic::of_file(file, message, hint)],
        }
    }
}

impl Warnings {
    /// The warnings, in the order of the sources.
    pub fn faults(&self) -> &[Diagnostic] {
        &self.faults
    }

    /// True when there is nothing to warn about.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// For programs: `{"warnings": [{"file", "line", "column", "message", "hint", "related"}]}`.
    pub fn to_json(&self) -> Json {
        json!({ "warnings": self.faults.iter().map(Diagnostic::to_json).collect::<Vec<_>>() })
    }
}

impl std::error::Error for Errors {}

impl Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            fault.print(f, "error")?;
        }
        match self.faults.len() {
            1 => writeln!(f, "1 error"),
            n => writeln!(f, "{n} errors"),
        }
    }
}

impl Display for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults
            .iter()
            .try_for_each(|fault| fault.print(f, "warning"))
    }
}

impl Diagnostic {
    /// A fault of a whole file.
    pub fn of_file(file: &str, message: String, hint: &str) -> Diagnostic {
        Diagnostic {
            place: SourceLocation {
                file: file.into(),
                line: 0,
                column: 0,
            },
            message: printable(&message),
            hint: hint.to_owned(),
            related: Vec::new(),
            excerpt: None,
        }
    }

    /// A fault at a place in the sources.
    pub fn at(sources: &ConfigSources, spot: Spot, message: &str) -> Diagnostic {
        let mut place = sources.place(spot);
        // Nobody wrote the text that is made of a command line, or knows its lines.
        let is_written = *place.file != *COMMAND_LINE;
        if !is_written {
            (place.line, place.column) = (0, 0);
        }
        Diagnostic {
            place,
            message: printable(message),
            hint: String::new(),
            related: Vec::new(),
            excerpt: is_written.then(|| Excerpt::of(sources.text(spot.source), spot)),
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
        writeln!(f, "{}: {word}: {}", self.place, self.message)?;
        if let Some(excerpt) = &self.excerpt {
            let number = self.place.line.to_string();
            let margin = " ".repeat(number.len());
            writeln!(f, " {number} | {}", excerpt.text)?;
            let marks = "^".repeat(excerpt.width);
            writeln!(f, " {margin} | {}{marks}", " ".repeat(excerpt.skip))?;
        }
        for (place, what) in &self.related {
            writeln!(f, "   see {place}: {what}")?;
        }
        if !self.hint.is_empty() {
            writeln!(f, "   do: {}", self.hint)?;
        }
        Ok(())
    }

    fn to_json(&self) -> Json {
        let related = self.related.iter().map(|(place, what)| {
            let SourceLocation { file, line, column } = place;
            json!({ "file": **file, "line": line, "column": column, "message": what })
        });
        json!({
            "file": *self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "message": self.message,
            "hint": self.hint,
            "related": related.collect::<Vec<_>>(),
        })
    }
}

impl Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = printable(&self.file);
        match self.line {
            0 => f.write_str(&file),
            line => write!(f, "{file}:{line}:{}", self.column),
        }
    }
}

/// Columns of source shown at most: a generated line may be as long as its file.
const EXCERPT_COLUMNS: usize = 96;

impl Excerpt {
    fn of(text: &str, spot: Spot) -> Excerpt {
        let begin = text[..spot.start]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let end = text[spot.start..]
            .find('\n')
            .map_or(text.len(), |length| spot.start + length);
        let before = text[begin..spot.start].chars().count();
        let marked = text[spot.start..spot.end.clamp(spot.start, end)]
            .chars()
            .count();
        let line: Vec<char> = text[begin..end].trim_end_matches('\r').chars().collect();
        let cut = before.saturating_sub(EXCERPT_COLUMNS / 2);
        let cut = if line.len() <= EXCERPT_COLUMNS {
            0
        } else {
            cut
        };
        let mut shown: Vec<char> = line
            .iter()
            .copied()
            .skip(cut)
            .take(EXCERPT_COLUMNS)
            .collect();
        if let (Some(first), true) = (shown.first_mut(), cut > 0) {
            *first = '…';
        }
        if let (Some(last), true) = (shown.last_mut(), cut + EXCERPT_COLUMNS < line.len()) {
            *last = '…';
        }
        let skip = before - cut;
        let width = marked.clamp(1, EXCERPT_COLUMNS.saturating_sub(skip).max(1));
        Excerpt {
            text: printable(&shown.into_iter().collect::<String>()),
            skip,
            width,
        }
    }
}

/// The text with each control character replaced, so that a config cannot steer a terminal and a
/// tab takes one column.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push(' '),
            '\n' => shown.push_str("\\n"),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

/// Collects faults while a config is read; the reading goes on after each.
pub struct Faults<'a> {
    sources: &'a ConfigSources,
    errors: Vec<(Spot, Diagnostic)>,
    warnings: Vec<(Spot, Diagnostic)>,
}

impl<'a> Faults<'a> {
    /// Of these sources, none yet.
    pub fn new(sources: &'a ConfigSources) -> Faults<'a> {
        Faults {
            sources,
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A mistake; the answer takes a hint and related places.
    pub fn error(&mut self, spot: Spot, message: impl AsRef<str>) -> FaultDetail<'_, 'a> {
        push(self.sources, &mut self.errors, spot, message.as_ref())
    }

    /// A warning; the answer takes a hint and related places.
    pub fn warn(&mut self, spot: Spot, message: impl AsRef<str>) -> FaultDetail<'_, 'a> {
        push(self.sources, &mut self.warnings, spot, message.as_ref())
    }

    /// The sources in which places are.
    pub fn sources(&self) -> &'a ConfigSources {
        self.sources
    }

    /// The errors, else the warnings, each in the order of the sources.
    pub fn finish(mut self) -> Result<Warnings, Errors> {
        let order = |(spot, _): &(Spot, Diagnostic)| (spot.source, spot.start);
        self.errors.sort_by_key(order);
        self.warnings.sort_by_key(order);
        let bare = |mut list: Vec<(Spot, Diagnostic)>| {
            // What several sites take over from one place is read for each of them.
            let mut seen = HashSet::new();
            list.retain(|(spot, fault)| {
                seen.insert((spot.source, spot.start, spot.end, fault.message.clone()))
            });
            list.into_iter().map(|(_, fault)| fault).collect()
        };
        if self.errors.is_empty() {
            Ok(Warnings {
                faults: bare(self.warnings),
            })
        } else {
            Err(Errors {
                faults: bare(self.errors),
            })
        }
    }
}

fn push<'f, 's>(
    sources: &'s ConfigSources,
    list: &'f mut Vec<(Spot, Diagnostic)>,
    spot: Spot,
    message: &str,
) -> FaultDetail<'f, 's> {
    let index = list.len();
    list.push((spot, Diagnostic::at(sources, spot, message)));
    FaultDetail {
        sources,
        fault: &mut list[index].1,
    }
}

/// Adds to the fault just reported.
pub struct FaultDetail<'f, 's> {
    sources: &'s ConfigSources,
    fault: &'f mut Diagnostic,
}

impl FaultDetail<'_, '_> {
    /// What to do about it.
    pub fn hint(self, hint: impl AsRef<str>) -> Self {
        self.fault.hint = printable(hint.as_ref());
        self
    }

    /// Another place that belongs to it.
    pub fn see(self, spot: Spot, what: &str) -> Self {
        self.fault
            .related
            .push((self.sources.place(spot), printable(what)));
        self
    }
}

/// Words as a list: `a`, `b` or `c`.
pub fn listed<'w>(words: impl IntoIterator<Item = &'w str>, last: &str) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let mut text = String::new();
    for (i, word) in words.iter().enumerate() {
        let gap = match i {
            0 => "",
            i if i + 1 == words.len() => last,
            _ => ", ",
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{gap}`{word}`");
    }
    text
}
