//! Lists of URLs: one line for each kind of request, `[METHOD] URL [WORD=VALUE]...`.
//!
//! ```text
//! # what visitors ask for
//! http://127.0.0.1:8080/   weight=70  name=home
//! /style.css               weight=20                       # of the same server
//! POST /form               weight=10  body=form.txt  header="Content-Type: text/plain"
//! /gone                    expect=status=404
//! ```

use std::fmt;
use std::sync::Arc;

use crate::entry::RequestSpec;
use crate::limits::{LIST_LINE_BYTES_MAX, URL_COUNT_MAX};
use crate::quantity::plain_number;
use crate::url::Url;

/// Largest weight; what is drawn a million times less often need not be in the list.
const WEIGHT_MAX: f64 = 1e6;
const WORDS: &str = "weight=NUMBER, name=WORD, body=FILE, header=NAME:VALUE or expect=WHAT=VALUE";

/// What is wrong with a list, and in which line, counted from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListError {
    /// The line.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub text: String,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.text)
    }
}

/// Reads a list. A line that begins with a path is of the server of `base`, or of the line before;
/// `body` gives the contents of a file that a line names.
pub fn parse_list(
    text: &str,
    base: Option<&Url>,
    mut body: impl FnMut(&str) -> Result<Arc<[u8]>, String>,
) -> Result<Vec<RequestSpec>, ListError> {
    let mut entries: Vec<RequestSpec> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let server = base.or_else(|| entries.first().map(|entry| &entry.url));
        let wrong = |text| ListError {
            line: index + 1,
            text,
        };
        let Some(entry) = entry(line, server, &mut body).map_err(wrong)? else {
            continue;
        };
        if entries.len() == URL_COUNT_MAX {
            return Err(wrong(format!("a list has at most {URL_COUNT_MAX} URLs")));
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(ListError {
            line: 1,
            text: "the list has no URL; write one a line".to_owned(),
        });
    }
    Ok(entries)
}

/// What a line says; nothing where it is empty or a comment.
fn entry(
    line: &str,
    server: Option<&Url>,
    body: &mut impl FnMut(&str) -> Result<Arc<[u8]>, String>,
) -> Result<Option<RequestSpec>, String> {
    if line.len() > LIST_LINE_BYTES_MAX {
        return Err(format!("a line has at most {LIST_LINE_BYTES_MAX} bytes"));
    }
    let words = words(line)?;
    let mut words = words.iter().map(String::as_str).peekable();
    let Some(first) = words.peek().copied() else {
        return Ok(None);
    };
    let is_method = first
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    let method = words.next_if(|_| is_method).map(str::to_owned);
    let url = words
        .next()
        .ok_or_else(|| format!("there is no URL behind {first}; write {first} http://HOST/PATH"))?;
    let mut entry = RequestSpec::from(url_of(url, server)?);
    entry.method = method;
    for word in words {
        set(&mut entry, word, body)?;
    }
    Ok(Some(entry))
}

fn url_of(text: &str, server: Option<&Url>) -> Result<Url, String> {
    let url = match server {
        Some(server) if text.starts_with('/') => server.with_target(text)?,
        None if text.starts_with('/') => {
            return Err(format!(
                "{text:?} does not say which server; write http://HOST{text}, or a URL of the \
                 server on the command line"
            ));
        }
        _ => text.parse()?,
    };
    match server {
        Some(server) if server.origin() != url.origin() => Err(format!(
            "{text} is of another server than {}; one run measures one server",
            server.text
        )),
        _ => Ok(url),
    }
}

