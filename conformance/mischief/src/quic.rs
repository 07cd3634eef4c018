//! Acts over QUIC, carried out: a socket and a connection of their own.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use hob_load::Protocol;
use hob_load::parts::h3::{self, Common, ConnectionChange, Datagrams, H3ClientSession};
use hob_load::parts::{AnswerEvent, FailureKind, Opener, ServerAddress, SourceAddresses};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::act::{Quic, QuicLeave, QuicRequest, QuicStreams};
use super::line::Target;
use super::seen::{End, Seen};

/// What one read may give.
const READ_BYTES: usize = 64 * 1024;

/// Carries an act out.
pub(super) fn perform(quic: &Quic, target: &Target) -> Seen {
    let performed = match quic {
        Quic::Datagrams(datagrams) => throw(datagrams, target),
        Quic::Vanish(count) => Conn::open(target, 1).and_then(|mut conn| {
            conn.datagrams_left = *count;
            let until = Instant::now() + target.timeout;
            while conn.datagrams_left > 0 && conn.turn(until)? == Turn::On {}
            Ok(Seen::only(End::Left))
        }),
        Quic::Streams(streams) => speak(streams, target),
        Quic::Requests { requests, leave } => ask(requests, *leave, target),
    };
    performed.unwrap_or_else(|error| Seen::only(End::NoConnection(error.to_string())))
}

fn socket(target: &Target) -> io::Result<OwnedFd> {
    let mut opener = Opener::new(target.address.clone(), Protocol::H3, SourceAddresses::Any);
    Ok(opener.open(0)?.socket)
}

