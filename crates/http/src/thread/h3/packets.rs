//! Datagrams: read from this thread's sockets, and given to connections, to new ones, or to the
//! thread whose connection they are for.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags};

use crate::clock::clock_us;
use crate::h3;
use crate::h3::quic::id::{ConnectionHome, home_of};
use crate::h3::quic::relay;
use crate::h3::quic::{
    Arrival, Datagram, Endpoint, Newcomer, Offered, QuicConnection, RetryKey, Socket, Stray,
};
use crate::limits::{H3_READS_PER_TURN, H3_RETRY_PART};
use crate::request::ConnectionFacts;
use crate::response::Responder;
use crate::thread::accept::{ConnectionLimit, Listening};
use crate::thread::conn::CountedLimits;
use crate::thread::h3::unread::Unread;
use crate::thread::h3::{Http3ServerSession, Http3SessionStage, QuicListener};
use crate::thread::handshake_failures::Attempt;
use crate::thread::run::{SOCKETS, Thread};
use crate::thread::shared::Letter;
use crate::thread::visit::Visit;
use crate::tls::TlsHosts;
use crate::tls::failure::HandshakeFailure;

/// The first sockets of a listener are the ends of its relay.
const RELAY_ENDS: usize = 2;
/// Threads that ids can name.
const THREADS_MAX: usize = u8::MAX as usize + 1;
/// The keys of relays have this bit, places stand below it.
const RELAY: u64 = 0x8000;

/// A datagram that came to another thread than its connection's.
pub(crate) struct Forwarded {
    listener: u16,
    datagram: Datagram,
}

