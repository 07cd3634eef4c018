//! Of which country a client's address is, by a file in MaxMind's format.
//!
//! The crate `maxminddb` reads it. The whole file is held in memory and not mapped: whoever writes
//! over a mapped file, or shortens it, takes the process with it. A file that has changed is read
//! by threads that serve nobody; one that is broken, or of something else than countries, leaves
//! the one before.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use hob_config::Country;
use hob_trace::Mutex;
use hob_trace::calendar::UtcDateTime;
use maxminddb::{MaxMindDbError, PathElement, Reader, WithinOptions};

use super::auth::{FileVersion, version};

/// Largest file, in bytes.
pub const COUNTRIES_BYTES_MAX: u64 = 512 << 20;
/// A file that has no country in the first of so many networks has none at all.
const NETWORKS_LOOKED_AT: usize = 10_000;
/// So many networks that cannot be read are enough to refuse a file.
const BROKEN_MAX: usize = 16;

/// Where the code of a country stands: with MaxMind and DB-IP, with others.
const PLACES: [&[PathElement<'static>]; 3] = [
    &[PathElement::Key("country"), PathElement::Key("iso_code")],
    &[PathElement::Key("country_code")],
    &[PathElement::Key("country")],
];

/// A file of countries that is looked at again and again.
pub struct CountrySource {
    path: PathBuf,
    file: ArcSwap<CountryFile>,
    /// Held while the file is read.
    state: Mutex<CountriesState>,
}

struct CountriesState {
    /// Of what was read last, rightly or not.
    version: Option<FileVersion>,
    /// Why what is there now was not taken.
    fault: Option<String>,
}

/// A file of countries as it was read.
pub struct CountryFile {
    reader: Reader<Vec<u8>>,
    /// Where its codes stand.
    place: &'static [PathElement<'static>],
}

impl CountrySource {
    /// The countries of a file, or `before` where they are these. Waits for a disk.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn open(
        path: &Path,
        before: Option<&Arc<CountrySource>>,
    ) -> Result<Arc<CountrySource>, String> {
        if let Some(before) = before.filter(|before| before.path == path)
            && !before.has_changed()
            && before.state.lock().fault.is_none()
        {
            return Ok(Arc::clone(before));
        }
        let (file, version) = read(path)?;
        Ok(Arc::new(CountrySource {
            path: path.to_path_buf(),
            file: ArcSwap::from_pointee(file),
            state: Mutex::new(CountriesState {
                version,
                fault: None,
            }),
        }))
    }

    /// The file is another than the one that was read last. Looks at the disk, and waits for nobody
    /// who reads it.
    pub fn has_changed(&self) -> bool {
        version(&self.path) != self.state.lock().version
    }

    /// Reads the file anew where it has changed. Waits for a disk.
    pub fn look(&self) {
        // Who reads it now holds this.
        let mut state = self.state.lock();
        // Asked before it is read: one that comes meanwhile is read the next time.
        let now = version(&self.path);
        if now == state.version {
            return;
        }
        match read(&self.path) {
            Ok((file, version)) => {
                self.file.store(Arc::new(file));
                *state = CountriesState {
                    version,
                    fault: None,
                };
                tracing::info!(file = %self.path.display(), "countries are read anew");
            }
            Err(text) => {
                state.version = now;
                if state.fault.as_ref() != Some(&text) {
                    tracing::error!("countries stay as they were: {text}");
                }
                state.fault = Some(text);
            }
        }
    }

    /// The country of a client; none is known of one that connects over a Unix socket.
    pub fn find(&self, peer: Option<IpAddr>) -> Country {
        match peer {
            Some(address) => self.file.load().find(address),
            None => Country::UNKNOWN,
        }
    }

    /// What the file calls itself, and the day it was made.
    pub fn kind(&self) -> String {
        let file = self.file.load();
        let metadata = file.reader.metadata();
        let made = i64::try_from(metadata.build_epoch).unwrap_or(i64::MAX);
        let UtcDateTime {
            year, month, day, ..
        } = UtcDateTime::from_unix_s(made);
        let kind = hob_config::printable(&metadata.database_type);
        format!("{kind} of {year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Debug for CountrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountrySource")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl CountryFile {
    /// Takes the bytes of a file.
    ///
    /// # Errors
    /// They are no file in this format, or not one of countries.
    pub fn parse(bytes: Vec<u8>) -> Result<CountryFile, String> {
        let reader = Reader::from_source(bytes);
        let reader = reader.map_err(|error| format!("is no file in MaxMind's format: {error}"))?;
        match place_of_codes(&reader) {
            Ok(Some(place)) => Ok(CountryFile { reader, place }),
            Ok(None) => {
                let kind = hob_config::printable(&reader.metadata().database_type);
                Err(format!("has no countries: it is of the kind {kind:?}"))
            }
            Err(error) => Err(format!("is broken: {error}")),
        }
    }

    /// The country of an address; a place of the file that is broken knows none.
    pub fn find(&self, address: IpAddr) -> Country {
        // An address of IPv6 is an error where a file has none of them.
        let found = self.reader.lookup(address.to_canonical()).ok();
        let code = found.and_then(|found| found.decode_path::<&str>(self.place).ok().flatten());
        let country = code.and_then(|code| Country::of_code(code.as_bytes()));
        country.unwrap_or(Country::UNKNOWN)
    }
}

/// Where a file has the codes of its countries, if it has some.
fn place_of_codes(
    reader: &Reader<Vec<u8>>,
) -> Result<Option<&'static [PathElement<'static>]>, MaxMindDbError> {
    let mut broken = 0;
    for network in reader
        .networks(WithinOptions::default())?
        .take(NETWORKS_LOOKED_AT)
    {
        let found = network?;
        for place in PLACES {
            match found.decode_path::<&str>(place) {
                Ok(Some(code)) if Country::of_code(code.as_bytes()).is_some() => {
                    return Ok(Some(place));
                }
                // Another kind of value stands there, or the file is broken.
                Err(error) if broken == BROKEN_MAX * PLACES.len() => return Err(error),
                Err(_) => broken += 1,
                Ok(_) => {}
            }
        }
    }
    Ok(None)
}

