//! An authority that signs certificates for tests.
// Every test program uses its own part of this.
#![allow(dead_code)]

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::harness::Place;

/// An authority of a test.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

/// A certificate and its key.
pub(crate) struct Signed {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    pem: String,
}

/// Gives a place certificates: `own.pem` of this common name, `ca.pem` of who signed it.
pub(crate) fn certify(place: &Place, authority: &Authority, common_name: &str) {
    authority.write(place, "ca.pem");
    let signed = authority.sign_with(&["localhost"], |params| {
        params.distinguished_name = rcgen::DistinguishedName::new();
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, common_name);
    });
    signed.write(place, "own");
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        Authority {
            issuer: Issuer::new(params, key),
            certificate: made.der().clone(),
            pem: made.pem(),
        }
    }

    /// A certificate for these names.
    pub(crate) fn sign(&self, names: &[&str]) -> Signed {
        self.sign_with(names, |_| {})
    }

    /// The same, with more said.
    pub(crate) fn sign_with(
        &self,
        names: &[&str],
        set: impl FnOnce(&mut CertificateParams),
    ) -> Signed {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        set(&mut params);
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.issuer).unwrap();
        Signed {
            certificate: made.der().clone(),
            key,
            pem: made.pem(),
        }
    }

    /// Writes its own certificate to a file of this name.
    pub(crate) fn write(&self, place: &Place, file: &str) {
        place.write(file, &self.pem);
    }
}

impl Signed {
    /// Writes it to `NAME.pem` and `NAME.key`.
    pub(crate) fn write(&self, place: &Place, name: &str) {
        place.write(&format!("{name}.pem"), &self.pem);
        let key = format!("{name}.key");
        place.write(&key, &self.key.serialize_pem());
        std::fs::set_permissions(place.path(&key), PermissionsExt::from_mode(0o644)).unwrap();
    }

    fn parts(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        (vec![self.certificate.clone()], key.into())
    }

    /// What a server that shows it speaks, in these versions.
    pub(crate) fn config(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.certificate.clone()).unwrap();
                let roots = Arc::new(roots);
                let rule = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(rule.build().unwrap())
            }
        };
        let (chain, key) = self.parts();
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}
