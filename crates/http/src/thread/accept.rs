//! New connections: accepted by any thread, served by the one that has the fewest.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};

use crate::h1::{self, AfterAnswer};
use crate::h2::{PREFACE, frame};
use crate::limits::{
    ACCEPT_ERROR_QUIET_MS, ACCEPT_PAUSE_MS, ACCEPTS_PER_TURN, ASIDE_CONNECTIONS_MAX,
    REFUSED_CONNECTIONS_MAX, REFUSED_GREETING_MS,
};
use crate::request::ConnectionFacts;
use crate::response::Responder;
use crate::thread::conn::{ConnectionStage, CountedLimits, SocketConnection};
use crate::thread::drive::{DriveOutcome, Fate, Greeting};
use crate::thread::receive::SocketReadOutcome;
use crate::thread::run::{SPECIAL, Thread};
use crate::thread::shared::{Crew, Letter};
use crate::thread::visit::{Visit, Visits};
use crate::tls::TlsHosts;

/// A listening socket as the threads watch it.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Tells listeners apart; connections know it as [`ConnectionFacts::listener`].
    pub number: u16,
    /// The socket, not blocking.
    pub socket: Arc<OwnedFd>,
    /// Its connections count towards the limits of connections.
    pub is_counted: bool,
    /// TLS as it is spoken there; `None` is clear text.
    pub tls: Option<Arc<TlsHosts>>,
    /// What [`open_datagrams`](crate::listen::open_datagrams) gives: the two ends of a relay, then
    /// sockets for QUIC, one for each thread as far as there are some. None is no HTTP/3.
    pub datagrams: Vec<Arc<OwnedFd>>,
    /// What answers over TCP tell of it; see [`Listening::tell_of_datagrams`].
    pub alt_svc: Option<Arc<[u8]>>,
    /// Connections over TCP and Unix sockets begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Other hobs come to it, and add to heads what they say of their clients.
    pub is_for_hobs: bool,
    /// A thread that drains goes on taking connections from it, until it ends.
    pub outlasts_drain: bool,
    /// Connections that came to it.
    pub visits: Arc<Visits>,
}

impl Listening {
    /// A listener whose connections count.
    pub fn new(number: u16, socket: Arc<OwnedFd>) -> Listening {
        Listening {
            number,
            socket,
            is_counted: true,
            tls: None,
            datagrams: Vec::new(),
            alt_svc: None,
            proxy_protocol: false,
            is_for_hobs: false,
            outlasts_drain: false,
            visits: Arc::default(),
        }
    }

    /// Speaks HTTP/3 over these sockets, as [`Listening::datagrams`] has them.
    pub fn set_datagrams(&mut self, datagrams: Vec<Arc<OwnedFd>>) {
        self.datagrams = datagrams;
    }

    /// Says in answers over TCP where HTTP/3 is spoken, if it is: on this port, or on the socket's
    /// own, which is not the one for TCP where a service manager bound both.
    //= rfc9114#3.1.1
    pub fn tell_of_datagrams(&mut self, port: Option<u16>) {
        let own = self.datagrams.last();
        let own = own.and_then(|socket| Some(local_address(socket)?.port()));
        let told = own.map(|own| port.unwrap_or(own));
        self.alt_svc = told.map(|port| format!("h3=\":{port}\"; ma=86400").into_bytes().into());
    }

    /// A listener for those who must get in though the server is full. At most 64 connections are
    /// open that came this way over TCP, and as many over Unix sockets.
    pub fn aside(number: u16, socket: Arc<OwnedFd>) -> Listening {
        Listening {
            is_counted: false,
            ..Listening::new(number, socket)
        }
    }

    pub(crate) fn is_same(&self, other: &Listening) -> bool {
        self.number == other.number && Arc::ptr_eq(&self.socket, &other.socket)
    }
}

/// A connection on its way to its thread.
pub(crate) struct Accepted {
    socket: OwnedFd,
    peer: Option<SocketAddr>,
    listener: u16,
    counted: CountedLimits,
    pub(super) tls: Option<Arc<TlsHosts>>,
    pub(super) alt_svc: Option<Arc<[u8]>>,
    proxy_protocol: bool,
    visit: Visit,
}

/// How many connections to ask for when a listener has some. Asking once more to hear that there
/// are no more costs a system call, for most connections one each; a listener that still has some
/// is reported again anyway.
#[derive(Debug)]
struct Accepts {
    expected: usize,
    /// Visits in a row that did not come to the end.
    full_visits: usize,
}

