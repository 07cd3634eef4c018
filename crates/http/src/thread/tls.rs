//! TLS under a connection: the handshake before the first request, then records between the socket
//! and the engine, which notices nothing.
//!
//! ```text
//! in:   socket -> thread's input buffer, opened there -> engine       rest of a record: `inbound`
//! out:  output, pieces -> sealed in the thread's batch -> socket     unsent: `outbound`
//! ```
//!
//! What is sealed cannot be taken back and must leave in order, so nothing more is sealed while
//! `outbound` holds bytes. An idle connection holds neither.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hob_trace::{Fault, TlsVersion};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustls::ServerConfig;

use crate::acme;
use crate::clock::clock_us;
use crate::h1::{self, AfterAnswer};
use crate::request::{ConnectionFacts, Request, TlsFacts};
use crate::response::{Responder, Response};
use crate::thread::conn::{ConnectionStage, SocketConnection};
use crate::thread::drive::DriveOutcome;
use crate::thread::exchange::note_fault;
use crate::thread::handshake_failures::Attempt;
use crate::thread::receive::SocketReadOutcome;
use crate::thread::run::Thread;
use crate::tls::failure::HandshakeFailure;
use crate::tls::handshake::{Established, Handshake, HandshakeProgress};
use crate::tls::hello::{self, Hello};
use crate::tls::record::RECORD_BYTES_MAX;
use crate::tls::session::{TlsInputEnd, TlsSession, alert};
use crate::tls::{NO_RULE, TlsHosts};

/// TLS of one connection.
pub(crate) struct Secure {
    pub(crate) state: TlsState,
    /// What answers tell of HTTP/3.
    alt_svc: Option<Arc<[u8]>>,
    /// Sealed bytes that came and are no whole record yet, or that nobody has asked for.
    inbound: Vec<u8>,
    /// Sealed bytes on their way, from an offset on.
    outbound: Vec<u8>,
    outbound_from: usize,
    /// The client has ended its side, or broken it.
    is_input_over: bool,
    /// The client has sent FIN as well: nobody hears how we end.
    is_gone: bool,
    /// FIN came without the client's own end: what it sent may have been cut short on its way.
    is_cut_off: bool,
    /// Bytes of answers since the last pause, and when the last left.
    pub(crate) burst_bytes: u32,
    pub(crate) burst_ms: u64,
}

/// How far a connection has come.
#[expect(
    clippy::large_enum_variant,
    reason = "it stands in a box that a connection has one of, and is a session for most of its life"
)]
pub(crate) enum TlsState {
    /// The name is not known yet.
    Hello(Box<Begun>),
    /// rustls has it.
    Handshake(Box<Begun>, Box<Handshake>),
    /// Requests come.
    Session(TlsSession),
    /// Nothing more is sealed or opened.
    Over,
}

/// A handshake that has begun.
pub(crate) struct Begun {
    terms: Arc<TlsHosts>,
    server_name: Option<String>,
    /// The number of the client rule it is made under.
    rule: u64,
    /// An authority looks for a proof, and wants nothing else.
    is_challenge: bool,
    by_ms: u64,
    started_us: u64,
    bytes: usize,
}

impl Begun {
    fn at(&self) -> Attempt<'_> {
        Attempt {
            started_us: self.started_us,
            server_name: self.server_name.as_deref(),
            over: "TCP",
        }
    }
}

/// What a client gets that speaks no TLS.
const CLEAR_TEXT: &str =
    "This port speaks TLS: the address begins with https://, not with http://.\n";

impl Secure {
    pub(crate) fn new(terms: Arc<TlsHosts>, by_ms: u64, started_us: u64) -> Secure {
        Secure {
            state: TlsState::Hello(Box::new(Begun {
                terms,
                server_name: None,
                rule: NO_RULE,
                is_challenge: false,
                by_ms,
                started_us,
                bytes: 0,
            })),
            alt_svc: None,
            inbound: Vec::new(),
            outbound: Vec::new(),
            outbound_from: 0,
            is_input_over: false,
            is_gone: false,
            is_cut_off: false,
            burst_bytes: 0,
            burst_ms: 0,
        }
    }

    /// Until when the handshake must be done.
    pub(crate) fn handshake_by_ms(&self) -> Option<u64> {
        match &self.state {
            TlsState::Hello(begun) | TlsState::Handshake(begun, _) => Some(begun.by_ms),
            TlsState::Session(_) | TlsState::Over => None,
        }
    }

