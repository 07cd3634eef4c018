//! Challenges: what an authority looks at to see that a name is ours, and the ones being answered.
//!
//! `http-01` is a page below [`PATH`], `tls-alpn-01` a certificate for who asks for the protocol
//! [`ALPN`], `dns-01` a record, which others serve.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::tls::terms::provider;

/// Where the pages of `http-01` are; the token follows.
pub const PATH: &[u8] = b"/.well-known/acme-challenge/";
/// The protocol that `tls-alpn-01` asks for (RFC 8737).
pub const ALPN: &[u8] = b"acme-tls/1";

/// A way to prove that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChallengeMethod {
    /// A page in clear text, on port 80.
    Http,
    /// A certificate, on port 443.
    TlsAlpn,
    /// A record in the domain name system; the one way for wildcards.
    Dns,
}

impl ChallengeMethod {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ChallengeMethod::Http => "http-01",
            ChallengeMethod::TlsAlpn => "tls-alpn-01",
            ChallengeMethod::Dns => "dns-01",
        }
    }
}

/// The token of a challenge: letters that mean nothing in a path or a header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token(String);

impl Token {
    /// Fewest characters: 128 bits in base64url.
    const LEN_MIN: usize = 22;
    const LEN_MAX: usize = 256;

    /// A token as an authority gives it; `None` when it is not one.
    //= rfc8555#8.3
    pub fn new(text: &str) -> Option<Token> {
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_token =
            (Token::LEN_MIN..=Token::LEN_MAX).contains(&text.len()) && text.bytes().all(is_digit);
        is_token.then(|| Token(text.to_owned()))
    }

    /// Its characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One challenge, with what answers it.
#[derive(Clone, PartialEq, Eq)]
pub enum Challenge {
    /// `http-01`
    Http {
        /// Names the page.
        token: Token,
        /// The page: the token, a dot, and the thumbprint of the account's key.
        answer: String,
    },
    /// `tls-alpn-01`
    TlsAlpn {
        /// The host name.
        name: String,
        /// What the certificate has to show.
        digest: [u8; 32],
    },
    /// `dns-01`
    Dns {
        /// The record's name, without a dot at its end.
        name: String,
        /// Its text.
        value: String,
    },
}

impl Challenge {
    /// How it proves the name.
    pub fn method(&self) -> ChallengeMethod {
        match self {
            Challenge::Http { .. } => ChallengeMethod::Http,
            Challenge::TlsAlpn { .. } => ChallengeMethod::TlsAlpn,
            Challenge::Dns { .. } => ChallengeMethod::Dns,
        }
    }

    /// A page whose content goes with its token, and nothing else.
    pub fn is_sound(&self) -> bool {
        match self {
            Challenge::Http { token, answer } => {
                let rest = answer.strip_prefix(token.as_str());
                let thumbprint = rest.and_then(|rest| rest.strip_prefix('.'));
                thumbprint.is_some_and(|text| text.len() == 43 && Token::new(text).is_some())
            }
            Challenge::TlsAlpn { name, .. } => is_host(name),
            Challenge::Dns { name, value } => {
                name.strip_prefix("_acme-challenge.").is_some_and(is_host)
                    && value.len() == 43
                    && Token::new(value).is_some()
            }
        }
    }
}

/// A host name as certificates have them.
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// What it answers with is nobody else's business.
impl fmt::Debug for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Challenge::Http { token, .. } => write!(f, "http-01 {}", token.as_str()),
            Challenge::TlsAlpn { name, .. } => write!(f, "tls-alpn-01 {name}"),
            Challenge::Dns { name, .. } => write!(f, "dns-01 {name}"),
        }
    }
}

/// The challenges that a server answers at the moment.
#[derive(Default)]
pub struct Challenges {
    pages: HashMap<Token, Bytes>,
    hosts: HashMap<String, Arc<ServerConfig>>,
}

impl Challenges {
    /// Ready to be answered.
    ///
    /// # Errors
    /// A name that no certificate can have, or no randomness.
    pub fn new(all: &[Challenge]) -> Result<Challenges, String> {
        let mut challenges = Challenges::default();
        for challenge in all {
            match challenge {
                Challenge::Http { token, answer } => {
                    let page = Bytes::from(answer.clone());
                    challenges.pages.insert(token.clone(), page);
                }
                Challenge::TlsAlpn { name, digest } => {
                    let config = alpn_config(name, digest)
                        .map_err(|error| format!("no challenge for {name}: {error}"))?;
                    challenges.hosts.insert(name.clone(), Arc::new(config));
                }
                Challenge::Dns { .. } => {}
            }
        }
        Ok(challenges)
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.hosts.is_empty()
    }

