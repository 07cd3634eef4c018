//! Which certificates are believed, and the rest of what a client says about TLS.

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedCipherSuite,
};

use crate::plan::ClientTlsOffer;

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
pub(crate) fn client_config(
    trust: Trust,
    terms: &ClientTlsOffer,
    alpn: &[u8],
) -> Result<ClientConfig, String> {
    let provider = Arc::new(provider(terms)?);
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

/// What is offered: all that is usual, or what was named.
fn provider(terms: &ClientTlsOffer) -> Result<CryptoProvider, String> {
    let mut provider = aws_lc_rs::default_provider();
    let unknown = |kind: &str, name: &str, known: Vec<String>| {
        format!(
            "{name} is no {kind} known here; known are {}",
            known.join(", ")
        )
    };
    if let Some(wanted) = &terms.suite {
        let name = |suite: &SupportedCipherSuite| iana_name(suite.suite());
        let known = provider.cipher_suites.iter().map(name).collect();
        provider
            .cipher_suites
            .retain(|suite| name(suite) == *wanted);
        if provider.cipher_suites.is_empty() {
            return Err(unknown("cipher suite", wanted, known));
        }
    }
    if let Some(wanted) = &terms.group {
        let name = |group: &&dyn SupportedKxGroup| format!("{:?}", group.name());
        let known = provider.kx_groups.iter().map(name).collect();
        provider.kx_groups.retain(|group| name(group) == *wanted);
        if provider.kx_groups.is_empty() {
            return Err(unknown("group of a key exchange", wanted, known));
        }
    }
    Ok(provider)
}

/// The library tells suites of TLS 1.3 apart by a name of its own.
fn iana_name(suite: CipherSuite) -> String {
    format!("{suite:?}").replace("TLS13_", "TLS_")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(suite: Option<&str>, group: Option<&str>) -> Result<CryptoProvider, String> {
        provider(&ClientTlsOffer {
            suite: suite.map(str::to_owned),
            group: group.map(str::to_owned),
        })
    }

    #[test]
    fn only_what_was_named_is_offered() {
        let pinned = offered(Some("TLS_AES_256_GCM_SHA384"), Some("X25519")).unwrap();
        assert_eq!(pinned.cipher_suites.len(), 1);
        let suite = pinned.cipher_suites[0].suite();
        assert_eq!(suite, CipherSuite::TLS13_AES_256_GCM_SHA384);
        assert_eq!(pinned.kx_groups.len(), 1);
        assert_eq!(pinned.kx_groups[0].name(), rustls::NamedGroup::X25519);
        let usual = offered(None, None).unwrap();
        assert!(usual.cipher_suites.len() > 3 && usual.kx_groups.len() > 1);
    }

    #[test]
    fn name_that_nobody_knows_is_refused_with_those_that_are() {
        let refused = offered(Some("RC4"), None).unwrap_err();
        assert!(
            refused.starts_with("RC4 is no cipher suite known here; known are TLS_AES_"),
            "{refused}"
        );
        let refused = offered(None, Some("x25519")).unwrap_err();
        assert!(
            refused.contains("known are X25519MLKEM768, X25519"),
            "{refused}"
        );
    }

    #[test]
    fn quic_can_be_spoken_with_any_suite() {
        let terms = ClientTlsOffer {
            suite: Some("TLS_AES_256_GCM_SHA384".to_owned()),
            group: None,
        };
        let config = client_config(Trust::Anybody, &terms, b"h3").unwrap();
        assert!(crate::send::h3::config(Arc::new(config)).is_ok());
    }
}
