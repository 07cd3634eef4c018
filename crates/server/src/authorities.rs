//! Files of authorities of which one has signed the certificate of somebody hob speaks to, and of
//! what it shows them itself. They are read and looked at before a config comes into force: of one
//! that is no use, spans would be lost or certificates missing when they are due.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hob_http::outbound::check_roots;
use hob_http::tls::Certificate;

use hob_config::{Config, Handlers};
use hob_keeper::FILE_BYTES_MAX;

/// What the config calls it.
pub(crate) const KEY: &str = "otlp.ca";

/// The text of the file that a config names; empty where it names none.
///
/// # Errors
/// As of [`read`].
pub fn of<H: Handlers>(config: &Config<H>) -> Result<Vec<u8>, String> {
    let path = config.otlp.as_ref().and_then(|otlp| otlp.ca.as_deref());
    path.map_or_else(|| Ok(Vec::new()), |path| read(path, KEY))
}

/// The same for a server that starts. One that takes the place of another that died serves without
/// traces rather than not at all.
pub fn of_or_none<H: Handlers>(config: &Config<H>) -> Vec<u8> {
    of(config).unwrap_or_else(|error| {
        tracing::error!(error, "the collector's certificate cannot be checked");
        Vec::new()
    })
}

/// The text of a file that the config's key `key` names, with at least one certificate in it.
///
/// # Errors
/// It cannot be read, or is no such file, in words.
pub(crate) fn read(path: &Path, key: &str) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let cannot = |error| format!("`{key}` {shown} cannot be read: {error}");
    let text = text_of(path).map_err(cannot)?;
    if text.len() > FILE_BYTES_MAX {
        return Err(format!("`{key}` {shown} is larger than any certificate"));
    }
    check_roots(&text, key).map_err(|error| format!("{error}: {shown}"))?;
    Ok(text)
}

/// Why what stands in these files is no certificate and its key.
pub(crate) fn certificate_fault(certificate: &Path, key: &Path) -> Option<String> {
    let read = |path: &Path| {
        text_of(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    let (chain, private) = match (read(certificate), read(key)) {
        (Ok(chain), Ok(private)) => (chain, private),
        (Err(error), _) | (_, Err(error)) => return Some(error),
    };
    let wrong = Certificate::from_pem(&chain, &private).err()?;
    Some(format!("{}: {wrong}", certificate.display()))
}

/// The text of a file; of one that is too large a byte more than it may have.
fn text_of(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe in its place would be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits() as i32);
    let mut text = Vec::new();
    let mut limited = options.open(path)?.take(FILE_BYTES_MAX as u64 + 1);
    limited.read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_certificates_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let said = |text: &[u8]| {
            std::fs::write(&path, text).unwrap();
            read(&path, KEY).unwrap_err()
        };
        let shown = path.display();
        let none = format!("`otlp.ca` holds no certificate in PEM: {shown}");
        assert_eq!(said(b""), none);
        assert_eq!(said(b"no certificate\n"), none);
        let large = format!("`otlp.ca` {shown} is larger than any certificate");
        assert_eq!(said(&vec![b'\n'; FILE_BYTES_MAX + 1]), large);
        std::fs::remove_file(&path).unwrap();
        let error = read(&path, KEY).unwrap_err();
        let begin = format!("`otlp.ca` {shown} cannot be read: ");
        assert!(error.starts_with(&begin), "{error}");
    }
}
