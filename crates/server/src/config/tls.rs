//! TLS of listeners and sites.

use std::path::PathBuf;

use hob_http::tls::SUITES;

use super::fault::{Faults, Spot};
use super::tree::{Section, Value};

/// TLS of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// For hosts whose site has none of its own; `None` is the first site's that has one, or one
    /// that signs itself.
    pub certificate: Option<CertificateSource>,
    /// TLS 1.2 is not spoken.
    pub only_13: bool,
    /// Cipher suites, the preferred one first; empty is all that are safe.
    pub suites: Vec<&'static str>,
}

/// What TLS listeners offer for a site.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SiteTls {
    /// Its certificate; `None` is the listener's.
    pub certificate: Option<CertificateSource>,
}

/// Where a certificate and its key come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CertificateSource {
    /// hob makes it.
    SelfSigned,
    /// Files.
    Files {
        /// The chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

/// Where files of a certificate are named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsSpots {
    pub(crate) certificate: Spot,
    pub(crate) key: Spot,
}

/// TLS of a `[[listen]]`, if it has any.
pub(crate) fn build_listen_tls(
    section: &Section,
    faults: &mut Faults<'_>,
) -> Option<(ListenTls, TlsSpots)> {
    let tls = section.section("tls")?;
    let known = |name: &str| SUITES.iter().find(|suite| **suite == name).copied();
    let given = tls.texts("suites");
    let suites: Vec<_> = given.iter().filter_map(|(name, _)| known(name)).collect();
    let only_13 = tls.word("minimum") == "1.3";
    let is_of_13 = |suite: &&str| !suite.starts_with("TLS_ECDHE_");
    if only_13 && !suites.is_empty() && !suites.iter().any(|suite| is_of_13(suite)) {
        faults
            .error(tls.spot("suites"), "none of these suites is one of TLS 1.3")
            .see(tls.spot("minimum"), "older versions are not spoken")
            .hint("add one, such as \"TLS_AES_128_GCM_SHA256\"");
    }
    let built = ListenTls {
        certificate: certificate(tls, faults),
        only_13,
        suites,
    };
    Some((built, spots(tls)))
}

/// TLS of a `[[site]]`.
pub(crate) fn build_site_tls(
    section: &Section,
    faults: &mut Faults<'_>,
) -> (SiteTls, Option<TlsSpots>) {
    let Some(tls) = section.section("tls") else {
        return (SiteTls::default(), None);
    };
    let built = SiteTls {
        certificate: certificate(tls, faults),
    };
    (built, Some(spots(tls)))
}

fn spots(tls: &Section) -> TlsSpots {
    TlsSpots {
        certificate: tls.spot("certificate"),
        key: tls.given("key").map_or(tls.spot("certificate"), |g| g.spot),
    }
}

fn certificate(tls: &Section, faults: &mut Faults<'_>) -> Option<CertificateSource> {
    let is_word = |given: &super::tree::Given| matches!(given.value, Value::Word(_));
    let key = tls.optional_path("key");
    if let Some(certificate) = tls.optional_path("certificate") {
        return Some(CertificateSource::Files {
            certificate: certificate.clone(),
            key: key.unwrap_or(certificate).clone(),
        });
    }
    let is_own = tls.given("certificate").is_some_and(is_word);
    if key.is_some() && !tls.is_claimed("certificate") {
        let message = match is_own {
            true => "`key` does nothing: hob makes the key too",
            false => "`key` has no `certificate`",
        };
        faults
            .error(tls.spot("key"), message)
            .hint("name the certificate's file, or remove `key`");
    }
    is_own.then_some(CertificateSource::SelfSigned)
}
