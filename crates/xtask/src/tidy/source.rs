//! Rust text told apart into code, comments and strings, well enough for rules to look at.
//!
//! `code` and `comments` have the bytes of the file at the same offsets, with everything else
//! blanked, so that an offset found in one is a line number in all. This is not a parser: it knows
//! where strings, comments, function bodies and test modules begin and end, and nothing more.

use std::ops::Range;

/// One Rust file.
pub(super) struct RustSource {
    /// The code: comments, and what is inside quotes, are blank.
    pub(super) code: String,
    /// The comments: everything else is blank.
    pub(super) comments: String,
    /// Bodies of functions, braces included.
    pub(super) bodies: Vec<Range<usize>>,
    /// Items under `#[cfg(test)]`.
    pub(super) tests: Vec<Range<usize>>,
    /// Modules declared as `#[cfg(test)] mod name;`.
    pub(super) test_modules: Vec<String>,
    line_starts: Vec<usize>,
}

impl RustSource {
    /// Tells `text` apart.
    pub(super) fn read(text: &str) -> RustSource {
        let (code, comments) = Splitter::new(text).split();
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let bodies = find_bodies(&code);
        let (tests, test_modules) = find_tests(&code);
        RustSource {
            code,
            comments,
            bodies,
            tests,
            test_modules,
            line_starts,
        }
    }

    /// The line, from 1, that holds this offset.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset)
    }

    /// Is this offset in an item under `#[cfg(test)]`?
    pub(super) fn in_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }

    /// Is this offset in the body of a function?
    pub(super) fn in_body(&self, offset: usize) -> bool {
        self.bodies.iter().any(|range| range.contains(&offset))
    }

    /// Where `needle` stands in the code, as whole words.
    pub(super) fn find(&self, needle: &str) -> Vec<usize> {
        find_words(&self.code, needle)
    }
}

/// Where `needle` stands in `text` without a letter, digit or `_` directly before or after it,
/// where it begins or ends with one itself.
pub(super) fn find_words(text: &str, needle: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let is_word = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
    };
    let begins = needle.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let ends = needle.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    text.match_indices(needle)
        .map(|(at, _)| at)
        .filter(|&at| !(begins && is_word(at.checked_sub(1))))
        .filter(|&at| !(ends && is_word(Some(at + needle.len()))))
        .collect()
}

/// Walks the bytes once, copying each to code, to comments, or to neither.
struct Splitter<'a> {
    text: &'a [u8],
    at: usize,
    code: Vec<u8>,
    comments: Vec<u8>,
}

