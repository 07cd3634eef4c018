//! The way of a log's lines to a collector of syslog: messages of RFC 5424, each a datagram of a
//! Unix socket or of UDP (RFC 5426), or behind its length on a connection of TCP (RFC 6587).
//!
//! The log's buffer has the messages as lines, `<134>1 2026-11-21T21:13:07.250Z host hob 7 access -
//! LINE`. This file sends them from its start and says how far it came. What is not there is tried
//! again, after longer and longer pauses, while the lines wait in the buffer, which has its limit.
//!
//! Over TCP a line stays in the buffer until the collector's kernel has acknowledged it. Those that
//! were on their way when a connection broke are sent again on the next one, so some may arrive
//! twice and none is lost before the collector has it. UDP knows no more than that nobody was
//! there: what was sent before is counted as lost then.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::calendar::UtcDateTime;
use crate::format::{CUT_MARK, whole_characters};
use crate::record::Record;

/// Bytes of a message, with all that stands before its text. Collectors take 2 KiB at least, and
/// usually 8 KiB.
pub const SYSLOG_MESSAGE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of messages that are made ready to be written to a connection at a time.
const FRAMES_BYTES: usize = 64 * 1024;
/// The pauses between two tries to reach a collector: each is twice the one before.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long one address of a collector may take to accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long one turn waits for room at a collector or in a pipe; other logs wait meanwhile.
pub(super) const ROOM_PATIENCE: Duration = Duration::from_millis(50);
/// A connection whose other side acknowledges nothing for so long is given up.
const SILENCE_MS_MAX: u32 = 30_000;

/// Where a collector of syslog listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogAddress {
    /// A Unix socket for datagrams.
    Unix(PathBuf),
    /// A host and a port of UDP.
    Udp(String, u16),
    /// A host and a port of TCP.
    Tcp(String, u16),
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (protocol, host, port) = match self {
            SyslogAddress::Unix(path) => return write!(f, "unix:{}", path.display()),
            SyslogAddress::Udp(host, port) => ("udp", host, port),
            SyslogAddress::Tcp(host, port) => ("tcp", host, port),
        };
        match host.contains(':') {
            true => write!(f, "{protocol}:[{host}]:{port}"),
            false => write!(f, "{protocol}:{host}:{port}"),
        }
    }
}

/// How lines are sent to a collector of syslog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyslogSettings {
    /// Where it listens.
    pub address: SyslogAddress,
    /// The facility's number, 0 to 23.
    pub facility: u8,
    /// The severity's number, 0 to 7.
    pub severity: u8,
    /// Who sends: printable ASCII without spaces, 1 to 48 bytes.
    pub app_name: String,
    /// The machine that sends, in the same letters; `None` is what the kernel calls it.
    pub hostname: Option<String>,
}

/// Says how many bytes the other side of a TCP connection has acknowledged, from any number on.
pub type AcknowledgedBytes = fn(BorrowedFd<'_>) -> Option<u64>;

/// What came of sending.
#[derive(Debug, Default)]
pub(super) struct SendReport {
    /// Bytes at the buffer's start that are done with.
    pub(super) bytes: usize,
    /// Lines that did not arrive.
    pub(super) lost: u64,
    /// What is wrong.
    pub(super) error: Option<io::Error>,
    /// The collector takes lines.
    pub(super) is_well: bool,
    /// It takes no more for now.
    pub(super) is_stuck: bool,
}

/// The way to one collector.
pub(super) struct SyslogLink {
    address: SyslogAddress,
    acknowledged: AcknowledgedBytes,
    /// `<134>1 `, and what stands between time and text.
    before_time: Vec<u8>,
    after_time: Vec<u8>,
    /// The last message's second, and its text.
    second: u64,
    second_text: Vec<u8>,
    state: LinkState,
    /// The pause after the next failure.
    pause: Duration,
}

enum LinkState {
    /// There is no way; it is looked for from this moment on.
    Down(Option<Instant>),
    /// Somebody looks for it.
    Connecting(Receiver<io::Result<OwnedFd>>),
    Datagrams(OwnedFd),
    Stream(SyslogStream),
}

/// A connection of TCP.
struct SyslogStream {
    socket: OwnedFd,
    /// What had been acknowledged before the first message was sent; `None` where that is not told.
    base: Option<u64>,
    /// Bytes of all messages that were made ready.
    framed: u64,
    /// Where each message ends that is not acknowledged yet, in these bytes; and the bytes of its
    /// line in the buffer.
    flight: VecDeque<(u64, usize)>,
    /// The sum of the latter.
    flight_bytes: usize,
    /// Messages that are ready, behind their lengths, and how much of them is sent.
    frames: Vec<u8>,
    sent: usize,
}

impl fmt::Debug for SyslogLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.address, f)
    }
}

