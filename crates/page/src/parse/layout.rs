//! Lays a page out without a change of what it does: keywords in upper case, built-in functions as
//! the reference writes them, and between declarations at most one empty line and no blanks at the
//! ends of lines. What is printed is not touched.

use super::parser::{PageParser, Parsed, SourceMark};

/// The page, laid out.
pub(crate) fn format(file: &str, source: &[u8]) -> Parsed<Vec<u8>> {
    let mut parser = PageParser::new(file, source)?;
    parser.declarations(None)?;
    let mut marks = parser.marks;
    marks.sort_by_key(|(range, _)| range.start);
    let mut text = Vec::with_capacity(source.len());
    let mut at = 0;
    for (range, mark) in marks {
        text.extend_from_slice(&source[at..range.start]);
        let part = &source[range.clone()];
        match mark {
            SourceMark::Keyword => text.extend(part.iter().map(u8::to_ascii_uppercase)),
            SourceMark::BuiltIn(function, form) => {
                text.extend_from_slice(function.written(form).as_bytes());
            }
            SourceMark::Gap => gap(part, &mut text),
        }
        at = range.end;
    }
    text.extend_from_slice(&source[at..]);
    let end = text.trim_ascii_end().len();
    text.truncate(end);
    text.push(b'\n');
    Ok(text)
}

/// Text between declarations: lines without blanks at their ends, and one empty line at most.
fn gap(part: &[u8], text: &mut Vec<u8>) {
    let mut lines = part.split(|byte| *byte == b'\n').peekable();
    let mut empty = 0;
    let mut is_first = true;
    while let Some(line) = lines.next() {
        let is_last = lines.peek().is_none();
        // The last line goes on behind the gap.
        let line = if is_last { line } else { line.trim_ascii_end() };
        empty = match line.is_empty() && !is_first && !is_last {
            true => empty + 1,
            false => 0,
        };
        if empty > 1 {
            continue;
        }
        text.extend_from_slice(line);
        if !is_last {
            text.push(b'\n');
        }
        is_first = false;
    }
}
