//! What a listener offers: versions and suites, and for each host name a certificate and a rule for
//! certificates of clients. Made once, then only looked up in.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, ServerConfig, SupportedProtocolVersion};

use crate::request::TlsFacts;
use crate::tls::certificate::Certificate;
use crate::tls::client::{ClientRule, NO_RULE};
use crate::tls::ticket::TicketKeys;

/// What a listener is to offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The oldest version.
    pub minimum: Version,
    /// Suites by their IANA names, the preferred one first; empty is all that are safe, in the
    /// order of the client.
    pub suites: Vec<String>,
    /// What is for whom.
    pub hosts: Vec<HostOffer>,
    /// Which of them is for names that nobody has, and for clients that name none.
    pub default: usize,
}

/// What is offered to those who ask for certain host names.
#[derive(Clone, Debug)]
pub struct HostOffer {
    /// The names: exact, or `*.name` for every name below; lower case.
    pub names: Vec<String>,
    /// The certificate.
    pub certificate: Certificate,
    /// Whether clients need a certificate too.
    pub client: Option<ClientRule>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// What a listener offers, ready for handshakes.
pub struct TlsHosts {
    exact: HashMap<String, usize>,
    /// By what stands behind the `*.`.
    below: HashMap<String, usize>,
    hosts: Vec<TlsHost>,
    default: usize,
    tickets: Arc<TicketKeys>,
}

/// What HTTP/2 is called in a handshake (RFC 9113 section 3.2).
pub(crate) const ALPN_H2: &[u8] = b"h2";
/// What HTTP/3 is called in a handshake (RFC 9114 section 3.1).
pub(crate) const ALPN_H3: &[u8] = b"h3";

/// What those get who ask for one of some names.
pub(crate) struct TlsHost {
    pub(crate) config: Arc<ServerConfig>,
    /// The same over QUIC; `None` where TLS 1.3 is not offered.
    pub(crate) quic: Option<Arc<ServerConfig>>,
    /// The number of its client rule.
    pub(crate) rule: u64,
    /// Who checks by it.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

/// Why terms cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermsError {
    /// No suite has this name.
    UnknownSuite(String),
    /// The suites are all of a version below the oldest one allowed, or none fits.
    NoSuite(String),
    /// No client can be checked against the rule.
    Client(String),
    /// No host at all.
    NoHost,
}

impl TlsHosts {
    /// Makes the terms of an offer.
    ///
    /// # Errors
    /// When the parts of the offer do not fit together.
    pub fn new(offer: &Offer, tickets: &Arc<TicketKeys>) -> Result<TlsHosts, TermsError> {
        let provider = provider_with(&offer.suites)?;
        let versions: &[&SupportedProtocolVersion] = match offer.minimum {
            Version::Tls12 => &[&rustls::version::TLS13, &rustls::version::TLS12],
            Version::Tls13 => &[&rustls::version::TLS13],
        };
        let mut terms = TlsHosts {
            exact: HashMap::new(),
            below: HashMap::new(),
            hosts: Vec::with_capacity(offer.hosts.len()),
            default: offer.default,
            tickets: Arc::clone(tickets),
        };
        for (index, host) in offer.hosts.iter().enumerate() {
            let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_protocol_versions(versions)
                .map_err(|error| TermsError::NoSuite(error.to_string()))?;
            let verifier = host.client.as_ref().map(|rule| rule.verifier(&provider));
            let verifier = verifier.transpose().map_err(TermsError::Client)?;
            let builder = match &verifier {
                None => builder.with_no_client_auth(),
                Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            };
            let rule = host.client.as_ref().map_or(NO_RULE, ClientRule::number);
            let mut config =
                builder.with_cert_resolver(Arc::new(Fixed(Arc::clone(&host.certificate.key))));
            config.alpn_protocols = [ALPN_H2, b"http/1.1", b"http/1.0"].map(Vec::from).to_vec();
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.ticketer = tickets.under(rule, verifier.clone());
            config.ignore_client_order = !offer.suites.is_empty();
            // Our records are sealed with the keys that rustls agrees on.
            config.enable_secret_extraction = true;
            terms.hosts.push(TlsHost {
                quic: over_quic(&config),
                config: Arc::new(config),
                rule,
                verifier,
            });
            for name in &host.names {
                match name.strip_prefix("*.") {
                    Some(below) => terms.below.insert(below.to_owned(), index),
                    None => terms.exact.insert(name.clone(), index),
                };
            }
        }
        if terms.hosts.len() <= terms.default {
            return Err(TermsError::NoHost);
        }
        Ok(terms)
    }

