//! Messages between here and a server, over a socket that waits no longer than a tick at a time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::backend::{Header, Message};
use rustix::net::{RecvFlags, recv};
use rustls::{ClientConnection, StreamOwned};

/// How often whoever waits looks up.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// A way to a server.
pub(super) enum Stream {
    /// A socket of this machine.
    Near(UnixStream),
    /// A connection without TLS.
    Plain(TcpStream),
    /// A connection with TLS.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Near(stream) => stream.read(buffer),
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Near(stream) => stream.write(bytes),
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Near(stream) => stream.flush(),
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// A stream with what was read of the next messages, and what is to be sent.
pub(super) struct Wire {
    stream: Stream,
    input: BytesMut,
    pub(super) output: BytesMut,
    message_bytes_max: usize,
}

impl Wire {
    pub(super) fn new(stream: Stream, message_bytes_max: usize) -> Wire {
        Wire {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            message_bytes_max,
        }
    }

    /// Sends what was written into `output`.
    pub(super) fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.output);
        let sent = sent.and_then(|()| self.stream.flush());
        self.output.clear();
        sent
    }

    /// The next message; `look_up` is called with every tick that passes, and may end the wait.
    pub(super) fn next(
        &mut self,
        look_up: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Message> {
        loop {
            if let Some(header) = Header::parse(&self.input)? {
                let bytes = usize::try_from(header.len()).unwrap_or(usize::MAX);
                if bytes > self.message_bytes_max {
                    let most = self.message_bytes_max;
                    let text = format!("a row of {bytes} bytes came; it may have {most}");
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
                }
                if let Some(message) = Message::parse(&mut self.input)? {
                    return Ok(message);
                }
            }
            self.read(look_up)?;
        }
    }

    fn read(&mut self, look_up: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let start = self.input.len();
        self.input.resize(start + READ_BYTES, 0);
        let read = loop {
            match self.stream.read(&mut self.input[start..]) {
                Ok(0) => break Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => break Ok(count),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        if let Err(error) = look_up() {
                            break Err(error);
                        }
                    }
                    _ => break Err(error),
                },
            }
        };
        self.input
            .truncate(start + read.as_ref().copied().unwrap_or(0));
        read.map(|_| ())
    }

    /// Whether an idle connection has something to say, or has ended: it is of no use then.
    pub(super) fn is_stale(&self) -> bool {
        let socket = match &self.stream {
            Stream::Near(stream) => stream.as_fd(),
            Stream::Plain(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
        };
        let mut byte = [0; 1];
        let looked = recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(looked, Err(rustix::io::Errno::AGAIN))
    }
}
