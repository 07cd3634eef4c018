//! The file of authorities of which one may have signed the collector's certificate. It is read and
//! looked at before a config comes into force: one that is no use would cost spans until the next.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hob_http::post::check_roots;

use crate::config::Config;
use crate::life::key_files::FILE_BYTES_MAX;

/// What the config calls it.
pub(super) const KEY: &str = "otlp.ca";

/// The text of the file that a config names; empty where it names none.
///
/// # Errors
/// As of [`read`].
pub(crate) fn of(config: &Config) -> Result<Vec<u8>, String> {
    let path = config.otlp.as_ref().and_then(|otlp| otlp.ca.as_deref());
    path.map_or_else(|| Ok(Vec::new()), read)
}

/// Its text, in which there is at least one certificate.
///
/// # Errors
/// It cannot be read, or is no such file, in words.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let cannot = |error| format!("`{KEY}` {shown} cannot be read: {error}");
    // A pipe in its place would be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits() as i32);
    let file = options.open(path).map_err(cannot)?;
    let mut text = Vec::new();
    let mut limited = file.take(FILE_BYTES_MAX as u64 + 1);
    limited.read_to_end(&mut text).map_err(cannot)?;
    if text.len() > FILE_BYTES_MAX {
        return Err(format!("`{KEY}` {shown} is larger than any certificate"));
    }
    check_roots(&text, KEY).map_err(|error| format!("{error}: {shown}"))?;
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
            read(&path).unwrap_err()
        };
        let shown = path.display();
        let none = format!("`otlp.ca` holds no certificate in PEM: {shown}");
        assert_eq!(said(b""), none);
        assert_eq!(said(b"no certificate\n"), none);
        let large = format!("`otlp.ca` {shown} is larger than any certificate");
        assert_eq!(said(&vec![b'\n'; FILE_BYTES_MAX + 1]), large);
        std::fs::remove_file(&path).unwrap();
        let error = read(&path).unwrap_err();
        let begin = format!("`otlp.ca` {shown} cannot be read: ");
        assert!(error.starts_with(&begin), "{error}");
    }
}
