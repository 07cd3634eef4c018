//! What a certificate says of itself, as far as renewing it needs: names, validity, number, and
//! who signed it.
//!
//! ```text
//! TBS  SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, key, ...,
//!      [3] SEQUENCE of SEQUENCE { OID, BOOLEAN?, OCTET STRING } }
//! ```

use crate::tls::x509::{Der, INTEGER, OBJECT, SEQUENCE, VERSION, name_text};

/// A certificate, without those between it and its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Host names, lower case; `*.` stands for one label.
    pub names: Vec<String>,
    /// Who signed it, a distinguished name as RFC 2253 writes it; empty where it is none.
    pub issuer: String,
    /// When it begins to be good, as Unix time in seconds.
    pub not_before_unix_s: i64,
    /// When it ends to be good.
    pub not_after_unix_s: i64,
    /// Its number, as it stands in it.
    pub serial: Vec<u8>,
    /// The identifier of the key that signed it, if it says so.
    pub authority_key: Option<Vec<u8>>,
}

const OCTETS: u8 = 0x04;
const BOOLEAN: u8 = 0x01;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const KEY_IDENTIFIER: u8 = 0x80;
/// 2.5.29.17
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// 2.5.29.35
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];

impl Leaf {
    /// Reads a certificate; `None` when it is not one.
    pub fn from_der(der: &[u8]) -> Option<Leaf> {
        let mut tbs = Der(Der(Der(der).take(SEQUENCE)?).take(SEQUENCE)?);
        if tbs.0.first() == Some(&VERSION) {
            tbs.take(VERSION)?;
        }
        let serial = tbs.take(INTEGER)?.to_vec();
        tbs.take(SEQUENCE)?;
        let issuer = tbs.take(SEQUENCE)?;
        let mut validity = Der(tbs.take(SEQUENCE)?);
        let mut leaf = Leaf {
            names: Vec::new(),
            // A name that cannot be told makes no certificate bad.
            issuer: name_text(issuer).unwrap_or_default(),
            not_before_unix_s: validity.moment()?.to_unix_s()?,
            not_after_unix_s: validity.moment()?.to_unix_s()?,
            serial,
            authority_key: None,
        };
        while let Some((tag, value)) = tbs.next() {
            if tag == EXTENSIONS {
                leaf.take_extensions(Der(Der(value).take(SEQUENCE)?))?;
            }
        }
        Some(leaf)
    }

    fn take_extensions(&mut self, mut extensions: Der<'_>) -> Option<()> {
        while !extensions.0.is_empty() {
            let mut extension = Der(extensions.take(SEQUENCE)?);
            let kind = extension.take(OBJECT)?;
            if extension.0.first() == Some(&BOOLEAN) {
                extension.take(BOOLEAN)?;
            }
            let mut value = Der(extension.take(OCTETS)?);
            match kind {
                SUBJECT_ALT_NAME => {
                    let mut names = Der(value.take(SEQUENCE)?);
                    while let Some((tag, name)) = names.next() {
                        if tag == DNS_NAME {
                            let name = std::str::from_utf8(name).ok()?;
                            self.names.push(name.to_ascii_lowercase());
                        }
                    }
                }
                AUTHORITY_KEY => {
                    let mut parts = Der(value.take(SEQUENCE)?);
                    while let Some((tag, part)) = parts.next() {
                        if tag == KEY_IDENTIFIER {
                            self.authority_key = Some(part.to_vec());
                        }
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// It is good for this host, or this wildcard.
    pub fn covers(&self, name: &str) -> bool {
        let below = |known: &str| {
            let parent = known.strip_prefix("*.")?;
            let (label, rest) = name.split_once('.')?;
            (label != "*" && rest == parent).then_some(())
        };
        self.names
            .iter()
            .any(|known| known == name || below(known).is_some())
    }

    /// For how long it is good in all, in seconds.
    pub fn lifetime_s(&self) -> i64 {
        self.not_after_unix_s.saturating_sub(self.not_before_unix_s)
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::tls::SelfSigned;

    fn der(names: &[&str]) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = SelfSigned::new(&names, &["127.0.0.1".parse().unwrap()], 1_800_000_000).unwrap();
        CertificateDer::from_pem_slice(made.certificate.as_bytes())
            .unwrap()
            .to_vec()
    }

    #[test]
    fn names_and_validity_are_read() {
        let leaf = Leaf::from_der(&der(&["example.org", "*.Example.net"])).unwrap();
        assert_eq!(leaf.names, ["example.org", "*.example.net"]);
        // Days begin at midnight.
        assert_eq!(leaf.not_before_unix_s, 1_799_884_800);
        assert_eq!(leaf.lifetime_s() / 86_400, 366);
        assert!(!leaf.serial.is_empty());
    }

    #[test]
    fn wildcard_is_good_for_one_label() {
        let leaf = Leaf::from_der(&der(&["example.org", "*.example.net"])).unwrap();
        for name in ["example.org", "a.example.net", "*.example.net"] {
            assert!(leaf.covers(name), "{name}");
        }
        for name in [
            "www.example.org",
            "*.example.org",
            "example.net",
            "a.b.example.net",
            "",
        ] {
            assert!(!leaf.covers(name), "{name}");
        }
    }

    #[test]
    fn cut_or_changed_certificates_never_panic() {
        let der = der(&["example.org"]);
        for end in 0..der.len() {
            assert_eq!(Leaf::from_der(&der[..end]), None);
        }
        for position in 0..der.len() {
            for value in [0, 1, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[position] = value;
                let _ = Leaf::from_der(&changed);
            }
        }
    }
}
