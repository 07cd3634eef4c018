//! The TLS handshake within QUIC (RFC 9001), by rustls. As over TCP, the name that the client asks
//! for decides which certificate it sees and whether it needs one itself, so its first message is
//! looked at before rustls has it.

use std::any::Any;
use std::sync::Arc;

use aws_lc_rs::hkdf;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, KeyPair, Keys, PacketKey,
    ServerConfig as Offers, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::quic::{KeyChange, Secrets, ServerConnection, Suite, Version};
use rustls::{AlertDescription, HandshakeKind};

use crate::tls::hello::{self, Gathering};
use crate::tls::{ClientCertificate, ShownCertificates, TlsHosts, suite_name};

/// The algorithms of the first datagrams, which everybody can read.
//= rfc9001#5.2
fn first_suite() -> Option<Suite> {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    suite.tls13()?.quic_suite()
}

/// What a listener offers over QUIC: ready for handshakes.
pub(crate) struct Offered {
    terms: Arc<TlsHosts>,
    first: Arc<QuicServerConfig>,
}

impl Offered {
    /// `None` where TLS 1.3 is not offered.
    pub(crate) fn new(terms: &Arc<TlsHosts>) -> Option<Arc<Offered>> {
        let config = terms.for_name(None).quic.clone()?;
        let first = QuicServerConfig::with_initial(config, first_suite()?).ok()?;
        Some(Arc::new(Offered {
            terms: Arc::clone(terms),
            first: Arc::new(first),
        }))
    }
}

impl Offers for Offered {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.first.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.first.retry_tag(version, id, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        let mut bytes = Vec::new();
        params.write(&mut bytes);
        Box::new(Shaking {
            offered: self,
            version,
            rule: 0,
            stage: QuicHandshakeStage::Hello {
                params: bytes,
                hello: Vec::new(),
            },
            has_told: false,
            next_secrets: None,
        })
    }
}

/// What a handshake gave.
#[derive(Clone)]
pub(crate) struct Shaken {
    pub(crate) server_name: Option<String>,
    pub(crate) suite: &'static str,
    pub(crate) is_resumed: bool,
    pub(crate) rule: u64,
    pub(crate) client: Option<ClientCertificate>,
    pub(crate) shown: ShownCertificates,
}

/// A handshake under way, or done: keys change later too.
struct Shaking {
    offered: Arc<Offered>,
    version: u32,
    rule: u64,
    stage: QuicHandshakeStage,
    has_told: bool,
    next_secrets: Option<Secrets>,
}

/// How far it is.
enum QuicHandshakeStage {
    /// Our parameters, and the client's first message as far as it has come.
    Hello { params: Vec<u8>, hello: Vec<u8> },
    /// Messages go to and fro.
    UnderWay(Box<ServerConnection>),
    /// All is said. What rustls held is let go: a connection keeps 4 KiB less.
    Done(Box<Shaken>),
}

impl Shaking {
    fn tls(&self) -> Option<&ServerConnection> {
        match &self.stage {
            QuicHandshakeStage::UnderWay(tls) => Some(tls),
            QuicHandshakeStage::Hello { .. } | QuicHandshakeStage::Done(_) => None,
        }
    }

    /// Takes a piece of the first message, and goes on once all of it is there.
    fn begin(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        let QuicHandshakeStage::Hello { params, hello } = &mut self.stage else {
            return Ok(());
        };
        hello.extend_from_slice(bytes);
        let name = match hello::look_at_message(hello) {
            Gathering::Partial => return Ok(()),
            Gathering::Foreign => return Err(refused("it does not begin with a ClientHello")),
            Gathering::Whole(name) => name,
        };
        let host = self.offered.terms.for_name(name.as_deref());
        self.rule = host.rule;
        let config = host.quic.clone().ok_or_else(|| TransportError {
            code: TransportErrorCode::crypto(AlertDescription::ProtocolVersion.into()),
            ..refused("TLS 1.3 is not offered")
        })?;
        let (params, hello) = (std::mem::take(params), std::mem::take(hello));
        let tls = ServerConnection::new(config, Version::V1, params);
        let mut tls = Box::new(tls.map_err(|error| refused(&error.to_string()))?);
        let fed = feed(&mut tls, &hello);
        self.stage = QuicHandshakeStage::UnderWay(tls);
        fed
    }
}

