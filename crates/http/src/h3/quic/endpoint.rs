//! One socket of one thread: whom a datagram is for, and whether a new connection is taken.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::{
    AcceptError, ConnectionError, ConnectionEvent, ConnectionHandle, ConnectionId, DatagramEvent,
    EndpointConfig, EndpointEvent, IdleTimeout, Incoming, ServerConfig, Transmit, TransportConfig,
    VarInt,
};

use crate::h3::quic::connection::{QuicConnection, failure_of};
use crate::h3::quic::id::{ConnectionHome, ConnectionIds};
use crate::h3::quic::reset::ResetSecret;
use crate::h3::quic::session::{Offered, RetryKey};
use crate::h3::quic::socket::{Datagram, Socket};
use crate::limits::{
    H3_CONNECTION_WINDOW_BYTES, H3_ENDED_US_MAX, H3_REFUSED_REMEMBERED, H3_SEND_WINDOW_BYTES_MIN,
    H3_STATELESS_RESETS, H3_STREAM_WINDOW_BYTES, H3_STREAMS_MAX, H3_UNI_STREAMS_MAX,
};
use crate::rate::Bucket;
use crate::tls::failure::HandshakeFailure;

/// A socket and the connections that go over it.
pub(crate) struct Endpoint {
    inner: quinn_proto::Endpoint,
    socket: Socket,
    address: Option<SocketAddr>,
    /// What the kernel had no room for; nothing else is sent before it.
    unsent: Option<(Transmit, Vec<u8>)>,
    /// Answers to what belongs to no connection.
    scratch: Vec<u8>,
    clock: Clock,
    /// Who was refused lately, or failed with the first datagram; the oldest goes first.
    refused: [Option<Asked>; H3_REFUSED_REMEMBERED],
    refused_at: usize,
    /// Stateless resets that may be sent.
    resets: Bucket,
}

/// Who asked for a connection, and the id they gave it.
type Asked = (SocketAddr, ConnectionId);

/// Our time as the library has it.
#[derive(Clone, Copy, Debug)]
struct Clock {
    begin: Instant,
    begin_us: u64,
}

impl Clock {
    fn at(self, now_us: u64) -> Instant {
        self.begin + Duration::from_micros(now_us.saturating_sub(self.begin_us))
    }

    /// The first whole millisecond at which this time has come.
    fn ms_after(self, time: Instant) -> u64 {
        let us = time.saturating_duration_since(self.begin).as_micros();
        (self.begin_us + us as u64).div_ceil(1000)
    }
}

/// What a datagram was.
pub(crate) enum Arrival {
    /// For a connection.
    For(usize, ConnectionEvent),
    /// The first of a connection.
    New(Newcomer),
    /// For a connection that is not here; the client can be told so.
    Stray(Stray),
    /// Nothing to be done about.
    Nothing,
}

/// What tells a client that its connection is not here; the bytes are the last that were made.
pub(crate) struct Stray(Transmit);

/// A connection that has not been taken yet.
pub(crate) struct Newcomer(Incoming);

impl Newcomer {
    /// Where it comes from.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.0.remote_address()
    }

    /// The address it came to, where the kernel says so.
    pub(crate) fn local_ip(&self) -> Option<IpAddr> {
        self.0.local_ip()
    }

    fn asked(&self) -> Asked {
        (self.0.remote_address(), *self.0.orig_dst_cid())
    }

    /// It has not proved its address, and can be asked to.
    pub(crate) fn may_be_asked(&self) -> bool {
        !self.0.remote_address_validated() && self.0.may_retry()
    }
}

impl Endpoint {
    /// Begins with a socket, at a time that is known in both ways there are; it takes no
    /// connections before [`Endpoint::offer`].
    pub(crate) fn new(
        socket: Socket,
        address: Option<SocketAddr>,
        home: ConnectionHome,
        secret: &ResetSecret,
        begin: Instant,
        begin_us: u64,
    ) -> Endpoint {
        let mut config = EndpointConfig::new(Arc::new(secret.key_at(address)));
        // There is a limit of our own, which lets a whole crowd be told at once.
        config.min_reset_interval(Duration::ZERO);
        config.cid_generator(move || Box::new(ConnectionIds(home)));
        config.supported_versions(vec![1]);
        let keeps_whole = socket.keeps_whole();
        Endpoint {
            inner: quinn_proto::Endpoint::new(Arc::new(config), None, keeps_whole, None),
            socket,
            address,
            unsent: None,
            scratch: Vec::new(),
            clock: Clock { begin, begin_us },
            refused: [None; H3_REFUSED_REMEMBERED],
            refused_at: 0,
            resets: Bucket::new(H3_STATELESS_RESETS, begin_us / 1000),
        }
    }

