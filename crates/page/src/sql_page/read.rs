//! Makes statements of a file's text.

use crate::fault::{PageFault, PageFaultKind};
use crate::limits::FILE_BYTES_MAX;
use crate::tree::fault_in;

use super::FIRST_LINE;

/// Rows of a result that a page in HTML shows at once.
const ROWS_PRESET: u64 = 50;
/// Most that a file may ask for.
const ROWS_MAX: u64 = 10_000;
/// Statements of one file.
const STATEMENTS_MAX: usize = 100;

/// A file that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqlPage {
    pub(super) file: Box<str>,
    pub(super) title: String,
    pub(super) rows: u64,
    pub(super) statements: Vec<SqlPageStatement>,
}

/// A statement of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SqlPageStatement {
    /// A `?` for each parameter.
    pub(super) text: String,
    /// The name of the field that each is.
    pub(super) parameters: Vec<Box<str>>,
    /// Its line in the file, counted from one.
    pub(super) line: usize,
}

impl SqlPage {
    /// Whether the file says that it is a page.
    pub fn is_one(source: &[u8]) -> bool {
        let line = source.split(|byte| *byte == b'\n').next();
        line.unwrap_or_default().trim_ascii_end() == FIRST_LINE.as_bytes()
    }

    /// Reads a file that says that it is a page.
    ///
    /// # Errors
    /// Where it is no list of statements, and why.
    pub fn parse(file: &str, source: &[u8]) -> Result<SqlPage, PageFault> {
        let fault = |at: usize, message: String| {
            Err(fault_in(file, source, at, PageFaultKind::Syntax, message))
        };
        if source.len() > FILE_BYTES_MAX {
            return fault(0, "the file is too large".to_string());
        }
        let Ok(text) = std::str::from_utf8(source) else {
            return fault(0, "the file is no text in UTF-8".to_string());
        };
        let stem = file.rsplit('/').next().unwrap_or(file);
        let mut page = SqlPage {
            file: file.into(),
            title: stem.strip_suffix(".sql").unwrap_or(stem).to_string(),
            rows: ROWS_PRESET,
            statements: Vec::new(),
        };
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let Some(comment) = line.trim().strip_prefix("--") else {
                break;
            };
            if let Err(message) = page.set(comment.trim()) {
                return fault(at, message);
            }
            at += line.len();
        }
        if let Err((at, message)) = page.split(text) {
            return fault(at, message);
        }
        match page.statements.len() {
            0 => fault(source.len(), "there is no statement in it".to_string()),
            1..=STATEMENTS_MAX => Ok(page),
            _ => fault(0, format!("it has more than {STATEMENTS_MAX} statements")),
        }
    }

    /// A comment at the begin of the file: `title: TEXT` and `rows: NUMBER` say something.
    fn set(&mut self, comment: &str) -> Result<(), String> {
        let Some((name, value)) = comment.split_once(':') else {
            return Ok(());
        };
        match name.trim() {
            "title" => self.title = value.trim().to_string(),
            "rows" => match value.trim().parse() {
                Ok(rows @ 1..=ROWS_MAX) => self.rows = rows,
                _ => return Err(format!("`rows` is a number from 1 to {ROWS_MAX}")),
            },
            _ => {}
        }
        Ok(())
    }

    fn split(&mut self, text: &str) -> Result<(), (usize, String)> {
        let mut reader = StatementReader {
            text,
            at: 0,
            made: String::new(),
            parameters: Vec::new(),
            begin: None,
        };
        while let Some(statement) = reader.next()? {
            self.statements.push(statement);
        }
        Ok(())
    }
}

/// Reads one statement after the other.
struct StatementReader<'t> {
    text: &'t str,
    at: usize,
    made: String,
    parameters: Vec<Box<str>>,
    /// Where the statement begins.
    begin: Option<usize>,
}

