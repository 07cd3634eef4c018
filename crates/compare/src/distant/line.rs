//! A connection over which both sides say one JSON object a line, neither longer nor later than
//! it may be.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::{DISTANT_ALIVE, DISTANT_LOOK_PERIOD, DISTANT_WRITE};

/// Why nothing is said any more.
#[derive(Debug)]
pub(super) enum LineEnd {
    /// The other side has closed the connection, or the network has.
    Closed(io::Error),
    /// Nothing came in time.
    Silent,
    /// A line is longer than it may be, or none of those that can be said.
    Wrong(String),
    /// The other side may not be heard.
    Refused(String),
    /// This side is told to end.
    Stopped,
}

/// One end of the connection.
pub(super) struct LineStream {
    stream: TcpStream,
    /// What came behind the last line.
    rest: Vec<u8>,
    line_bytes_max: usize,
}

impl LineStream {
    /// Takes a connection; lines that come may be so long.
    pub(super) fn new(stream: TcpStream, line_bytes_max: usize) -> io::Result<LineStream> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(DISTANT_WRITE))?;
        // A machine that is gone says nothing of it.
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, DISTANT_ALIVE)?;
        sockopt::set_tcp_keepintvl(&stream, DISTANT_ALIVE / 3)?;
        sockopt::set_tcp_keepcnt(&stream, 3)?;
        stream.set_nonblocking(false)?;
        Ok(LineStream {
            stream,
            rest: vec![],
            line_bytes_max,
        })
    }

    /// The addresses of this side and of the other one; both are of IPv4.
    pub(super) fn addresses(&self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        let own = self.stream.local_addr().ok()?;
        let other = self.stream.peer_addr().ok()?;
        match (own, other) {
            (SocketAddr::V4(own), SocketAddr::V4(other)) => Some((*own.ip(), *other.ip())),
            _ => None,
        }
    }

    /// Says something.
    pub(super) fn say(&mut self, what: &impl Serialize) -> Result<(), LineEnd> {
        let text = serde_json::to_vec(what);
        let mut text = text.map_err(|error| LineEnd::Closed(error.into()))?;
        text.push(b'\n');
        self.stream.write_all(&text).map_err(LineEnd::Closed)
    }

    /// Hears something, at the latest after this time, unless this side is told to end.
    pub(super) fn hear<T: DeserializeOwned>(
        &mut self,
        limit: Duration,
        is_stopped: &AtomicBool,
    ) -> Result<T, LineEnd> {
        let line = self.line(Instant::now() + limit, is_stopped)?;
        serde_json::from_slice(&line).map_err(|error| LineEnd::Wrong(error.to_string()))
    }

    fn line(&mut self, until: Instant, is_stopped: &AtomicBool) -> Result<Vec<u8>, LineEnd> {
        let mut seen = 0;
        loop {
            if let Some(at) = self.rest[seen..].iter().position(|byte| *byte == b'\n') {
                let rest = self.rest.split_off(seen + at + 1);
                return Ok(std::mem::replace(&mut self.rest, rest));
            }
            seen = self.rest.len();
            if seen >= self.line_bytes_max {
                let most = self.line_bytes_max;
                return Err(LineEnd::Wrong(format!("a line of more than {most} bytes")));
            }
            self.wait(until, is_stopped)?;
            let mut room = [0; 16 << 10];
            let left = room.len().min(self.line_bytes_max - seen);
            match self.stream.read(&mut room[..left]) {
                Ok(0) => return Err(LineEnd::Closed(ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.rest.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(LineEnd::Closed(error)),
            }
        }
    }

    /// Waits until there is something to read.
    fn wait(&self, until: Instant, is_stopped: &AtomicBool) -> Result<(), LineEnd> {
        loop {
            if is_stopped.load(Ordering::Relaxed) {
                return Err(LineEnd::Stopped);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LineEnd::Silent);
            }
            if is_readable(&self.stream, left.min(DISTANT_LOOK_PERIOD)) {
                return Ok(());
            }
        }
    }
}

/// Is there something to read, or to take, at the latest after this time?
pub(super) fn is_readable(what: &impl AsFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).ok();
    let mut watched = [PollFd::new(what, PollFlags::IN)];
    matches!(poll(&mut watched, limit.as_ref()), Ok(1..))
}

/// How a connection ends when the other side is gone.
const END: [ErrorKind; 3] = [
    ErrorKind::UnexpectedEof,
    ErrorKind::ConnectionReset,
    ErrorKind::BrokenPipe,
];

impl LineEnd {
    /// What the other side did, for people: behind its name.
    pub(super) fn text(&self) -> String {
        match self {
            // Reset, where it has gone before it read all that was said to it.
            LineEnd::Closed(error) if END.contains(&error.kind()) => {
                "has closed the connection".to_owned()
            }
            LineEnd::Closed(error) => format!("is no longer heard: {error}"),
            LineEnd::Silent => "says nothing".to_owned(),
            LineEnd::Wrong(why) => format!("says what is not understood: {why}"),
            LineEnd::Refused(why) => format!("is refused: {why}"),
            LineEnd::Stopped => "was told that this side ends".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::distant::words::DistantAsk;

    fn pair(line_bytes_max: usize) -> (TcpStream, LineStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        (near, LineStream::new(far, line_bytes_max).unwrap())
    }

    const LONG: Duration = Duration::from_secs(60);
    static NEVER: AtomicBool = AtomicBool::new(false);

    #[test]
    fn lines_come_one_by_one_however_they_were_cut() {
        let (mut near, mut far) = pair(100);
        near.write_all(b"{\"ask\":\"ping\"}\n{\"ask\":\"usage\",")
            .unwrap();
        let heard: DistantAsk = far.hear(LONG, &NEVER).unwrap();
        assert_eq!(heard, DistantAsk::Ping);
        near.write_all(b"\"server\":2}\n").unwrap();
        let heard: DistantAsk = far.hear(LONG, &NEVER).unwrap();
        assert_eq!(heard, DistantAsk::Usage { server: 2 });
        drop(near);
        let heard = far.hear::<DistantAsk>(LONG, &NEVER);
        assert!(matches!(heard, Err(LineEnd::Closed(_))), "{heard:?}");
    }

    #[test]
    fn line_that_is_too_long_or_too_late_is_the_end() {
        let (mut near, mut far) = pair(100);
        near.write_all(&[b'x'; 101]).unwrap();
        let heard = far.hear::<DistantAsk>(LONG, &NEVER);
        assert!(matches!(heard, Err(LineEnd::Wrong(_))), "{heard:?}");
        let (_near, mut far) = pair(100);
        let heard = far.hear::<DistantAsk>(Duration::from_millis(1), &NEVER);
        assert!(matches!(heard, Err(LineEnd::Silent)), "{heard:?}");
        let heard = far.hear::<DistantAsk>(LONG, &AtomicBool::new(true));
        assert!(matches!(heard, Err(LineEnd::Stopped)), "{heard:?}");
    }
}
