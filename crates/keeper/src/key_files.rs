//! Certificates and private keys on their way from the keeper, who may read them, to the server,
//! who may not: as sealed memory, whose descriptor nobody else gets.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::memory;
use super::wire::{wire_enum, wire_struct};
use hob_config::CertificateSource;

/// Everything the TLS of a config is made with.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyFiles {
    /// Certificates with their keys.
    pub pairs: Vec<CertificateAndKey>,
    /// Certificates of those who may sign those of clients, or of other servers, as PEM, by their
    /// file.
    pub authorities: Vec<(PathBuf, Vec<u8>)>,
}

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateAndKey {
    /// Where they come from.
    pub source: CertificateSource,
    /// The chain.
    pub certificate: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
}

/// Largest file of a certificate or key, in bytes.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
const VERSION: u8 = 2;

/// The text of a file of a certificate or key.
///
/// # Errors
/// Why there is none, for the operator.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let fail = |error: io::Error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    match bytes.len() > FILE_BYTES_MAX {
        true => Err(format!("{} is larger than any certificate", path.display())),
        false => Ok(bytes),
    }
}

impl KeyFiles {
    /// There is nothing to hand on.
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.authorities.is_empty()
    }

    /// Writes everything to sealed memory.
    pub(crate) fn to_memory(&self) -> io::Result<OwnedFd> {
        memory::sealed_value("hob-keys", VERSION, self)
    }

    /// Reads what was written.
    pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<KeyFiles> {
        memory::read_value(memory, VERSION, "key files")
    }
}

wire_struct!(KeyFiles: pairs, authorities);
wire_struct!(CertificateAndKey: source, certificate, key);
wire_enum!(CertificateSource: 0 => SelfSigned, 1 => Files { certificate, key },
    2 => Auto { names });

/// Keys are never shown.
impl std::fmt::Debug for KeyFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sources = self.pairs.iter().map(|pair| &pair.source);
        f.debug_list().entries(sources).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WireValue;

    fn files() -> KeyFiles {
        KeyFiles {
            pairs: vec![
                CertificateAndKey {
                    source: CertificateSource::SelfSigned,
                    certificate: b"c".to_vec(),
                    key: b"k".to_vec(),
                },
                CertificateAndKey {
                    source: CertificateSource::Auto {
                        names: vec!["example.org".to_owned(), "*.example.org".to_owned()],
                    },
                    certificate: b"got".to_vec(),
                    key: b"also secret".to_vec(),
                },
                CertificateAndKey {
                    source: CertificateSource::Files {
                        certificate: "/a.pem".into(),
                        key: "/b.pem".into(),
                    },
                    certificate: b"other".to_vec(),
                    key: b"secret".to_vec(),
                },
            ],
            authorities: vec![("/ca.pem".into(), b"ca".to_vec())],
        }
    }

    #[test]
    fn files_arrive_as_written_and_show_no_key() {
        use std::os::fd::AsFd;
        let memory = files().to_memory().unwrap();
        assert!(KeyFiles::from_memory(memory.as_fd()).unwrap() == files());
        assert!(!format!("{:?}", files()).contains("secret"));
    }

    #[test]
    fn cut_or_changed_files_never_panic() {
        let bytes = files().encode_whole(VERSION);
        for end in 0..bytes.len() {
            KeyFiles::decode_whole(&bytes[..end], VERSION, "key files").unwrap_err();
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[position] = value;
                let _ = KeyFiles::decode_whole(&changed, VERSION, "key files");
            }
        }
    }
}
