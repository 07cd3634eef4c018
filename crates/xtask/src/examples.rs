//! `cargo xtask examples`: serves every example and fetches what its expected.txt lists, with curl.
//!
//! A line of expected.txt is `STATUS TYPE BYTES PATH [TEXT]`: the status, the beginning of the
//! media type, the length of the body, the path to fetch, and words that the body must hold. A `-`
//! leaves a field open; `#` begins a comment line. With status 101 a WebSocket is opened there,
//! and the body is what it says first.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::run::{self, Scratch};
use crate::served::Served;
use crate::tally::TestTally;

/// One line of expected.txt.
#[derive(Debug, PartialEq)]
struct Expected {
    status: String,
    media_type: String,
    bytes: String,
    path: String,
    text: String,
}

/// What curl got.
struct Fetched {
    status: String,
    media_type: String,
    bytes: String,
    body: Vec<u8>,
}

/// Serves each example in turn.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask examples".to_string());
    }
    let mut sum = TestTally::default();
    for name in folders_of(&root.join("examples"))? {
        sum += match check(root, &name) {
            Ok(tally) => tally,
            Err(message) => {
                println!("{name}: {message}");
                TestTally::FAILED
            }
        };
    }
    println!("{sum}");
    Ok(sum.is_good())
}

/// The names of the folders in `parent`, sorted.
pub(crate) fn folders_of(parent: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    let folders = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn check(root: &Path, name: &str) -> Result<TestTally, String> {
    let list = root.join("examples").join(name).join("expected.txt");
    let list = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let expected = parse(&list)?;
    let served = Served::start(root, name)?;
    let scratch = Scratch::new("fetched")?;
    let mut sum = TestTally::default();
    for line in &expected {
        let fetched = match &*line.status {
            "101" => listen(&served.url, &line.path),
            _ => fetch(&served.url, &line.path, &scratch.0.join("body")),
        };
        let difference = match fetched {
            Ok(fetched) => line.difference(&fetched),
            Err(message) => Some(message),
        };
        if let Some(difference) = &difference {
            println!("{name}: GET {}: {difference}", line.path);
        }
        sum += TestTally::of_check(difference.is_none());
    }
    let stopped = served.stop();
    if let Err(message) = &stopped {
        println!("{name}: {message}");
    }
    sum += TestTally::of_check(stopped.is_ok());
    println!(
        "{name}: {} of {} as expected",
        sum.passed,
        sum.passed + sum.failed
    );
    Ok(sum)
}

fn parse(list: &str) -> Result<Vec<Expected>, String> {
    let lines = list.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|(index, line)| {
        let mut words = line.split_whitespace().map(str::to_string);
        let mut next = || words.next();
        match (next(), next(), next(), next()) {
            (Some(status), Some(media_type), Some(bytes), Some(path)) => {
                let text = words.collect::<Vec<_>>().join(" ");
                Ok(Expected {
                    status,
                    media_type,
                    bytes,
                    path,
                    text,
                })
            }
            _ => Err(format!(
                "expected.txt:{}: STATUS TYPE BYTES PATH [TEXT]",
                index + 1
            )),
        }
    });
    parsed.collect()
}

fn fetch(url: &str, path: &str, into: &Path) -> Result<Fetched, String> {
    let printed = run::captured(
        Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--path-as-is",
                "--max-time",
                "30",
            ])
            .args([
                "--write-out",
                "%{http_code}\n%{content_type}\n%{size_download}",
                "--output",
            ])
            .arg(into)
            .arg(format!("{url}{path}")),
    )?;
    let mut lines = printed.lines().map(str::to_string);
    let mut next = || lines.next().unwrap_or_default();
    let (status, media_type, bytes) = (next(), next(), next());
    let body = fs::read(into).unwrap_or_default();
    Ok(Fetched {
        status,
        media_type,
        bytes,
        body,
    })
}

/// Opens a WebSocket and hears its first message, a short one.
fn listen(url: &str, path: &str) -> Result<Fetched, String> {
    const SECONDS_MAX: u64 = 30;
    // The key and its answer of RFC 6455 section 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    let at = url.trim_start_matches("http://");
    let failed = |error: std::io::Error| format!("a WebSocket at {path}: {error}");
    let mut stream = TcpStream::connect(at).map_err(failed)?;
    let patience = Some(Duration::from_secs(SECONDS_MAX));
    stream.set_read_timeout(patience).map_err(failed)?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).map_err(failed)?;
    let mut read = |len: usize| {
        let mut bytes = vec![0; len];
        stream
            .read_exact(&mut bytes)
            .map(|()| bytes)
            .map_err(failed)
    };
    let mut answered = Vec::new();
    while !answered.ends_with(b"\r\n\r\n") {
        answered.append(&mut read(1)?);
    }
    let answered = String::from_utf8_lossy(&answered).into_owned();
    let status = answered.split(' ').nth(1).unwrap_or_default();
    if status == "101" && !answered.contains(ACCEPT) {
        return Err(format!(
            "the WebSocket has another key's answer: {answered}"
        ));
    }
    let body = match status {
        "101" => {
            let len = read(2)?[1];
            read(len.into())?
        }
        _ => Vec::new(),
    };
    Ok(Fetched {
        status: status.to_owned(),
        media_type: String::new(),
        bytes: body.len().to_string(),
        body,
    })
}

impl Expected {
    fn difference(&self, fetched: &Fetched) -> Option<String> {
        let is_open = |wanted: &str| wanted == "-";
        if !is_open(&self.status) && self.status != fetched.status {
            return Some(format!(
                "status {}, expected {}",
                fetched.status, self.status
            ));
        }
        if !is_open(&self.media_type) && !fetched.media_type.starts_with(&self.media_type) {
            return Some(format!(
                "type {:?}, expected {}",
                fetched.media_type, self.media_type
            ));
        }
        if !is_open(&self.bytes) && self.bytes != fetched.bytes {
            return Some(format!("{} bytes, expected {}", fetched.bytes, self.bytes));
        }
        let body = String::from_utf8_lossy(&fetched.body);
        (!body.contains(&self.text)).then(|| format!("the body does not hold {:?}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched() -> Fetched {
        Fetched {
            status: "200".to_string(),
            media_type: "text/html; charset=utf-8".to_string(),
            bytes: "11".to_string(),
            body: b"<h1>hob</h1>".to_vec(),
        }
    }

    #[test]
    fn line_that_asks_for_what_came_has_no_difference() {
        let lines = parse("# comment\n\n200 text/html 11 / <h1>hob\n- - - /x\n").unwrap();
        assert_eq!(lines.len(), 2);
        assert!(
            lines
                .iter()
                .all(|line| line.difference(&fetched()).is_none())
        );
    }

    #[test]
    fn each_field_is_compared() {
        for (line, says) in [
            ("404 - - /", "status 200, expected 404"),
            ("200 text/plain - /", "expected text/plain"),
            ("200 - 12 /", "11 bytes, expected 12"),
            ("200 - - / missing words", "does not hold \"missing words\""),
        ] {
            let difference = parse(line).unwrap()[0].difference(&fetched()).unwrap();
            assert!(difference.contains(says), "{line}: {difference}");
        }
    }

    #[test]
    fn short_line_is_refused_with_its_number() {
        assert_eq!(
            parse("200 - - /\n200 -\n"),
            Err("expected.txt:2: STATUS TYPE BYTES PATH [TEXT]".to_string())
        );
    }
}