impl StatementReader<'_> {
    fn next(&mut self) -> Result<Option<SqlPageStatement>, (usize, String)> {
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            match rest {
                [] => return Ok(self.take()),
                [b';', ..] => {
                    self.at += 1;
                    if let Some(statement) = self.take() {
                        return Ok(Some(statement));
                    }
                }
                [b'-', b'-', ..] => {
                    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                    self.skip(end);
                }
                [b'/', b'*', ..] => {
                    let end = memchr::memmem::find(&rest[2..], b"*/");
                    let end = end.ok_or_else(|| self.wrong("this comment has no end"))?;
                    self.skip(end + 4);
                }
                [quote @ (b'\'' | b'"' | b'`'), ..] => self.quoted(*quote)?,
                [b'[', ..] => self.quoted(b']')?,
                [b'$', ..] if self.is_dollar_quote() => {
                    return Err(self.wrong("texts between `$` signs are not read in pages"));
                }
                [b':', b':', ..] => self.copy(2),
                [b':', first, ..] if is_name_start(*first) => self.parameter(),
                [b'?', ..] => {
                    return Err(self.wrong("a parameter is `:name`, a field of the request"));
                }
                [first, ..] if is_name_start(*first) => {
                    let end = rest.iter().position(|byte| !is_name_byte(*byte));
                    self.copy(end.unwrap_or(rest.len()));
                }
                _ => {
                    let length = self.text[self.at..]
                        .chars()
                        .next()
                        .map_or(1, char::len_utf8);
                    self.copy(length);
                }
            }
        }
    }

    fn wrong(&self, message: &str) -> (usize, String) {
        (self.at, message.to_string())
    }

    /// `$$` or `$name$`.
    fn is_dollar_quote(&self) -> bool {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let end = rest.iter().position(|byte| !is_name_byte(*byte));
        end.is_some_and(|end| rest[end] == b'$')
    }

    fn copy(&mut self, length: usize) {
        let end = self.at + length;
        let part = &self.text[self.at..end];
        if self.begin.is_none() && !part.trim().is_empty() {
            self.begin = Some(self.at);
        }
        self.made.push_str(part);
        self.at = end;
    }

    /// A comment separates like a blank.
    fn skip(&mut self, length: usize) {
        self.made.push(' ');
        self.at += length;
    }

    /// A text or a name in quotes, which doubled ones stand in.
    fn quoted(&mut self, quote: u8) -> Result<(), (usize, String)> {
        let rest = &self.text.as_bytes()[self.at..];
        let mut end = 1;
        loop {
            let found = memchr::memchr(quote, &rest[end..]);
            let found = found.ok_or_else(|| self.wrong("what begins here has no end"))?;
            end += found + 1;
            if quote == b']' || rest.get(end) != Some(&quote) {
                break;
            }
            end += 1;
        }
        self.copy(end);
        Ok(())
    }

    fn parameter(&mut self) {
        let rest = &self.text[self.at + 1..];
        let end = rest.bytes().position(|byte| !is_name_byte(byte));
        let name = &rest[..end.unwrap_or(rest.len())];
        self.begin.get_or_insert(self.at);
        self.parameters.push(name.into());
        self.made.push('?');
        self.at += 1 + name.len();
    }

    /// The statement that ends here, if there is one.
    fn take(&mut self) -> Option<SqlPageStatement> {
        let made = std::mem::take(&mut self.made);
        let parameters = std::mem::take(&mut self.parameters);
        let begin = self.begin.take()?;
        let before = &self.text.as_bytes()[..begin];
        Some(SqlPageStatement {
            text: made.trim().to_string(),
            parameters,
            line: memchr::memchr_iter(b'\n', before).count() + 1,
        })
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SqlPage, String> {
        let text = format!("-- hob: page\n{text}");
        SqlPage::parse("a/parts.sql", text.as_bytes()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn parameters_are_found_where_values_are_and_nowhere_else() {
        let page = read(
            "-- title: All parts\n-- rows: 7\n\
             SELECT ':a', \":b\", [:c], `:d`, 1::text, '12:30' -- :e\n\
             FROM t /* :f; */ WHERE x = :x AND (:y IS NULL OR y > :y);\n;\nDELETE FROM t WHERE i=:i",
        );
        let page = page.expect("it is a page");
        assert_eq!((&*page.title, page.rows), ("All parts", 7));
        let [first, second] = &page.statements[..] else {
            panic!("{page:?}");
        };
        assert_eq!(
            first.text,
            "SELECT ':a', \":b\", [:c], `:d`, 1::text, '12:30'  \nFROM t   WHERE x = ? AND (? IS NULL OR y > ?)"
        );
        assert_eq!(first.parameters, ["x".into(), "y".into(), "y".into()]);
        assert_eq!(second.text, "DELETE FROM t WHERE i=?");
        assert_eq!((first.line, second.line), (4, 7));
    }

    #[test]
    fn what_is_no_page_is_told_where() {
        for (text, wanted) in [
            ("", "a/parts.sql:2:1: there is no statement in it"),
            ("SELECT 'a", "a/parts.sql:2:8: what begins here has no end"),
            ("SELECT 1 /*", "a/parts.sql:2:10: this comment has no end"),
            (
                "SELECT ?",
                "a/parts.sql:2:8: a parameter is `:name`, a field of the request",
            ),
            (
                "-- rows: 0\nSELECT 1",
                "a/parts.sql:2:1: `rows` is a number from 1 to 10000",
            ),
            (
                "SELECT $$a$$",
                "a/parts.sql:2:8: texts between `$` signs are not read in pages",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), wanted);
        }
        assert!(SqlPage::is_one(b"-- hob: page\r\nSELECT 1"));
        for other in [
            &b"CREATE TABLE a (b)"[..],
            b"",
            b"-- hob: pages\n",
            b"\n-- hob: page",
        ] {
            assert!(!SqlPage::is_one(other));
        }
    }
}
