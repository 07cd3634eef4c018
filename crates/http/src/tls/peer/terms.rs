//! The terms of TLS with other people's servers, made once: who is believed to be who, and what is
//! shown of us. Sessions are resumed by all connections that are made on the same terms.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::tls::certificate::Certificate;
use crate::tls::roots;
use crate::tls::terms::provider;

/// Terms for servers of other people.
pub struct PeerTerms {
    /// By what is offered to be spoken; they know each other's sessions.
    pub(super) http1: Arc<ClientConfig>,
    unnamed: Arc<ClientConfig>,
    either: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

/// Which versions of HTTP are offered.
//= rfc7301#3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerVersions {
    /// None: another protocol is spoken, which has no name there.
    Unnamed,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, or else HTTP/1.1.
    Either,
    /// HTTP/2.
    Http2,
}

/// Whose certificates are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerTrust<'a> {
    /// Those that one of the system's authorities has signed.
    System,
    /// Those that one of these has signed, in PEM, which the config's key of this name has; and
    /// these themselves.
    Authorities(&'a [u8], &'a str),
    /// Anybody's: whoever is in between can be the server.
    Anybody,
}

/// Whom a server is to be: a host name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerName(pub(super) ServerName<'static>);

impl PeerName {
    /// Reads a host name, or an IP address with or without brackets.
    pub fn parse(text: &str) -> Option<PeerName> {
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        if let Some(bare) = bare {
            let address: IpAddr = bare.parse().ok()?;
            return Some(PeerName(address.into()));
        }
        ServerName::try_from(text.to_owned()).ok().map(PeerName)
    }
}

impl PeerTerms {
    /// The terms, with the certificate that is shown to those who want one.
    ///
    /// # Errors
    /// Authorities that are none, or what the system lacks.
    pub fn new(
        trust: PeerTrust<'_>,
        certificate: Option<&Certificate>,
    ) -> Result<PeerTerms, String> {
        let provider = Arc::new(provider());
        let known = match trust {
            PeerTrust::Authorities(text, _) => CertificateDer::pem_slice_iter(text)
                .filter_map(Result::ok)
                .collect(),
            PeerTrust::System | PeerTrust::Anybody => Vec::new(),
        };
        let roots = match trust {
            PeerTrust::System => Some(roots::believed(b"", "tls.ca")?),
            PeerTrust::Authorities(text, key) => Some(roots::of(text, key)?),
            PeerTrust::Anybody => None,
        };
        let algorithms = provider.signature_verification_algorithms;
        let verifier: Arc<dyn ServerCertVerifier> = match roots {
            None => Arc::new(Believer(algorithms.supported_schemes())),
            Some(roots) => {
                let provider = Arc::clone(&provider);
                let builder =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = builder.build().map_err(|error| error.to_string())?;
                Arc::new(Checker { verifier, known })
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                let shown = SingleCertAndKey::from(CertifiedKey::clone(&certificate.key));
                builder.with_client_cert_resolver(Arc::new(shown))
            }
        };
        // Our records are sealed with the keys that rustls agrees on.
        config.enable_secret_extraction = true;
        let offering = |names: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        Ok(PeerTerms {
            unnamed: offering(&[]),
            http1: offering(&[b"http/1.1"]),
            either: offering(&[b"h2", b"http/1.1"]),
            http2: offering(&[b"h2"]),
        })
    }

    pub(super) fn offering(&self, versions: PeerVersions) -> &Arc<ClientConfig> {
        match versions {
            PeerVersions::Unnamed => &self.unnamed,
            PeerVersions::Http1 => &self.http1,
            PeerVersions::Either => &self.either,
            PeerVersions::Http2 => &self.http2,
        }
    }
}

impl fmt::Debug for PeerTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerTerms")
    }
}

/// Checks who signed a certificate; one that is known itself needs nobody's word.
#[derive(Debug)]
struct Checker {
    verifier: Arc<WebPkiServerVerifier>,
    known: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Checker {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The library refuses an authority that shows its own, as `openssl req -x509` makes it.
        if self.known.iter().any(|known| known == certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return check_times(certificate, now);
        }
        self.verifier
            .verify_server_cert(certificate, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

fn check_times(
    certificate: &CertificateDer<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let unix_time = |unix_s: i64| {
        let unix_s = u64::try_from(unix_s).unwrap_or(0);
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(unix_s))
    };
    let (_, read) =
        X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let validity = read.validity();
    let not_before = unix_time(validity.not_before.timestamp());
    let not_after = unix_time(validity.not_after.timestamp());
    let time = now;
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time, not_after }.into());
    }
    Ok(ServerCertVerified::assertion())
}

/// Believes whatever it is shown.
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

    #[test]
    fn servers_have_names_or_addresses() {
        for name in ["app.internal", "localhost", "127.0.0.1", "::1", "[::1]"] {
            assert!(PeerName::parse(name).is_some(), "{name}");
        }
        for name in ["", "a b", "[app]", "[127.0.0.1", "-a"] {
            assert!(PeerName::parse(name).is_none(), "{name}");
        }
    }
}
