//! A connection: streams of bytes, and what happens to them.

use std::net::SocketAddr;

use bytes::Bytes;
use quinn_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, Dir, Event, ReadError, StreamEvent,
    StreamId, VarInt, WriteError,
};

use crate::h3::quic::session::Shaken;
use crate::limits::{H3_SEND_WINDOW_BYTES_MAX, H3_SEND_WINDOW_BYTES_MIN};
use crate::network::{Network, NetworkProbe};
use crate::tls::failure::{HandshakeFailure, TlsSide};

/// A connection. Streams are known by their numbers (RFC 9000 section 2.1).
pub(crate) struct QuicConnection {
    pub(super) inner: quinn_proto::Connection,
    handle: ConnectionHandle,
    send_window: u64,
    /// When it was seen to have ended.
    pub(super) ended_us: Option<u64>,
    /// It has been kept for long enough since.
    pub(super) is_late: bool,
    /// Bytes that were read of its streams.
    read_bytes: u64,
}

/// What has happened to a connection.
#[derive(Debug)]
pub(crate) enum Happened {
    /// The handshake is done.
    Connected,
    /// It is over, and why its handshake failed if it was not done.
    Lost(Lost, HandshakeFailure),
    /// Streams were opened.
    Opened,
    /// A stream has something to read, or has ended.
    Readable(u64),
    /// A stream has room again.
    Writable,
    /// All bytes of a stream have arrived.
    Finished(u64),
    /// The client wants no more of a stream.
    Stopped(u64),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The client closed it in order.
    Closed,
    /// The client closed it because of a fault, or broke the rules of QUIC.
    Broken,
    /// The client knows it no more: the datagram that closed it was lost, or the client has begun
    /// anew.
    Forgotten,
    /// Nothing was heard of it for too long.
    Silent,
    /// We have closed it.
    ByUs,
}

/// What a stream gave.
#[derive(Debug)]
pub(crate) enum Readout {
    /// Bytes, in their order.
    Bytes(Bytes),
    /// Nothing more for now.
    Nothing,
    /// The client has sent all.
    End,
    /// The client has given it up; nobody knows it any more.
    Gone,
}

/// What became of bytes that were to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// All were taken.
    All,
    /// There is no room for the rest; the stream is told when there is.
    Blocked,
    /// Nobody wants them.
    Gone,
}

impl QuicConnection {
    pub(super) fn new(handle: ConnectionHandle, inner: quinn_proto::Connection) -> QuicConnection {
        QuicConnection {
            inner,
            handle,
            send_window: H3_SEND_WINDOW_BYTES_MIN,
            ended_us: None,
            is_late: false,
            read_bytes: 0,
        }
    }

    /// What its endpoint knows it by.
    pub(crate) fn handle(&self) -> usize {
        self.handle.0
    }

    /// Where the client is now.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// What the handshake gave.
    pub(crate) fn shaken(&self) -> Option<Box<Shaken>> {
        let told = self.inner.crypto_session().handshake_data()?;
        told.downcast().ok()
    }

    /// Takes what came for it.
    pub(crate) fn take(&mut self, event: ConnectionEvent) {
        self.inner.handle_event(event);
    }

    /// What has happened next.
    pub(crate) fn next(&mut self) -> Option<Happened> {
        loop {
            return Some(match self.inner.poll()? {
                Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked
                | Event::Stream(StreamEvent::Available { .. }) => continue,
                Event::Connected => Happened::Connected,
                Event::ConnectionLost { reason } => {
                    Happened::Lost(how(&reason), failure_of(&reason))
                }
                Event::Stream(StreamEvent::Opened { .. }) => Happened::Opened,
                Event::Stream(StreamEvent::Readable { id }) => Happened::Readable(id.into()),
                Event::Stream(StreamEvent::Writable { .. }) => Happened::Writable,
                Event::Stream(StreamEvent::Finished { id }) => Happened::Finished(id.into()),
                Event::Stream(StreamEvent::Stopped { id, .. }) => Happened::Stopped(id.into()),
            });
        }
    }

    /// The next stream that the client has opened both ways.
    pub(crate) fn accept_both_ways(&mut self) -> Option<u64> {
        self.inner.streams().accept(Dir::Bi).map(u64::from)
    }

    /// The next stream that the client has opened one way.
    pub(crate) fn accept_one_way(&mut self) -> Option<u64> {
        self.inner.streams().accept(Dir::Uni).map(u64::from)
    }

    /// Opens a stream of ours.
    pub(crate) fn open_one_way(&mut self) -> Option<u64> {
        self.inner.streams().open(Dir::Uni).map(u64::from)
    }

    /// Reads at most so many bytes of a stream.
    pub(crate) fn read(&mut self, stream: u64, bytes_max: usize) -> Readout {
        let mut receive = self.inner.recv_stream(id(stream));
        let Ok(mut chunks) = receive.read(true) else {
            return Readout::Gone;
        };
        let read = match chunks.next(bytes_max) {
            Ok(Some(chunk)) => {
                self.read_bytes += chunk.bytes.len() as u64;
                Readout::Bytes(chunk.bytes)
            }
            Ok(None) => Readout::End,
            Err(ReadError::Blocked) => Readout::Nothing,
            Err(ReadError::Reset(_)) => Readout::Gone,
        };
        // The connection is asked for what it has to send in any case.
        let _ = chunks.finalize();
        read
    }

