//! Bytes out, every answer back.
//!
//! The bytes of a case are sent, one final answer is read, then a request for /probe.txt with
//! `Connection: close` follows and everything is read until the server closes. If the last answer
//! is the probe's, the case left the connection open.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::site::PROBE;

/// Reached only when a server neither answers nor closes.
const DEADLINE: Duration = Duration::from_secs(20);
const PROBE_REQUEST: &[u8] =
    b"GET /probe.txt HTTP/1.1\r\nHost: peers.test\r\nConnection: close\r\n\r\n";

/// One answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) version: String,
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The values of a field, joined by commas.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let values = self.fields.iter().filter(|(known, _)| known == name);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// Interim answers (1xx) are not among them.
    pub(crate) answers: Vec<Answer>,
    /// The server was ready for another request.
    pub(crate) stays_open: bool,
    /// Bytes that are no answer of HTTP/1, to the end.
    pub(crate) raw: Vec<u8>,
}

/// Sends a request (or several) and collects the answers.
pub(crate) fn converse(port: u16, request: &[u8]) -> io::Result<Conversation> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    let mut methods = methods(request).into_iter();
    let mut reader = Reader {
        stream: stream.try_clone()?,
        ahead: Vec::new(),
    };
    let mut conversation = Conversation::default();
    // A server may refuse, and close, before it has read everything.
    let _ = stream.write_all(request);
    let mut is_head = methods.next().unwrap_or_default();
    let mut is_probed = false;
    loop {
        match reader.answer(is_head)? {
            Some(interim) if interim.status < 200 => continue,
            Some(answer) => conversation.answers.push(answer),
            None => break,
        }
        is_head = methods.next().unwrap_or_default();
        if !is_probed {
            is_probed = true;
            let _ = stream.write_all(PROBE_REQUEST);
        }
    }
    conversation.raw = reader.ahead;
    if conversation
        .answers
        .last()
        .is_some_and(|last| last.body == PROBE.as_bytes())
    {
        conversation.answers.pop();
        conversation.stays_open = true;
    }
    Ok(conversation)
}

/// Which requests in these bytes are for HEAD, whose answers have no body. Request lines are told
/// by their version; bodies in the table hold none.
fn methods(request: &[u8]) -> Vec<bool> {
    let text = String::from_utf8_lossy(request);
    let lines = text
        .split('\n')
        .filter(|line| line.trim_end().contains(" HTTP/"));
    lines.map(|line| line.starts_with("HEAD ")).collect()
}

struct Reader {
    stream: TcpStream,
    /// Read and not used yet.
    ahead: Vec<u8>,
}

impl Reader {
    /// The next answer; `None` when there is none before the end.
    fn answer(&mut self, is_head: bool) -> io::Result<Option<Answer>> {
        let end = loop {
            if let Some(end) = find(&self.ahead, b"\r\n\r\n") {
                break end + 4;
            }
            if !self.more()? {
                return Ok(None);
            }
        };
        if !self.ahead.starts_with(b"HTTP/1.") {
            while self.more()? {}
            return Ok(None);
        }
        let head: Vec<u8> = self.ahead.drain(..end).collect();
        let mut answer = read_head(&String::from_utf8_lossy(&head));
        let has_body = !is_head && answer.status >= 200 && ![204, 304].contains(&answer.status);
        if has_body {
            answer.body = self.body(&answer)?;
        }
        Ok(Some(answer))
    }

    fn body(&mut self, answer: &Answer) -> io::Result<Vec<u8>> {
        if answer.field("transfer-encoding").is_some() {
            return self.chunks();
        }
        match answer.field("content-length") {
            Some(length) => self.exactly(length.parse().map_err(io::Error::other)?),
            None => {
                while self.more()? {}
                Ok(std::mem::take(&mut self.ahead))
            }
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = find(&self.ahead, b"\r\n") {
                    break end;
                }
                self.must_have_more()?;
            };
            let line = self.exactly(end + 2)?;
            let size = String::from_utf8_lossy(&line[..end]).into_owned();
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            body.extend(self.exactly(size)?);
            self.exactly(2)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.ahead.len() < count {
            self.must_have_more()?;
        }
        Ok(self.ahead.drain(..count).collect())
    }

    fn must_have_more(&mut self) -> io::Result<()> {
        match self.more()? {
            true => Ok(()),
            false => Err(io::Error::other("the answer ends too early")),
        }
    }

    /// Reads something; false at the end. A reset is an end: what came before it is what counts.
    fn more(&mut self) -> io::Result<bool> {
        let mut buffer = vec![0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.ahead.extend_from_slice(&buffer[..count]);
                Ok(count > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let ahead = String::from_utf8_lossy(&self.ahead);
                Err(io::Error::other(format!(
                    "no more came within {DEADLINE:?} after {ahead:?}"
                )))
            }
            Err(error) => Err(error),
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn read_head(head: &str) -> Answer {
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let version = words.next().unwrap_or_default().to_owned();
    let status = words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or_default();
    let fields = lines.filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    Answer {
        version,
        status,
        fields: fields.collect(),
        body: Vec::new(),
    }
}