impl SyslogLink {
    pub(super) fn new(settings: SyslogSettings, acknowledged: AcknowledgedBytes) -> SyslogLink {
        let priority = u16::from(settings.facility) * 8 + u16::from(settings.severity);
        let host = settings.hostname.unwrap_or_else(host_name);
        let pid = std::process::id();
        //= rfc5424#6
        SyslogLink {
            before_time: format!("<{priority}>1 ").into_bytes(),
            after_time: format!("Z {host} {} {pid} access - ", settings.app_name).into_bytes(),
            address: settings.address,
            acknowledged,
            second: u64::MAX,
            second_text: Vec::new(),
            state: LinkState::Down(None),
            pause: PAUSE_MIN,
        }
    }

    /// Puts down what stands before the line of a record.
    pub(super) fn push_header(&mut self, record: &Record, out: &mut Vec<u8>) {
        let unix_ms = record
            .started_unix_ms
            .saturating_add(record.total_us / 1000);
        let second = unix_ms / 1000;
        if second != self.second {
            self.second = second;
            let m = UtcDateTime::from_unix_s(second.cast_signed());
            self.second_text = format!(
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
                m.year, m.month, m.day, m.hour, m.minute, m.second
            )
            .into_bytes();
        }
        out.extend_from_slice(&self.before_time);
        out.extend_from_slice(&self.second_text);
        // Writing to a Vec cannot fail.
        let _ = write!(out, ".{:03}", unix_ms % 1000);
        out.extend_from_slice(&self.after_time);
    }

    /// Sends these lines, from the first on, as far as it can be done without waiting.
    pub(super) fn send(&mut self, lines: &[u8], now: Instant) -> SendReport {
        let mut report = SendReport::default();
        self.look_for_collector(now, &mut report);
        let is_udp = matches!(self.address, SyslogAddress::Udp(..));
        let result = match &mut self.state {
            LinkState::Down(_) | LinkState::Connecting(_) => {
                report.is_stuck = true;
                return report;
            }
            LinkState::Datagrams(socket) => {
                send_datagrams(socket.as_fd(), is_udp, lines, &mut report)
            }
            LinkState::Stream(stream) => stream.send(lines, self.acknowledged, &mut report),
        };
        match result {
            Ok(()) => {
                report.is_well = report.error.is_none();
                if report.bytes > 0 && report.is_well {
                    self.pause = PAUSE_MIN;
                }
            }
            Err(error) => self.fall(error, now, &mut report),
        }
        report
    }

