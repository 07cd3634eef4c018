//! A certificate that signs itself: for `localhost`, and for a host whose real one is still on its
//! way. Browsers warn about it, once told to go on they take it.

use std::net::IpAddr;

use hob_trace::calendar::UtcDateTime;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};

/// A chain of one and its key, as PEM.
#[derive(Clone, Debug)]
pub struct SelfSigned {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// For how long it is good.
const DAYS: i64 = 365;
const DAY_S: i64 = 24 * 60 * 60;

impl SelfSigned {
    /// How long one is good, in seconds.
    pub const LIFETIME_S: i64 = DAYS * DAY_S;

    /// Makes one for these names and addresses, good from yesterday (clocks differ) for a year.
    ///
    /// # Errors
    /// A name that no certificate can have, or no randomness.
    pub fn new(
        names: &[String],
        addresses: &[IpAddr],
        now_unix_s: i64,
    ) -> Result<SelfSigned, String> {
        let mut params = CertificateParams::default();
        let names = names.iter().map(|name| {
            let name = name.as_str().try_into();
            name.map(SanType::DnsName)
                .map_err(|error| error.to_string())
        });
        params.subject_alt_names = names.collect::<Result<_, _>>()?;
        let addresses = addresses.iter().map(|address| SanType::IpAddress(*address));
        params.subject_alt_names.extend(addresses);
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "hob self-signed");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let day = |unix_s| {
            let moment = UtcDateTime::from_unix_s(unix_s);
            date_time_ymd(moment.year as i32, moment.month as u8, moment.day as u8)
        };
        let from = now_unix_s - DAY_S;
        let until = now_unix_s + SelfSigned::LIFETIME_S;
        (params.not_before, params.not_after) = (day(from), day(until));
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = params
            .self_signed(&key)
            .map_err(|error| error.to_string())?;
        Ok(SelfSigned {
            certificate: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", key.serialized_der()),
        })
    }
}

/// Bytes as PEM of some kind.
pub(crate) fn pem(kind: &str, bytes: &[u8]) -> String {
    let text = base64(bytes);
    let mut all = format!("-----BEGIN {kind}-----\n");
    for line in text.as_bytes().chunks(64) {
        all.extend(line.iter().map(|byte| char::from(*byte)));
        all.push('\n');
    }
    all.push_str(&format!("-----END {kind}-----\n"));
    all
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = (bits >> (18 - 6 * place) & 63) as usize;
            let is_there = place <= three.len();
            text.push(if is_there {
                char::from(DIGITS[digit])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Certificate;

    #[test]
    fn base64_is_that_of_the_rfc() {
        //= rfc4648#10
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn one_is_a_pair_that_fits_and_two_are_not() {
        let names = ["localhost".to_owned(), "*.example.org".to_owned()];
        let make = || SelfSigned::new(&names, &["::1".parse().unwrap()], 1_800_000_000).unwrap();
        let (one, two) = (make(), make());
        let load = |certificate: &str, key: &str| {
            Certificate::from_pem(certificate.as_bytes(), key.as_bytes())
        };
        load(&one.certificate, &one.key).unwrap();
        let wrong = load(&one.certificate, &two.key).unwrap_err();
        assert_eq!(wrong, crate::tls::CertificateError::Mismatch);
    }
}
