//! Whether somebody speaks QUIC at an address: over UDP only a handshake shows that.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::h3::{self, ConnectionChange, Datagrams};
use super::trust;
use crate::measure::FailureKind;

/// What one read may give.
const READ_BYTES: usize = 64 * 1024;

/// Shakes hands at an address, and leaves. Somebody who refuses the handshake is there too: what is
/// wrong is told when the run begins.
pub(crate) fn answers_quic(
    address: SocketAddr,
    (tls, name): &(ClientConfig, ServerName<'static>),
    timeout: Duration,
) -> io::Result<()> {
    let begun = Instant::now();
    let config = h3::config(trust::for_thread(tls, false)).map_err(io::Error::other)?;
    let name = name.to_str();
    let mut session =
        h3::H3ClientSession::new(config, (address, &name), 1, begun).map_err(io::Error::other)?;
    let socket = socket(address)?;
    let datagrams = Datagrams::new(&socket)?;
    let known = h3::QpackContext::new(&[]);
    let common = h3::Common::new(&[], Vec::new(), known);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let now = Instant::now();
        if now.duration_since(begun) >= timeout {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if session.timeout().is_some_and(|due| due <= now) {
            session.handle_timeout(now);
        }
        loop {
            let received = datagrams.receive(&socket, &mut buffer, |remote, ecn, bytes| {
                session.receive(now, remote, ecn, bytes);
            });
            match received {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let step = session.advance(now, &common, &mut Vec::new());
        let is_there = match step {
            ConnectionChange::Same => false,
            ConnectionChange::Lost(FailureKind::Connect, why) => return Err(io::Error::other(why)),
            ConnectionChange::Lost(..) => true,
            ConnectionChange::Connected => {
                session.close(now);
                true
            }
        };
        flush(&mut session, &datagrams, &socket, now)?;
        if is_there {
            return Ok(());
        }
        let end = begun + timeout;
        let next = session.timeout().map_or(end, |due| due.min(end));
        wait(&socket, next.saturating_duration_since(now))?;
    }
}

fn socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    socket.connect(address)?;
    Ok(socket.into())
}

/// Sends what there is to send. What the kernel has no room for is as good as lost on its way.
fn flush(
    session: &mut h3::H3ClientSession,
    datagrams: &Datagrams,
    socket: &OwnedFd,
    now: Instant,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(transmit) = session.transmit(now, 1, &mut buffer) {
        datagrams.send(socket, &transmit, &buffer)?;
        buffer.clear();
    }
    Ok(())
}

fn wait(socket: &OwnedFd, time: Duration) -> io::Result<()> {
    // Not before the time has come: a shorter wait would end in the past of the timer again.
    let time = time + Duration::from_micros(100);
    let time = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