fn throw(datagrams: &[Vec<u8>], target: &Target) -> io::Result<Seen> {
    let socket = socket(target)?;
    for datagram in datagrams {
        // What has no room is as good as lost on its way.
        match rustix::net::send(&socket, datagram, rustix::net::SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Seen::only(End::Left))
}

fn ask(requests: &[QuicRequest], leave: QuicLeave, target: &Target) -> io::Result<Seen> {
    let mut conn = Conn::open(target, requests.len())?;
    let head = |request: &QuicRequest| match request {
        QuicRequest::Good | QuicRequest::Cancelled => target.h3_head.clone(),
        QuicRequest::Bytes(bytes) => bytes.clone(),
    };
    conn.common = Common::written(requests.iter().map(head).collect());
    let until = Instant::now() + target.timeout;
    let mut begun = 0;
    let end = loop {
        while begun < requests.len() && conn.session.has_room() {
            conn.session.start(begun as u32, begun, None, &conn.common);
            if requests[begun] == QuicRequest::Cancelled {
                conn.session.cancel(begun as u32);
            }
            begun += 1;
        }
        let is_over = conn.session.active() == 0 || leave != QuicLeave::Answered;
        if begun == requests.len() && is_over {
            break End::Left;
        }
        match conn.turn(until)? {
            Turn::On => {}
            Turn::Late => break End::Hung,
            Turn::Lost => break End::Closed,
        }
    };
    conn.flush();
    if leave != QuicLeave::Silently && end != End::Closed {
        conn.session.close(Instant::now());
        conn.flush();
    }
    Ok(conn.seen(end))
}

/// Sends on streams that are ours alone. What is wrong must end the connection; what is not must
/// leave a request as it is.
fn speak(streams: &QuicStreams, target: &Target) -> io::Result<Seen> {
    let mut conn = Conn::open(target, 1)?;
    if let Some(control) = &streams.control {
        conn.session.control.clone_from(control);
    }
    conn.common = Common::written(vec![target.h3_head.clone()]);
    let until = Instant::now() + target.timeout;
    let mut is_begun = false;
    let end = loop {
        if !is_begun && conn.session.has_room() {
            is_begun = true;
            for (bytes, is_ended) in &streams.others {
                conn.session.open_uni(bytes, *is_ended);
            }
            if streams.is_control_ended {
                conn.session.end_control();
            }
            if streams.is_legal {
                conn.session.start(0, 0, None, &conn.common);
            }
        }
        if is_begun && streams.is_legal && conn.session.active() == 0 {
            conn.session.close(Instant::now());
            break End::Left;
        }
        match conn.turn(until)? {
            Turn::On => {}
            Turn::Late => break End::Hung,
            Turn::Lost => break End::Closed,
        }
    };
    conn.flush();
    Ok(conn.seen(end))
}

/// What a turn came to.
#[derive(PartialEq, Eq)]
enum Turn {
    On,
    /// The time is up.
    Late,
    /// The connection is over.
    Lost,
}

struct Conn {
    socket: OwnedFd,
    datagrams: Datagrams,
    session: H3ClientSession,
    common: Common,
    /// Datagrams that we still send before we fall silent.
    datagrams_left: usize,
    statuses: Vec<u16>,
    said: Vec<String>,
    malformed: Option<String>,
}

impl Conn {
    fn open(target: &Target, wanted: usize) -> io::Result<Conn> {
        let socket = socket(target)?;
        let (tls, name) = target.tls.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
        let config = h3::config(tls.clone()).map_err(io::Error::other)?;
        let ServerAddress::Inet(address) = target.address else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let remote = (address, &*name.to_str());
        let session = H3ClientSession::new(config, remote, wanted, Instant::now());
        Ok(Conn {
            datagrams: Datagrams::new(&socket)?,
            socket,
            session: session.map_err(io::Error::other)?,
            common: Common::written(Vec::new()),
            datagrams_left: usize::MAX,
            statuses: Vec::new(),
            said: Vec::new(),
            malformed: None,
        })
    }

    /// What came of it.
    fn seen(self, end: End) -> Seen {
        Seen {
            statuses: self.statuses,
            said: self.said,
            end: self.malformed.map_or(end, End::Malformed),
            was_kept: false,
        }
    }

    /// Sends what there is to send.
    fn flush(&mut self) {
        let mut buffer = Vec::new();
        while self.datagrams_left > 0 {
            let Some(transmit) = self.session.transmit(Instant::now(), 1, &mut buffer) else {
                return;
            };
            // What is lost on its way is sent again in time.
            let _ = self.datagrams.send(&self.socket, &transmit, &buffer);
            buffer.clear();
            self.datagrams_left -= 1;
        }
    }

    /// Sends, waits and reads once.
    fn turn(&mut self, until: Instant) -> io::Result<Turn> {
        self.flush();
        let now = Instant::now();
        if now >= until {
            return Ok(Turn::Late);
        }
        let due = self.session.timeout().map_or(until, |due| due.min(until));
        let wait = Timespec::try_from(due.saturating_duration_since(now)).ok();
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut fds, wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let session = &mut self.session;
            let now = Instant::now();
            let received =
                self.datagrams
                    .receive(&self.socket, &mut buffer, |remote, ecn, bytes| {
                        session.receive(now, remote, ecn, bytes);
                    });
            match received {
                Ok(None) => break,
                Ok(Some(_)) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let now = Instant::now();
        if self.session.timeout().is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
        }
        Ok(self.advance(now))
    }

    fn advance(&mut self, now: Instant) -> Turn {
        let mut events = Vec::new();
        let step = self.session.advance(now, &self.common, &mut events);
        for event in events {
            match event {
                AnswerEvent::Answered { answer, .. } => self.statuses.push(answer.status),
                AnswerEvent::Reset { why, .. } => self.said.push(format!("RST {why}")),
                AnswerEvent::Again { .. } => self.said.push("RST H3_REQUEST_REJECTED".to_owned()),
                AnswerEvent::Malformed { why, .. } => self.malformed = Some(why.to_owned()),
                // No stream here is told to be broken off.
                AnswerEvent::BrokenOff { .. } => {}
            }
        }
        match step {
            ConnectionChange::Same | ConnectionChange::Connected => Turn::On,
            ConnectionChange::Lost(kind, why) => {
                if kind == FailureKind::Malformed
                    && self.malformed.is_none()
                    && !why.contains("closed by peer")
                {
                    self.malformed = Some(why.clone());
                }
                self.said.push("connection closed".to_owned());
                Turn::Lost
            }
        }
    }
}