/// The listening sockets of a thread, and how it accepts from them.
#[derive(Default)]
pub(crate) struct Accepting {
    pub(crate) listeners: Vec<Listening>,
    /// Connections there was no room for, being told so.
    pub(crate) refused_count: usize,
    accepts: Accepts,
    pause: AcceptPause,
}

/// Accepting while there is nothing to accept with.
#[derive(Debug, Default)]
struct AcceptPause {
    /// Listeners are not watched until then.
    until_ms: Option<u64>,
    /// Until when the log is told no more of it.
    quiet_until_ms: u64,
    /// Pauses the log has not been told of.
    untold: u64,
}

impl Default for Accepts {
    fn default() -> Accepts {
        Accepts {
            expected: 1,
            full_visits: 0,
        }
    }
}

impl Accepts {
    /// Full visits after which more is asked for.
    const PATIENCE: usize = 4;

    fn next_visit(&mut self) -> usize {
        if self.full_visits >= Accepts::PATIENCE {
            self.expected = (self.expected * 2).min(ACCEPTS_PER_TURN);
            self.full_visits = 0;
        }
        self.full_visits += 1;
        self.expected
    }

    fn came_to_the_end(&mut self, taken: usize) {
        self.expected = taken.max(1);
        self.full_visits = 0;
    }
}

/// What a client gets when there is no room for its connection.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";
/// The same in TLS: an alert, `internal_error`. Which protocol it would have been nobody knows yet.
const FULL_TLS: &[u8] = &[21, 3, 3, 0, 2, 2, 80];

