//! `hob status`, `reload`, `upgrade` and `stop`: one HTTP request each over the control socket of
//! the running hob.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_server::config::{self, Sources};
use serde_json::Value;

use crate::Refusal;
use crate::args::{ControlOptions, StatusOptions, Surroundings};

/// An upgrade may check for 30 s and wait for the new server for 10 s.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Shows the state.
pub(crate) fn status(options: &StatusOptions, surroundings: &Surroundings) -> Result<(), Refusal> {
    let path = control_path(&options.control, surroundings)?;
    if options.admin_url {
        return admin_url(&path, options.control.json);
    }
    let answer = request(&path, "GET", "/v1/status")?;
    if answer.status != 200 {
        return Err(refused(&answer));
    }
    let parts = [
        (options.cache, "cache"),
        (options.certificates, "certificates"),
        (options.programs, "programs"),
    ];
    let part = parts
        .iter()
        .find_map(|(is_it, part)| is_it.then_some(*part));
    let shown = match part {
        Some(part) => answer.body.get(part).cloned().unwrap_or(Value::Null),
        None => answer.body,
    };
    if options.control.json {
        println!("{shown}");
        return Ok(());
    }
    let mut text = String::new();
    write_lines(&mut text, &shown, 0);
    print!("{text}");
    Ok(())
}

/// Prints a URL of the admin pages that is good for one login.
fn admin_url(path: &Path, as_json: bool) -> Result<(), Refusal> {
    let answer = request(path, "POST", "/v1/admin-url")?;
    match answer.body.get("url").and_then(Value::as_str) {
        _ if answer.status != 200 => return Err(refused(&answer)),
        _ if as_json => println!("{}", answer.body),
        Some(url) => println!("{url}"),
        None => return Err(refused(&answer)),
    }
    Ok(())
}

/// Has the running hob do something and says what came of it.
pub(crate) fn act(
    verb: &str,
    options: &ControlOptions,
    surroundings: &Surroundings,
) -> Result<(), Refusal> {
    let path = control_path(options, surroundings)?;
    let answer = request(&path, "POST", &format!("/v1/{verb}"))?;
    if options.json {
        println!("{}", answer.body);
        let text = String::new();
        return if answer.status == 200 {
            Ok(())
        } else {
            Err(Refusal { code: 1, text })
        };
    }
    if answer.status != 200 {
        return Err(refused(&answer));
    }
    println!("{}", answer.text());
    Ok(())
}

struct Answer {
    status: u16,
    body: Value,
}

impl Answer {
    /// What the running hob says to people.
    fn text(&self) -> String {
        match self.body.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => format!("status {}", self.status),
        }
    }
}

fn refused(answer: &Answer) -> Refusal {
    Refusal {
        code: 1,
        text: answer.text(),
    }
}

/// The socket that was named, else the one of the config, else the usual one.
fn control_path(options: &ControlOptions, surroundings: &Surroundings) -> Result<PathBuf, Refusal> {
    if let Some(path) = &options.control {
        return Ok(path.clone());
    }
    let usual = surroundings.usual_control.clone();
    let (file, is_named) = match &options.config {
        Some(file) => (file.as_path(), true),
        None => (Path::new("hob.toml"), false),
    };
    if !is_named && !file.exists() {
        return Ok(usual);
    }
    let loaded =
        Sources::read(file, &Surroundings::variable).and_then(|sources| config::load(&sources));
    match loaded {
        Ok((config, _)) => Ok(config.control.unwrap_or(usual)),
        // A config that is just being edited must not keep us from the server that runs.
        Err(_) if !is_named => Ok(usual),
        Err(errors) => Err(Refusal {
            code: 2,
            text: errors.to_string(),
        }),
    }
}

fn request(path: &Path, method: &str, target: &str) -> Result<Answer, Refusal> {
    let mut stream = UnixStream::connect(path).map_err(|error| Refusal {
        code: 3,
        text: format!(
            "no hob answers at {}: {error} (is it running? --control names another socket)",
            path.display()
        ),
    })?;
    let broken = |error: io::Error| Refusal {
        code: 1,
        text: format!("no answer from the hob at {}: {error}", path.display()),
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: hob\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream
        .set_read_timeout(Some(ANSWER_LIMIT))
        .map_err(broken)?;
    stream.write_all(head.as_bytes()).map_err(broken)?;
    let mut bytes = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(broken)?;
    parse(&bytes).ok_or_else(|| broken(io::Error::other("it is cut off or not HTTP")))
}

/// Reads an answer with a Content-Length; the control socket sends no other.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()?
        .strip_prefix("HTTP/1.1 ")?
        .get(..3)?
        .parse()
        .ok()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    })?;
    let body = bytes.get(end + 4..)?.get(..length)?;
    Some(Answer {
        status,
        body: serde_json::from_slice(body).ok()?,
    })
}

/// JSON as lines for people: `name: value`, what is inside indented.
fn write_lines(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('_', " ");
                if is_nested(field) {
                    text.push_str(&format!("{indent}{name}:\n"));
                    write_lines(text, field, depth + 1);
                } else {
                    text.push_str(&format!("{indent}{name}: {}\n", plain(field)));
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::Object(_) => {
                        text.push_str(&format!("{indent}-\n"));
                        write_lines(text, item, depth + 1);
                    }
                    other => text.push_str(&format!("{indent}{}\n", plain(other))),
                }
            }
        }
        other => text.push_str(&format!("{indent}{}\n", plain(other))),
    }
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) | Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        let whole = b"HTTP/1.1 409 Conflict\r\ncontent-length: 13\r\n\r\n{\"text\":\"no\"}";
        let answer = parse(whole).unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (409, "no"));
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_none());
        }
    }

    #[test]
    fn state_reads_as_lines() {
        let state = serde_json::json!({
            "keeper_pid": 7,
            "listening": ["127.0.0.1:80", "unix:/x"],
            "cache": { "bytes": 0, "sites": [{ "name": "a" }] },
            "warnings": [],
        });
        let mut text = String::new();
        write_lines(&mut text, &state, 0);
        assert_eq!(
            text,
            "cache:\n  bytes: 0\n  sites:\n    -\n      name: a\nkeeper pid: 7\n\
             listening:\n  127.0.0.1:80\n  unix:/x\nwarnings: none\n"
        );
    }
}
