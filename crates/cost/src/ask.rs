//! One request and its whole answer: to see that a script answers at all, and what it says.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::error::CostError;
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_TIME_MAX};
use crate::load::{MeasuredRequest, with_query};

/// Asks a server on loopback; the status of its answer.
pub(crate) fn status_of(port: u16, path: &str, asked: &MeasuredRequest) -> Result<u16, CostError> {
    let failed = |error| CostError::Server(format!("no answer to {path}: {error}"));
    let target = with_query(path, asked);
    let mut head = format!("{} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n", asked.method);
    for (name, value) in &asked.fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = asked.body.as_deref().unwrap_or_default();
    if asked.body.is_some() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("Connection: close\r\n\r\n");
    let connect = || -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        Ok(stream)
    };
    let mut stream = connect().map_err(failed)?;
    let bytes = exchange(&mut stream, head.as_bytes(), body).map_err(failed)?;
    status(&bytes).ok_or_else(|| CostError::Server(format!("the answer to {path} is not HTTP")))
}

/// What a running hob says of its programs over its control socket.
pub(crate) fn programs(control: &Path) -> Option<Value> {
    let mut stream = UnixStream::connect(control).ok()?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX)).ok()?;
    let head = b"GET /v1/status HTTP/1.1\r\nHost: hob\r\nConnection: close\r\n\r\n";
    let bytes = exchange(&mut stream, head, b"").ok()?;
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut whole: Value = serde_json::from_slice(&bytes[at + 4..]).ok()?;
    Some(whole["programs"].take())
}

fn exchange(stream: &mut (impl Read + Write), head: &[u8], body: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(head)?;
    stream.write_all(body)?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let code = line.strip_prefix("HTTP/1.1 ")?.split(' ').next()?;
    code.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_from_the_first_line() {
        assert_eq!(status(b"HTTP/1.1 502 Bad Gateway\r\n\r\n"), Some(502));
        assert_eq!(status(b"HTTP/1.1 200\r\n\r\n"), Some(200));
        assert_eq!(status(b"SSH-2.0\r\n"), None);
        assert_eq!(status(b""), None);
    }
}
