//! A client that sends raw bytes and reads exactly one answer.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::DEADLINE;
use super::over::Protocol;

/// One answer.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One connection.
pub struct Connection {
    /// The socket, of whichever family.
    stream: File,
    /// Read and not used yet.
    ahead: Vec<u8>,
}

impl Connection {
    pub fn open(port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Connection::of(stream.into()))
    }

    pub fn open_unix(path: &Path) -> io::Result<Connection> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Connection::of(stream.into()))
    }

    /// A socket that is connected already.
    pub fn of(socket: OwnedFd) -> Connection {
        Connection {
            stream: File::from(socket),
            ahead: Vec::new(),
        }
    }

    /// Says that nothing more will be sent.
    pub fn end_sending(&self) {
        rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Write).unwrap();
    }

    /// Leaves so that the server hears of it at once: by a reset.
    pub fn leave(self) {
        let at_once = Some(std::time::Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&self.stream, at_once).unwrap();
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub fn send_get(&mut self, path: &str) -> io::Result<()> {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        self.send(head.as_bytes())
    }

    /// The last request of this connection; see [`ask`].
    pub fn send_ask(&mut self, method: &str, target: &str, fields: &str) {
        let host = match fields.contains("Host:") {
            true => "",
            false => "Host: localhost\r\n",
        };
        let head = format!("{method} {target} HTTP/1.1\r\n{host}{fields}Connection: close\r\n\r\n");
        self.send(head.as_bytes()).unwrap();
    }

    /// Reads up to and with the empty line: the answer has begun.
    pub fn read_head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let end = loop {
            if let Some(end) = self.ahead.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more()?;
        };
        let head: Vec<u8> = self.ahead.drain(..end).collect();
        let head = String::from_utf8(head).map_err(io::Error::other)?;
        let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
        let status = lines.next().and_then(|line| line.get(9..12)?.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status in {head:?}")))?;
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        Ok((status, headers.collect()))
    }

    /// Reads the body whose head was read.
    pub fn read_body(&mut self, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
        let value = |wanted| {
            let mut all = headers.iter();
            all.find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        // Whether a program's answer has a length is up to how it came.
        if value("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            return self.read_chunks();
        }
        let length = value("content-length").and_then(|value| value.parse().ok());
        let length: usize = length.unwrap_or(0);
        while self.ahead.len() < length {
            self.read_more()?;
        }
        Ok(self.ahead.drain(..length).collect())
    }

    /// A body whose size nobody told, up to the empty chunk.
    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                match self.ahead.windows(2).position(|two| two == b"\r\n") {
                    Some(end) => break end,
                    None => self.read_more()?,
                }
            };
            let size = String::from_utf8_lossy(&self.ahead[..end]).into_owned();
            let size = usize::from_str_radix(&size, 16).unwrap();
            let whole = end + 2 + size + 2;
            while self.ahead.len() < whole {
                self.read_more()?;
            }
            body.extend_from_slice(&self.ahead[end + 2..whole - 2]);
            self.ahead.drain(..whole);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads one whole answer.
    pub fn read(&mut self) -> io::Result<Answer> {
        let (status, headers) = self.read_head()?;
        let body = self.read_body(&headers)?;
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    /// Reads so many bytes of a body, or fewer if it ends before, and keeps none; tells how many.
    pub fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        let mut skipped = self.take_ahead().len() as u64;
        let mut buffer = vec![0; 1 << 20];
        while skipped < bytes {
            match self.read_once(&mut buffer)? {
                0 => break,
                len => skipped += len as u64,
            }
        }
        Ok(skipped)
    }

    /// Reads until this text has come; it and all before it are taken.
    pub fn read_until(&mut self, text: &str) {
        self.read_through(text);
    }

    /// The same, and what stood before it, as text.
    pub fn read_through(&mut self, text: &str) -> String {
        loop {
            let found = self
                .ahead
                .windows(text.len())
                .position(|part| part == text.as_bytes());
            if let Some(at) = found {
                let before = String::from_utf8_lossy(&self.ahead[..at]).into_owned();
                self.ahead.drain(..at + text.len());
                return before;
            }
            self.read_more().unwrap();
        }
    }

    /// What was read and belongs to no answer that was given: the beginning of one that broke off.
    pub fn take_ahead(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ahead)
    }

    /// What was read ahead and what comes next.
    pub fn read_some(&mut self) -> io::Result<Vec<u8>> {
        if self.ahead.is_empty() {
            self.read_more()?;
        }
        Ok(self.take_ahead())
    }

    /// Reads until the other side has closed, by a FIN or a reset.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        loop {
            match self.read_more() {
                Ok(()) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                        return std::mem::take(&mut self.ahead);
                    }
                    _ => panic!("the other side did not close: {error}"),
                },
            }
        }
    }

    /// Reads an answer after which the other side closes, and makes sure that nothing follows it.
    /// Without `Content-Length` there must be no body.
    pub fn read_last(&mut self, method: &str) -> Answer {
        let (status, headers) = self.read_head().unwrap();
        let body = self.read_to_end();
        let mut answer = Answer {
            status,
            headers,
            body,
        };
        if answer.header("transfer-encoding") == Some("chunked") && method != "HEAD" {
            let (body, is_whole) = without_chunks(&answer.body);
            assert!(is_whole, "{method}: {answer:?}");
            answer.body = body;
            return answer;
        }
        let has_body = method != "HEAD" && status != 304;
        let announced = answer.header("content-length").filter(|_| has_body);
        let announced: usize = announced.map_or(0, |length| length.parse().unwrap());
        assert_eq!(answer.body.len(), announced, "{method}: {answer:?}");
        answer
    }

    /// Reads what is there, at most so much. Reads that have a time limit end early when this
    /// process is stopped and goes on, as tracers have it (signal(7)): those are done again.
    fn read_once(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        match self.read_once(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            len => {
                self.ahead.extend_from_slice(&buffer[..len]);
                Ok(())
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// One request on a connection of its own.
pub fn get(port: u16, path: &str) -> io::Result<Answer> {
    let mut connection = Connection::open(port)?;
    connection.send_get(path)?;
    connection.read()
}

/// One request with these header lines, each ended by CRLF, and exactly its answer. `Host` is added
/// unless they have it, and the connection ends.
pub fn ask(port: u16, method: &str, target: &str, fields: &str) -> Answer {
    let mut connection = Connection::open(port).unwrap();
    connection.send_ask(method, target, fields);
    connection.read_last(method)
}

/// Raw bytes to a connection of their own, and all that comes back until it is closed.
pub fn raw(port: u16, bytes: &[u8]) -> String {
    let mut connection = Connection::open(port).unwrap();
    connection.send(bytes).unwrap();
    String::from_utf8_lossy(&connection.read_to_end()).into_owned()
}

/// A download that has begun and of which nothing more is read for now.
pub fn begin_download(port: u16, path: &str) -> (Connection, Vec<(String, String)>) {
    let mut connection = Connection::open(port).unwrap();
    connection.send_get(path).unwrap();
    let (status, headers) = connection.read_head().unwrap();
    assert_eq!(status, 200);
    (connection, headers)
}

/// An answer to the last request of a connection, its framing taken off.
#[derive(Debug, Default)]
pub struct Reply {
    pub answer: Answer,
    /// It ended as its framing says: nothing is missing.
    pub is_whole: bool,
    /// Its body came in chunks.
    pub is_chunked: bool,
}

impl Reply {
    /// It began with a status of 200 and broke off. Over QUIC the head may be lost, too
    /// ([`Connection::read_reply`]).
    pub fn broke_off(&self) -> bool {
        !self.is_whole && matches!(self.answer.status, 200 | 0)
    }

    /// A client can tell that something went wrong: by the status, or because the answer broke off.
    pub fn is_broken(&self) -> bool {
        self.answer.status == 502 || !self.is_whole
    }
}

/// Raw bytes to a connection of their own, and the answer until it is closed. The request must ask
/// for that.
pub fn exchange(port: u16, request: &[u8]) -> Reply {
    let mut connection = Connection::open(port).unwrap();
    let mut sending = Connection::of(connection.as_fd().try_clone_to_owned().unwrap());
    std::thread::scope(|scope| {
        // A program may answer while it is sent to; one that does not listen is sent to in vain.
        scope.spawn(move || drop(sending.send(request)));
        connection.read_reply()
    })
}

/// A request for a path with these header lines and this body, and its answer.
pub fn call(port: u16, method: &str, target: &str, fields: &str, body: &[u8]) -> Reply {
    let length = match body.is_empty() {
        true => String::new(),
        false => format!("Content-Length: {}\r\n", body.len()),
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}{length}Connection: close\r\n\r\n"
    );
    exchange(port, &[head.as_bytes(), body].concat())
}

impl Connection {
    /// Reads one answer, interim ones passed over, up to the close of the connection.
    pub fn read_reply(&mut self) -> Reply {
        self.try_read_reply()
            .unwrap_or_else(|error| match (error.kind(), Protocol::tested()) {
                // A stream of QUIC that is reset may lose what was sent on it, its head too (RFC
                // 9000, section 3.2): an answer of status 0 that is not whole.
                (io::ErrorKind::UnexpectedEof, Protocol::H3) => Reply::default(),
                _ => panic!("no answer: {error}"),
            })
    }

    /// The same where the connection may end before a head has come.
    pub fn try_read_reply(&mut self) -> io::Result<Reply> {
        let (status, headers) = loop {
            let (status, headers) = self.read_head()?;
            if status >= 200 {
                break (status, headers);
            }
        };
        let raw = self.read_to_end();
        let answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        let is_chunked = answer.header("transfer-encoding") == Some("chunked");
        let (body, is_whole) = match answer.header("content-length") {
            _ if is_chunked => without_chunks(&raw),
            Some(length) => {
                let length: usize = length.parse().unwrap();
                assert!(raw.len() <= length, "bytes after the answer");
                let is_whole = raw.len() == length;
                (raw, is_whole)
            }
            None => (raw, true),
        };
        Ok(Reply {
            answer: Answer { body, ..answer },
            is_whole,
            is_chunked,
        })
    }
}

/// The bytes of a body in chunks, and whether its last chunk is there.
fn without_chunks(mut raw: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = raw.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&raw[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        raw = &raw[end + 2..];
        if size == 0 {
            assert_eq!(raw, b"\r\n", "bytes after the answer");
            return (body, true);
        }
        let here = size.min(raw.len());
        body.extend_from_slice(&raw[..here]);
        if raw.len() < size + 2 {
            return (body, false);
        }
        assert_eq!(&raw[size..size + 2], b"\r\n");
        raw = &raw[size + 2..];
    }
    (body, false)
}
