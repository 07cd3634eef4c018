//! New connections: accepted by any thread, served by the one that has the fewest.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};

use crate::h1;
use crate::limits::ACCEPTS_PER_TURN;
use crate::request::Facts;
use crate::response::Answer;
use crate::thread::conn::Conn;
use crate::thread::drive::Fate;
use crate::thread::run::Thread;
use crate::thread::shared::{Crew, Letter};

/// A connection on its way to its thread.
pub(crate) struct Accepted {
    socket: OwnedFd,
    peer: Option<SocketAddr>,
    listener: u16,
    /// It counts towards its client's limit.
    is_counted: bool,
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
                        peer,
                        listener,
                        is_counted: false,
                    });
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => {
                    // Out of descriptors or memory: the connection stays in the kernel's queue and the
                    // level-triggered listener reports it again.
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
        let entered = self.crew.enter(&self.limits, accepted.peer);
        if let Ok(is_counted) = entered {
            accepted.is_counted = is_counted;
        } else {
            match entered {
                Err(Full::Client) => self.counters.limit_connections_per_client.add(1),
                _ => self.counters.limit_connections.add(1),
            }
            let _ = rustix::net::send(&accepted.socket, FULL, SendFlags::NOSIGNAL);
            let _ = rustix::net::shutdown(&accepted.socket, rustix::net::Shutdown::Write);
            self.counters.connections_closed.add(1);
            return;
        }
        let target = self.crew.least_loaded(self.index);
        self.crew
            .mailbox(target)
            .conn_count
            .fetch_add(1, Ordering::Relaxed);
        if target == self.index {
            self.adopt(accepted);
        } else {
            self.counters.handed_over.add(1);
            self.crew.mailbox(target).send(Letter::Connection(accepted));
        }
    }

    /// Serves a connection that is counted already. Its first bytes are often there: they are tried for
    /// before the socket enters the epoll set.
    pub(crate) fn adopt(&mut self, accepted: Accepted) {
        let facts = Rc::new(Facts {
            peer: accepted.peer,
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
        conn.is_counted = accepted.is_counted;
        conn.key = self.seat();
        match self.drive(&mut conn) {
            Fate::Keep => self.keep(conn),
            Fate::Close => self.close(conn),
        }
    }
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
    ) -> Result<bool, Full> {
        if self.open.fetch_add(1, Ordering::Relaxed) >= limits.connection_count {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(Full::Server);
        }
        let (Some(peer), true) = (peer, limits.connection_count_per_client > 0) else {
            return Ok(false);
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
        Ok(true)
    }

    /// Counts a connection out; `counted_peer` is its client when it counted towards a limit.
    pub(crate) fn leave(&self, counted_peer: Option<SocketAddr>) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        let Some(peer) = counted_peer else { return };
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
