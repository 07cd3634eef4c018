//! Which authorities are believed where hob is the client: the system's, and more of a config's.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The system's authorities and those of a PEM text, which the config's key `key` names.
///
/// # Errors
/// What is wrong with the text, or that there are none at all.
pub(crate) fn believed(more: &[u8], key: &str) -> Result<RootCertStore, String> {
    let mut roots = match more.is_empty() {
        true => RootCertStore::empty(),
        false => of(more, key)?,
    };
    // What cannot be read there is told only when nothing is left.
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    match roots.is_empty() {
        true => Err(format!(
            "there are no certificates of authorities on this system; install \
             `ca-certificates`, or name a file in `{key}`"
        )),
        false => Ok(roots),
    }
}

/// The authorities of a PEM text, which the config's key `key` names.
///
/// # Errors
/// What is wrong with the text, or that it has none.
pub(crate) fn of(text: &[u8], key: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(text) {
        let root = root.map_err(|error| format!("`{key}` cannot be read: {error}"))?;
        roots
            .add(root)
            .map_err(|error| format!("`{key}` holds a wrong certificate: {error}"))?;
    }
    match roots.is_empty() {
        true => Err(format!("`{key}` holds no certificate in PEM")),
        false => Ok(roots),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_refused_by_the_name_of_its_key() {
        for (text, said) in [
            ("nothing", "`x.ca` holds no certificate in PEM"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "`x.ca` holds a wrong certificate",
            ),
            (
                "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
                "`x.ca` cannot be read",
            ),
        ] {
            let error = believed(text.as_bytes(), "x.ca").unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
        let error = of(b"", "x.ca").unwrap_err();
        assert_eq!(error, "`x.ca` holds no certificate in PEM");
    }
}
