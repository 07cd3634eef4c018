//! From the first byte of a connection to its session: rustls makes the handshake, without a
//! socket, on either side. It is given whole records, one at a time, so that what the other side
//! sends behind its last message stays sealed until the session opens it.

use std::sync::Arc;

use hob_trace::TlsVersion;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{
    ClientConfig, CommonState, Error, ExtractedSecrets, HandshakeKind, ProtocolVersion,
    ServerConfig,
};

use crate::tls::ShownCertificates;
use crate::tls::record::{RECORD_BYTES_MAX, TlsRecordVersion, TrafficKey, record_len};
use crate::tls::session::{Kernel, TlsSession};
use crate::tls::terms::ALPN_H2;
use crate::tls::terms::suite_name;
use crate::tls::x509::ClientCertificate;

/// A handshake under way.
pub(crate) struct Handshake<S = UnbufferedServerConnection> {
    conn: S,
    /// Bytes at the begin of the input that rustls has seen and wants to see again.
    seen: usize,
}

/// A side of a handshake, as rustls has it.
pub(crate) trait HandshakeSide: Sized {
    type Data;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
    fn common(&self) -> &CommonState;
    fn client(&self) -> Option<ClientCertificate>;
    fn into_kernel(self) -> Result<(ExtractedSecrets, Kernel), Error>;
}

impl HandshakeSide for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }

    fn common(&self) -> &CommonState {
        self
    }

    fn client(&self) -> Option<ClientCertificate> {
        let shown = self.peer_certificates().and_then(|chain| chain.first());
        shown.and_then(|certificate| ClientCertificate::from_der(certificate))
    }

    fn into_kernel(self) -> Result<(ExtractedSecrets, Kernel), Error> {
        let (secrets, kernel) = self.dangerous_into_kernel_connection()?;
        Ok((secrets, Kernel::Server(kernel)))
    }
}

impl HandshakeSide for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }

    fn common(&self) -> &CommonState {
        self
    }

    fn client(&self) -> Option<ClientCertificate> {
        None
    }

    fn into_kernel(self) -> Result<(ExtractedSecrets, Kernel), Error> {
        let (secrets, kernel) = self.dangerous_into_kernel_connection()?;
        Ok((secrets, Kernel::Client(kernel)))
    }
}

/// How far a handshake has come.
pub(crate) enum HandshakeProgress<S = UnbufferedServerConnection> {
    /// It needs more from the other side.
    NeedMore(Box<Handshake<S>>),
    /// It is done.
    Done(Box<Established>),
    /// It failed; the alert that says so is in what is to be sent.
    Failed(Error),
}

/// What a handshake gives.
pub(crate) struct Established {
    pub(crate) session: TlsSession,
    pub(crate) version: TlsVersion,
    pub(crate) suite: &'static str,
    pub(crate) is_resumed: bool,
    pub(crate) client: Option<ClientCertificate>,
    /// The certificates that it has shown.
    pub(crate) shown: ShownCertificates,
    /// Both sides speak HTTP/2.
    pub(crate) is_h2: bool,
}

/// A record of a handshake may be longer than ours; TLS 1.2 allows so much.
const HANDSHAKE_RECORD_BYTES_MAX: usize = RECORD_BYTES_MAX + 2048 - 256;

impl Handshake {
    pub(crate) fn new(config: &Arc<ServerConfig>) -> Result<Box<Handshake>, Error> {
        Ok(Box::new(Handshake {
            conn: UnbufferedServerConnection::new(Arc::clone(config))?,
            seen: 0,
        }))
    }
}

impl Handshake<UnbufferedClientConnection> {
    /// A client's: it is read once without input, and begins.
    pub(crate) fn with_server(
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Box<Self>, Error> {
        Ok(Box::new(Handshake {
            conn: UnbufferedClientConnection::new(Arc::clone(config), name)?,
            seen: 0,
        }))
    }
}

impl<S: HandshakeSide> Handshake<S> {
    fn is_tls13(&self) -> bool {
        self.conn.common().protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Goes on with what has come in. Returns how many bytes of `input` were used; what is to be
    /// sent is appended to `out`. The rest of `input` must be given again, as it is left.
    pub(crate) fn read(
        mut self: Box<Self>,
        input: &mut [u8],
        out: &mut Vec<u8>,
    ) -> (usize, HandshakeProgress<S>) {
        let mut used = 0;
        loop {
            let given = &mut input[used..used + self.seen];
            let UnbufferedStatus { discard, state } = self.conn.process(given);
            let step = match state {
                Ok(state) => step(state, out),
                Err(error) => {
                    let rest = &mut input[used + discard..used + self.seen];
                    push_alert(&mut self.conn, rest, out);
                    return (input.len(), HandshakeProgress::Failed(error));
                }
            };
            used += discard;
            self.seen -= discard;
            match step {
                HandshakeStep::Again => continue,
                HandshakeStep::Over => {
                    let error = Error::General("the other side closed".to_owned());
                    return (input.len(), HandshakeProgress::Failed(error));
                }
                HandshakeStep::NeedMore => {}
            }
            if !self.conn.common().is_handshaking() {
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

/// Takes the alert that a failed handshake ends with. rustls may still know of messages in what it
/// was given, and wants to see that again.
fn push_alert(conn: &mut impl HandshakeSide, mut given: &mut [u8], out: &mut Vec<u8>) {
    loop {
        let UnbufferedStatus { discard, state } = conn.process(given);
        match state {
            Ok(state @ ConnectionState::EncodeTlsData(_)) => {
                step(state, out);
            }
            _ => return,
        }
        given = &mut given[discard..];
    }
}

fn finish(conn: impl HandshakeSide) -> Result<Established, Error> {
    let common = conn.common();
    let wire = match common.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => TlsRecordVersion::Tls13,
        _ => TlsRecordVersion::Tls12,
    };
    let suite = common.negotiated_cipher_suite();
    let suite = suite.map_or("", |suite| suite_name(suite.suite()));
    let is_resumed = common.handshake_kind() == Some(HandshakeKind::Resumed);
    let is_h2 = common.alpn_protocol() == Some(ALPN_H2);
    let client = conn.client();
    let shown = client.as_ref().and_then(|_| common.peer_certificates());
    let shown = ShownCertificates::of(shown);
    let (secrets, kernel) = conn.into_kernel()?;
    let bad_key = |_| Error::General("the agreed keys cannot be used".to_owned());
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
        shown,
        is_h2,
    })
}
