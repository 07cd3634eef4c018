//! A client that keeps everything of an answer: interim ones, the framing, the trailers.

use std::os::fd::AsFd;

use crate::cases::Asked;
use crate::harness::client::Connection;

/// Bytes of a chunk that is sent.
const CHUNK_BYTES: usize = 10_000;

/// What came back. Names of fields are in lower case.
#[derive(Debug, Default)]
pub(crate) struct Got {
    pub(crate) infos: Vec<(u16, Vec<(String, String)>)>,
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// It ended as its framing says.
    pub(crate) is_whole: bool,
    pub(crate) trailers: Vec<(String, String)>,
}

/// Sends a request below a prefix on a connection of its own, and reads until that is closed.
pub(crate) fn ask(port: u16, prefix: &str, asked: &Asked) -> Got {
    let request = written(prefix, asked);
    let mut connection = Connection::open(port).unwrap();
    let mut sending = Connection::of(connection.as_fd().try_clone_to_owned().unwrap());
    std::thread::scope(|scope| {
        // The answer may come while the body still goes.
        scope.spawn(move || drop(sending.send(&request)));
        read(&mut connection, asked.method == "HEAD").unwrap_or_else(|error| Got {
            body: format!("no answer: {error}").into_bytes(),
            ..Got::default()
        })
    })
}

fn written(prefix: &str, asked: &Asked) -> Vec<u8> {
    let Asked { method, target, .. } = asked;
    let mut head = format!("{method} {prefix}{target} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in &asked.fields {
        head += &format!("{name}: {value}\r\n");
    }
    let body = asked.body.as_deref();
    if asked.is_chunked {
        head += "Transfer-Encoding: chunked\r\n";
    } else if let Some(body) = body {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    head += "Connection: close\r\n\r\n";
    let mut bytes = head.into_bytes();
    match body.unwrap_or_default() {
        body if asked.is_chunked => {
            for chunk in body.chunks(CHUNK_BYTES) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        body => bytes.extend_from_slice(body),
    }
    bytes
}

fn read(connection: &mut Connection, is_head: bool) -> std::io::Result<Got> {
    let mut got = Got::default();
    loop {
        let (status, fields) = connection.read_head()?;
        if status >= 200 {
            (got.status, got.fields) = (status, fields);
            break;
        }
        got.infos.push((status, fields));
    }
    let raw = connection.read_to_end();
    let field = |name: &str| {
        let found = got.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let has_no_body = is_head || matches!(got.status, 204 | 304);
    if has_no_body {
        got.is_whole = raw.is_empty();
        got.body = raw;
    } else if field("transfer-encoding") == Some("chunked") {
        without_chunks(&raw, &mut got);
    } else {
        let length = field("content-length").map(|length| length.parse().unwrap());
        got.is_whole = length.is_none_or(|length: usize| length == raw.len());
        got.body = raw;
    }
    Ok(got)
}

/// Takes chunks apart; the answer is whole if all of them, and the trailers' end, are there.
fn without_chunks(mut raw: &[u8], got: &mut Got) {
    while let Some(end) = raw.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&raw[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        raw = &raw[end + 2..];
        if size == 0 {
            let text = std::str::from_utf8(raw).unwrap();
            let Some(text) = text.strip_suffix("\r\n") else {
                return;
            };
            let lines = text.split_terminator("\r\n");
            let trailers = lines.map(|line| line.split_once(": ").unwrap());
            got.trailers = trailers
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect();
            got.is_whole = true;
            return;
        }
        let here = size.min(raw.len());
        got.body.extend_from_slice(&raw[..here]);
        match raw[here..].strip_prefix(b"\r\n") {
            Some(rest) => raw = rest,
            None => return,
        }
    }
}