    /// Whether a client would be let in now that has shown its certificate in a handshake of
    /// before, and asked for no host of its own: it is looked at again where the rule is another
    /// one than then.
    pub fn admits(&self, tls: &TlsFacts) -> bool {
        let host = self.for_name(None);
        if tls.rule == host.rule || tls.admitted.get() == host.rule {
            return true;
        }
        let verifier = host.verifier.as_deref();
        let is_good = verifier.is_some_and(|verifier| tls.shown.are_good(verifier));
        if is_good {
            tls.admitted.set(host.rule);
        }
        is_good
    }

    /// The keys of its tickets.
    pub(crate) fn tickets(&self) -> &TicketKeys {
        &self.tickets
    }

    /// What is offered to a client that asks for this name.
    pub(crate) fn for_name(&self, name: Option<&str>) -> &TlsHost {
        let found = name.and_then(|name| self.index_of(name));
        &self.hosts[found.unwrap_or(self.default)]
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        if let Some(index) = self.exact.get(name) {
            return Some(*index);
        }
        if self.below.is_empty() {
            return None;
        }
        let mut rest = name;
        while let Some((_, below)) = rest.split_once('.') {
            if let Some(index) = self.below.get(below) {
                return Some(*index);
            }
            rest = below;
        }
        None
    }
}

impl fmt::Debug for TlsHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Terms({} hosts)", self.hosts.len())
    }
}

/// The suites that can be offered, by their IANA names; those of TLS 1.3 first, then in the order
/// in which they are preferred when nobody says otherwise.
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

/// The IANA name of a suite.
pub(crate) fn suite_name(suite: CipherSuite) -> &'static str {
    let own = suite.as_str().unwrap_or_default();
    let is_it = |name: &&&str| match own.strip_prefix("TLS13_") {
        Some(rest) => name.strip_prefix("TLS_") == Some(rest),
        None => **name == own,
    };
    SUITES.iter().find(is_it).copied().unwrap_or(own)
}

/// The algorithms: hybrid key exchange first.
pub(crate) fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

fn provider_with(suites: &[String]) -> Result<Arc<CryptoProvider>, TermsError> {
    let mut provider = provider();
    if !suites.is_empty() {
        let named = |name: &String| {
            aws_lc_rs::ALL_CIPHER_SUITES
                .iter()
                .find(|suite| suite_name(suite.suite()) == *name)
                .copied()
                .ok_or_else(|| TermsError::UnknownSuite(name.clone()))
        };
        provider.cipher_suites = suites.iter().map(named).collect::<Result<_, _>>()?;
    }
    Ok(Arc::new(provider))
}

/// The config of a host for handshakes over QUIC, made of the one for TCP; `None` without a suite
/// of TLS 1.3.
fn over_quic(config: &ServerConfig) -> Option<Arc<ServerConfig>> {
    let suites = &config.crypto_provider().cipher_suites;
    let is_usable = |suite: &rustls::SupportedCipherSuite| {
        suite.tls13().is_some_and(|suite| suite.quic.is_some())
    };
    if !suites.iter().any(is_usable) {
        return None;
    }
    let mut config = config.clone();
    config.alpn_protocols = vec![ALPN_H3.to_vec()];
    config.enable_secret_extraction = false;
    // What comes before the handshake is done may have been sent by another before: none of that.
    config.max_early_data_size = 0;
    Some(Arc::new(config))
}

/// One certificate, whatever is asked for: the name has chosen it already.
#[derive(Debug)]
struct Fixed(Arc<CertifiedKey>);

impl ResolvesServerCert for Fixed {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

impl fmt::Display for TermsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermsError::UnknownSuite(name) => write!(f, "there is no cipher suite {name}"),
            TermsError::NoSuite(text) => write!(f, "no cipher suite can be offered: {text}"),
            TermsError::Client(text) => {
                write!(f, "certificates of clients cannot be checked: {text}")
            }
            TermsError::NoHost => f.write_str("there is no certificate"),
        }
    }
}

impl std::error::Error for TermsError {}