    /// Sealed bytes wait for the socket.
    pub(crate) fn has_outbound(&self) -> bool {
        self.outbound_from < self.outbound.len()
    }

    /// How many.
    pub(crate) fn outbound_bytes(&self) -> usize {
        self.outbound.len() - self.outbound_from
    }

    /// Memory of its buffers.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.inbound.capacity() + self.outbound.capacity()
    }

    /// Holds sealed bytes until the socket takes them.
    pub(crate) fn hold(&mut self, sealed: &[u8]) {
        self.outbound.extend_from_slice(sealed);
    }

    /// The session and the bytes that leave before what it seals next.
    pub(crate) fn session(&mut self) -> Option<(&mut TlsSession, &mut Vec<u8>)> {
        match &mut self.state {
            TlsState::Session(session) => Some((session, &mut self.outbound)),
            _ => None,
        }
    }
}

impl SocketConnection {
    /// What comes from the socket has to be opened. At the end it is only dropped.
    pub(crate) fn opens_input(&self) -> bool {
        let is_session = |secure: &Secure| matches!(secure.state, TlsState::Session(_));
        self.secure.as_deref().is_some_and(is_session)
            && !matches!(self.stage, ConnectionStage::Lingering)
    }

    /// The input ended, and perhaps not where the client wanted it to.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.secure.as_ref().is_some_and(|secure| secure.is_cut_off)
    }

    /// Sealed bytes wait for the socket.
    pub(crate) fn has_sealed(&self) -> bool {
        self.secure
            .as_ref()
            .is_some_and(|secure| secure.has_outbound())
    }

    /// Sends the sealed bytes that wait. True when none are left.
    pub(crate) fn send_sealed(&mut self) -> Result<bool, Errno> {
        let Some(secure) = &mut self.secure else {
            return Ok(true);
        };
        while secure.has_outbound() {
            let rest = &secure.outbound[secure.outbound_from..];
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => secure.outbound_from += count,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        // An idle connection holds no buffer.
        secure.outbound = Vec::new();
        secure.outbound_from = 0;
        Ok(true)
    }

    /// Tells the client, as far as the socket takes it, that nothing more comes: what it has is
    /// whole.
    pub(crate) fn end_session(&mut self) {
        let Some(secure) = &mut self.secure else {
            return;
        };
        // Who ended its side behind its last request may wait for our end all the same.
        if secure.is_gone && !self.core.client_closes() {
            return;
        }
        if let Some((session, out)) = secure.session() {
            session.push_end(out);
            // What the socket does not take now leaves when it does, unless it is shut next.
            let _ = self.send_sealed();
        }
    }
}