impl<'a> Splitter<'a> {
    fn new(text: &'a str) -> Splitter<'a> {
        let blank: Vec<u8> = text
            .bytes()
            .map(|b| if b == b'\n' { b'\n' } else { b' ' })
            .collect();
        Splitter {
            text: text.as_bytes(),
            at: 0,
            code: blank.clone(),
            comments: blank,
        }
    }

    fn split(mut self) -> (String, String) {
        while self.at < self.text.len() {
            if self.sees("//") {
                let end = self.find_from(self.at, b"\n").unwrap_or(self.text.len());
                self.comment_until(end);
            } else if self.sees("/*") {
                let end = self.block_end();
                self.comment_until(end);
            } else if let Some(hashes) = self.raw_string() {
                self.skip_raw_string(hashes);
            } else if self.sees("\"") {
                self.skip_string();
            } else if self.sees("'") {
                self.char_or_lifetime();
            } else {
                self.keep();
            }
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(self.code), text(self.comments))
    }

    fn sees(&self, what: &str) -> bool {
        self.text[self.at..].starts_with(what.as_bytes())
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn find_from(&self, from: usize, what: &[u8]) -> Option<usize> {
        let rest = self.text.get(from..)?;
        rest.windows(what.len())
            .position(|window| window == what)
            .map(|found| from + found)
    }

    /// One byte of code.
    fn keep(&mut self) {
        if self.text[self.at].is_ascii() {
            self.code[self.at] = self.text[self.at];
        }
        self.at += 1;
    }

    fn comment_until(&mut self, end: usize) {
        self.comments[self.at..end].copy_from_slice(&self.text[self.at..end]);
        self.at = end;
    }

    /// The end of the block comment that begins here; they nest.
    fn block_end(&self) -> usize {
        let (mut depth, mut at) = (0usize, self.at);
        while at < self.text.len() {
            if self.text[at..].starts_with(b"/*") {
                depth += 1;
                at += 2;
            } else if self.text[at..].starts_with(b"*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            } else {
                at += 1;
            }
        }
        self.text.len()
    }

    /// The number of `#` if a raw string begins at this `r`.
    fn raw_string(&self) -> Option<usize> {
        let before = self.at.checked_sub(1).map_or(b' ', |at| self.text[at]);
        let prefixed = matches!(before, b'b' | b'c')
            && !self
                .at
                .checked_sub(2)
                .is_some_and(|at| self.text[at].is_ascii_alphanumeric());
        let in_word = before.is_ascii_alphanumeric() || before == b'_';
        if self.byte(0) != b'r' || (in_word && !prefixed) {
            return None;
        }
        let hashes = self.text[self.at + 1..]
            .iter()
            .take_while(|&&b| b == b'#')
            .count();
        (self.byte(1 + hashes) == b'"').then_some(hashes)
    }

    fn skip_raw_string(&mut self, hashes: usize) {
        self.keep();
        let mut end = vec![b'"'];
        end.extend(std::iter::repeat_n(b'#', hashes));
        let from = self.at + hashes + 1;
        self.at = self
            .find_from(from, &end)
            .map_or(self.text.len(), |at| at + end.len());
        self.mark_quotes(from - 1, self.at - end.len().min(self.at));
    }

    fn skip_string(&mut self) {
        let start = self.at;
        self.at += 1;
        while self.at < self.text.len() && self.text[self.at] != b'"' {
            self.at += if self.text[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(self.text.len());
        self.mark_quotes(start, self.at - 1);
    }

    /// Strings show in the code as their two quotes.
    fn mark_quotes(&mut self, start: usize, end: usize) {
        self.code[start] = b'"';
        self.code[end] = b'"';
    }

    fn char_or_lifetime(&mut self) {
        let escaped = self.byte(1) == b'\\';
        let width = match self.byte(1) {
            0x00..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        if escaped {
            // `'\''`: the quote after the backslash does not end it.
            let end = self.find_from(self.at + 3, b"'");
            self.at = end.map_or(self.text.len(), |end| end + 1);
        } else if self.byte(1 + width) == b'\'' {
            self.at += width + 2;
        } else {
            self.keep();
        }
    }
}

/// The offset after the bracket that closes the one at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (ahead, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return open + ahead + 1;
        }
    }
    code.len()
}

/// From `from`, the first `{` or `;` that is not inside brackets.
fn block_or_end(code: &str, from: usize) -> Option<usize> {
    let bytes = code.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => at = closing(code, at),
            b'{' | b';' => return Some(at),
            _ => at += 1,
        }
    }
    None
}

fn find_bodies(code: &str) -> Vec<Range<usize>> {
    let mut bodies = Vec::new();
    for at in find_words(code, "fn") {
        let rest = code[at + 2..].trim_start();
        let is_item = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if let Some(open) = block_or_end(code, at).filter(|_| is_item)
            && code.as_bytes()[open] == b'{'
        {
            bodies.push(open..closing(code, open));
        }
    }
    bodies
}

fn find_tests(code: &str) -> (Vec<Range<usize>>, Vec<String>) {
    let (mut ranges, mut modules) = (Vec::new(), Vec::new());
    for (at, attribute) in code.match_indices("#[cfg(") {
        let end = closing(code, at + 1);
        let condition = &code[at + attribute.len()..end];
        if find_words(condition, "test").is_empty() || condition.contains("not(") {
            continue;
        }
        let Some(open) = block_or_end(code, skip_attributes(code, end)) else {
            continue;
        };
        if code.as_bytes()[open] == b'{' {
            ranges.push(at..closing(code, open));
        } else if let Some(name) = code[end..open].trim().rsplit_once("mod ") {
            ranges.push(at..open);
            modules.push(name.1.trim().to_string());
        } else {
            ranges.push(at..open);
        }
    }
    (ranges, modules)
}

/// The offset after any further attributes.
fn skip_attributes(code: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(ahead) = code[at..].find(|c: char| !c.is_whitespace())
        && code[at + ahead..].starts_with("#[")
    {
        at = closing(code, at + ahead + 1);
    }
    at
}
