//! One request on a connection of its own, and the whole answer, however it is framed.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::harness::DEADLINE;

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case, in the order they came.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Sends a request line, its fields and a body; `Host`, `Content-Length` and `Connection: close`
/// are added.
pub(crate) fn ask(port: u16, head: &[String], body: &[u8]) -> Answer {
    let mut request = head.join("\r\n");
    request += &format!("\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
    if !body.is_empty() {
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    request += "\r\n";
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let answer = answer(&bytes);
    answer.unwrap_or_else(|| panic!("{request}\n{}", bytes.escape_ascii()))
}

fn answer(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.get(9..12)?.parse().ok()?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let mut answer = Answer {
        status,
        fields: fields.collect(),
        body: bytes[end + 4..].to_vec(),
    };
    if answer.field("transfer-encoding").is_some() {
        answer.body = dechunked(&answer.body)?;
    } else if let Some(length) = answer.field("content-length") {
        // An answer to HEAD has the length of the body that it leaves out.
        let is_whole = answer.body.is_empty() || length == answer.body.len().to_string();
        assert!(is_whole, "{} bytes of {length}", answer.body.len());
    }
    Some(answer)
}

fn dechunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    // Of HEAD.
    if rest.is_empty() {
        return Some(body);
    }
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}
