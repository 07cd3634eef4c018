//! A folder whose files pages may use. The kernel keeps them in it, by `openat2`: neither `..` nor
//! a link leads out, and what is no file is not opened for long.
//!
//! A file is changed by one that takes its place, so it is there as it was or as it shall be:
//!
//! ```text
//!  .NAME.hob   made; one that a killed run left is made anew
//!      |       locked (flock): the one run that changes NAME now
//!      |       written, synced
//!      '-----> renamed to NAME; who waited for the lock sees that and begins again
//! ```
//!
//! Readers need no lock: what they have open is never written to. Names that begin with a dot are
//! not there for pages.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::fault::{FunctionFault, code};
use crate::limits::FileLimits;

/// Mode of a file that is made.
const NEW_MODE: u32 = 0o640;
/// Between two looks at a lock: the first pause, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// Tries of a look-up that a rename elsewhere disturbed.
const LOOKS_MAX: usize = 4;

/// A folder whose files pages may use.
#[derive(Clone, Debug)]
pub struct FileFolder {
    /// Where it is. It is opened for each use, so one that takes its place is seen.
    pub path: PathBuf,
    /// Files may be changed.
    pub is_writable: bool,
    /// How large files may be, and how long who waits for one.
    pub limits: FileLimits,
    /// Whether the run of this thread has to end, so that it waits no longer.
    pub is_over: fn() -> bool,
}

/// Why a file is not read or changed.
#[derive(Debug)]
pub(super) enum FileFault {
    /// It is not there, or outside of the folder.
    Missing,
    /// Another run changes it, and has for too long.
    Busy,
    /// Nothing here may be written.
    ReadOnly,
    /// It may not be opened, or is no file.
    Refused(&'static str),
    /// It is larger than a file may be.
    TooLarge,
    /// The disk is full.
    Full,
    /// The system failed.
    Failed(io::Error),
    /// Whoever changes it said so.
    Told(FunctionFault),
}

/// The file that is changed, as it was.
pub(super) struct OldFile<'f> {
    folder: &'f FileFolder,
    file: Option<OwnedFd>,
}

/// What becomes of a file.
pub(super) enum NewContent {
    /// This.
    Content(Vec<u8>),
    /// It is removed.
    Nothing,
}

type Filed<T> = Result<T, FileFault>;

impl FileFolder {
    /// The whole content of a file.
    pub(super) fn read(&self, name: &str) -> Filed<Vec<u8>> {
        check_name(name)?;
        let root = self.open()?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.content(open_below(&root, name, flags)?)
    }

