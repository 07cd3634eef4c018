//! TOML text to a spanned tree. The parser stops at its first error; we blank that line and go on,
//! so that one slip does not hide the other mistakes of the file.

use std::ops::Range;

use toml_edit::Document;

/// What could be read of a text.
pub(crate) struct Parsed {
    /// The tree; `None` when the text cannot be read around its errors.
    pub(crate) document: Option<Document<String>>,
    /// Syntax errors: where, and what.
    pub(crate) errors: Vec<(Range<usize>, String)>,
}

/// Reads a text as TOML.
pub(crate) fn parse(text: &str) -> Parsed {
    let mut errors: Vec<(Range<usize>, String)> = Vec::new();
    let mut remaining = text.to_owned();
    loop {
        let error = match Document::parse(remaining.clone()) {
            Ok(document) => return finish(Some(document), errors),
            Err(error) => error,
        };
        let span = whole_characters(text, error.span().unwrap_or(0..0));
        let line = line_around(text, span.start);
        let is_repeated = errors.iter().any(|(other, _)| line.contains(&other.start));
        if !is_repeated {
            errors.push((span, error.message().to_owned()));
        }
        if is_repeated || errors.len() == ERRORS_MAX || !stands_alone(&text[line.clone()]) {
            // What follows would be guesses.
            return finish(None, errors);
        }
        remaining.replace_range(line.clone(), &" ".repeat(line.len()));
    }
}

/// The parser does not find errors in the order of the text.
fn finish(document: Option<Document<String>>, mut errors: Vec<(Range<usize>, String)>) -> Parsed {
    errors.sort_by_key(|(span, _)| span.start);
    Parsed { document, errors }
}

/// Syntax errors read around in one file.
const ERRORS_MAX: usize = 16;

/// A line that sets one key and can be left out without changing what the others mean.
fn stands_alone(line: &str) -> bool {
    let Some((key, value)) = line.split_once('=') else {
        return false;
    };
    let key = key.trim();
    let count = |c: char| value.matches(c).count();
    let is_open = value.contains("\"\"\"")
        || value.contains("'''")
        || count('[') != count(']')
        || count('{') != count('}');
    !key.is_empty() && !key.starts_with(['[', '{', '#']) && !is_open
}

fn line_around(text: &str, at: usize) -> Range<usize> {
    // An error may be reported at the end of its line or of the text.
    let at = if at > 0 && (at == text.len() || text[at..].starts_with(['\n', '\r'])) {
        text[..at].trim_end_matches(['\n', '\r']).len()
    } else {
        at
    };
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |len| at + len);
    start..end
}

/// The range, widened to character boundaries and kept inside the text.
fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    let mut start = range.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = range.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> (Vec<usize>, bool) {
        let parsed = parse(text);
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        (
            parsed.errors.iter().map(|(s, _)| line(s.start)).collect(),
            parsed.document.is_some(),
        )
    }

    #[test]
    fn plain_slips_are_all_found_and_the_rest_is_read() {
        assert_eq!(
            lines("a = 1\nb = 2 2\nc = 3\nd = \"x\n"),
            (vec![2, 4], true)
        );
        assert_eq!(lines("a = 1\na = 2\n"), (vec![2], true));
    }

    #[test]
    fn slips_in_structure_end_the_reading() {
        assert_eq!(lines("a = 1 1\n[x\nb = 1\n"), (vec![2], false));
        assert_eq!(lines("a = [1,\n"), (vec![1], false));
    }
}
