//! New connections: accepted by any thread, served by the one that has the fewest.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};

use crate::h1::{self, Next};
use crate::limits::{ACCEPTS_PER_TURN, REFUSED_CONNECTIONS_MAX};
use crate::request::Facts;
use crate::response::Answer;
use crate::thread::conn::{Conn, Counted, Stage};
use crate::thread::run::Thread;
use crate::thread::shared::{Crew, Letter};

/// A connection on its way to its thread.
pub(crate) struct Accepted {
    socket: OwnedFd,
    peer: Option<SocketAddr>,
    listener: u16,
    counted: Counted,
}

/// What a client gets when there is no room for its connection.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";

impl<A: Answer + 'static> Thread<A> {
    pub(crate) fn accept(&mut self, listener: u16) {
        let Some((_, socket)) = self
            .listeners
            .iter()
            .find(|(number, _)| *number == listener)
        else {
            return;
        };
        let listening = Arc::clone(socket);
        for _ in 0..ACCEPTS_PER_TURN {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::acceptfrom_with(&listening, flags) {
                Ok((socket, address)) => {
                    let peer = address.and_then(|address| SocketAddr::try_from(address).ok());
                    self.place(Accepted {
                        socket,
                        // One client has one address, also over a socket for both families.
                        peer: peer.map(|peer| (peer.ip().to_canonical(), peer.port()).into()),
                        listener,
                        counted: Counted::Refused,
                    });
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => {
                    // Out of descriptors or memory: the connection stays in the kernel's queue and
                    // the level-triggered listener reports it again.
                    self.counters.accept_errors.add(1);
                    tracing::warn!(%error, "a connection could not be accepted");
                    return;
                }
            }
        }
    }

    /// Gives a connection to the thread with the fewest, unless a limit is reached.
    fn place(&mut self, mut accepted: Accepted) {
        self.counters.connections_accepted.add(1);
        match self.crew.enter(&self.limits, accepted.peer) {
            Ok(counted) => accepted.counted = counted,
            Err(full) => return self.turn_away(accepted, full),
        }
        let target = self.crew.least_loaded(self.index);
        if target != self.index {
            let mailbox = self.crew.mailbox(target);
            mailbox.conn_count.fetch_add(1, Ordering::Relaxed);
            match mailbox.send(Letter::Connection(accepted)) {
                Ok(()) => return self.counters.handed_over.add(1),
                Err(Letter::Connection(back)) => {
                    // That thread has just ended.
                    mailbox.conn_count.fetch_sub(1, Ordering::Relaxed);
                    accepted = back;
                }
                Err(_) => return,
            }
        }
        self.mailbox.conn_count.fetch_add(1, Ordering::Relaxed);
        self.adopt(accepted);
    }

    /// Tells a client that there is no room. Its connection is heard out for a moment, or its
    /// request, still unread, would turn the answer into a reset.
    fn turn_away(&mut self, accepted: Accepted, full: Full) {
        match full {
            Full::Client => self.counters.limit_connections_per_client.add(1),
            Full::Server => self.counters.limit_connections.add(1),
        }
        if self.refused_count >= REFUSED_CONNECTIONS_MAX || self.draining.is_some() {
            let _ = rustix::net::send(&accepted.socket, FULL, SendFlags::NOSIGNAL);
            self.counters.connections_closed.add(1);
            return;
        }
        self.refused_count += 1;
        self.mailbox.conn_count.fetch_add(1, Ordering::Relaxed);
        let mut conn = self.conn_of(accepted);
        conn.core.give_up_input();
        conn.stage = Stage::Flushing(Next::Linger);
        self.output.extend_from_slice(FULL);
        self.drive_and_keep(conn);
    }

    /// Serves a connection that is counted already. Its first bytes are often there: they are tried
    /// for before the socket enters the epoll set.
    pub(crate) fn adopt(&mut self, accepted: Accepted) {
        let conn = self.conn_of(accepted);
        self.drive_and_keep(conn);
    }

    fn conn_of(&mut self, accepted: Accepted) -> Box<Conn> {
        let facts = Rc::new(Facts {
            peer: accepted.peer,
            local: accepted.peer.and_then(|_| local_address(&accepted.socket)),
            peer_uid: match accepted.peer {
                Some(_) => None,
                None => peer_uid(&accepted.socket),
            },
            listener: accepted.listener,
            number: self.crew.next_number.fetch_add(1, Ordering::Relaxed),
            tls: None,
        });
        let core = h1::Conn::new(Rc::clone(&self.limits), self.now_ms);
        let mut conn = Box::new(Conn::new(accepted.socket, core, facts));
        conn.counted = accepted.counted;
        conn.key = self.seat();
        conn
    }
}

/// The address a client connected to; a listener for all addresses does not say.
fn local_address(socket: &OwnedFd) -> Option<SocketAddr> {
    let local = SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()?;
    Some((local.ip().to_canonical(), local.port()).into())
}

/// Who is at the other end of a Unix socket.
fn peer_uid(socket: &OwnedFd) -> Option<u32> {
    Some(
        rustix::net::sockopt::socket_peercred(socket)
            .ok()?
            .uid
            .as_raw(),
    )
}

/// Whose limit is reached.
pub(crate) enum Full {
    Server,
    Client,
}

impl Crew {
    /// Counts a connection in, or says which limit is reached.
    fn enter(
        &self,
        limits: &crate::limits::Limits,
        peer: Option<SocketAddr>,
    ) -> Result<Counted, Full> {
        if self.open.fetch_add(1, Ordering::Relaxed) >= limits.connection_count {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(Full::Server);
        }
        let (Some(peer), true) = (peer, limits.connection_count_per_client > 0) else {
            return Ok(Counted::Server);
        };
        let mut per_client = self
            .per_client
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = per_client.entry(peer.ip()).or_insert(0);
        if *count >= limits.connection_count_per_client {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(Full::Client);
        }
        *count += 1;
        Ok(Counted::ServerAndClient)
    }

    /// Counts a connection out of what it counted towards.
    pub(crate) fn leave(&self, counted: Counted, peer: Option<SocketAddr>) {
        if counted == Counted::Refused {
            return;
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
        let (Counted::ServerAndClient, Some(peer)) = (counted, peer) else {
            return;
        };
        let mut per_client = self
            .per_client
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(count) = per_client.get_mut(&peer.ip()) {
            *count -= 1;
            if *count == 0 {
                per_client.remove(&peer.ip());
            }
        }
    }
}