    /// Whether there is such a file.
    pub(super) fn exists(&self, name: &str) -> Filed<bool> {
        if check_name(name).is_err() {
            return Ok(false);
        }
        let found = self.open().and_then(|root| {
            let found = open_below(&root, name, OFlags::PATH)?;
            Ok(rustix::fs::fstat(&found)?)
        });
        match found {
            Ok(stat) => Ok(is_file(&stat)),
            Err(FileFault::Missing) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Changes a file, alone among all runs.
    pub(super) fn change(
        &self,
        name: &str,
        change: impl FnOnce(OldFile<'_>) -> Filed<NewContent>,
    ) -> Filed<()> {
        check_name(name)?;
        if !self.is_writable {
            return Err(FileFault::ReadOnly);
        }
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let mut parent = self.open()?;
        if !folder.is_empty() {
            parent = open_below(&parent, folder, OFlags::PATH | OFlags::DIRECTORY)?;
        }
        let mut locked = self.lock(&parent, file)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let old = match open_own(&parent, file, flags) {
            Ok(fd) => Some(fd),
            Err(FileFault::Missing) => None,
            Err(fault) => return Err(fault),
        };
        let mode = match &old {
            Some(fd) => rustix::fs::fstat(fd)?.st_mode & 0o777,
            None => NEW_MODE,
        };
        let old = OldFile {
            folder: self,
            file: old,
        };
        match change(old)? {
            NewContent::Nothing => {
                rustix::fs::unlinkat(&parent, file, AtFlags::empty())?;
            }
            NewContent::Content(content) => {
                if content.len() as u64 > self.limits.bytes_max {
                    return Err(FileFault::TooLarge);
                }
                locked.write(&content, mode)?;
                rustix::fs::renameat(&parent, &locked.name, &parent, file)?;
                locked.is_renamed = true;
            }
        }
        sync_names(&parent);
        Ok(())
    }

    fn open(&self) -> Filed<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(CWD, &self.path, flags, Mode::empty())?)
    }

    fn content(&self, fd: OwnedFd) -> Filed<Vec<u8>> {
        let stat = rustix::fs::fstat(&fd)?;
        if !is_file(&stat) {
            return Err(FileFault::Refused("it is no file"));
        }
        let bytes_max = self.limits.bytes_max;
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let mut content = Vec::with_capacity(size.min(bytes_max) as usize);
        let mut file = File::from(fd).take(bytes_max + 1);
        file.read_to_end(&mut content).map_err(FileFault::of)?;
        match content.len() as u64 > bytes_max {
            true => Err(FileFault::TooLarge),
            false => Ok(content),
        }
    }

    /// The one right to change a file, waited for.
    fn lock<'p>(&self, parent: &'p OwnedFd, file: &str) -> Filed<LockedName<'p>> {
        let name = format!(".{file}.hob");
        let mut pauses = Pauses::new(self.limits.lock_wait);
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY;
            let fd = open_own(parent, &name, flags)?;
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                // Its client has been told by now that nothing was done.
                Ok(()) if (self.is_over)() => return Err(FileFault::Busy),
                Ok(()) if is_still_named(parent, &name, &fd)? => {
                    if !is_fresh(&rustix::fs::fstat(&fd)?) {
                        // Whoever left it is gone: it is locked, and its name is ours to give.
                        rustix::fs::unlinkat(parent, &name, AtFlags::empty())?;
                        if pauses.may_go_on() {
                            continue;
                        }
                        return Err(FileFault::Busy);
                    }
                    let file = File::from(fd);
                    return Ok(LockedName {
                        parent,
                        name,
                        file,
                        is_renamed: false,
                    });
                }
                // It is the file itself by now, or gone.
                Ok(()) if pauses.may_go_on() => {}
                Err(Errno::WOULDBLOCK | Errno::INTR) if !(self.is_over)() && pauses.rest() => {}
                Ok(()) | Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(FileFault::Busy),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl OldFile<'_> {
    pub(super) fn is_there(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn read(self) -> Filed<Vec<u8>> {
        let file = self.file.ok_or(FileFault::Missing)?;
        self.folder.content(file)
    }
}

/// The file that takes the place of another, locked. Without a rename it goes.
struct LockedName<'p> {
    parent: &'p OwnedFd,
    name: String,
    file: File,
    is_renamed: bool,
}

impl LockedName<'_> {
    fn write(&mut self, content: &[u8], mode: u32) -> Filed<()> {
        let written = self.file.write_all(content);
        let written = written.and_then(|()| self.file.sync_all());
        written.map_err(FileFault::of)?;
        Ok(rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?)
    }
}

impl Drop for LockedName<'_> {
    /// While it is locked still: nobody else has this name.
    fn drop(&mut self) {
        if !self.is_renamed {
            let _ = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::empty());
        }
    }
}

/// How long somebody still waits: what was waited for is added up from the pauses.
struct Pauses {
    left: Duration,
    next: Duration,
    turns: u32,
}

impl Pauses {
    fn new(whole: Duration) -> Self {
        Self {
            left: whole,
            next: PAUSE_MIN,
            turns: 0,
        }
    }

    /// Waits a little; false when all was waited.
    fn rest(&mut self) -> bool {
        if self.left.is_zero() {
            return false;
        }
        let pause = self.next.min(self.left);
        std::thread::sleep(pause);
        self.left -= pause;
        self.next = (self.next * 2).min(PAUSE_MAX);
        true
    }

