//! TLS with the members of an upstream: its settings with what its files hold.

use hob_http::tls::peer::PeerTerms;
use hob_keeper::{KeyFiles, tls};

use crate::handle::config::UpstreamTls;

/// TLS on terms that are in force. Connections that were made on them know each other's sessions.
#[derive(Debug)]
pub(crate) struct UpstreamTerms {
    settings: UpstreamTls,
    files: TermsFiles,
    pub(crate) terms: PeerTerms,
}

/// The texts that settings name.
#[derive(PartialEq, Eq)]
pub(crate) struct TermsFiles {
    authorities: Option<Vec<u8>>,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl TermsFiles {
    /// Those that these settings name; `None` where they are another config's.
    pub(crate) fn of(settings: &UpstreamTls, keys: &KeyFiles) -> Option<TermsFiles> {
        let authorities = match &settings.ca {
            None => None,
            Some(path) => {
                let mut all = keys.authorities.iter();
                let (_, text) = all.find(|(known, _)| known == path)?;
                Some(text.clone())
            }
        };
        let certificate = match &settings.certificate {
            None => None,
            Some(source) => {
                let pair = keys.pairs.iter().find(|pair| pair.source == *source)?;
                Some((pair.certificate.clone(), pair.key.clone()))
            }
        };
        Some(TermsFiles {
            authorities,
            certificate,
        })
    }
}

/// Keys are never shown.
impl std::fmt::Debug for TermsFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TermsFiles")
    }
}

impl UpstreamTerms {
    /// Terms of these settings.
    ///
    /// # Errors
    /// What is wrong with the files, or that the system has no authorities.
    pub(crate) fn new(
        settings: &UpstreamTls,
        files: TermsFiles,
        keys: &KeyFiles,
    ) -> Result<UpstreamTerms, String> {
        Ok(UpstreamTerms {
            settings: settings.clone(),
            files,
            terms: tls::peer_terms(settings, keys)?,
        })
    }

    /// Whether they are of the same settings and texts.
    pub(crate) fn is(&self, settings: &UpstreamTls, files: &TermsFiles) -> bool {
        self.settings == *settings && self.files == *files
    }
}
