//! Peers that speak TLS, and an authority that signs their certificates.

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::harness::Place;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, Wire};

/// An authority of a test.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

/// A certificate and its key.
pub(crate) struct Signed {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        Authority {
            issuer: Issuer::new(params, key),
            certificate: made.der().clone(),
            pem: made.pem(),
        }
    }

    /// A certificate for these names.
    pub(crate) fn sign(&self, names: &[&str]) -> Signed {
        self.sign_with(names, |_| {})
    }

    /// The same, with more said.
    pub(crate) fn sign_with(
        &self,
        names: &[&str],
        set: impl FnOnce(&mut CertificateParams),
    ) -> Signed {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        set(&mut params);
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.issuer).unwrap();
        Signed {
            certificate: made.der().clone(),
            key,
            pem: made.pem(),
        }
    }

    /// Writes its own certificate to a file of this name.
    pub(crate) fn write(&self, place: &Place, file: &str) {
        place.write(file, &self.pem);
    }
}

impl Signed {
    /// Writes it to `NAME.pem` and `NAME.key`.
    pub(crate) fn write(&self, place: &Place, name: &str) {
        place.write(&format!("{name}.pem"), &self.pem);
        let key = format!("{name}.key");
        place.write(&key, &self.key.serialize_pem());
        std::fs::set_permissions(place.path(&key), PermissionsExt::from_mode(0o644)).unwrap();
    }

    fn parts(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        (vec![self.certificate.clone()], key.into())
    }

    /// What a server that shows it speaks, in these versions.
    pub(crate) fn config(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.certificate.clone()).unwrap();
                let roots = Arc::new(roots);
                let rule = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(rule.build().unwrap())
            }
        };
        let (chain, key) = self.parts();
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// A peer that shows it.
    pub(crate) fn peer(&self, acts: Vec<Act>) -> Peer {
        Peer::start_over(over(self.config(rustls::ALL_VERSIONS, None)), acts)
    }
}

/// TLS by this config. A handshake that fails is the end of its connection.
pub(crate) fn over(
    config: Arc<ServerConfig>,
) -> Box<dyn Fn(TcpStream) -> Option<Box<dyn Wire>> + Send> {
    Box::new(move |mut stream| {
        let mut conn = ServerConnection::new(Arc::clone(&config)).unwrap();
        while conn.is_handshaking() {
            let step = conn.complete_io(&mut stream);
            if step.is_err() {
                // What it has to say is sent.
                let _ = conn.write_tls(&mut stream);
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
                return None;
            }
        }
        // That a handshake is over is followed by tickets.
        while conn.wants_write() {
            conn.write_tls(&mut stream).unwrap();
        }
        Some(Box::new(StreamOwned::new(conn, stream)))
    })
}

impl Wire for StreamOwned<ServerConnection, TcpStream> {
    fn end(&mut self) {
        self.conn.send_close_notify();
        let _ = self.conn.write_tls(&mut self.sock);
    }

    fn change_keys(&mut self) {
        self.conn.refresh_traffic_keys().unwrap();
        self.conn.write_tls(&mut self.sock).unwrap();
    }
}

/// A site whose `/app/*` these ports of `localhost` answer over TLS, with the keys of `tls` and
/// further ones of `proxy`. `ca.pem` is this authority's.
pub(crate) fn serve(authority: &Authority, peers: &[&Peer], tls: &str, keys: &str) -> Site {
    let ports: Vec<_> = peers.iter().map(|peer| peer.port).collect();
    serve_in(Place::new(), authority, &ports, tls, keys)
}

/// The same in a place where there is something already.
pub(crate) fn serve_in(
    place: Place,
    authority: &Authority,
    ports: &[u16],
    tls: &str,
    keys: &str,
) -> Site {
    authority.write(&place, "ca.pem");
    let to = ports
        .iter()
        .map(|port| format!("\"https://localhost:{port}\""));
    let to = to.collect::<Vec<_>>().join(", ");
    let handler = format!("proxy = {{ to = [{to}], tls = {{ {tls} }}, {keys} }}");
    Site::serve(place, "", &handler, "")
}
