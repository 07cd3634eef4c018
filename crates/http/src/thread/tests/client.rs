//! A client of raw bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustls::{ClientConnection, Stream};

use super::PATIENCE;

pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) tls: Option<ClientConnection>,
    carry: Vec<u8>,
}

/// A whole answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Status line and fields, without the date.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    pub(super) trailers: String,
}

impl Answer {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(super) fn closes(&self) -> bool {
        self.head.contains("Connection: close\r\n")
    }
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Client {
        Client::over(TcpStream::connect(address).unwrap())
    }

    /// A client whose system holds little of what it does not read.
    pub(super) fn connect_narrow(address: SocketAddr) -> Client {
        let kind = (socket2::Domain::for_address(address), socket2::Type::STREAM);
        let socket = socket2::Socket::new(kind.0, kind.1, None).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&address.into()).unwrap();
        Client::over(socket.into())
    }

    fn over(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client {
            stream,
            tls: None,
            carry: Vec::new(),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => Stream::new(tls, &mut self.stream).write_all(bytes),
            None => self.stream.write_all(bytes),
        }
    }

    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => Stream::new(tls, &mut self.stream).read(room),
            None => self.stream.read(room),
        }
    }

    pub(super) fn send(&mut self, text: &str) {
        self.write(text.as_bytes()).unwrap();
    }

    /// Sends a request without a body.
    pub(super) fn get(&mut self, target: &str) {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
    }

    /// Sends a request and reads its answer.
    pub(super) fn ask(&mut self, target: &str) -> Answer {
        self.get(target);
        self.answer()
    }

    /// Sends the head of a request with a body of so many bytes.
    pub(super) fn post(&mut self, target: &str, len: usize) {
        self.send(&format!(
            "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\n\r\n"
        ));
    }

    pub(super) fn post_chunked(&mut self, target: &str) {
        self.send(&format!(
            "POST {target} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        ));
    }

    fn more(&mut self) -> usize {
        let mut buffer = [0; 16 * 1024];
        let count = self.read(&mut buffer).expect("bytes come in time");
        self.carry.extend_from_slice(&buffer[..count]);
        count
    }

    /// Reads up to and with the next empty line; the date is cut out.
    pub(super) fn head(&mut self) -> String {
        let end = loop {
            match self.carry.windows(4).position(|w| w == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => assert!(self.more() > 0, "a head comes, not {:?}", self.carry),
            }
        };
        let bytes: Vec<u8> = self.carry.drain(..end).collect();
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.split_inclusive("\r\n");
        lines.filter(|line| !line.starts_with("Date: ")).collect()
    }

    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        while self.carry.len() < len {
            assert!(self.more() > 0, "{len} bytes come");
        }
        self.carry.drain(..len).collect()
    }

    pub(super) fn take_line(&mut self) -> String {
        let end = loop {
            match self.carry.windows(2).position(|w| w == b"\r\n") {
                Some(at) => break at,
                None => assert!(self.more() > 0, "a line comes"),
            }
        };
        let bytes = self.take(end + 2);
        String::from_utf8(bytes[..end].to_vec()).unwrap()
    }

    /// Reads a final answer with its body.
    pub(super) fn answer(&mut self) -> Answer {
        let head = self.head();
        let status = head[9..12].parse().unwrap();
        let value = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::to_owned)
        };
        let mut body = Vec::new();
        let mut trailers = String::new();
        if let Some(len) = value("Content-Length: ") {
            body = self.take(len.parse().unwrap());
        } else if value("Transfer-Encoding: ").as_deref() == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.take_line(), 16).unwrap();
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&self.take(size));
                assert_eq!(self.take_line(), "");
            }
            loop {
                let line = self.take_line();
                if line.is_empty() {
                    break;
                }
                trailers += &line;
                trailers.push('\n');
            }
        } else if status != 204 && status != 304 {
            body = self.rest();
        }
        Answer {
            status,
            head,
            body,
            trailers,
        }
    }

    /// Reads until the server ends its side.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        while self.more() > 0 {}
        std::mem::take(&mut self.carry)
    }

    /// The server ends its side, and nothing comes before that.
    pub(super) fn assert_end(&mut self) {
        assert_eq!(self.rest().escape_ascii().to_string(), "");
    }

    /// The server resets the connection, whatever came before that.
    pub(super) fn assert_reset(&mut self) {
        let mut buffer = [0; 16 * 1024];
        let error = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("the connection ended in order"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }

    /// Bytes that have arrived and were not read.
    pub(super) fn waiting_bytes(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.stream).unwrap()
    }

    pub(super) fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Leaves with RST.
    pub(super) fn reset(self) {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).unwrap();
    }
}
