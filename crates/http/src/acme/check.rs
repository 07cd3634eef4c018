//! Whether a chain and its key may be served in the place of what is served now.

use std::fmt;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::acme::leaf::Leaf;
use crate::tls::{Certificate, CertificateError, ClientCertificate};

/// Why a certificate is not to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnfitCertificate {
    /// It cannot be read, or its key is another's.
    Certificate(CertificateError),
    /// It is PEM and no certificate.
    Malformed,
    /// It is not for this name.
    Name(String),
    /// It is not good yet, or not any more, or for an odd time only.
    Validity,
}

/// Shorter lives than this, in seconds, cannot be kept up with.
const LIFETIME_S_MIN: i64 = 10;
/// Clocks differ by so much, in seconds.
const CLOCK_S_MAX: i64 = 5 * 60;

/// Sees whether a chain and its key, both PEM, may be served for these names. Returns what the
/// certificate says of itself.
///
/// # Errors
/// When key, names or validity do not fit.
pub fn check(
    chain: &[u8],
    key: &[u8],
    names: &[String],
    now_unix_s: i64,
) -> Result<Leaf, UnfitCertificate> {
    Certificate::from_pem(chain, key).map_err(UnfitCertificate::Certificate)?;
    let leaf = leaf_of(chain).ok_or(UnfitCertificate::Malformed)?;
    if let Some(name) = names.iter().find(|name| !leaf.covers(name)) {
        return Err(UnfitCertificate::Name(name.clone()));
    }
    let is_good = leaf.not_before_unix_s <= now_unix_s.saturating_add(CLOCK_S_MAX)
        && leaf.not_after_unix_s > now_unix_s
        && leaf.lifetime_s() >= LIFETIME_S_MIN;
    if !is_good {
        return Err(UnfitCertificate::Validity);
    }
    Ok(leaf)
}

/// What the first certificate of a chain says of itself.
pub fn leaf_of(chain: &[u8]) -> Option<Leaf> {
    Leaf::from_der(&CertificateDer::from_pem_slice(chain).ok()?)
}

/// Whose each certificate of a chain is, and who signed it, in its order.
pub fn names_in(chain: &[u8]) -> Vec<ClientCertificate> {
    let certificates = CertificateDer::pem_slice_iter(chain).filter_map(Result::ok);
    certificates
        .filter_map(|der| ClientCertificate::from_der(&der))
        .collect()
}

/// The certificates of a PEM text that may hold keys as well.
pub fn certificates_only(text: &[u8]) -> Vec<u8> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let text = String::from_utf8_lossy(text);
    let mut certificates = String::new();
    let mut rest = &*text;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        let Some((body, after)) = after.split_once(END) else {
            break;
        };
        // Whatever else stands in there is not one of them.
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(&byte);
        if body.bytes().all(is_digit) {
            certificates.extend([BEGIN, body, END, "\n"]);
        }
        rest = after;
    }
    certificates.into_bytes()
}

impl fmt::Display for UnfitCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitCertificate::Certificate(error) => error.fmt(f),
            UnfitCertificate::Malformed => f.write_str("it is no certificate"),
            UnfitCertificate::Name(name) => write!(f, "it is not for {name}"),
            UnfitCertificate::Validity => {
                f.write_str("it is not good now; is this machine's clock right?")
            }
        }
    }
}

impl std::error::Error for UnfitCertificate {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::SelfSigned;

    const NOW: i64 = 1_800_000_000;

    fn made(name: &str) -> SelfSigned {
        SelfSigned::new(&[name.to_owned()], &[], NOW).unwrap()
    }

    #[test]
    fn only_a_pair_that_fits_its_names_and_the_time_is_served() {
        let (one, two) = (made("example.org"), made("example.org"));
        let names = ["example.org".to_owned()];
        let ask = |chain: &SelfSigned, key: &SelfSigned, names: &[String], now| {
            check(chain.certificate.as_bytes(), key.key.as_bytes(), names, now)
        };
        assert_eq!(ask(&one, &one, &names, NOW).unwrap().names, names);
        let mismatch = UnfitCertificate::Certificate(CertificateError::Mismatch);
        assert_eq!(ask(&one, &two, &names, NOW), Err(mismatch));
        let more = ["example.org".to_owned(), "www.example.org".to_owned()];
        let unnamed = UnfitCertificate::Name("www.example.org".to_owned());
        assert_eq!(ask(&one, &one, &more, NOW), Err(unnamed));
        let (early, late) = (NOW - 3 * 86_400, NOW + 367 * 86_400);
        assert_eq!(
            ask(&one, &one, &names, early),
            Err(UnfitCertificate::Validity)
        );
        assert_eq!(
            ask(&one, &one, &names, late),
            Err(UnfitCertificate::Validity)
        );
        let empty = UnfitCertificate::Certificate(CertificateError::NoCertificate);
        assert_eq!(check(b"", b"", &names, NOW), Err(empty));
    }

    #[test]
    fn keys_are_left_out_of_what_others_may_see() {
        let made = made("example.org");
        let both = format!("mark\n{}{}{}", made.key, made.certificate, made.key);
        let left = certificates_only(both.as_bytes());
        assert_eq!(leaf_of(&left), leaf_of(made.certificate.as_bytes()));
        let left = String::from_utf8(left).unwrap();
        assert!(!left.contains("KEY"), "{left}");
        assert_eq!(certificates_only(b"-----BEGIN CERTIFICATE-----\nx"), b"");
        let around = format!(
            "-----BEGIN CERTIFICATE-----{}-----END CERTIFICATE-----",
            made.key
        );
        assert_eq!(certificates_only(around.as_bytes()), b"");
    }
}