    /// Begins to look for the collector when it is time, and takes the way that was found.
    fn look_for_collector(&mut self, now: Instant, report: &mut SendReport) {
        if let LinkState::Down(from) = &self.state
            && from.is_none_or(|from| from <= now)
        {
            match begin_to_connect(&self.address) {
                Ok(way) => self.state = LinkState::Connecting(way),
                Err(error) => self.fall(error, now, report),
            }
        }
        let LinkState::Connecting(way) = &self.state else {
            return;
        };
        match way.try_recv() {
            Ok(Ok(socket)) => {
                self.state = match &self.address {
                    SyslogAddress::Tcp(..) => {
                        let base = (self.acknowledged)(socket.as_fd());
                        LinkState::Stream(SyslogStream::new(socket, base))
                    }
                    _ => LinkState::Datagrams(socket),
                }
            }
            Ok(Err(error)) => self.fall(error, now, report),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                self.fall(
                    io::Error::other("the thread that connects died"),
                    now,
                    report,
                );
            }
        }
    }

    fn fall(&mut self, error: io::Error, now: Instant, report: &mut SendReport) {
        self.state = LinkState::Down(Some(now + self.pause));
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        report.error = Some(error);
        report.is_stuck = true;
    }
}

impl SyslogStream {
    fn new(socket: OwnedFd, base: Option<u64>) -> SyslogStream {
        SyslogStream {
            socket,
            base,
            framed: 0,
            flight: VecDeque::new(),
            flight_bytes: 0,
            frames: Vec::new(),
            sent: 0,
        }
    }

    fn send(
        &mut self,
        lines: &[u8],
        acknowledged: AcknowledgedBytes,
        report: &mut SendReport,
    ) -> io::Result<()> {
        let result = self.send_frames(lines, report);
        // Also of a connection that has broken: what arrived is not sent again.
        let arrived = match (self.base, acknowledged(self.socket.as_fd())) {
            (Some(base), Some(now)) => now.saturating_sub(base),
            _ => self.framed - (self.frames.len() - self.sent) as u64,
        };
        while let Some((end, bytes)) = self.flight.front()
            && *end <= arrived
        {
            self.flight_bytes -= bytes;
            report.bytes += bytes;
            self.flight.pop_front();
        }
        result
    }

    fn send_frames(&mut self, lines: &[u8], report: &mut SendReport) -> io::Result<()> {
        self.look_at_other_side()?;
        let mut patience = ROOM_PATIENCE;
        loop {
            if self.sent == self.frames.len() && !self.make_frames(lines) {
                return Ok(());
            }
            let rest = &self.frames[self.sent..];
            match send_soon(self.socket.as_fd(), rest, &mut patience)? {
                Some(count) => self.sent += count,
                None => {
                    report.is_stuck = true;
                    return Ok(());
                }
            }
        }
    }

