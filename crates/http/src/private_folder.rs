//! A folder that is ours alone, for what is kept over restarts: keys, certificates, accounts.
//!
//! Whoever may write to a folder decides what its names lead to. So the folder is opened once and
//! must be ours and nobody else's to write to; everything after that happens relative to it, and no
//! name in it is followed when it is a symbolic link. A file is written whole under a name that was
//! not there, brought to the disk, and renamed.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, fsync, openat, renameat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Bits of a mode that let others than the owner write.
const OTHERS_WRITE: u32 = 0o022;

/// A folder that is ours alone.
#[derive(Debug)]
pub struct PrivateFolder(OwnedFd);

impl PrivateFolder {
    /// Opens the folder.
    ///
    /// # Errors
    /// It is not there, is a symbolic link, belongs to somebody else, or others may write to it.
    pub fn open(path: &Path) -> io::Result<PrivateFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = fstat(&folder)?;
        if stat.st_uid != geteuid().as_raw() && stat.st_uid != 0 {
            return Err(refused(format!(
                "its folder belongs to user {}",
                stat.st_uid
            )));
        }
        if stat.st_mode & OTHERS_WRITE != 0 {
            let mode = stat.st_mode & 0o7777;
            return Err(refused(format!(
                "others may write to its folder (mode {mode:o})"
            )));
        }
        Ok(PrivateFolder(folder))
    }

    /// Makes the folder, and those above it, where they are not there.
    ///
    /// # Errors
    /// It cannot be made, or not be opened.
    pub fn make(path: &Path) -> io::Result<PrivateFolder> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)?;
        PrivateFolder::open(path)
    }

    /// The first bytes of a file, at most this many.
    ///
    /// # Errors
    /// There is no such file, or it cannot be read.
    pub fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(refused("it is no regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        File::from(file).take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file that only its owner may read: all of it or nothing.
    ///
    /// # Errors
    /// It could not be written; the file is as it was.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let beside = format!(".{}.new", std::process::id());
        // Left over by another process of this number.
        match unlinkat(&self.0, &beside, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let written = self.write_new(&beside, bytes).and_then(|()| {
            renameat(&self.0, &beside, &self.0, name)?;
            Ok(())
        });
        if written.is_err() {
            // It would only be in the way.
            let _ = unlinkat(&self.0, &beside, AtFlags::empty());
            return written;
        }
        Ok(fsync(&self.0)?)
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(openat(&self.0, name, flags, mode)?);
        fchmod(&file, mode)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Takes the lock of this name; `None` while somebody else has it.
    ///
    /// # Errors
    /// Its file cannot be made.
    pub fn lock(&self, name: &str) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/inner");
        (place, path)
    }

    #[test]
    fn what_is_written_is_read_and_its_owners_alone() {
        let (_place, path) = folder();
        let folder = PrivateFolder::make(&path).unwrap();
        folder.write("a", b"one").unwrap();
        folder.write("a", b"two").unwrap();
        assert_eq!(folder.read("a", 99).unwrap(), b"two");
        assert_eq!(folder.read("a", 2).unwrap(), b"tw");
        assert!(folder.read("b", 99).is_err());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o600));
        assert_eq!(
            fs::read_dir(&path).unwrap().count(),
            1,
            "nothing is beside it"
        );
    }

    #[test]
    fn links_are_neither_written_through_nor_read() {
        let (place, path) = folder();
        let folder = PrivateFolder::make(&path).unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "its own").unwrap();
        for name in ["a", "lock", &format!(".{}.new", std::process::id())] {
            symlink(&victim, path.join(name)).unwrap();
        }
        assert!(folder.read("a", 99).is_err());
        assert!(folder.lock("lock").is_err());
        folder.write("a", b"one").unwrap();
        assert_eq!(folder.read("a", 99).unwrap(), b"one");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "its own");
        assert_eq!(
            fs::metadata(&victim).unwrap().permissions().mode() & 0o777,
            0o644
        );
        fs::create_dir(path.join("folder")).unwrap();
        assert!(folder.read("folder", 99).is_err());
    }

    #[test]
    fn folder_that_others_may_change_is_not_used() {
        let (place, path) = folder();
        PrivateFolder::make(&path).unwrap();
        for mode in [0o770, 0o702, 0o1777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let text = PrivateFolder::open(&path).unwrap_err().to_string();
            assert!(text.contains("others may write"), "{text}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        PrivateFolder::open(&path).unwrap();
        let link = place.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(PrivateFolder::open(&link).is_err());
        if chown(&path, Some(12345), None).is_ok() {
            let text = PrivateFolder::open(&path).unwrap_err().to_string();
            assert!(text.contains("user 12345"), "{text}");
        }
    }

    #[test]
    fn one_at_a_time_holds_the_lock() {
        let (_place, path) = folder();
        let folder = PrivateFolder::make(&path).unwrap();
        let held = folder.lock("lock").unwrap().unwrap();
        assert!(folder.lock("lock").unwrap().is_none());
        drop(held);
        assert!(folder.lock("lock").unwrap().is_some());
    }
}
