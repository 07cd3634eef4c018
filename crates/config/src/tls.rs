//! TLS of listeners and sites.

use std::path::PathBuf;

use super::fault::{Faults, Spot};
use super::tree::{ConfigValue, Section};

/// Cipher suites that are safe, by their IANA names, the preferred ones first.
pub const SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

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
    /// HTTP/3 is spoken on the UDP port of the same number.
    pub http3: bool,
    /// The UDP port that clients are told of; `None` is the one it is spoken on.
    pub http3_port: Option<u16>,
}

/// What TLS listeners offer for a site.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SiteTls {
    /// Its certificate; `None` is the listener's.
    pub certificate: Option<CertificateSource>,
    /// Whether clients need a certificate, and who may have signed it.
    pub client: Option<(ClientNeed, PathBuf)>,
}

/// Whether a client must have a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientNeed {
    /// It may have one.
    Ask,
    /// It must.
    Require,
}

/// Where a certificate and its key come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CertificateSource {
    /// hob makes it.
    SelfSigned,
    /// hob gets it from an authority.
    Auto {
        /// The names it is for. Of a listener none: each site has its own then.
        names: Vec<String>,
    },
    /// Files.
    Files {
        /// The chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

impl CertificateSource {
    /// It comes from an authority.
    pub fn is_auto(&self) -> bool {
        matches!(self, CertificateSource::Auto { .. })
    }
}

/// TLS with servers of other people that answer for a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Who may have signed their certificates; `None` is the system's authorities.
    pub ca: Option<PathBuf>,
    /// What is shown to those that want a certificate: files.
    pub certificate: Option<CertificateSource>,
    /// Their certificates are checked.
    pub verify: bool,
}

/// Where files of a certificate are named.
#[derive(Clone, Copy, Debug)]
pub struct TlsSpots {
    /// The certificate.
    pub certificate: Spot,
    /// Its key.
    pub key: Spot,
    /// Who may have signed certificates of clients.
    pub client_ca: Spot,
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
    let is_of_13 = |suite: &&'static str| !suite.starts_with("TLS_ECDHE_");
    if only_13 && !suites.is_empty() && !suites.iter().any(is_of_13) {
        faults
            .error(tls.spot("suites"), "none of these suites is one of TLS 1.3")
            .see(tls.spot("minimum"), "older versions are not spoken")
            .hint("add one, such as \"TLS_AES_128_GCM_SHA256\"");
    }
    let has_13 = suites.is_empty() || suites.iter().any(is_of_13);
    let built = ListenTls {
        certificate: certificate(tls, &[], faults),
        only_13,
        http3: tls.flag("http3") && has_13,
        http3_port: tls.has("http3_port").then(|| tls.number("http3_port")),
        suites,
    };
    Some((built, spots(tls)))
}

/// TLS of the admin pages.
pub(crate) fn build_admin_tls(tls: &Section, faults: &mut Faults<'_>) -> ListenTls {
    let given = certificate(tls, &[], faults);
    ListenTls {
        certificate: Some(given.unwrap_or(CertificateSource::SelfSigned)),
        only_13: false,
        suites: Vec::new(),
        http3: false,
        http3_port: None,
    }
}

/// TLS of a `[[site]]`.
pub(crate) fn build_site_tls(
    section: &Section,
    names: &[String],
    faults: &mut Faults<'_>,
) -> (SiteTls, Option<TlsSpots>) {
    check_hsts(section, faults);
    let Some(tls) = section.section("tls") else {
        return (SiteTls::default(), None);
    };
    let built = SiteTls {
        certificate: certificate(tls, names, faults),
        client: client(tls, faults),
    };
    (built, Some(spots(tls)))
}

pub(crate) fn spots(tls: &Section) -> TlsSpots {
    let spot_of = |key: &str| tls.given(key).map(|given| given.spot);
    TlsSpots {
        certificate: spot_of("certificate").unwrap_or(tls.header),
        client_ca: spot_of("client_ca").unwrap_or(tls.header),
        key: spot_of("key")
            .or(spot_of("certificate"))
            .unwrap_or(tls.header),
    }
}

fn client(tls: &Section, faults: &mut Faults<'_>) -> Option<(ClientNeed, PathBuf)> {
    let need = match tls.word("client") {
        "ask" => Some(ClientNeed::Ask),
        "require" => Some(ClientNeed::Require),
        _ => None,
    };
    match (need, tls.optional_path("client_ca")) {
        (Some(need), Some(path)) => return Some((need, path.clone())),
        (Some(_), None) if !tls.is_claimed("client_ca") => {
            faults
                .error(
                    tls.spot("client"),
                    "nobody may sign certificates of clients",
                )
                .hint("name the file of those who may: `client_ca = \"clients-ca.pem\"`");
        }
        (None, Some(_)) if !tls.is_claimed("client") => {
            faults
                .error(
                    tls.spot("client_ca"),
                    "no client is asked for a certificate",
                )
                .hint("add `client = \"ask\"` or `client = \"require\"`, or remove `client_ca`");
        }
        _ => {}
    }
    None
}

/// The value of `Strict-Transport-Security` that a site's `hsts` asks for.
pub(crate) fn hsts(site: &Section) -> Option<String> {
    let hsts = site.section("hsts")?;
    hsts.given("age")?;
    let mut value = format!("max-age={}", hsts.time("age").as_secs());
    for (key, word) in [
        ("subdomains", "; includeSubDomains"),
        ("preload", "; preload"),
    ] {
        if hsts.flag(key) {
            value.push_str(word);
        }
    }
    Some(value)
}

fn check_hsts(site: &Section, faults: &mut Faults<'_>) {
    if site.has("hsts") && !site.flag("https_only") && !site.is_claimed("https_only") {
        faults
            .error(
                site.spot("hsts"),
                "`hsts` is for sites that answer over TLS only",
            )
            .hint("add `https_only = true`");
    }
}

fn certificate(
    tls: &Section,
    names: &[String],
    faults: &mut Faults<'_>,
) -> Option<CertificateSource> {
    let key = tls.optional_path("key");
    if let Some(certificate) = tls.optional_path("certificate") {
        return Some(CertificateSource::Files {
            certificate: certificate.clone(),
            key: key.unwrap_or(certificate).clone(),
        });
    }
    let own = match tls.given("certificate").map(|given| &given.value) {
        Some(ConfigValue::Word("auto")) => Some(CertificateSource::Auto {
            names: names.to_vec(),
        }),
        Some(ConfigValue::Word(_)) => Some(CertificateSource::SelfSigned),
        _ => None,
    };
    if key.is_some() && !tls.is_claimed("certificate") {
        let message = match own {
            Some(_) => "`key` does nothing: hob makes the key too",
            None => "`key` has no `certificate`",
        };
        faults
            .error(tls.spot("key"), message)
            .hint("name the certificate's file, or remove `key`");
    }
    own
}
