//! What a certificate says of itself, as far as renewing it needs: names, validity, number, and
//! who signed it.

use x509_parser::oid_registry::{
    OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER, OID_X509_EXT_SUBJECT_ALT_NAME,
};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate, X509Extension};

use crate::tls::x509::name_text;

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

impl Leaf {
    /// Reads a certificate; `None` when it is not one.
    pub fn from_der(der: &[u8]) -> Option<Leaf> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        let mut leaf = Leaf {
            names: Vec::new(),
            // A name that cannot be told makes no certificate bad.
            issuer: name_text(certificate.issuer()).unwrap_or_default(),
            not_before_unix_s: validity.not_before.timestamp(),
            not_after_unix_s: validity.not_after.timestamp(),
            serial: certificate.raw_serial().to_vec(),
            authority_key: None,
        };
        for extension in certificate.extensions() {
            leaf.take_extension(extension)?;
        }
        Some(leaf)
    }

    fn take_extension(&mut self, extension: &X509Extension<'_>) -> Option<()> {
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => {
                let names = names.general_names.iter().filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                    _ => None,
                });
                self.names.extend(names);
            }
            ParsedExtension::AuthorityKeyIdentifier(key) => {
                self.authority_key = key.key_identifier.as_ref().map(|key| key.0.to_vec());
            }
            // What else is wrong with it is for others to judge.
            ParsedExtension::ParseError { .. } => {
                let read = [
                    OID_X509_EXT_SUBJECT_ALT_NAME,
                    OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER,
                ];
                return (!read.contains(&extension.oid)).then_some(());
            }
            _ => {}
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