    /// What new connections are offered; `None` takes no more.
    pub(crate) fn offer(&mut self, offered: Option<(Arc<Offered>, RetryKey)>, idle: Duration) {
        let config = offered.map(|(offered, key)| {
            let mut config = ServerConfig::new(offered, key.0);
            config.transport_config(Arc::new(transport(idle)));
            Arc::new(config)
        });
        self.inner.set_server_config(config);
    }

    /// The socket.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Where the socket is bound.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Reads datagrams; true when there may be more.
    pub(crate) fn receive(&mut self, take: impl FnMut(Datagram)) -> std::io::Result<bool> {
        self.socket.receive(take)
    }

    /// Finds out whom a datagram is for. What is for nobody is answered here.
    pub(crate) fn handle(&mut self, datagram: Datagram, now_us: u64) -> Arrival {
        let now = self.clock.at(now_us);
        self.scratch.clear();
        let event = self.inner.handle(
            now,
            datagram.remote,
            datagram.local,
            datagram.ecn,
            datagram.bytes,
            &mut self.scratch,
        );
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => Arrival::For(handle.0, event),
            Some(DatagramEvent::NewConnection(incoming)) => Arrival::New(Newcomer(incoming)),
            Some(DatagramEvent::Response(transmit)) if self.is_reset() => {
                Arrival::Stray(Stray(transmit))
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.respond(&transmit);
                Arrival::Nothing
            }
            None => Arrival::Nothing,
        }
    }

    /// What was made to be sent has a short header: all else that belongs to no connection has a
    /// long one.
    fn is_reset(&self) -> bool {
        self.scratch.first().is_some_and(|first| first & 0x80 == 0)
    }

    /// Tells a client that its connection is not here, right after [`Endpoint::handle`] said so;
    /// false when that was told too often lately.
    //= rfc9000#10.3
    pub(crate) fn reset(&mut self, stray: &Stray, now_us: u64) -> bool {
        let may = self.resets.take(now_us / 1000);
        if may {
            self.respond(&stray.0);
        }
        may
    }

    /// Takes a new connection; or says why its handshake failed with the very first datagram, of
    /// which the client has been told.
    pub(crate) fn accept(
        &mut self,
        new: Newcomer,
        now_us: u64,
    ) -> Result<QuicConnection, HandshakeFailure> {
        let now = self.clock.at(now_us);
        let asked = new.asked();
        self.scratch.clear();
        match self.inner.accept(new.0, now, &mut self.scratch, None) {
            Ok((handle, connection)) => Ok(QuicConnection::new(handle, connection)),
            Err(error) => {
                tracing::debug!(error = %error.cause, "a QUIC connection could not begin");
                let failure = failure_to_begin(&error);
                self.remember(asked);
                if let Some(transmit) = error.response {
                    self.respond(&transmit);
                }
                Err(failure)
            }
        }
    }

    /// It was refused before: a client's first message may take more than one datagram, each of
    /// which begins its connection as long as none has.
    pub(crate) fn was_refused(&self, new: &Newcomer) -> bool {
        self.refused.contains(&Some(new.asked()))
    }

    fn remember(&mut self, asked: Asked) {
        self.refused[self.refused_at] = Some(asked);
        self.refused_at = (self.refused_at + 1) % H3_REFUSED_REMEMBERED;
    }

    /// Tells a client that there is no room.
    pub(crate) fn refuse(&mut self, new: Newcomer) {
        if !self.was_refused(&new) {
            self.remember(new.asked());
        }
        self.scratch.clear();
        let transmit = self.inner.refuse(new.0, &mut self.scratch);
        self.respond(&transmit);
    }

    /// Asks a client for proof that it is where it seems to be.
    //= rfc9000#8.1.2
    pub(crate) fn ask(&mut self, new: Newcomer) {
        self.scratch.clear();
        match self.inner.retry(new.0, &mut self.scratch) {
            Ok(transmit) => self.respond(&transmit),
            Err(error) => self.inner.ignore(error.into_incoming()),
        }
    }

    fn respond(&mut self, transmit: &Transmit) {
        if self.unsent.is_none() {
            // Without room it is as good as lost: the client asks again.
            self.socket.send(transmit, &self.scratch);
        }
    }

    /// Lets endpoint and connection tell each other what concerns both. True when the connection is
    /// over for good.
    pub(crate) fn settle(&mut self, conn: &mut QuicConnection) -> bool {
        let handle = ConnectionHandle(conn.handle());
        let mut is_over = false;
        while let Some(event) = conn.inner.poll_endpoint_events() {
            is_over |= event.is_drained();
            if let Some(event) = self.inner.handle_event(handle, event) {
                conn.inner.handle_event(event);
            }
        }
        if !is_over && std::mem::take(&mut conn.is_late) {
            self.inner.handle_event(handle, EndpointEvent::drained());
            is_over = true;
        }
        is_over
    }

    /// Sends what a connection has to send, at most about so many bytes. What is left is more, or
    /// what there was no room for.
    pub(crate) fn send(
        &mut self,
        conn: &mut QuicConnection,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
        now_us: u64,
    ) -> DatagramSendOutcome {
        if !self.flush() {
            return DatagramSendOutcome::Blocked;
        }
        let now = self.clock.at(now_us);
        let per_send = self.socket.datagrams_per_send();
        let mut bytes = 0;
        while bytes < bytes_max {
            buffer.clear();
            let Some(transmit) = conn.inner.poll_transmit(now, per_send, buffer) else {
                return DatagramSendOutcome::All(bytes);
            };
            bytes += transmit.size;
            if !self.socket.send(&transmit, buffer) {
                self.unsent = Some((transmit, std::mem::take(buffer)));
                return DatagramSendOutcome::Blocked;
            }
        }
        DatagramSendOutcome::More(bytes)
    }

    /// Sends what there was no room for before; true when there is room now.
    pub(crate) fn flush(&mut self) -> bool {
        if let Some((transmit, bytes)) = &self.unsent {
            if !self.socket.send(transmit, bytes) {
                return false;
            }
            self.unsent = None;
        }
        true
    }

    /// When the connection has to be looked at again, in milliseconds.
    pub(crate) fn next_ms(&self, conn: &mut QuicConnection) -> u64 {
        let own_ms = conn.inner.poll_timeout();
        let own_ms = own_ms.map_or(u64::MAX, |time| self.clock.ms_after(time));
        let late_us = conn.ended_us.map(|us| us + H3_ENDED_US_MAX);
        own_ms.min(late_us.map_or(u64::MAX, |us| us.div_ceil(1000)))
    }

    /// Time has passed.
    pub(crate) fn pass_time(&self, conn: &mut QuicConnection, now_us: u64) {
        let now = self.clock.at(now_us);
        if conn.inner.poll_timeout().is_some_and(|time| time <= now) {
            conn.inner.handle_timeout(now);
        }
        if conn.inner.is_closed() {
            let ended_us = *conn.ended_us.get_or_insert(now_us);
            let is_drained = conn.inner.is_drained();
            conn.is_late = !is_drained && now_us >= ended_us + H3_ENDED_US_MAX;
        }
    }

    /// Ends a connection.
    pub(crate) fn close(&self, conn: &mut QuicConnection, code: u64, reason: &str, now_us: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        let reason = bytes::Bytes::copy_from_slice(reason.as_bytes());
        conn.inner.close(self.clock.at(now_us), code, reason);
        conn.ended_us.get_or_insert(now_us);
    }
}

