//! Certificates of clients: whether they are asked for, and who may have signed them.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

/// A rule for certificates of clients.
#[derive(Clone)]
pub struct ClientRule {
    need: Need,
    roots: Arc<RootCertStore>,
    number: u64,
}

/// The certificates that a client has shown, its own first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownCertificates(Arc<[CertificateDer<'static>]>);

impl ShownCertificates {
    /// As rustls has them.
    pub(crate) fn of(chain: Option<&[CertificateDer<'static>]>) -> ShownCertificates {
        ShownCertificates(chain.unwrap_or_default().into())
    }

    /// Whether they would be good in a handshake of now.
    pub(super) fn are_good(&self, verifier: &dyn ClientCertVerifier) -> bool {
        let Some((own, others)) = self.0.split_first() else {
            return false;
        };
        let checked = verifier.verify_client_cert(own, others, UnixTime::now());
        checked.is_ok()
    }
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

/// The certificates of a client in what rustls keeps in a ticket, its own first; none of a client
/// that has shown none, and `None` when it is not written as it was known to be.
///
/// ```text
/// 0, or 1 and name (length 1) | version 2, suite 2, secret (length 1), 1 |
/// 0, or 1 and list (length 3) of certificates (length 3) | more
/// ```
pub(super) fn chain_in(mut text: &[u8]) -> Option<Vec<CertificateDer<'_>>> {
    if take_flag(&mut text)? {
        take_block(&mut text, 1)?;
    }
    text = text.get(2 + 2..)?;
    take_block(&mut text, 1)?;
    take_flag(&mut text)?;
    let mut chain = Vec::new();
    if take_flag(&mut text)? {
        let mut list = take_block(&mut text, 3)?;
        while !list.is_empty() {
            chain.push(CertificateDer::from(take_block(&mut list, 3)?));
        }
        if chain.is_empty() {
            return None;
        }
    }
    Some(chain)
}

fn take_flag(text: &mut &[u8]) -> Option<bool> {
    let (first, rest) = text.split_first()?;
    *text = rest;
    match first {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Takes a block behind its length of so many bytes.
fn take_block<'t>(text: &mut &'t [u8], len_bytes: usize) -> Option<&'t [u8]> {
    let (len, rest) = text.split_at_checked(len_bytes)?;
    let len = len
        .iter()
        .fold(0, |len, byte| len << 8 | usize::from(*byte));
    let (block, rest) = rest.split_at_checked(len)?;
    *text = rest;
    Some(block)
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

#[cfg(test)]
mod tests;
