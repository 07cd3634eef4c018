//! From the first byte of a connection to its session: rustls makes the handshake, without a
//! socket. It is given whole records, one at a time, so that what a client sends behind its last
//! message stays sealed until the session opens it.

use std::sync::Arc;

use hob_trace::TlsVersion;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{HandshakeKind, ProtocolVersion, ServerConfig};

use crate::tls::record::{RECORD_BYTES_MAX, TlsRecordVersion, TrafficKey, record_len};
use crate::tls::session::TlsSession;
use crate::tls::terms::ALPN_H2;
use crate::tls::terms::suite_name;
use crate::tls::x509::ClientCertificate;

/// A handshake under way.
pub(crate) struct Handshake {
    conn: UnbufferedServerConnection,
    /// Bytes at the begin of the input that rustls has seen and wants to see again.
    seen: usize,
}

/// How far a handshake has come.
pub(crate) enum HandshakeProgress {
    /// It needs more from the client.
    NeedMore(Box<Handshake>),
    /// It is done.
    Done(Box<Established>),
    /// It failed; the alert that says so is in what is to be sent.
    Failed(rustls::Error),
}

/// What a handshake gives.
pub(crate) struct Established {
    pub(crate) session: TlsSession,
    pub(crate) version: TlsVersion,
    pub(crate) suite: &'static str,
    pub(crate) is_resumed: bool,
    pub(crate) client: Option<ClientCertificate>,
    /// Both sides speak HTTP/2.
    pub(crate) is_h2: bool,
}

/// A record of a handshake may be longer than ours; TLS 1.2 allows so much.
const HANDSHAKE_RECORD_BYTES_MAX: usize = RECORD_BYTES_MAX + 2048 - 256;

impl Handshake {
    pub(crate) fn new(config: &Arc<ServerConfig>) -> Result<Box<Handshake>, rustls::Error> {
        Ok(Box::new(Handshake {
            conn: UnbufferedServerConnection::new(Arc::clone(config))?,
            seen: 0,
        }))
    }

    fn is_tls13(&self) -> bool {
        self.conn.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Goes on with what has come in. Returns how many bytes of `input` were used; what is to be
    /// sent is appended to `out`. The rest of `input` must be given again, as it is left.
    pub(crate) fn read(
        mut self: Box<Handshake>,
        input: &mut [u8],
        out: &mut Vec<u8>,
    ) -> (usize, HandshakeProgress) {
        let mut used = 0;
        loop {
            let given = &mut input[used..used + self.seen];
            let UnbufferedStatus { discard, state } = self.conn.process_tls_records(given);
            let step = match state {
                Ok(state) => step(state, out),
                Err(error) => {
                    push_alert(&mut self.conn, out);
                    return (input.len(), HandshakeProgress::Failed(error));
                }
            };
            used += discard;
            self.seen -= discard;
            match step {
                HandshakeStep::Again => continue,
                HandshakeStep::Over => {
                    let error = rustls::Error::General("the client closed".to_owned());
                    return (input.len(), HandshakeProgress::Failed(error));
                }
                HandshakeStep::NeedMore => {}
            }
            if !self.conn.is_handshaking() {
                let progress = match finish(self.conn) {
                    Ok(established) => HandshakeProgress::Done(Box::new(established)),
                    Err(error) => HandshakeProgress::Failed(error),
                };
                return (used, progress);
            }
            if self.seen == 0 && self.is_tls13() {
                used += idle_records(&input[used..]);
            }
            let fresh = &input[used + self.seen..];
            match record_len(fresh) {
                Some(len) if len <= fresh.len() => self.seen += len,
                // It will not become a record: rustls says so.
                Some(len) if len > HANDSHAKE_RECORD_BYTES_MAX => self.seen += fresh.len(),
                _ => return (used, HandshakeProgress::NeedMore(self)),
            }
        }
    }
}

/// Bytes of the records at the begin that change no cipher and are to be dropped, however many;
/// rustls would refuse the third. How much a client may send in all has a limit of its own.
//= rfc8446#5
fn idle_records(input: &[u8]) -> usize {
    let records = input.chunks_exact(6);
    let is_idle = |record: &&[u8]| matches!(record, [20, 3, _, 0, 1, 1]);
    records.take_while(is_idle).count() * 6
}

enum HandshakeStep {
    Again,
    NeedMore,
    Over,
}

fn step<Data>(state: ConnectionState<'_, '_, Data>, out: &mut Vec<u8>) -> HandshakeStep {
    match state {
        ConnectionState::EncodeTlsData(mut encoding) => {
            let start = out.len();
            if let Err(EncodeError::InsufficientSize(size)) = encoding.encode(&mut []) {
                out.resize(start + size.required_size, 0);
                let encoded = encoding.encode(&mut out[start..]);
                debug_assert!(encoded.is_ok(), "there is as much room as was asked for");
            }
            HandshakeStep::Again
        }
        ConnectionState::TransmitTlsData(sending) => {
            // It leaves with `out`, in this order.
            sending.done();
            HandshakeStep::Again
        }
        ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => {
            HandshakeStep::NeedMore
        }
        // Data cannot be: rustls never saw a record behind the last of the handshake.
        _ => HandshakeStep::Over,
    }
}

/// Takes the alert that a failed handshake ends with.
fn push_alert(conn: &mut UnbufferedServerConnection, out: &mut Vec<u8>) {
    loop {
        match conn.process_tls_records(&mut []).state {
            Ok(state @ ConnectionState::EncodeTlsData(_)) => {
                step(state, out);
            }
            _ => return,
        }
    }
}

fn finish(conn: UnbufferedServerConnection) -> Result<Established, rustls::Error> {
    let wire = match conn.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => TlsRecordVersion::Tls13,
        _ => TlsRecordVersion::Tls12,
    };
    let suite = conn.negotiated_cipher_suite();
    let suite = suite.map_or("", |suite| suite_name(suite.suite()));
    let is_resumed = conn.handshake_kind() == Some(HandshakeKind::Resumed);
    let client = conn.peer_certificates().and_then(|chain| chain.first());
    let client = client.and_then(|certificate| ClientCertificate::from_der(certificate));
    let is_h2 = conn.alpn_protocol() == Some(ALPN_H2);
    let (secrets, kernel) = conn.dangerous_into_kernel_connection()?;
    let bad_key = |_| rustls::Error::General("the agreed keys cannot be used".to_owned());
    let tx = TrafficKey::new(wire, secrets.tx).map_err(bad_key)?;
    let rx = TrafficKey::new(wire, secrets.rx).map_err(bad_key)?;
    let kernel = (wire == TlsRecordVersion::Tls13).then_some(kernel);
    Ok(Established {
        session: TlsSession::new(tx, rx, kernel),
        version: match wire {
            TlsRecordVersion::Tls12 => TlsVersion::Tls12,
            TlsRecordVersion::Tls13 => TlsVersion::Tls13,
        },
        suite,
        is_resumed,
        client,
        is_h2,
    })
}
