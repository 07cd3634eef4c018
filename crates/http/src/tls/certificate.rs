//! A certificate chain with its private key, checked to belong together before anybody uses them.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::tls::terms::provider;

/// A chain and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub(crate) key: Arc<CertifiedKey>,
}

/// Why a chain and a key are no certificate to serve with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// There is no certificate in the chain's text.
    NoCertificate,
    /// The chain's text is not PEM.
    Chain(String),
    /// There is no private key in the key's text, or it is encrypted or of an unknown kind.
    Key(String),
    /// The key belongs to another certificate.
    Mismatch,
}

impl Certificate {
    /// Reads a chain (the server's own certificate first) and the private key, both as PEM.
    ///
    /// # Errors
    /// When a text cannot be read, and when the two do not belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Certificate, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| CertificateError::Chain(error.to_string()))?;
        if chain.is_empty() {
            return Err(CertificateError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| CertificateError::Key(error.to_string()))?;
        Certificate::from_der(chain, key)
    }

    fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Certificate, CertificateError> {
        match CertifiedKey::from_der(chain, key, &provider()) {
            Ok(key) => Ok(Certificate { key: Arc::new(key) }),
            Err(rustls::Error::InconsistentKeys(_)) => Err(CertificateError::Mismatch),
            Err(rustls::Error::InvalidCertificate(error)) => {
                Err(CertificateError::Chain(format!("{error:?}")))
            }
            Err(error) => Err(CertificateError::Key(error.to_string())),
        }
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateError::NoCertificate => {
                f.write_str("there is no certificate in it (PEM, `BEGIN CERTIFICATE`)")
            }
            CertificateError::Chain(text) => write!(f, "the certificate cannot be read: {text}"),
            CertificateError::Key(text) => write!(f, "the private key cannot be read: {text}"),
            CertificateError::Mismatch => {
                f.write_str("the private key belongs to another certificate")
            }
        }
    }
}

impl std::error::Error for CertificateError {}
