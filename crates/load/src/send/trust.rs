//! Which certificates are believed, and the rest of what a client says about TLS.

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Sessions that are remembered by one thread, for one server.
const SESSION_COUNT: usize = 256;

/// Whose certificates are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those that the system's authorities have signed.
    System,
    /// Anybody's: nothing secret is sent, or nobody can be in between.
    Anybody,
}

/// What clients of a run say, before each thread has its own sessions.
pub(crate) fn client_config(trust: Trust, alpn: &[u8]) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Anybody => Arc::new(Believer(
            provider
                .signature_verification_algorithms
                .supported_schemes(),
        )),
        Trust::System => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
            verifier.build().map_err(|error| {
                format!(
                    "the certificates of authorities cannot be used: {error}; install \
                     ca-certificates, or use --insecure"
                )
            })?
        }
    };
    let verifier = Arc::new(Checking(verifier));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(config)
}

/// The same for one thread: threads that share sessions would wait for each other.
pub(crate) fn for_thread(config: &ClientConfig, has_resumption: bool) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.resumption = match has_resumption {
        true => Resumption::in_memory_sessions(SESSION_COUNT),
        false => Resumption::disabled(),
    };
    Arc::new(config)
}

thread_local! {
    static CHECKED: Cell<u64> = const { Cell::new(0) };
}

/// How many certificates this thread has looked at: none comes with a handshake that resumes a
/// session, which QUIC's library does not tell otherwise.
pub(crate) fn checked() -> u64 {
    CHECKED.get()
}

/// Counts the certificates that are looked at.
#[derive(Debug)]
struct Checking(Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for Checking {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        CHECKED.set(CHECKED.get() + 1);
        self.0
            .verify_server_cert(certificate, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Believes every certificate, without the cost of looking at it.
#[derive(Debug)]
struct Believer(Vec<SignatureScheme>);

impl ServerCertVerifier for Believer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
