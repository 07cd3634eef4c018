//! Who may: whether the rules of a route let a request in.

use std::net::IpAddr;

use hob_config::{AccessRules, CertificateHolder, Country};
use hob_http::tls::ClientCertificate;

/// Why somebody may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRefusal {
    /// The address is among those of `deny`.
    Denied,
    /// It is not among those of `allow`.
    NotAllowed,
    /// Its country is among those of `deny`.
    DeniedCountry,
    /// Neither is it among those of `allow`, nor its country.
    NotAllowedCountry,
    /// No certificate was shown.
    NoCertificate,
    /// It is none of those of `certificates`.
    OtherCertificate,
    /// The method is not among those of `methods`.
    Method,
}

impl AccessRefusal {
    /// The key that says so.
    pub fn key(self) -> &'static str {
        match self {
            AccessRefusal::Denied | AccessRefusal::DeniedCountry => "access.deny",
            AccessRefusal::NotAllowed | AccessRefusal::NotAllowedCountry => "access.allow",
            AccessRefusal::NoCertificate | AccessRefusal::OtherCertificate => "access.certificates",
            AccessRefusal::Method => "access.methods",
        }
    }

    /// In the words of the record.
    pub fn reason(self) -> &'static str {
        match self {
            AccessRefusal::Denied => "access: `deny` has the client's address",
            AccessRefusal::NotAllowed => "access: `allow` does not have the client's address",
            AccessRefusal::DeniedCountry => {
                "access: `deny` has the country of the client's address"
            }
            AccessRefusal::NotAllowedCountry => {
                "access: `allow` has neither the client's address nor its country"
            }
            AccessRefusal::NoCertificate => "access: the client has shown no certificate",
            AccessRefusal::OtherCertificate => "access: `certificates` does not have the client's",
            AccessRefusal::Method => "access: `methods` does not have the method",
        }
    }
}

/// Whether a client may ask from where it connects; `None` is a Unix socket. Its country is asked
/// for where that decides it.
///
/// # Errors
/// Why not.
pub fn check_address(
    rules: &AccessRules,
    peer: Option<IpAddr>,
    country: impl FnOnce() -> Country,
) -> Result<(), AccessRefusal> {
    if rules.deny.has_peer(peer) {
        return Err(AccessRefusal::Denied);
    }
    let lacks_address = rules
        .allow
        .as_ref()
        .is_some_and(|allow| !allow.has_peer(peer));
    if rules.deny_countries.is_empty() && (!lacks_address || rules.allow_countries.is_empty()) {
        return match lacks_address {
            true => Err(AccessRefusal::NotAllowed),
            false => Ok(()),
        };
    }
    let country = country();
    if rules.deny_countries.has(country) {
        return Err(AccessRefusal::DeniedCountry);
    }
    match lacks_address && !rules.allow_countries.has(country) {
        true if rules.allow_countries.is_empty() => Err(AccessRefusal::NotAllowed),
        true => Err(AccessRefusal::NotAllowedCountry),
        false => Ok(()),
    }
}

/// Whether a client may ask that has shown this certificate.
///
/// # Errors
/// Why not.
pub fn check_certificate(
    rules: &AccessRules,
    shown: Option<&ClientCertificate>,
) -> Result<(), AccessRefusal> {
    if rules.certificates.is_empty() {
        return Ok(());
    }
    let shown = shown.ok_or(AccessRefusal::NoCertificate)?;
    match rules.certificates.iter().any(|one| is_of(shown, one)) {
        true => Ok(()),
        false => Err(AccessRefusal::OtherCertificate),
    }
}

/// Whether a method is taken.
///
/// # Errors
/// It is not.
pub fn check_method(rules: &AccessRules, method: &[u8]) -> Result<(), AccessRefusal> {
    let has = rules.methods.iter().any(|known| known.as_bytes() == method);
    match has || rules.methods.is_empty() {
        true => Ok(()),
        false => Err(AccessRefusal::Method),
    }
}

/// Whether a certificate is that of somebody who is known.
pub fn is_of(shown: &ClientCertificate, holder: &CertificateHolder) -> bool {
    match holder {
        CertificateHolder::Fingerprint(digits) => *digits == shown.fingerprint,
        CertificateHolder::Name(name) => {
            let mut hosts = shown.hosts.iter();
            *name == shown.common_name || hosts.any(|host| host.eq_ignore_ascii_case(name))
        }
    }
}
