//! Clients by their certificates.

use std::fmt;

use super::fault::Faults;
use super::tree::Section;

/// Who is known by a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateHolder {
    /// Whose common name this is, or one of whose hosts.
    Name(String),
    /// Whose certificate this is the SHA-256 of, as hexadecimal digits.
    Fingerprint(String),
}

impl CertificateHolder {
    /// Reads a list of them.
    pub(crate) fn read(
        section: &Section,
        key: &str,
        faults: &mut Faults<'_>,
    ) -> Vec<CertificateHolder> {
        let mut holders = Vec::new();
        for (text, spot) in section.given_texts(key) {
            match CertificateHolder::parse(text) {
                Ok(holder) => holders.push(holder),
                Err(hint) => {
                    faults
                        .error(spot, format!("{text:?} is nobody's certificate"))
                        .hint(hint);
                }
            }
        }
        holders
    }

    fn parse(text: &str) -> Result<CertificateHolder, &'static str> {
        if let Some(digits) = text.strip_prefix("sha256:") {
            let digits: String = digits.chars().filter(|c| *c != ':').collect();
            let is_digest = digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            return match is_digest {
                true => Ok(CertificateHolder::Fingerprint(digits.to_ascii_uppercase())),
                false => Err("a fingerprint is `sha256:` and 64 hexadecimal digits"),
            };
        }
        match text.is_empty() || text.contains(char::is_control) {
            true => Err("write the name in the certificate, or `sha256:` and its fingerprint"),
            false => Ok(CertificateHolder::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for CertificateHolder {
    /// As it is written in a config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateHolder::Name(name) => f.write_str(name),
            CertificateHolder::Fingerprint(digits) => write!(f, "sha256:{digits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_names_or_fingerprints() {
        let name = |text: &str| Ok(CertificateHolder::Name(text.to_owned()));
        assert_eq!(CertificateHolder::parse("front1"), name("front1"));
        let digits = "0a".repeat(32);
        let upper = CertificateHolder::Fingerprint("0A".repeat(32));
        let with_colons = vec!["0a"; 32].join(":");
        for text in [&digits, &with_colons] {
            assert_eq!(
                CertificateHolder::parse(&format!("sha256:{text}")),
                Ok(upper.clone())
            );
        }
        for wrong in [
            "",
            "a\nb",
            "sha256:",
            "sha256:0a",
            &format!("sha256:{digits}0"),
        ] {
            CertificateHolder::parse(wrong).unwrap_err();
        }
    }
}