    /// A collector says nothing: what comes is its end, or of no interest.
    fn look_at_other_side(&self) -> io::Result<()> {
        const LOOKS_MAX: usize = 16;
        let mut room = [0u8; 256];
        for _ in 0..LOOKS_MAX {
            match rustix::net::recv(&self.socket, &mut room[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    let text = "the collector has closed the connection";
                    return Err(io::Error::new(io::ErrorKind::ConnectionReset, text));
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Makes the next lines ready; says whether there were any.
    fn make_frames(&mut self, lines: &[u8]) -> bool {
        self.frames.clear();
        self.sent = 0;
        let waiting = lines.get(self.flight_bytes..).unwrap_or_default();
        for line in waiting.split_inclusive(|byte| *byte == b'\n') {
            if self.frames.len() >= FRAMES_BYTES {
                break;
            }
            let message = line.strip_suffix(b"\n").unwrap_or(line);
            let before = self.frames.len();
            //= rfc6587#3.4.1
            // Writing to a Vec cannot fail.
            let _ = write!(self.frames, "{} ", message.len());
            self.frames.extend_from_slice(message);
            self.framed += (self.frames.len() - before) as u64;
            self.flight.push_back((self.framed, line.len()));
            self.flight_bytes += line.len();
        }
        !self.frames.is_empty()
    }
}

/// Each line is a datagram.
fn send_datagrams(
    socket: BorrowedFd<'_>,
    is_udp: bool,
    lines: &[u8],
    report: &mut SendReport,
) -> io::Result<()> {
    let mut patience = ROOM_PATIENCE;
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let message = line.strip_suffix(b"\n").unwrap_or(line);
        match send_soon(socket, message, &mut patience) {
            Ok(Some(_)) => report.bytes += line.len(),
            Ok(None) => {
                report.is_stuck = true;
                return Ok(());
            }
            Err(error) if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                report.bytes += line.len();
                report.lost += 1;
                report.error = Some(error);
            }
            Err(error) => {
                // Over UDP this is how the one before went. A Unix socket does not take this one.
                let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                report.lost += u64::from(is_udp && is_refused);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// How many bytes went; `None` where there is no room for any, and none came within the patience,
/// of which is taken what was waited. A Unix socket has room for a dozen datagrams: without waiting
/// no more than that would go in a turn of the writer.
fn send_soon(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    patience: &mut Duration,
) -> io::Result<Option<usize>> {
    loop {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(socket, bytes, flags) {
            Ok(count) => return Ok(Some(count)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if !patience.is_zero() => wait_for_room(socket, patience)?,
            Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until there may be room, and takes what was waited from the patience.
pub(super) fn wait_for_room(socket: BorrowedFd<'_>, patience: &mut Duration) -> io::Result<()> {
    let begun = Instant::now();
    let mut polled = [PollFd::new(&socket, PollFlags::OUT)];
    let time = Timespec::try_from(*patience).unwrap_or_default();
    match poll(&mut polled, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    *patience = patience.saturating_sub(begun.elapsed());
    Ok(())
}

/// Looks for a collector, on a thread of its own where that may take a while: names are looked up,
/// and connections accepted, by others. The thread ends within the times of both, whether or not
/// somebody still wants what it brings.
fn begin_to_connect(address: &SyslogAddress) -> io::Result<Receiver<io::Result<OwnedFd>>> {
    let (found, way) = channel();
    if let SyslogAddress::Unix(path) = address {
        let _ = found.send(connect_unix(path));
        return Ok(way);
    }
    let (address, writer) = (address.clone(), thread::current());
    thread::Builder::new()
        .name("hob-log-connect".into())
        .spawn(move || {
            let _ = found.send(match &address {
                SyslogAddress::Unix(path) => connect_unix(path),
                SyslogAddress::Udp(host, port) => connect_any(host, *port, connect_udp),
                SyslogAddress::Tcp(host, port) => connect_any(host, *port, connect_tcp),
            });
            writer.unpark();
        })?;
    Ok(way)
}

fn connect_unix(path: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::DGRAM;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// The first of a host's addresses that can be connected to.
fn connect_any(
    host: &str,
    port: u16,
    connect: fn(SocketAddr) -> io::Result<OwnedFd>,
) -> io::Result<OwnedFd> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match connect(address) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_udp(address: SocketAddr) -> io::Result<OwnedFd> {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket.into())
}

fn connect_tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = TcpStream::connect_timeout(&address, CONNECT_TIME)?;
    rustix::net::sockopt::set_tcp_user_timeout(&socket, SILENCE_MS_MAX)?;
    Ok(socket.into())
}

/// What the kernel calls this machine, in letters that a message may have.
fn host_name() -> String {
    let told = rustix::system::uname();
    let name = String::from_utf8_lossy(told.nodename().to_bytes()).into_owned();
    match name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.is_empty() {
        true => name,
        false => "-".to_owned(),
    }
}

/// Cuts a message that begins there and ends with the buffer, in a line break, to its limit; says
/// whether it was longer.
pub(super) fn cut_message(begin: usize, buffer: &mut Vec<u8>) -> bool {
    let end = buffer.len().saturating_sub(1);
    if end.saturating_sub(begin) <= SYSLOG_MESSAGE_BYTES_MAX {
        return false;
    }
    let kept = &buffer[begin..begin + SYSLOG_MESSAGE_BYTES_MAX - CUT_MARK.len()];
    let kept = whole_characters(kept).len();
    buffer.truncate(begin + kept);
    buffer.extend_from_slice(CUT_MARK.as_bytes());
    buffer.push(b'\n');
    true
}

#[cfg(test)]
mod tests;
