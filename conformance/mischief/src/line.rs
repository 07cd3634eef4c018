//! One connection of an act, with or without TLS: bytes out and in, never waiting longer than it is
//! told to, and left in whatever way.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_load::limits::KNOCK_PAUSE;
use hob_load::parts::{PIECE_BYTES, ServerAddress, Tls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
    connect, recv, send, shutdown, socket_with, sockopt,
};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::act::Leave;

/// The first message of a handshake; nothing where there is to be none.
pub(crate) fn hello(target: &Target) -> Vec<u8> {
    let tls = target.tls.as_ref();
    let tls = tls.and_then(|(config, name)| Tls::new(config.clone(), name.clone()).ok());
    tls.map_or_else(Vec::new, |tls| tls.to_send().to_vec())
}

/// What one read may give.
const READ_BYTES: usize = 16 * 1024;

/// What connections are made to.
pub(crate) struct Target {
    pub(crate) address: ServerAddress,
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// A request as HTTP/3 has it on a stream.
    pub(crate) h3_head: Vec<u8>,
    /// Longest wait for anything.
    pub(crate) timeout: Duration,
}

/// A connection to it.
fn connected(target: &Target) -> io::Result<OwnedFd> {
    let until = Instant::now() + target.timeout;
    match &target.address {
        ServerAddress::Inet(address) => {
            let stream = TcpStream::connect_timeout(address, target.timeout)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream.into())
        }
        ServerAddress::Unix(path) => loop {
            match try_unix(path) {
                // Its backlog is full: TCP tries again by itself then.
                Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(KNOCK_PAUSE),
                socket => return Ok(socket?),
            }
        },
    }
}

fn try_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// How a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server has sent its last byte.
    Closed,
    /// RST.
    Reset,
    /// What came is no TLS, or TLS's own refusal.
    NoTls,
}

/// One connection.
pub(crate) struct Line {
    socket: OwnedFd,
    tls: Option<Box<Tls>>,
    /// Bytes that are still to be sent below TLS, and how many of them are.
    out: Vec<u8>,
    out_sent: usize,
    /// The server takes no more.
    is_deaf: bool,
    /// We have said that nothing more will come.
    pub(crate) is_half_closed: bool,
    pub(crate) ended: Option<Ended>,
}

impl Line {
    /// Opens a connection without TLS.
    pub(crate) fn open(target: &Target) -> io::Result<Line> {
        Ok(Line {
            socket: connected(target)?,
            tls: None,
            out: Vec::new(),
            out_sent: 0,
            is_deaf: false,
            is_half_closed: false,
            ended: None,
        })
    }

    /// Shakes hands as the target asks for; what is wrong where that does not come to an end.
    pub(crate) fn secure(&mut self, target: &Target) -> Result<(), String> {
        let Some((config, name)) = &target.tls else {
            return Ok(());
        };
        let tls = Tls::new(config.clone(), name.clone()).map_err(|error| error.to_string())?;
        self.tls = Some(Box::new(tls));
        let until = Instant::now() + target.timeout;
        while self.tls.as_ref().is_some_and(|tls| !tls.is_ready) {
            if self.ended.is_some() {
                return Err("the server ended the handshake".to_owned());
            }
            if !self.turn(until, usize::MAX, |_| {}) {
                return Err("the server did not answer the handshake".to_owned());
            }
        }
        Ok(())
    }