impl<A: Responder + 'static> Thread<A> {
    /// Speaks QUIC on exactly these listeners' sockets from now on. Connections of those that are
    /// gone go on over them.
    pub(crate) fn set_sockets(&mut self, listeners: &[Listening]) -> io::Result<()> {
        let index = self.index;
        let socket_of = |listening: &Listening| -> Option<Arc<OwnedFd>> {
            // Ids have no room for more threads than that.
            let sockets = listening
                .datagrams
                .get(RELAY_ENDS..)
                .filter(|_| index < THREADS_MAX)?;
            sockets.get(index.checked_rem(sockets.len())?).cloned()
        };
        for place in self.quic.places.iter_mut().flatten() {
            let is_it = |listening: &&Listening| {
                let socket = socket_of(listening);
                listening.number == place.listener
                    && socket.is_some_and(|socket| Arc::ptr_eq(&socket, place.fd()))
            };
            let listening = listeners.iter().find(is_it);
            let terms = listening.and_then(|listening| listening.tls.as_ref());
            place.offer(terms, self.limits.idle);
        }
        for listening in listeners {
            let (Some(terms), Some(socket)) = (&listening.tls, socket_of(listening)) else {
                continue;
            };
            let is_it = |place: &QuicListener| {
                place.listener == listening.number && Arc::ptr_eq(place.fd(), &socket)
            };
            if !self.quic.places.iter().flatten().any(is_it) {
                let bound = rustix::net::getsockname(&socket).ok();
                let address = bound.and_then(|bound| SocketAddr::try_from(bound).ok());
                let socket = Socket::new(socket)?;
                let Some([relay, ours]) = listening.datagrams.first_chunk::<RELAY_ENDS>() else {
                    continue;
                };
                let place = QuicListener {
                    listener: listening.number,
                    relay: [Arc::clone(relay), Arc::clone(ours)],
                    endpoint: Endpoint::new(
                        socket,
                        address,
                        self.quic.home,
                        self.crew.reset_secret(),
                        Instant::now(),
                        clock_us(),
                    ),
                    sessions: Vec::new(),
                    session_count: 0,
                    is_offered: false,
                    wants_room: false,
                };
                self.add_place(place, terms)?;
            }
        }
        self.drop_places();
        Ok(())
    }

    fn add_place(&mut self, mut place: QuicListener, terms: &Arc<TlsHosts>) -> io::Result<()> {
        place.offer(Some(terms), self.limits.idle);
        let places = &mut self.quic.places;
        let index = match places.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                places.push(None);
                places.len() - 1
            }
        };
        let key = EventData::new_u64(SOCKETS | index as u64);
        epoll::add(&self.epoll, place.fd(), key, EventFlags::IN)?;
        let key = EventData::new_u64(SOCKETS | RELAY | index as u64);
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        epoll::add(&self.epoll, &place.relay[1], key, flags)?;
        places[index] = Some(place);
        Ok(())
    }

    /// Another server may have the sockets now: what is for us and came to it comes over the relay.
    pub(crate) fn turn_relays(&mut self) {
        for (index, place) in self.quic.places.iter().enumerate() {
            let Some(place) = place else { continue };
            let key = EventData::new_u64(SOCKETS | RELAY | index as u64);
            let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
            let turned = epoll::delete(&self.epoll, &place.relay[1])
                .and_then(|()| epoll::add(&self.epoll, &place.relay[0], key, flags));
            if let Err(error) = turned {
                tracing::warn!(%error, "datagrams from another server cannot be read");
            }
        }
    }

    /// Closes the sockets that nobody needs any more.
    pub(super) fn drop_places(&mut self) {
        for place in &mut self.quic.places {
            let is_done = |place: &mut QuicListener| !place.is_offered && place.session_count == 0;
            let Some(done) = place.take_if(is_done) else {
                continue;
            };
            let relay = match self.draining {
                Some(_) => &done.relay[0],
                None => &done.relay[1],
            };
            for fd in [done.fd(), relay] {
                if let Err(error) = epoll::delete(&self.epoll, fd) {
                    tracing::warn!(%error, "a socket could not be left");
                }
            }
        }
    }

    /// A socket has datagrams, or room.
    pub(crate) fn note_socket(&mut self, key: u64, flags: EventFlags) {
        let place = (key & (RELAY - 1)) as usize;
        if key & RELAY != 0 {
            return self.read_relay(place);
        }
        if flags.contains(EventFlags::OUT) {
            self.note_room(place);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::ERR) {
            return;
        }
        let mut datagrams = std::mem::take(&mut self.quic.datagrams);
        for _ in 0..H3_READS_PER_TURN {
            let Some(socket) = self.quic.place(place) else {
                break;
            };
            let has_more = match socket.endpoint.receive(|datagram| datagrams.push(datagram)) {
                Ok(has_more) => has_more,
                Err(error) => {
                    tracing::debug!(%error, "a datagram could not be read");
                    break;
                }
            };
            for datagram in datagrams.drain(..) {
                self.sort(place, datagram);
            }
            if !has_more {
                break;
            }
        }
        datagrams.clear();
        self.quic.datagrams = datagrams;
    }

    /// Datagrams that the other server has read.
    fn read_relay(&mut self, place: usize) {
        let end = usize::from(self.draining.is_none());
        let mut buffer = std::mem::take(&mut self.quic.buffer);
        for _ in 0..H3_READS_PER_TURN {
            let Some(socket) = self.quic.place(place) else {
                break;
            };
            let Some(datagram) = receive_relayed(&socket.relay[end], &mut buffer) else {
                break;
            };
            let home = home_of(&datagram.bytes);
            // What is for neither is dropped: it would go to and fro.
            if self.is_ours(home) || self.is_orphan(home) {
                self.sort(place, datagram);
            }
        }
        buffer.clear();
        self.quic.buffer = buffer;
    }

    /// It is for a connection of this server, or may begin one.
    fn is_ours(&self, home: Option<ConnectionHome>) -> bool {
        match home {
            Some(home) => home.generation == self.quic.home.generation,
            None => self.draining.is_none(),
        }
    }

    /// It is for a connection of a server that lives no more, and here is who follows it.
    fn is_orphan(&self, home: Option<ConnectionHome>) -> bool {
        let has_ended = |home: ConnectionHome| self.crew.has_ended(home.generation);
        self.draining.is_none() && home.is_some_and(has_ended)
    }

    /// Gives a datagram to the thread it is for.
    fn sort(&mut self, place: usize, datagram: Datagram) {
        let home = home_of(&datagram.bytes);
        if self.is_orphan(home) {
            // One with a long header is not for a connection whose client knows how to end it.
            if datagram
                .bytes
                .first()
                .is_some_and(|first| first & 0x80 == 0)
            {
                self.take_datagram(place, datagram);
            }
            return;
        }
        if !self.is_ours(home) {
            let end = usize::from(self.draining.is_none());
            if let Some(socket) = self.quic.place(place) {
                send_relayed(&socket.relay[end], &datagram);
                self.counters.h3_forwarded.add(1);
            }
            return;
        }
        if let Some(home) = home
            && home != self.quic.home
            && usize::from(home.thread) < self.crew.thread_count()
        {
            let Some(listener) = self.quic.place(place).map(|place| place.listener) else {
                return;
            };
            let mailbox = self.crew.mailbox(usize::from(home.thread));
            self.counters.h3_forwarded.add(1);
            let forwarded = Box::new(Forwarded { listener, datagram });
            // A thread that has ended has no connections.
            let _ = mailbox.send(Letter::Datagram(forwarded));
            return;
        }
        self.take_datagram(place, datagram);
    }

    /// A datagram that another thread has read.
    pub(crate) fn take_forwarded(&mut self, forwarded: Forwarded) {
        let is_it = |place: &Option<QuicListener>| {
            place
                .as_ref()
                .is_some_and(|place| place.listener == forwarded.listener)
        };
        if let Some(place) = self.quic.places.iter().rposition(is_it) {
            self.take_datagram(place, forwarded.datagram);
        }
    }

    fn take_datagram(&mut self, place: usize, datagram: Datagram) {
        let (now_us, now_ms) = (self.turn.now_us, self.turn.now_ms);
        let Some(socket) = self.quic.place(place) else {
            return;
        };
        match socket.endpoint.handle(datagram, now_us) {
            Arrival::For(handle, event) => {
                let index = socket.sessions.get(handle).copied().unwrap_or(u32::MAX);
                let session = self.quic.sessions.get_mut(index as usize);
                if let Some(session) = session.and_then(Option::as_mut) {
                    session.conn.take(event);
                    session.heard_ms = now_ms;
                    self.quic.mark(index);
                }
            }
            Arrival::New(newcomer) => self.take_newcomer(place, newcomer),
            Arrival::Stray(stray) => self.reset_stray(place, &stray),
            Arrival::Nothing => {}
        }
    }

    /// Tells a client that its connection is not here, unless another socket of the address may
    /// have it: a listener that went and came again has two for a while.
    fn reset_stray(&mut self, place: usize, stray: &Stray) {
        let address = self.quic.place(place).map(|place| place.endpoint.address());
        let places = self.quic.places.iter().flatten();
        let same = places.filter(|other| Some(other.endpoint.address()) == address);
        if same.count() > 1 {
            return;
        }
        let now_us = self.turn.now_us;
        let Some(socket) = self.quic.place(place) else {
            return;
        };
        match socket.endpoint.reset(stray, now_us) {
            true => self.counters.h3_stateless_resets.add(1),
            false => self.counters.limit_h3_stateless_resets.add(1),
        }
    }

    /// Takes a new connection, unless a limit is reached.
    fn take_newcomer(&mut self, place: usize, newcomer: Newcomer) {
        let Some(socket) = self.quic.place(place) else {
            return;
        };
        let (listener, port) = (socket.listener, socket.port());
        let endpoint = &mut socket.endpoint;
        let under_way = self.crew.handshakes.load(Ordering::Relaxed);
        let is_busy = under_way >= self.limits.handshake_count / H3_RETRY_PART;
        if is_busy && newcomer.may_be_asked() {
            self.counters.h3_retries.add(1);
            return endpoint.ask(newcomer);
        }
        if endpoint.was_refused(&newcomer) {
            return endpoint.refuse(newcomer);
        }
        self.counters.connections_accepted.add(1);
        let mut listeners = self.accepting.listeners.iter();
        let listening = listeners.find(|listening| listening.number == listener);
        let visit = listening.map(|listening| Visit::begin(&listening.visits));
        let peer = newcomer.remote();
        let peer = (peer.ip().to_canonical(), peer.port()).into();
        if !self.answer.lets_connect(Some(peer), listener) {
            self.counters.connections_closed.add(1);
            return endpoint.refuse(newcomer);
        }
        let counted = match self.crew.enter(&self.limits, Some(peer)) {
            Ok(counted) => counted,
            Err(full) => {
                match full {
                    ConnectionLimit::Client => self.counters.limit_connections_per_client.add(1),
                    ConnectionLimit::Server => self.counters.limit_connections.add(1),
                }
                self.counters.connections_closed.add(1);
                return endpoint.refuse(newcomer);
            }
        };
        let local = newcomer.local_ip();
        let facts = ConnectionFacts {
            peer: Some(peer),
            local: local.map(|ip| (ip.to_canonical(), port).into()),
            peer_uid: None,
            listener,
            number: self.crew.next_number.fetch_add(1, Ordering::Relaxed),
            tls: None,
            told: None,
        };
        // From here on it counts as a handshake, as over TCP, however it ends.
        let under_way = self.crew.handshakes.fetch_add(1, Ordering::Relaxed);
        let begun = match under_way >= self.limits.handshake_count {
            true => {
                endpoint.refuse(newcomer);
                Err(HandshakeFailure::Full)
            }
            false => endpoint.accept(newcomer, self.turn.now_us),
        };
        match begun {
            Ok(conn) => self.begin_session(place, conn, facts, counted, visit),
            Err(failure) => {
                let attempt = Attempt {
                    started_us: self.turn.now_us,
                    server_name: None,
                    over: "QUIC",
                };
                self.book_failure(&facts, &attempt, failure, &"");
                self.crew.leave(counted, Some(peer));
                self.counters.connections_closed.add(1);
            }
        }
    }

    /// Keeps a connection whose handshake has begun.
    fn begin_session(
        &mut self,
        place: usize,
        conn: QuicConnection,
        facts: ConnectionFacts,
        counted: CountedLimits,
        visit: Option<Visit>,
    ) {
        self.mailbox.conn_count.fetch_add(1, Ordering::Relaxed);
        let index = self.quic.free.pop().unwrap_or_else(|| {
            self.quic.sessions.push(None);
            (self.quic.sessions.len() - 1) as u32
        });
        let handle = conn.handle();
        let Some(socket) = self.quic.place(place) else {
            return;
        };
        if socket.sessions.len() <= handle {
            socket.sessions.resize(handle + 1, u32::MAX);
        }
        socket.sessions[handle] = index;
        socket.session_count += 1;
        let by_ms = self.turn.now_ms + self.limits.handshake_time.as_millis() as u64;
        let session = Http3ServerSession {
            _visit: visit,
            index,
            place,
            conn,
            core: h3::Http3Connection::new(Rc::clone(&self.limits), self.turn.now_ms),
            counted_peer: facts.peer,
            facts: Rc::new(facts),
            counted,
            request_count: 0,
            waker: None,
            stage: Http3SessionStage::Handshake { by_ms },
            failure: None,
            started_us: self.turn.now_us,
            control: None,
            unsent: Bytes::new(),
            unis: Vec::new(),
            unis_are_readable: false,
            streams: Vec::new(),
            early: Vec::new(),
            idle_by_ms: u64::MAX,
            ping_by_ms: u64::MAX,
            heard_ms: self.turn.now_ms,
            silent_by_ms: u64::MAX,
            timer_ms: u64::MAX,
            is_marked: false,
            unread: Unread::of(&self.crew),
        };
        self.quic.sessions[index as usize] = Some(Box::new(session));
        self.quic.mark(index);
    }

    /// There is room to send again.
    fn note_room(&mut self, place: usize) {
        let Some(socket) = self.quic.place(place) else {
            return;
        };
        if !socket.endpoint.flush() {
            return;
        }
        self.watch_for_room(place, false);
        for index in 0..self.quic.sessions.len() {
            let session = self.quic.sessions[index].as_ref();
            if session.is_some_and(|session| session.place == place) {
                self.quic.mark(index as u32);
            }
        }
    }

    /// Has a socket watched for room to send, or no more.
    pub(super) fn watch_for_room(&mut self, place: usize, wants_room: bool) {
        let Some(socket) = self.quic.places.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        if socket.wants_room == wants_room {
            return;
        }
        socket.wants_room = wants_room;
        let flags = match wants_room {
            true => EventFlags::IN | EventFlags::OUT,
            false => EventFlags::IN,
        };
        let key = EventData::new_u64(SOCKETS | place as u64);
        let fd = socket.fd();
        if let Err(error) = epoll::modify(&self.epoll, fd, key, flags) {
            tracing::error!(%error, "a socket could not be watched for room");
        }
    }
}

