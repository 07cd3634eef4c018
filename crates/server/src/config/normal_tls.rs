//! The normal form of what a config says about TLS.

use std::fmt;

use super::normal::quoted;
use super::tls::{CertificateSource, ClientNeed, ListenTls, SiteTls};

impl ListenTls {
    pub(super) fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.certificate {
            Some(certificate) => certificate.fmt_keys(f)?,
            None => writeln!(f, "tls.certificate = none")?,
        }
        let minimum = if self.only_13 { "1.3" } else { "1.2" };
        writeln!(f, "tls.minimum = \"{minimum}\"")?;
        writeln!(f, "tls.suites = {:?}", self.suites)?;
        writeln!(f, "tls.http3 = {}", self.http3)?;
        match self.http3_port {
            Some(port) => writeln!(f, "tls.http3_port = {port}"),
            None => Ok(()),
        }
    }
}

impl SiteTls {
    pub(super) fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(certificate) = &self.certificate {
            certificate.fmt_keys(f)?;
        }
        let Some((need, authorities)) = &self.client else {
            return Ok(());
        };
        let need = match need {
            ClientNeed::Ask => "ask",
            ClientNeed::Require => "require",
        };
        writeln!(f, "tls.client = \"{need}\"")?;
        writeln!(f, "tls.client_ca = {}", quoted(authorities.display()))
    }
}

impl CertificateSource {
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateSource::SelfSigned => writeln!(f, "tls.certificate = \"self-signed\""),
            CertificateSource::Auto { .. } => writeln!(f, "tls.certificate = \"auto\""),
            CertificateSource::Files { certificate, key } => {
                writeln!(f, "tls.certificate = {}", quoted(certificate.display()))?;
                writeln!(f, "tls.key = {}", quoted(key.display()))
            }
        }
    }
}
