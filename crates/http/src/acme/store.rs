//! Where accounts and certificates are kept: a trait, and a folder that is one.
//!
//! ```text
//! STATE/acme/AUTHORITY/account.json      who we are there
//!                      example.org.pem   chain and key
//!                      lock              held by the one hob that makes orders
//! ```
//!
//! Only its owner may write to the folder, and read the files.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;

use crate::private_folder::PrivateFolder;

/// Something that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The account.
    Account,
    /// A certificate with its key, by its first name.
    Certificate(String),
}

/// Where accounts and certificates of one authority are kept.
pub trait Store {
    /// What was kept; `None` when nothing was.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load(&self, item: &Item) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps something in the place of what was kept before: all of it or nothing.
    ///
    /// # Errors
    /// When it was not kept.
    fn save(&self, item: &Item, bytes: &[u8]) -> Result<(), StoreError>;

    /// Makes this the one who orders; `None` while somebody else does.
    ///
    /// # Errors
    /// When nothing can be kept here at all.
    fn lock(&self) -> Result<Option<OrderLock>, StoreError>;
}

/// The right to make orders, until it is dropped.
#[derive(Debug)]
pub struct OrderLock(#[expect(dead_code, reason = "the lock is the open file")] OwnedFd);

/// Why something was not kept or read.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    action: &'static str,
    error: io::Error,
}

/// A folder for one authority.
#[derive(Clone, Debug)]
pub struct AuthorityFolder {
    path: PathBuf,
}

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
const LOCK: &str = "lock";

impl AuthorityFolder {
    /// The folder for an authority, by the address of its directory, below the folder for what is
    /// kept.
    pub fn new(state: &Path, directory: &str) -> AuthorityFolder {
        let host = directory
            .split_once("://")
            .map_or(directory, |(_, rest)| rest);
        let host = host.split('/').next().unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let host: String = host
            .chars()
            .take(100)
            .map(|c| if is_plain(c) { c } else { '_' })
            .collect();
        // Authorities of one host have different paths.
        let digest = digest::digest(&digest::SHA256, directory.as_bytes());
        let tail: String = digest.as_ref()[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        AuthorityFolder {
            path: state.join("acme").join(format!("{host}-{tail}")),
        }
    }

    /// The file of something.
    pub fn file(&self, item: &Item) -> PathBuf {
        self.path.join(name_of(item))
    }

    fn make(&self) -> Result<PrivateFolder, StoreError> {
        PrivateFolder::make(&self.path).map_err(fail("made", &self.path))
    }
}

fn name_of(item: &Item) -> String {
    match item {
        Item::Account => "account.json".to_owned(),
        Item::Certificate(name) => format!("{}.pem", file_name(name)),
    }
}

/// A host name as a file name: no separator, no leading dot, no star.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let plain: String = name
        .chars()
        .take(253)
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    match plain.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => plain,
    }
}

fn fail(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |error| StoreError {
        path,
        action,
        error,
    }
}

impl Store for AuthorityFolder {
    fn load(&self, item: &Item) -> Result<Option<Vec<u8>>, StoreError> {
        let name = name_of(item);
        let read =
            PrivateFolder::open(&self.path).and_then(|folder| folder.read(&name, FILE_BYTES_MAX));
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fail("read", &self.path.join(name))(error)),
        }
    }

    fn save(&self, item: &Item, bytes: &[u8]) -> Result<(), StoreError> {
        let name = name_of(item);
        let written = self.make()?.write(&name, bytes);
        written.map_err(fail("written", &self.path.join(name)))
    }

    fn lock(&self) -> Result<Option<OrderLock>, StoreError> {
        let held = self.make()?.lock(LOCK);
        let held = held.map_err(fail("locked", &self.path.join(LOCK)))?;
        Ok(held.map(OrderLock))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, action, error) = (self.path.display(), self.action, &self.error);
        write!(
            f,
            "{path} cannot be {action}: {error}; the user that starts hob must be able to, or \
             `state` names another folder"
        )
    }
}

impl std::error::Error for StoreError {}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const DIRECTORY: &str = "https://acme.example.org/directory";

    #[test]
    fn what_is_kept_is_read_and_its_owners_alone() {
        let state = tempfile::tempdir().unwrap();
        let store = AuthorityFolder::new(state.path(), DIRECTORY);
        let item = Item::Certificate("*.example.org".to_owned());
        assert_eq!(store.load(&item).unwrap(), None);
        store.save(&item, b"one").unwrap();
        store.save(&item, b"two").unwrap();
        assert_eq!(store.load(&item).unwrap().unwrap(), b"two");
        let path = store.file(&item);
        assert!(path.ends_with("_.example.org.pem"), "{path:?}");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "nothing is left beside it");
    }

    #[test]
    fn names_of_files_stay_in_the_folder() {
        let state = tempfile::tempdir().unwrap();
        let store = AuthorityFolder::new(state.path(), "https://../../x?y");
        let folder = store.file(&Item::Account).parent().unwrap().to_owned();
        assert_eq!(folder.parent().unwrap(), state.path().join("acme"));
        for name in ["../../etc/passwd", "..", "", "a/b", "\0", "/etc/passwd"] {
            let file = store.file(&Item::Certificate(name.to_owned()));
            assert_eq!(file.parent().unwrap(), folder, "{name:?}");
            assert!(file.file_name().is_some(), "{name:?}");
        }
    }

    #[test]
    fn authorities_have_folders_of_their_own() {
        let state = Path::new("/var/lib/hob");
        let file = |directory| AuthorityFolder::new(state, directory).file(&Item::Account);
        assert_ne!(file("https://a.org/one"), file("https://a.org/two"));
        assert_ne!(file("https://a.org/one"), file("https://b.org/one"));
    }

    #[test]
    fn one_at_a_time_holds_the_lock() {
        let state = tempfile::tempdir().unwrap();
        let store = AuthorityFolder::new(state.path(), DIRECTORY);
        let held = store.lock().unwrap().unwrap();
        assert!(store.lock().unwrap().is_none());
        drop(held);
        assert!(store.lock().unwrap().is_some());
    }

    #[test]
    fn folder_that_cannot_be_made_says_what_to_do() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("acme"), "a file").unwrap();
        let store = AuthorityFolder::new(state.path(), DIRECTORY);
        let text = store.save(&Item::Account, b"x").unwrap_err().to_string();
        assert!(text.contains("`state` names another folder"), "{text}");
        assert!(store.lock().is_err());
        assert!(store.load(&Item::Account).is_err());
    }
}