    /// The page at a path, if it is one of ours.
    pub fn page(&self, path: &[u8]) -> Option<Bytes> {
        let token = std::str::from_utf8(path.strip_prefix(PATH)?).ok()?;
        self.pages.get(&Token::new(token)?).cloned()
    }

    /// What a handshake for [`ALPN`] is made with, for this host.
    pub(crate) fn host(&self, name: Option<&str>) -> Option<&Arc<ServerConfig>> {
        self.hosts.get(name?)
    }
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pages, hosts) = (self.pages.len(), self.hosts.len());
        write!(f, "Challenges({pages} pages, {hosts} hosts)")
    }
}

/// The certificate that `tls-alpn-01` wants: it signs itself, has the one name, and a critical
/// extension with the digest.
//= rfc8737#3
fn alpn_config(name: &str, digest: &[u8; 32]) -> Result<ServerConfig, String> {
    let mut params = CertificateParams::default();
    let san = name
        .try_into()
        .map_err(|error: rcgen::Error| error.to_string())?;
    params.subject_alt_names = vec![SanType::DnsName(san)];
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let certificate = params
        .self_signed(&key)
        .map_err(|error| error.to_string())?;
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialized_der().to_vec()));
    let provider = provider();
    let key = provider.key_provider.load_private_key(key);
    // Not looked at as certificates usually are: the critical extension is nothing anybody knows.
    let key = CertifiedKey::new(chain, key.map_err(|error| error.to_string())?);
    let builder = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = builder
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.enable_secret_extraction = true;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0";

    fn page(token: &str, answer: &str) -> Challenge {
        Challenge::Http {
            token: Token::new(token).unwrap(),
            answer: answer.to_owned(),
        }
    }

    #[test]
    fn token_is_base64url_and_long_enough_to_be_unguessable() {
        assert_eq!(Token::new(TOKEN).unwrap().as_str(), TOKEN);
        let long = "a".repeat(257);
        for wrong in [
            "",
            "short",
            "../../../../../../etc/passwd",
            "..%2f..%2f..%2f..%2fetc%2fpasswd",
            "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0=",
            "LoqXcYV8q5ONbJQxbmR7SC/No3tiAXDfowyjxAjEuX0",
            "LoqXcYV8q5ONbJQxbmR7SC\r\nX: y3tiAXDfowyjxAj",
            "LoqXcYV8q5ONbJQxbmR7SC\0o3tiAXDfowyjxAjEuX0",
            &long,
        ] {
            assert_eq!(Token::new(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn page_is_found_by_its_whole_path_only() {
        let answer = format!("{TOKEN}.{}", "t".repeat(43));
        let challenges = Challenges::new(&[page(TOKEN, &answer)]).unwrap();
        let path = |end: &str| format!("/.well-known/acme-challenge/{end}").into_bytes();
        assert_eq!(challenges.page(&path(TOKEN)).unwrap(), answer.as_bytes());
        for wrong in [
            path(""),
            path(&format!("{TOKEN}/")),
            path(&format!("x/../{TOKEN}")),
            path(&format!("{TOKEN}?x")),
            path(&TOKEN.to_lowercase()),
            format!("/{TOKEN}").into_bytes(),
        ] {
            assert_eq!(challenges.page(&wrong), None);
        }
    }

    #[test]
    fn challenge_whose_answer_belongs_to_another_token_or_name_is_not_sound() {
        let thumbprint = "t".repeat(43);
        assert!(page(TOKEN, &format!("{TOKEN}.{thumbprint}")).is_sound());
        for wrong in [
            format!("{TOKEN}.short"),
            format!("x{TOKEN}.{thumbprint}"),
            format!("{TOKEN}.{}", "<".repeat(43)),
            thumbprint.clone(),
        ] {
            assert!(!page(TOKEN, &wrong).is_sound(), "{wrong}");
        }
        let dns = |name: &str, value: &str| Challenge::Dns {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        assert!(dns("_acme-challenge.example.org", &thumbprint).is_sound());
        assert!(!dns("example.org", &thumbprint).is_sound());
        assert!(!dns("_acme-challenge.-o;rm -rf /", &thumbprint).is_sound());
        assert!(!dns("_acme-challenge.example.org", "$(reboot)").is_sound());
    }

    #[test]
    fn alpn_challenge_is_for_its_host_only() {
        let challenge = Challenge::TlsAlpn {
            name: "example.org".to_owned(),
            digest: [7; 32],
        };
        let challenges = Challenges::new(&[challenge]).unwrap();
        assert!(!challenges.is_empty());
        let config = challenges.host(Some("example.org")).unwrap();
        assert_eq!(config.alpn_protocols, [ALPN]);
        assert!(challenges.host(Some("www.example.org")).is_none());
        assert!(challenges.host(None).is_none());
    }
}
