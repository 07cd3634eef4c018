//! Certificates and private keys on their way from the keeper, who may read them, to the server,
//! who may not: as sealed memory, whose descriptor nobody else gets.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use hob_http::acme::NAMES_MAX;

use super::memory;
use super::wire::{Malformed, Reader, Writer};
use crate::config::CertificateSource;

/// Everything the TLS of a config is made with.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyFiles {
    /// Certificates with their keys.
    pub pairs: Vec<Pair>,
    /// Certificates of those who may sign those of clients, as PEM, by their file.
    pub authorities: Vec<(PathBuf, Vec<u8>)>,
}

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// Where they come from.
    pub source: CertificateSource,
    /// The chain.
    pub certificate: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
}

/// Largest file of a certificate or key, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 1024 * 1024;
const PAIRS_MAX: usize = 10_000;
const NAME_BYTES_MAX: usize = 255;
const VERSION: u8 = 2;

impl KeyFiles {
    /// Writes everything to sealed memory.
    pub(crate) fn to_memory(&self) -> io::Result<OwnedFd> {
        memory::sealed("hob-keys", &self.encode())
    }

    /// Reads what was written.
    pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<KeyFiles> {
        KeyFiles::decode(&memory::read(memory)?).map_err(io::Error::other)
    }

    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(VERSION).count(self.pairs.len());
        for pair in &self.pairs {
            match &pair.source {
                CertificateSource::SelfSigned => writer.u8(0),
                CertificateSource::Auto { names } => {
                    writer.u8(2).count(names.len());
                    names
                        .iter()
                        .fold(&mut writer, |writer, name| writer.text(name))
                }
                CertificateSource::Files { certificate, key } => {
                    writer.u8(1).path(certificate).path(key)
                }
            };
            writer.block(&pair.certificate).block(&pair.key);
        }
        writer.count(self.authorities.len());
        for (path, text) in &self.authorities {
            writer.path(path).block(text);
        }
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Result<KeyFiles, Malformed> {
        let mut reader = Reader::new(bytes, "key files");
        if reader.u8()? != VERSION {
            return Err(reader.malformed());
        }
        let mut files = KeyFiles::default();
        for _ in 0..reader.count(PAIRS_MAX)? {
            let source = match reader.u8()? {
                0 => CertificateSource::SelfSigned,
                1 => CertificateSource::Files {
                    certificate: reader.path()?,
                    key: reader.path()?,
                },
                2 => {
                    let count = reader.count(NAMES_MAX)?;
                    let names = (0..count).map(|_| reader.text(NAME_BYTES_MAX));
                    CertificateSource::Auto {
                        names: names.collect::<Result<_, _>>()?,
                    }
                }
                _ => return Err(reader.malformed()),
            };
            files.pairs.push(Pair {
                source,
                certificate: reader.block(FILE_BYTES_MAX)?.to_vec(),
                key: reader.block(FILE_BYTES_MAX)?.to_vec(),
            });
        }
        for _ in 0..reader.count(PAIRS_MAX)? {
            let path = reader.path()?;
            let text = reader.block(FILE_BYTES_MAX)?.to_vec();
            files.authorities.push((path, text));
        }
        reader.end()?;
        Ok(files)
    }
}

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

    fn files() -> KeyFiles {
        KeyFiles {
            pairs: vec![
                Pair {
                    source: CertificateSource::SelfSigned,
                    certificate: b"c".to_vec(),
                    key: b"k".to_vec(),
                },
                Pair {
                    source: CertificateSource::Auto {
                        names: vec!["example.org".to_owned(), "*.example.org".to_owned()],
                    },
                    certificate: b"got".to_vec(),
                    key: b"also secret".to_vec(),
                },
                Pair {
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
        let bytes = files().encode();
        for end in 0..bytes.len() {
            KeyFiles::decode(&bytes[..end]).unwrap_err();
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[position] = value;
                let _ = KeyFiles::decode(&changed);
            }
        }
    }
}
