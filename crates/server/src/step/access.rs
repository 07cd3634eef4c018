//! Who may: whether the rules of a route let a request in.

use std::net::IpAddr;

use hob_config::{AccessRules, CertificateHolder};
use hob_http::tls::ClientCertificate;

/// Why somebody may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRefusal {
    /// The address is among those of `deny`.
    Denied,
    /// It is not among those of `allow`.
    NotAllowed,
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
            AccessRefusal::Denied => "access.deny",
            AccessRefusal::NotAllowed => "access.allow",
            AccessRefusal::NoCertificate | AccessRefusal::OtherCertificate => "access.certificates",
            AccessRefusal::Method => "access.methods",
        }
    }

    /// In the words of the record.
    pub fn reason(self) -> &'static str {
        match self {
            AccessRefusal::Denied => "access: `deny` has the client's address",
            AccessRefusal::NotAllowed => "access: `allow` does not have the client's address",
            AccessRefusal::NoCertificate => "access: the client has shown no certificate",
            AccessRefusal::OtherCertificate => "access: `certificates` does not have the client's",
            AccessRefusal::Method => "access: `methods` does not have the method",
        }
    }
}

/// Whether a client may ask from where it connects; `None` is a Unix socket.
///
/// # Errors
/// Why not.
pub fn check_address(rules: &AccessRules, peer: Option<IpAddr>) -> Result<(), AccessRefusal> {
    if rules.deny.has_peer(peer) {
        return Err(AccessRefusal::Denied);
    }
    match &rules.allow {
        Some(allow) if !allow.has_peer(peer) => Err(AccessRefusal::NotAllowed),
        _ => Ok(()),
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