impl QuicListener {
    fn fd(&self) -> &Arc<OwnedFd> {
        self.endpoint.socket().fd()
    }

    fn port(&self) -> u16 {
        self.endpoint.address().map_or(0, |bound| bound.port())
    }

    /// Sets what new connections are offered; none are taken without.
    fn offer(&mut self, terms: Option<&Arc<TlsHosts>>, idle: Duration) {
        let retry = terms.map(|terms| RetryKey::of(terms.tickets().address_secret()));
        let offered = terms.and_then(Offered::new).zip(retry);
        self.is_offered = offered.is_some();
        self.endpoint.offer(offered, idle);
    }
}

/// Writes a datagram into an end of a relay. What there is no room for is lost.
fn send_relayed(end: &OwnedFd, datagram: &Datagram) {
    let message = relay::encode(datagram);
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    if let Err(error) = rustix::net::send(end, &message, flags) {
        tracing::debug!(%error, "a datagram could not be given to the other server");
    }
}

/// Reads a datagram from an end of a relay; `None` when there is none.
fn receive_relayed(end: &OwnedFd, buffer: &mut Vec<u8>) -> Option<Datagram> {
    buffer.resize(relay::MESSAGE_BYTES_MAX, 0);
    let (len, _) = rustix::net::recv(end, &mut buffer[..], RecvFlags::DONTWAIT).ok()?;
    relay::decode(&buffer[..len])
}