/// Sets what a word says.
fn set(
    entry: &mut RequestSpec,
    word: &str,
    body: &mut impl FnMut(&str) -> Result<Arc<[u8]>, String>,
) -> Result<(), String> {
    let wrong = || format!("{word:?} is nothing a line can say; write {WORDS}");
    let (what, value) = word.split_once('=').ok_or_else(wrong)?;
    match what {
        "weight" => {
            let weight = plain_number(value);
            let weight = weight.filter(|weight| *weight > 0.0 && *weight <= WEIGHT_MAX);
            entry.weight = weight.ok_or_else(|| {
                format!("{value:?} is no weight; write a number above 0, at most {WEIGHT_MAX}")
            })?;
        }
        "name" if !value.is_empty() && !value.contains(char::is_control) => {
            entry.name = Some(value.to_owned());
        }
        "name" => return Err("a name has letters; write name=WORD".to_owned()),
        "body" => entry.body = Some(body(value)?),
        "header" => {
            let field = value.split_once(':');
            let (name, value) =
                field.ok_or_else(|| format!("{value:?}: write header=NAME:VALUE"))?;
            let field = (name.trim().to_owned(), value.trim().to_owned());
            entry.fields.push(field);
        }
        "expect" => entry.expectations.push(value.parse()?),
        _ => return Err(wrong()),
    }
    Ok(())
}

/// The words of a line up to a comment. Blanks within `"..."` do not part words.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            letter if is_quoted => word.get_or_insert_default().push(letter),
            '#' if word.is_none() => break,
            letter if letter.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    if is_quoted {
        return Err("a \" has no other one behind it; write header=\"NAME: VALUE\"".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<RequestSpec>, String> {
        let body = |path: &str| match path {
            "missing" => Err("there is no such file".to_owned()),
            path => Ok(path.as_bytes().into()),
        };
        parse_list(text, None, body).map_err(|error| error.to_string())
    }

    #[test]
    fn line_says_what_sets_its_requests_apart() {
        let all = parse(
            "# comment\n\nhttp://a:1/#x weight=2.5 name=home # comment\n  POST /b?c body=file \
             header=\"X-A: b c\" expect=status=404 expect=size=3\r\n\tHEAD http://a:1/d",
        )
        .unwrap();
        assert_eq!(all.len(), 3);
        let texts: Vec<&str> = all.iter().map(|entry| entry.url.text.as_str()).collect();
        assert_eq!(texts, ["http://a:1/#x", "http://a:1/b?c", "http://a:1/d"]);
        assert_eq!((all[0].weight, all[0].name.as_deref()), (2.5, Some("home")));
        assert_eq!(all[1].method.as_deref(), Some("POST"));
        assert_eq!(all[1].body.as_deref(), Some(&b"file"[..]));
        assert_eq!(all[1].fields, [("X-A".to_owned(), "b c".to_owned())]);
        assert_eq!(all[1].expectations.len(), 2);
        assert_eq!(all[2].method.as_deref(), Some("HEAD"));
    }

    #[test]
    fn wrong_line_is_refused_with_its_number_and_what_to_write() {
        for (text, wanted) in [
            ("", "1: the list has no URL"),
            ("# only\n", "1: the list has no URL"),
            ("http://a/\n/b\nGET\n", "3: there is no URL behind GET"),
            ("/b", "1: \"/b\" does not say which server"),
            (
                "http://a/\n\nhttp://b/",
                "3: http://b/ is of another server",
            ),
            (
                "http://a/ 5",
                "1: \"5\" is nothing a line can say; write weight=",
            ),
            ("http://a/ wieght=5", "nothing a line can say"),
            ("http://a/ weight=0", "1: \"0\" is no weight"),
            ("http://a/ weight=-1", "is no weight"),
            ("http://a/ weight=1e9", "is no weight"),
            ("http://a/ weight=2000000", "is no weight"),
            ("http://a/ name=", "a name has letters"),
            ("http://a/ body=missing", "there is no such file"),
            ("http://a/ header=x", "write header=NAME:VALUE"),
            ("http://a/ header=\"x: y", "a \" has no other one"),
            (
                "http://a/ expect=colour=red",
                "nothing an answer can be checked for",
            ),
            ("ftp://a/", "1: \"ftp://a/\": the scheme is neither"),
            (
                &format!("http://a/{}", "x".repeat(20_000)),
                "at most 16384 bytes",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn path_alone_is_of_the_server_of_the_command_line() {
        let base: Url = "https://a:8443/start".parse().unwrap();
        let none = |_: &str| Err(String::new());
        let all = parse_list("/x\n", Some(&base), none).unwrap();
        assert_eq!(all[0].url.text, "https://a:8443/x");
        let error = parse_list("http://a:8443/x\n", Some(&base), none).unwrap_err();
        assert!(error.text.contains("another server"), "{error}");
    }
}