impl<A: Responder + 'static> Thread<A> {
    pub(crate) fn accept(&mut self, listener: u16) {
        let Some(listening) = self
            .accepting
            .listeners
            .iter()
            .find(|l| l.number == listener)
        else {
            return;
        };
        let is_counted = listening.is_counted;
        let tls = listening.tls.clone();
        let alt_svc = listening.alt_svc.clone();
        let proxy_protocol = listening.proxy_protocol;
        let visits = Arc::clone(&listening.visits);
        let listening = Arc::clone(&listening.socket);
        let asked = self.accepting.accepts.next_visit();
        for taken in 0..asked {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::acceptfrom_with(&listening, flags) {
                Ok((socket, address)) => {
                    let peer = address.and_then(|address| SocketAddr::try_from(address).ok());
                    // One client has one address, also over a socket for both families.
                    let peer = peer.map(|peer| (peer.ip().to_canonical(), peer.port()).into());
                    let is_known = is_counted && !proxy_protocol;
                    if is_known && !self.answer.lets_connect(peer, listener) {
                        self.counters.connections_accepted.add(1);
                        self.counters.connections_closed.add(1);
                        continue;
                    }
                    let accepted = Accepted {
                        socket,
                        peer,
                        listener,
                        counted: CountedLimits::Refused,
                        tls: tls.clone(),
                        alt_svc: alt_svc.clone(),
                        proxy_protocol,
                        visit: Visit::begin(&visits),
                    };
                    let entered = match is_counted {
                        // Whose connection it is says its header.
                        true if proxy_protocol => self.crew.enter(&self.limits, None),
                        true => self.crew.enter(&self.limits, accepted.peer),
                        false => self.crew.enter_aside(accepted.peer),
                    };
                    self.place(accepted, entered);
                }
                Err(Errno::AGAIN) => return self.accepting.accepts.came_to_the_end(taken),
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => {
                    self.counters.accept_errors.add(1);
                    return self.pause_accepting(error);
                }
            }
        }
    }

    /// Out of descriptors or memory: the connection stays in the kernel's queue, and the listener,
    /// which would report it again and again, is left alone for a moment.
    fn pause_accepting(&mut self, error: Errno) {
        if self.accepting.pause.until_ms.is_some() {
            return;
        }
        for listening in &self.accepting.listeners {
            if let Err(error) = epoll::delete(&self.epoll, &listening.socket) {
                tracing::warn!(%error, "a listener could not be left alone");
            }
        }
        let until_ms = self.turn.now_ms + ACCEPT_PAUSE_MS;
        self.accepting.pause.until_ms = Some(until_ms);
        self.timer.arm(until_ms);
        self.accepting.pause.untold += 1;
        if self.turn.now_ms >= self.accepting.pause.quiet_until_ms {
            self.accepting.pause.quiet_until_ms = self.turn.now_ms + ACCEPT_ERROR_QUIET_MS;
            let times = std::mem::take(&mut self.accepting.pause.untold);
            tracing::warn!(%error, times, "connections could not be accepted; they wait");
        }
    }

    /// The pause is over, or there are other listeners now.
    pub(crate) fn resume_accepting(&mut self, now_ms: u64) -> io::Result<()> {
        match self.accepting.pause.until_ms {
            None => return Ok(()),
            Some(until_ms) if now_ms < until_ms => {
                self.timer.arm(until_ms);
                return Ok(());
            }
            Some(_) => self.accepting.pause.until_ms = None,
        }
        for listening in &self.accepting.listeners {
            self.watch_listener(listening)?;
        }
        Ok(())
    }

    pub(crate) fn watch_listener(&self, listening: &Listening) -> io::Result<()> {
        let key = EventData::new_u64(SPECIAL | u64::from(listening.number));
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        epoll::add(&self.epoll, &listening.socket, key, flags)?;
        Ok(())
    }

    /// Gives a connection to the thread with the fewest, unless a limit is reached.
    fn place(&mut self, mut accepted: Accepted, entered: Result<CountedLimits, ConnectionLimit>) {
        self.counters.connections_accepted.add(1);
        match entered {
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
    fn turn_away(&mut self, accepted: Accepted, full: ConnectionLimit) {
        match full {
            ConnectionLimit::Client => self.counters.limit_connections_per_client.add(1),
            ConnectionLimit::Server => self.counters.limit_connections.add(1),
        }
        if self.accepting.refused_count >= REFUSED_CONNECTIONS_MAX || self.draining.is_some() {
            let said = full_text(&accepted);
            let _ = rustix::net::send(&accepted.socket, said, SendFlags::NOSIGNAL);
            self.counters.connections_closed.add(1);
            return;
        }
        self.accepting.refused_count += 1;
        self.mailbox.conn_count.fetch_add(1, Ordering::Relaxed);
        if accepted.proxy_protocol {
            return self.adopt_with_header(accepted);
        }
        let is_secure = accepted.tls.is_some();
        let mut conn = self.conn_of(accepted);
        self.say_no_room(&mut conn, is_secure);
        self.drive_and_keep(conn);
    }

    /// Has a client told that there is no room.
    pub(super) fn say_no_room(&mut self, conn: &mut SocketConnection, is_secure: bool) {
        if is_secure {
            self.say_full(conn, FULL_TLS);
        } else {
            let by_ms = self.turn.now_ms + REFUSED_GREETING_MS;
            conn.core.wait_for_first_bytes(by_ms);
            conn.stage = ConnectionStage::TurnedAway;
        }
    }

    /// There is no room for a connection in clear text: its first bytes say in which protocol it is
    /// told so.
    pub(crate) fn hear_out(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        if conn.is_readable {
            match self.receive(conn, PREFACE.len()) {
                SocketReadOutcome::Bytes(count) => {
                    conn.carry.extend_from_slice(&self.input[..count])
                }
                SocketReadOutcome::Nothing => {}
                SocketReadOutcome::Eof | SocketReadOutcome::Broken => return DriveOutcome::Close,
            }
        }
        match Greeting::of(&conn.carry) {
            // Who says nothing is told when its time is up.
            Greeting::Part => return DriveOutcome::Wait,
            Greeting::Whole => {
                let mut goaway = Vec::new();
                frame::push_refusal("there is no room for one more connection", &mut goaway);
                self.say_full(conn, &goaway);
            }
            Greeting::Other => self.say_full(conn, FULL),
        }
        DriveOutcome::Again
    }

    /// Its time to say what it speaks is up.
    pub(crate) fn turn_down(&mut self, conn: &mut SocketConnection) -> Fate {
        self.say_full(conn, FULL);
        self.drive(conn)
    }

    fn say_full(&mut self, conn: &mut SocketConnection, said: &[u8]) {
        self.output.extend_from_slice(said);
        conn.carry = Vec::new();
        conn.core.give_up_input();
        conn.stage = ConnectionStage::Flushing(AfterAnswer::Linger);
    }

    /// Serves a connection that is counted already. Its first bytes are often there: they are tried
    /// for before the socket enters the epoll set.
    pub(crate) fn adopt(&mut self, accepted: Accepted) {
        if accepted.proxy_protocol {
            return self.adopt_with_header(accepted);
        }
        let tls = accepted.tls.clone();
        let alt_svc = accepted.alt_svc.clone();
        let mut conn = self.conn_of(accepted);
        if let Some(terms) = tls {
            self.begin_secure(&mut conn, terms, alt_svc);
        }
        self.drive_and_keep(conn);
    }

    pub(super) fn conn_of(&mut self, accepted: Accepted) -> Box<SocketConnection> {
        let facts = Rc::new(ConnectionFacts {
            peer: accepted.peer,
            local: accepted.peer.and_then(|_| local_address(&accepted.socket)),
            peer_uid: match accepted.peer {
                Some(_) => None,
                None => peer_uid(&accepted.socket),
            },
            listener: accepted.listener,
            number: self.crew.next_number.fetch_add(1, Ordering::Relaxed),
            tls: None,
            told: None,
        });
        let core = h1::Http1Connection::new(Rc::clone(&self.limits), self.turn.now_ms);
        let mut conn = Box::new(SocketConnection::new(accepted.socket, core, facts));
        conn.counted = accepted.counted;
        conn.visit = Some(accepted.visit);
        conn.opened_ms = self.turn.now_ms;
        conn.key = self.seats.reserve();
        conn
    }
}

/// What a client is told at once.
fn full_text(accepted: &Accepted) -> &'static [u8] {
    match accepted.tls {
        Some(_) => FULL_TLS,
        None => FULL,
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
pub(crate) enum ConnectionLimit {
    Server,
    Client,
}

impl Crew {
    /// Counts a connection in, or says which limit is reached.
    pub(super) fn enter(
        &self,
        limits: &crate::limits::HttpLimits,
        peer: Option<SocketAddr>,
    ) -> Result<CountedLimits, ConnectionLimit> {
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let files = open + self.files_beside.count();
        if open >= limits.connection_count || files >= limits.connection_files {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(ConnectionLimit::Server);
        }
        self.enter_client(limits, peer).ok_or_else(|| {
            self.open.fetch_sub(1, Ordering::Relaxed);
            ConnectionLimit::Client
        })
    }

    /// Counts a connection in for its client as well; `None` where that has as many as it may.
    pub(super) fn enter_client(
        &self,
        limits: &crate::limits::HttpLimits,
        peer: Option<SocketAddr>,
    ) -> Option<CountedLimits> {
        let (Some(peer), true) = (peer, limits.connection_count_per_client > 0) else {
            return Some(CountedLimits::Server);
        };
        let mut per_client = self.per_client.lock();
        let count = per_client.entry(peer.ip()).or_insert(0);
        if *count >= limits.connection_count_per_client {
            return None;
        }
        *count += 1;
        Some(CountedLimits::ServerAndClient)
    }

    /// Counts a connection in that does not count towards the limits a user sets.
    fn enter_aside(&self, peer: Option<SocketAddr>) -> Result<CountedLimits, ConnectionLimit> {
        let open = self.open_aside_of(peer);
        if open.fetch_add(1, Ordering::Relaxed) >= ASIDE_CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            return Err(ConnectionLimit::Server);
        }
        Ok(CountedLimits::Aside)
    }

    /// Clients over TCP must not take the places of those who may use a Unix socket.
    fn open_aside_of(&self, peer: Option<SocketAddr>) -> &AtomicUsize {
        match peer {
            Some(_) => &self.open_aside_tcp,
            None => &self.open_aside,
        }
    }

    /// Counts a connection out of what it counted towards.
    pub(crate) fn leave(&self, counted: CountedLimits, peer: Option<SocketAddr>) {
        match counted {
            CountedLimits::Refused => return,
            CountedLimits::Aside => {
                self.open_aside_of(peer).fetch_sub(1, Ordering::Relaxed);
                return;
            }
            CountedLimits::Server | CountedLimits::ServerAndClient => {}
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
        let (CountedLimits::ServerAndClient, Some(peer)) = (counted, peer) else {
            return;
        };
        let mut per_client = self.per_client.lock();
        if let Some(count) = per_client.get_mut(&peer.ip()) {
            *count -= 1;
            if *count == 0 {
                per_client.remove(&peer.ip());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits and calls a listener with `waiting` connections needs until it has none.
    fn empty(accepts: &mut Accepts, mut waiting: usize) -> (usize, usize) {
        let (mut visits, mut calls) = (0, 0);
        while waiting > 0 {
            visits += 1;
            let asked = accepts.next_visit();
            let taken = asked.min(waiting);
            waiting -= taken;
            calls += taken;
            if taken < asked {
                calls += 1;
                accepts.came_to_the_end(taken);
            }
        }
        (visits, calls)
    }

    #[test]
    fn connections_that_come_one_by_one_seldom_cost_a_second_call() {
        let mut accepts = Accepts::default();
        let calls: usize = (0..1000).map(|_| empty(&mut accepts, 1).1).sum();
        assert!(calls <= 1250, "{calls}");
    }

    #[test]
    fn flood_is_taken_in_large_visits_soon() {
        let (visits, _) = empty(&mut Accepts::default(), 10_000);
        let least = 10_000 / ACCEPTS_PER_TURN;
        assert!(visits <= least + 40, "{visits}");
    }
}