    /// Bytes that have come from the client and were not read of its streams: what is held of them,
    /// and what was no stream's; and in how many datagrams all bytes came.
    pub(crate) fn unread_bytes(&self) -> (u64, u64) {
        let rx = self.inner.stats().udp_rx;
        (rx.bytes.saturating_sub(self.read_bytes), rx.datagrams)
    }

    /// True when the client has given up sending over a stream; nobody knows that half of it then.
    pub(crate) fn was_reset(&mut self, stream: u64) -> bool {
        !matches!(
            self.inner.recv_stream(id(stream)).received_reset(),
            Ok(None)
        )
    }

    /// Reads no more of a stream, and tells the client so.
    pub(crate) fn stop(&mut self, stream: u64, code: u64) {
        // One that has ended needs no telling.
        let _ = self.inner.recv_stream(id(stream)).stop(code_of(code));
    }

    /// Sends bytes over a stream, those it has room for.
    pub(crate) fn write(&mut self, stream: u64, bytes: &mut Bytes) -> Wrote {
        while !bytes.is_empty() {
            let mut chunks = [std::mem::take(bytes)];
            let wrote = self.inner.send_stream(id(stream)).write_chunks(&mut chunks);
            let [rest] = chunks;
            *bytes = rest;
            match wrote {
                Ok(_) => {}
                Err(WriteError::Blocked) => return Wrote::Blocked,
                Err(_) => return Wrote::Gone,
            }
        }
        Wrote::All
    }

    /// Ends a stream after what was sent over it. False when nobody wants it any more.
    pub(crate) fn finish(&mut self, stream: u64) -> bool {
        self.inner.send_stream(id(stream)).finish().is_ok()
    }

    /// Breaks a stream off.
    pub(crate) fn reset(&mut self, stream: u64, code: u64) {
        // One that is gone already needs no breaking.
        let _ = self.inner.send_stream(id(stream)).reset(code_of(code));
    }

    /// Says which streams come before a stream: those of a lesser urgency, then those of a lesser
    /// age.
    pub(crate) fn set_order(&mut self, stream: u64, urgency: u8, age: u64) {
        const AGE_MAX: u64 = 0xff_ffff;
        let order = i32::from(urgency) << 24 | age.min(AGE_MAX) as i32;
        // One that is gone needs no order.
        let _ = self.inner.send_stream(id(stream)).set_priority(-order);
    }

    /// Asks the client for a sign of life.
    pub(crate) fn ping(&mut self) {
        self.inner.ping();
    }

    /// Bytes that may wait for their acknowledgement follow what the path carries.
    pub(crate) fn fit_send_window(&mut self) {
        let wanted = self.inner.congestion_state().window().saturating_mul(2);
        let wanted = wanted.clamp(H3_SEND_WINDOW_BYTES_MIN, H3_SEND_WINDOW_BYTES_MAX);
        if wanted > self.send_window {
            self.send_window = wanted;
            self.inner.set_send_window(wanted);
        }
    }
}

impl NetworkProbe for QuicConnection {
    fn network(&self) -> Option<Network> {
        let stats = self.inner.stats();
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Network {
            rtt_us: small(stats.path.rtt.as_micros() as u64),
            retransmits: small(stats.path.lost_packets),
            window_bytes: small(stats.path.cwnd),
            bytes_in: stats.udp_rx.bytes,
            bytes_out: stats.udp_tx.bytes,
        })
    }
}

fn id(stream: u64) -> StreamId {
    StreamId::from(code_of(stream))
}

fn code_of(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn how(reason: &ConnectionError) -> Lost {
    const NO_ERROR: u64 = 0x100;
    match reason {
        ConnectionError::ApplicationClosed(close)
            if [0, NO_ERROR].contains(&close.error_code.into_inner()) =>
        {
            Lost::Closed
        }
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 0 => {
            Lost::Closed
        }
        ConnectionError::LocallyClosed => Lost::ByUs,
        //= rfc9000#10.3
        ConnectionError::Reset => Lost::Forgotten,
        ConnectionError::TimedOut => Lost::Silent,
        reason => {
            tracing::debug!(%reason, "a QUIC connection broke");
            Lost::Broken
        }
    }
}

/// What the end of a connection says of its handshake.
pub(super) fn failure_of(reason: &ConnectionError) -> HandshakeFailure {
    match reason {
        ConnectionError::TransportError(error) => {
            HandshakeFailure::of_quic(error.code.into(), TlsSide::Server)
        }
        ConnectionError::ConnectionClosed(close) => {
            HandshakeFailure::of_quic(close.error_code.into(), TlsSide::Client)
        }
        ConnectionError::VersionMismatch => HandshakeFailure::Version,
        ConnectionError::ApplicationClosed(_)
        | ConnectionError::Reset
        | ConnectionError::TimedOut
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => HandshakeFailure::Left,
    }
}