    /// Whether there may be another try without a pause.
    fn may_go_on(&mut self) -> bool {
        self.turns += 1;
        self.turns < 10_000
    }
}

/// Refuses names that no file of a page has.
fn check_name(name: &str) -> Filed<()> {
    let is_bad = |part: &str| part.is_empty() || part.starts_with('.');
    match name.contains('\0') || name.split('/').any(is_bad) {
        true => Err(FileFault::Missing),
        false => Ok(()),
    }
}

/// Opens what is below a folder, wherever links in it lead that stay in it.
fn open_below(folder: &OwnedFd, name: &str, flags: OFlags) -> Filed<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(name.as_bytes()));
    let (flags, mode) = (flags | OFlags::CLOEXEC, Mode::empty());
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 1..LOOKS_MAX {
        match rustix::fs::openat2(folder, path, flags, mode, resolve) {
            Err(Errno::AGAIN) => {}
            found => return Ok(found?),
        }
    }
    Ok(rustix::fs::openat2(folder, path, flags, mode, resolve)?)
}

/// Opens what has this name in a folder itself; a link is not followed.
fn open_own(folder: &OwnedFd, name: &str, flags: OFlags) -> Filed<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(NEW_MODE));
    match opened {
        Err(Errno::LOOP) => Err(FileFault::Refused("it is a link, which is only read")),
        opened => {
            let fd = opened?;
            match is_file(&rustix::fs::fstat(&fd)?) {
                true => Ok(fd),
                false => Err(FileFault::Refused("it is no file")),
            }
        }
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether it was made just now, and not by a run that was killed or by somebody else.
fn is_fresh(stat: &Stat) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stat.st_size == 0 && stat.st_nlink == 1 && stat.st_uid == own
}

/// Whether a name is still that of an open file.
fn is_still_named(folder: &OwnedFd, name: &str, fd: &OwnedFd) -> Filed<bool> {
    let own = rustix::fs::fstat(fd)?;
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Has the folder keep its names. That the files are as they shall be is certain without it, so
/// a folder that cannot is no failure.
fn sync_names(folder: &OwnedFd) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(fd) = rustix::fs::openat(folder, ".", flags, Mode::empty()) {
        let _ = rustix::fs::fsync(fd);
    }
}

impl FileFault {
    pub(super) fn of(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Failed(error),
        }
    }

    /// A return code, with what it is about. `missing` is the code of what is not there.
    pub(super) fn told(self, what: &str, missing: i64) -> FunctionFault {
        let (code, message) = match self {
            Self::Told(fault) => return fault,
            Self::Missing => (missing, "there is no such one".to_owned()),
            Self::Busy => (code::BUSY, "another run changes it".to_owned()),
            Self::ReadOnly => (code::READ_ONLY, "nothing here may be written".to_owned()),
            Self::Refused(why) => (code::REFUSED, why.to_owned()),
            Self::TooLarge => (
                code::LIMIT,
                "it is larger than a file of pages may be".to_owned(),
            ),
            Self::Full => (
                code::DISK_FULL,
                "the disk is full; it is as it was".to_owned(),
            ),
            Self::Failed(error) => (code::SYSTEM, error.to_string()),
        };
        FunctionFault::new(code, format!("{what}: {message}"))
    }
}

impl From<Errno> for FileFault {
    fn from(errno: Errno) -> Self {
        match errno {
            // A link that leads out is not told apart from nothing.
            Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::NAMETOOLONG => {
                Self::Missing
            }
            Errno::ACCESS | Errno::PERM => Self::Refused("the server's user may not"),
            Errno::ISDIR | Errno::NXIO | Errno::NODEV => Self::Refused("it is no file"),
            Errno::ROFS => Self::ReadOnly,
            Errno::NOSPC | Errno::DQUOT => Self::Full,
            Errno::FBIG => Self::TooLarge,
            errno => Self::Failed(errno.into()),
        }
    }
}