    /// Has these bytes sent, behind what is to be sent already.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Some(tls) = &mut self.tls else {
            return self.out.extend_from_slice(bytes);
        };
        for piece in bytes.chunks(PIECE_BYTES) {
            if tls.encrypt(piece).is_err() {
                self.is_deaf = true;
                return;
            }
        }
    }

    /// Goes on without TLS, when what is to be sent through it is sent.
    pub(crate) fn strip(&mut self) {
        if let Some(tls) = self.tls.take() {
            self.out.extend_from_slice(tls.to_send());
        }
    }

    /// Is there something that could be sent?
    pub(crate) fn has_output(&self) -> bool {
        let left = match &self.tls {
            None => self.out.len() - self.out_sent,
            Some(tls) => tls.to_send().len(),
        };
        left > 0 && !self.is_deaf
    }

    /// Sends and reads what can be, waiting for it if need be; false when the time is up. Reads no
    /// more bytes from the socket than it is told to.
    pub(crate) fn turn(
        &mut self,
        until: Instant,
        read_max: usize,
        mut take: impl FnMut(&[u8]),
    ) -> bool {
        if self.ended.is_some() {
            return true;
        }
        // A server that always has more to say must not keep us for ever.
        if Instant::now() >= until {
            return false;
        }
        let mut wanted = PollFlags::empty();
        if read_max > 0 {
            wanted |= PollFlags::IN;
        }
        if self.has_output() {
            wanted |= PollFlags::OUT;
        }
        let mut fds = [PollFd::new(&self.socket, wanted)];
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).ok();
        let ready = match poll(&mut fds, wait.as_ref()) {
            Ok(0) => return false,
            Ok(_) => fds[0].revents(),
            Err(Errno::INTR) => return true,
            Err(_) => PollFlags::HUP,
        };
        let is_over = ready.intersects(PollFlags::HUP | PollFlags::ERR);
        if ready.contains(PollFlags::OUT) || (is_over && self.has_output()) {
            self.write();
        }
        if ready.contains(PollFlags::IN) || is_over {
            self.read(read_max.clamp(1, READ_BYTES), &mut take);
        }
        true
    }

    fn write(&mut self) {
        let bytes = match &self.tls {
            None => &self.out[self.out_sent..],
            Some(tls) => tls.to_send(),
        };
        match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => match &mut self.tls {
                None => self.out_sent += count,
                Some(tls) => tls.sent(count),
            },
            Err(Errno::AGAIN | Errno::INTR) => {}
            // What the server has said before may still be read.
            Err(_) => self.is_deaf = true,
        }
        if self.tls.is_none() && self.out_sent == self.out.len() {
            self.out.clear();
            self.out_sent = 0;
        }
    }

    fn read(&mut self, room: usize, take: &mut impl FnMut(&[u8])) {
        let mut buffer = [0; READ_BYTES];
        let count = match recv(&self.socket, &mut buffer[..room], RecvFlags::empty()) {
            Ok((0, _)) => return self.ended = Some(Ended::Closed),
            Ok((count, _)) => count,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => return self.ended = Some(Ended::Reset),
        };
        let Some(tls) = &mut self.tls else {
            return take(&buffer[..count]);
        };
        let mut bytes = std::mem::take(&mut tls.kept);
        bytes.extend_from_slice(&buffer[..count]);
        match tls.process(&mut bytes, take) {
            Ok(used) => {
                bytes.drain(..used);
                tls.kept = bytes;
                if tls.is_closed {
                    self.ended = Some(Ended::Closed);
                }
            }
            Err(_) => self.ended = Some(Ended::NoTls),
        }
    }

    /// Sends all that is to be sent, reading meanwhile; false when the time is up.
    pub(crate) fn flush(&mut self, until: Instant, mut take: impl FnMut(&[u8])) -> bool {
        while self.has_output() && self.ended.is_none() {
            if !self.turn(until, usize::MAX, &mut take) {
                return false;
            }
        }
        true
    }

    /// Ends our direction, when what is to be sent is sent.
    pub(crate) fn half_close(&mut self, until: Instant, mut take: impl FnMut(&[u8])) {
        if let Some(tls) = &mut self.tls {
            // Where there is no session any more, TCP's end is enough.
            let _ = tls.close();
        }
        self.flush(until, &mut take);
        // A connection that is over already has no direction to end.
        let _ = shutdown(&self.socket, Shutdown::Write);
        self.is_deaf = true;
        self.is_half_closed = true;
    }

    /// Leaves.
    pub(crate) fn leave(self, leave: Leave) {
        if leave == Leave::Reset {
            // A kernel that cannot sends FIN.
            let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
        }
    }
}
