//! Certificates of clients: whether they are asked for, and who may have signed them.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

/// A rule for certificates of clients.
#[derive(Clone)]
pub struct ClientRule {
    need: Need,
    roots: Arc<RootCertStore>,
    number: u64,
}

/// Whether a client must have a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It is asked for one and may have none; one that is no good ends the handshake.
    Ask,
    /// Without one there is no handshake.
    Require,
}

impl ClientRule {
    /// A rule by which certificates must be signed by one of these authorities, as PEM.
    ///
    /// # Errors
    /// When the text holds no certificates of authorities.
    pub fn from_pem(need: Need, authorities: &[u8]) -> Result<ClientRule, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots
                .add(certificate)
                .map_err(|error| format!("it is no authority's certificate: {error}"))?;
        }
        if roots.is_empty() {
            return Err("there is no certificate in it (PEM, `BEGIN CERTIFICATE`)".to_owned());
        }
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&[need as u8]);
        context.update(authorities);
        let digest = context.finish();
        let digest = digest.as_ref().first_chunk().copied().unwrap_or_default();
        Ok(ClientRule {
            need,
            roots: Arc::new(roots),
            number: u64::from_be_bytes(digest).max(NO_RULE + 1),
        })
    }

    /// Tells rules apart: the same for the same need and authorities, whenever it was made.
    /// [`NO_RULE`] is none's.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let roots = Arc::clone(&self.roots);
        let builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
        let builder = match self.need {
            Need::Ask => builder.allow_unauthenticated(),
            Need::Require => builder,
        };
        builder.build().map_err(|error| error.to_string())
    }
}

/// The number of those whom nobody asks for a certificate.
pub const NO_RULE: u64 = 0;

impl fmt::Debug for ClientRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ClientRule({:?}, {} authorities)",
            self.need,
            self.roots.len()
        )
    }
}