fn feed(tls: &mut ServerConnection, bytes: &[u8]) -> Result<(), TransportError> {
    tls.read_hs(bytes).map_err(|error| match tls.alert() {
        Some(alert) => TransportError {
            code: TransportErrorCode::crypto(alert.into()),
            frame: None,
            reason: error.to_string(),
        },
        None => refused(&error.to_string()),
    })
}

fn shaken_of(tls: &ServerConnection, rule: u64) -> Shaken {
    let suite = tls.negotiated_cipher_suite();
    let client = tls.peer_certificates().and_then(|chain| chain.first());
    Shaken {
        server_name: tls.server_name().map(str::to_owned),
        suite: suite.map_or("", |suite| suite_name(suite.suite())),
        is_resumed: tls.handshake_kind() == Some(HandshakeKind::Resumed),
        rule,
        client: client.and_then(|certificate| ClientCertificate::from_der(certificate)),
        shown: ShownCertificates::of(tls.peer_certificates()),
    }
}

fn refused(reason: &str) -> TransportError {
    TransportError {
        code: TransportErrorCode::PROTOCOL_VIOLATION,
        frame: None,
        reason: reason.to_owned(),
    }
}

impl Session for Shaking {
    fn initial_keys(&self, id: &ConnectionId, _side: Side) -> Keys {
        let keys = self.offered.first.initial_keys(self.version, id);
        keys.expect("the version was found to be one we speak before the session began")
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(match &self.stage {
            QuicHandshakeStage::Hello { .. } => return None,
            QuicHandshakeStage::UnderWay(tls) => Box::new(shaken_of(tls, self.rule)),
            QuicHandshakeStage::Done(shaken) => shaken.clone(),
        })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match &self.stage {
            QuicHandshakeStage::Hello { .. } => true,
            QuicHandshakeStage::UnderWay(tls) => tls.is_handshaking(),
            QuicHandshakeStage::Done(_) => false,
        }
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        match &mut self.stage {
            QuicHandshakeStage::Hello { .. } => self.begin(bytes)?,
            QuicHandshakeStage::UnderWay(tls) => feed(tls, bytes)?,
            //= rfc9001#6
            QuicHandshakeStage::Done(_) => {
                let alert = u8::from(AlertDescription::UnexpectedMessage);
                let mut refused = refused("a TLS message came after the handshake");
                refused.code = TransportErrorCode::crypto(alert);
                return Err(refused);
            }
        }
        let is_first = self.tls().is_some() && !self.has_told;
        self.has_told |= is_first;
        Ok(is_first)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut bytes) = self.tls().and_then(|tls| tls.quic_transport_parameters()) else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(Side::Server, &mut bytes)?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let QuicHandshakeStage::UnderWay(tls) = &mut self.stage else {
            return None;
        };
        let Some(change) = tls.write_hs(out) else {
            if out.is_empty() && !tls.is_handshaking() {
                self.stage = QuicHandshakeStage::Done(Box::new(shaken_of(tls, self.rule)));
            }
            return None;
        };
        let keys = match change {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next_secrets = Some(next);
                keys
            }
        };
        Some(Keys {
            header: KeyPair {
                local: Box::new(keys.local.header),
                remote: Box::new(keys.remote.header),
            },
            packet: KeyPair {
                local: Box::new(keys.local.packet),
                remote: Box::new(keys.remote.packet),
            },
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    fn is_valid_retry(&self, _id: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        // Servers get none.
        false
    }

    fn export_keying_material(
        &self,
        _out: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        // Nobody asks for it.
        Err(ExportKeyingMaterialError)
    }
}

/// What the proofs of addresses are sealed with; one for the whole server, kept over reloads.
#[derive(Clone)]
pub(crate) struct RetryKey(pub(super) Arc<dyn HandshakeTokenKey>);

impl RetryKey {
    /// The one of a secret.
    pub(crate) fn of(secret: &[u8]) -> RetryKey {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]);
        RetryKey(Arc::new(salt.extract(secret)))
    }
}