/// Why a connection could not begin.
fn failure_to_begin(error: &AcceptError) -> HandshakeFailure {
    match &error.cause {
        // Its packet could not be opened, with keys that everybody has: nobody is answered.
        //= rfc9001#5.2
        ConnectionError::TransportError(_) if error.response.is_none() => HandshakeFailure::Foreign,
        ConnectionError::CidsExhausted | ConnectionError::TimedOut => HandshakeFailure::Own,
        cause => failure_of(cause),
    }
}

/// How far the sending came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatagramSendOutcome {
    /// So many bytes, and there are no more for now.
    All(usize),
    /// So many bytes, and there may be more.
    More(usize),
    /// The kernel has no room.
    Blocked,
}

fn transport(idle: Duration) -> TransportConfig {
    let mut config = TransportConfig::default();
    // Longer than what is told to idle clients: those that answer are told before they are left.
    let idle = IdleTimeout::try_from(idle + Duration::from_secs(5)).ok();
    config
        .max_concurrent_bidi_streams(H3_STREAMS_MAX.into())
        .max_concurrent_uni_streams(H3_UNI_STREAMS_MAX.into())
        .stream_receive_window(H3_STREAM_WINDOW_BYTES.into())
        .receive_window(H3_CONNECTION_WINDOW_BYTES.into())
        .send_window(H3_SEND_WINDOW_BYTES_MIN)
        .max_idle_timeout(idle)
        .datagram_receive_buffer_size(None);
    config
}