impl<A: Responder + 'static> Thread<A> {
    /// Refuses a request that came in clear text to where TLS is spoken.
    pub(crate) fn refuse_clear_text(&mut self, conn: &mut SocketConnection, request: Request) {
        note_fault(
            &request,
            Fault::Client,
            "it came in clear text to a listener that speaks TLS",
        );
        // The site has a say in where it is logged, not in what it says.
        drop(self.answer.refuse(&request, 400));
        let mut response = Response::text(400, CLEAR_TEXT);
        response.close = true;
        self.respond(conn, request, response);
    }

    /// Begins TLS on a new connection, if there is room for one more handshake.
    pub(crate) fn begin_secure(
        &mut self,
        conn: &mut SocketConnection,
        terms: Arc<TlsHosts>,
        alt_svc: Option<Arc<[u8]>>,
    ) {
        let by_ms = self.turn.now_ms + self.limits.handshake_time.as_millis() as u64;
        let mut secure = Secure::new(terms, by_ms, self.turn.now_us);
        secure.alt_svc = alt_svc;
        conn.secure = Some(Box::new(secure));
        conn.stage = ConnectionStage::Handshake;
        let under_way = self.crew.handshakes.fetch_add(1, Ordering::Relaxed);
        if under_way >= self.limits.handshake_count {
            self.give_up_handshake(conn, HandshakeFailure::Full, alert::INTERNAL_ERROR);
        }
    }

    /// Goes on with a handshake as far as there is input.
    pub(crate) fn shake(&mut self, conn: &mut SocketConnection) -> DriveOutcome {
        loop {
            if !conn.is_readable {
                return if conn.is_half_closed {
                    self.fail_handshake(conn, HandshakeFailure::Left);
                    DriveOutcome::Close
                } else {
                    DriveOutcome::Wait
                };
            }
            let count = match receive_raw(conn, &mut self.input[..RECORD_BYTES_MAX]) {
                Ok(0) => {
                    self.fail_handshake(conn, HandshakeFailure::Left);
                    return DriveOutcome::Close;
                }
                Ok(count) => count,
                Err(Errno::AGAIN) => return DriveOutcome::Wait,
                Err(Errno::INTR) => continue,
                Err(_) => {
                    self.fail_handshake(conn, HandshakeFailure::Left);
                    return DriveOutcome::Close;
                }
            };
            let Some(secure) = &mut conn.secure else {
                return DriveOutcome::Close;
            };
            secure.inbound.extend_from_slice(&self.input[..count]);
            if let TlsState::Hello(begun) | TlsState::Handshake(begun, _) = &mut secure.state {
                begun.bytes += count;
            }
            if let Some(step) = self.go_on_shaking(conn) {
                return step;
            }
        }
    }

    /// Takes what has come; `None` when more may be read.
    fn go_on_shaking(&mut self, conn: &mut SocketConnection) -> Option<DriveOutcome> {
        let secure = conn.secure.as_mut()?;
        if let TlsState::Hello(begun) = &mut secure.state {
            match hello::look(&secure.inbound) {
                Hello::Partial => return self.check_handshake_bytes(conn),
                Hello::Client(name) => begun.server_name = name,
                Hello::ClearText => {
                    self.go_on_in_clear(conn);
                    return Some(DriveOutcome::Again);
                }
                Hello::Outdated => {
                    let (failure, alert) = (HandshakeFailure::Version, alert::PROTOCOL_VERSION);
                    self.give_up_handshake(conn, failure, alert);
                    return Some(DriveOutcome::Again);
                }
                Hello::Foreign => {
                    self.give_up_handshake(
                        conn,
                        HandshakeFailure::Foreign,
                        alert::UNEXPECTED_MESSAGE,
                    );
                    return Some(DriveOutcome::Again);
                }
            }
        }
        let (begun, handshake) = match std::mem::replace(&mut secure.state, TlsState::Over) {
            TlsState::Hello(mut begun) => {
                let challenge = self.challenge_config(&begun, &secure.inbound);
                begun.is_challenge = challenge.is_some();
                let host = begun.terms.for_name(begun.server_name.as_deref());
                begun.rule = host.rule;
                match Handshake::new(challenge.as_ref().unwrap_or(&host.config)) {
                    Ok(handshake) => (begun, handshake),
                    Err(error) => {
                        secure.state = TlsState::Hello(begun);
                        hob_trace::warn_seldom!(%error, "a TLS handshake could not begin");
                        self.fail_handshake(conn, HandshakeFailure::Own);
                        return Some(DriveOutcome::Close);
                    }
                }
            }
            TlsState::Handshake(begun, handshake) => (begun, handshake),
            TlsState::Session(_) | TlsState::Over => return Some(DriveOutcome::Close),
        };
        let (used, progress) = handshake.read(&mut secure.inbound, &mut secure.outbound);
        secure.inbound.drain(..used);
        match progress {
            HandshakeProgress::NeedMore(handshake) => {
                secure.state = TlsState::Handshake(begun, handshake);
                if secure.has_outbound() {
                    return Some(DriveOutcome::Again);
                }
                self.check_handshake_bytes(conn)
            }
            HandshakeProgress::Done(established) => {
                self.establish(conn, *begun, *established);
                Some(DriveOutcome::Again)
            }
            HandshakeProgress::Failed(error) => {
                self.book_failure(
                    &conn.facts,
                    &begun.at(),
                    HandshakeFailure::of(&error),
                    &error,
                );
                self.end_shaking(conn);
                Some(DriveOutcome::Again)
            }
        }
    }

    /// What the handshake is made with when an authority asks for a proof that we show.
    fn challenge_config(&self, begun: &Begun, hello: &[u8]) -> Option<Arc<ServerConfig>> {
        let challenges = self.crew.challenges()?;
        let config = challenges.host(begun.server_name.as_deref())?;
        hello::asks_only_for(hello, acme::ALPN).then(|| Arc::clone(config))
    }

    fn check_handshake_bytes(&mut self, conn: &mut SocketConnection) -> Option<DriveOutcome> {
        let secure = conn.secure.as_ref()?;
        let (TlsState::Hello(begun) | TlsState::Handshake(begun, _)) = &secure.state else {
            return None;
        };
        if begun.bytes <= self.limits.handshake_bytes {
            return None;
        }
        self.give_up_handshake(conn, HandshakeFailure::Long, alert::INTERNAL_ERROR);
        Some(DriveOutcome::Again)
    }

    /// The handshake is done: requests may come, in the protocol that was agreed on.
    fn establish(&mut self, conn: &mut SocketConnection, begun: Begun, established: Established) {
        self.crew.handshakes.fetch_sub(1, Ordering::Relaxed);
        self.counters.tls_handshakes.add(1);
        let is_12 = u64::from(established.version == TlsVersion::Tls12);
        self.counters.tls_handshakes_12.add(is_12);
        if established.is_resumed {
            self.counters.tls_resumed.add(1);
            self.counters.tls_resumed_12.add(is_12);
        }
        if begun.is_challenge {
            // The certificate was the proof: nothing is said over this connection.
            //= rfc8737#3
            self.end_shaking(conn);
            return;
        }
        conn.facts = Rc::new(ConnectionFacts {
            tls: Some(Rc::new(TlsFacts {
                server_name: begun.server_name,
                version: established.version,
                suite: established.suite,
                is_resumed: established.is_resumed,
                rule: begun.rule,
                client: established.client,
                shown: established.shown,
                admitted: Cell::new(begun.rule),
                handshake_us: clock_us().saturating_sub(begun.started_us),
            })),
            ..ConnectionFacts::clone(&conn.facts)
        });
        conn.core = h1::Http1Connection::new(Rc::clone(&self.limits), self.turn.now_ms);
        conn.stage = ConnectionStage::Reading;
        if let Some(secure) = &mut conn.secure {
            secure.state = TlsState::Session(established.session);
            conn.core.set_alt_svc(secure.alt_svc.take());
            // What came with the client's last message may hold its first request.
            conn.is_readable |= !secure.inbound.is_empty();
        }
        if established.is_h2 {
            self.begin_frames(conn);
        }
    }

    /// A request in clear text: it is read, and refused with a hint.
    fn go_on_in_clear(&mut self, conn: &mut SocketConnection) {
        self.crew.handshakes.fetch_sub(1, Ordering::Relaxed);
        self.counters.tls_clear_text.add(1);
        if let Some(secure) = conn.secure.take() {
            conn.carry = secure.inbound;
        }
        conn.must_be_secure = true;
        conn.core = h1::Http1Connection::new(Rc::clone(&self.limits), self.turn.now_ms);
        conn.stage = ConnectionStage::Reading;
    }

    /// Ends a handshake with an alert of ours, in clear text: there are no keys, or rustls has
    /// them.
    pub(crate) fn give_up_handshake(
        &mut self,
        conn: &mut SocketConnection,
        failure: HandshakeFailure,
        alert: u8,
    ) {
        self.fail_handshake(conn, failure);
        if let Some(secure) = &mut conn.secure {
            secure
                .outbound
                .extend_from_slice(&[21, 3, 3, 0, 2, 2, alert]);
        }
        self.end_shaking(conn);
    }

    /// Books a handshake that will not be done. A connection that went away, or whose server
    /// stopped, before the client had sent a byte was none: so look those who only try the port.
    pub(crate) fn fail_handshake(
        &mut self,
        conn: &mut SocketConnection,
        failure: HandshakeFailure,
    ) {
        let Some(secure) = &mut conn.secure else {
            return;
        };
        if !matches!(secure.state, TlsState::Hello(_) | TlsState::Handshake(..)) {
            return;
        }
        match std::mem::replace(&mut secure.state, TlsState::Over) {
            TlsState::Hello(begun) if begun.bytes == 0 && failure.is_an_end() => {
                self.crew.handshakes.fetch_sub(1, Ordering::Relaxed);
            }
            TlsState::Hello(begun) | TlsState::Handshake(begun, _) => {
                self.book_failure(&conn.facts, &begun.at(), failure, &"");
            }
            other => secure.state = other,
        }
    }

    /// What waits is sent; then input is dropped for a while, or the client would see a reset and
    /// not the alert.
    fn end_shaking(&mut self, conn: &mut SocketConnection) {
        if let Some(secure) = &mut conn.secure {
            secure.inbound = Vec::new();
        }
        conn.core.give_up_input();
        conn.stage = ConnectionStage::Flushing(AfterAnswer::Linger);
    }

    /// Reads what there is, opened, into `input`: at most about `len_max` bytes, but always a
    /// whole record.
    pub(crate) fn receive_sealed(
        &mut self,
        conn: &mut SocketConnection,
        len_max: usize,
    ) -> SocketReadOutcome {
        loop {
            let Some(secure) = &mut conn.secure else {
                return SocketReadOutcome::Broken;
            };
            if secure.is_input_over {
                secure.is_gone |= conn.is_half_closed;
                conn.is_half_closed = true;
                conn.is_readable = false;
                return SocketReadOutcome::Eof;
            }
            let kept = secure.inbound.len().min(self.input.len());
            self.input[..kept].copy_from_slice(&secure.inbound[..kept]);
            secure.inbound.drain(..kept);
            let has_record =
                crate::tls::record::record_len(&self.input[..kept]).is_some_and(|len| len <= kept);
            let mut count = 0;
            if !has_record {
                let room = len_max.max(RECORD_BYTES_MAX).min(self.input.len() - kept);
                match receive_raw(conn, &mut self.input[kept..kept + room]) {
                    Ok(0) => return self.cut_off(conn),
                    Ok(received) => count = received,
                    Err(error) => {
                        if let Some(secure) = &mut conn.secure {
                            secure.inbound.extend_from_slice(&self.input[..kept]);
                        }
                        return match error {
                            Errno::AGAIN | Errno::INTR => SocketReadOutcome::Nothing,
                            _ => SocketReadOutcome::Broken,
                        };
                    }
                }
            }
            if let Some(read) = self.open_input(conn, kept + count) {
                return read;
            }
            if !conn.is_readable && !conn.is_half_closed {
                return SocketReadOutcome::Nothing;
            }
        }
    }

    /// Opens the first `len` bytes of `input`; `None` when there was no text in them.
    fn open_input(&mut self, conn: &mut SocketConnection, len: usize) -> Option<SocketReadOutcome> {
        let secure = conn.secure.as_mut()?;
        let TlsState::Session(session) = &mut secure.state else {
            return Some(SocketReadOutcome::Broken);
        };
        let opened = session.open(&mut self.input[..len], &mut secure.outbound);
        if opened.end.is_none() {
            let rest = &self.input[opened.used..len];
            if rest.is_empty() {
                // An idle connection holds no buffer.
                secure.inbound = Vec::new();
            } else {
                secure.inbound.extend_from_slice(rest);
            }
        }
        let has_more = secure.inbound.len() >= RECORD_BYTES_MAX;
        match opened.end {
            None => {}
            Some(TlsInputEnd::Closed) => secure.is_input_over = true,
            Some(TlsInputEnd::GaveUp(number)) => {
                tracing::debug!(number, "the client gave up with a TLS alert");
                secure.is_input_over = true;
                conn.is_reset = true;
            }
            Some(TlsInputEnd::Broken(reason)) => {
                tracing::debug!(reason, "TLS was broken");
                self.counters.tls_broken.add(1);
                secure.is_input_over = true;
                let _ = conn.send_sealed();
                return Some(SocketReadOutcome::Broken);
            }
        }
        let is_over = conn.secure.as_ref().is_some_and(|s| s.is_input_over);
        conn.is_readable |= is_over || has_more;
        (opened.text > 0).then_some(SocketReadOutcome::Bytes(opened.text))
    }

    /// The client's FIN came and its own end did not: what it sent may have been cut short.
    fn cut_off(&mut self, conn: &mut SocketConnection) -> SocketReadOutcome {
        if let Some(secure) = &mut conn.secure {
            secure.is_input_over = true;
            secure.is_gone = true;
            secure.is_cut_off = true;
            secure.inbound = Vec::new();
        }
        conn.is_half_closed = true;
        conn.is_readable = false;
        SocketReadOutcome::Eof
    }
}

/// Reads sealed bytes; knows when the socket has no more.
fn receive_raw(conn: &mut SocketConnection, room: &mut [u8]) -> Result<usize, Errno> {
    let len_max = room.len();
    match rustix::net::recv(&conn.socket, room, RecvFlags::empty()) {
        Ok((count, _)) => {
            // Fewer bytes than there was room for: what comes later gives a new event.
            if count < len_max && !conn.is_half_closed {
                conn.is_readable = false;
            }
            Ok(count)
        }
        Err(Errno::AGAIN) => {
            conn.is_readable = false;
            Err(Errno::AGAIN)
        }
        Err(error) => Err(error),
    }
}