/// A file, and its version.
fn read(path: &Path) -> Result<(CountryFile, Option<FileVersion>), String> {
    let told = |text: String| format!("{} {text}", path.display());
    let fail = |error: std::io::Error| {
        let user = rustix::process::geteuid().as_raw();
        told(format!(
            "cannot be read: {error}; the server runs as user {user}: let that user read it"
        ))
    };
    let found = std::fs::metadata(path).map_err(fail)?;
    if !found.is_file() || found.len() > COUNTRIES_BYTES_MAX {
        return Err(told(
            "is no file of countries: not a file, or of more than 512 MiB".to_owned(),
        ));
    }
    let before = version(path);
    let bytes = std::fs::read(path).map_err(fail)?;
    if version(path) != before {
        return Err(told("is being written".to_owned()));
    }
    let file = CountryFile::parse(bytes).map_err(told)?;
    Ok((file, before))
}

/// Why a file is none of countries, if it is none. Waits for a disk.
pub fn countries_fault(path: &Path) -> Option<String> {
    read(path).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_file_is_refused_with_its_reason() {
        for bytes in [
            &b""[..],
            b"hello",
            b"\xab\xcd\xefMaxMind.com",
            &[0xff; 4096],
        ] {
            let fault = CountryFile::parse(bytes.to_vec()).err().unwrap();
            assert!(fault.contains("no file in MaxMind's format"), "{fault}");
        }
        let folder = tempfile::tempdir().unwrap();
        let fault = countries_fault(folder.path()).unwrap();
        assert!(fault.contains("is no file of countries"), "{fault}");
        let fault = countries_fault(&folder.path().join("away")).unwrap();
        assert!(fault.contains("away cannot be read"), "{fault}");
    }

    /// Of documentation's networks, as another implementation has written it.
    const FILE: &[u8] = include_bytes!("../../tests/config/keys/countries.mmdb");

    #[test]
    fn addresses_are_of_the_countries_that_the_file_says() {
        let file = CountryFile::parse(FILE.to_vec()).unwrap();
        for (address, country) in [
            ("192.0.2.0", "DE"),
            ("192.0.2.255", "DE"),
            ("192.0.3.0", "unknown"),
            ("::ffff:198.51.100.7", "KP"),
            ("2001:db8:1::", "FR"),
            ("2001:db9::", "unknown"),
            ("::1", "unknown"),
        ] {
            let found = file.find(address.parse().unwrap());
            assert_eq!(found.to_string(), country, "{address}");
        }
    }

    /// Neither shortened nor with any byte changed does it bring anything down.
    #[test]
    fn broken_file_is_refused_or_knows_less() {
        let addresses = [
            "192.0.2.1",
            "198.51.100.7",
            "10.0.0.1",
            "2001:db8::1",
            "ff::",
        ];
        let addresses = addresses.map(|address| address.parse::<IpAddr>().unwrap());
        let look = |bytes: Vec<u8>| {
            let file = CountryFile::parse(bytes).ok()?;
            Some(addresses.map(|address| file.find(address)))
        };
        for len in 0..FILE.len() {
            assert_eq!(look(FILE[..len].to_vec()), None, "{len}");
        }
        let whole = look(FILE.to_vec());
        let mut differ = 0;
        for at in 0..FILE.len() {
            for bits in [0x01, 0x80, 0xff] {
                let mut bytes = FILE.to_vec();
                bytes[at] ^= bits;
                differ += usize::from(look(bytes) != whole);
            }
        }
        // Most of it is names that nobody reads.
        assert!(differ > 100, "{differ}");
    }
}
