//! Finding and opening a file below a root: `openat2` with everything the route forbids forbidden
//! to the kernel.
//!
//! The same look-up runs in two ways. On a serving thread it may touch only what is in memory:
//! cached directory entries, no other mount, a file system known to answer from memory. In the file
//! pool it may wait.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use hob_trace::Mutex;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

use crate::cache::changes::{FolderChanges, ToldFolder};
use crate::cache::entry::Stamp;
use crate::handle::config::Symlinks;
use crate::handle::files::precompressed::PrecompressedNames;
use crate::route::target::ENCODED_SLASH;

/// A root folder, looked at again now and then so that a replaced folder, link or mount is seen.
pub struct Root {
    path: PathBuf,
    place: RootPlace,
    dir: ArcSwap<RootDir>,
    /// When the path was last known to lead to `dir`, in milliseconds.
    checked_ms: AtomicU64,
    /// It could not be opened when it was last tried.
    is_lost: AtomicBool,
    /// Held by the one that opens it again, so that an older look never replaces a newer one.
    opening: Mutex<()>,
    lane: u64,
}

/// How a root is reached.
enum RootPlace {
    /// By its path.
    Path,
    /// From another root, which requests have no say in: by a path that one gave, and by no link
    /// that leads out of that root.
    Below {
        fixed: Arc<Root>,
        name: Box<[u8]>,
        symlinks: Symlinks,
    },
}

/// The root as it was opened last.
pub struct RootDir {
    fd: OwnedFd,
    identity: FolderIdentity,
    /// Its file system answers from memory what is in memory.
    pub is_local: bool,
    /// What is known of the folders below.
    pub(super) precompressed: PrecompressedNames,
    /// What the kernel tells of them.
    pub(super) changes: Arc<FolderChanges>,
}

/// What tells one folder from another, as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FolderIdentity {
    device: (u32, u32),
    inode: u64,
    mount: u64,
}

/// Whether a look-up may wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// On a serving thread: never.
    TouchMemoryOnly,
    /// In the file pool.
    Wait,
}

/// What stands at a path.
pub enum FileOrFolder {
    /// A regular file, open for reading.
    File(OwnedFd, Stamp),
    /// A folder.
    Folder,
}

/// Why nothing was found.
#[derive(Debug)]
pub enum FileOpenError {
    /// There is nothing, or nothing that may be told (404).
    Missing,
    /// It may not be read (403).
    Forbidden,
    /// Only the file pool can tell.
    WouldWait,
    /// The system failed (500).
    Failed(io::Error),
}

impl Root {
    /// Opens a root. May wait for a disk.
    pub fn open(path: &Path, changes: &Arc<FolderChanges>) -> io::Result<Root> {
        static LANES: AtomicU64 = AtomicU64::new(1);
        let lane = LANES.fetch_add(1, Ordering::Relaxed);
        Root::at(path, RootPlace::Path, changes, lane)
    }

    /// Opens a root below this one, at a path from here whose names are safe. Links on the way to
    /// it are followed where that says `Follow`, and none leads out of this root. May wait for a
    /// disk.
    pub fn open_below(self: &Arc<Root>, name: &[u8], symlinks: Symlinks) -> io::Result<Root> {
        let path = self.path.join(OsStr::from_bytes(name));
        let place = RootPlace::Below {
            fixed: Arc::clone(self),
            name: name.into(),
            symlinks: match symlinks {
                Symlinks::Follow => Symlinks::Inside,
                Symlinks::Inside | Symlinks::Refuse => Symlinks::Refuse,
            },
        };
        let changes = Arc::clone(&self.dir.load().changes);
        // What hangs there hangs for all of them.
        Root::at(&path, place, &changes, self.lane)
    }

    fn at(
        path: &Path,
        place: RootPlace,
        changes: &Arc<FolderChanges>,
        lane: u64,
    ) -> io::Result<Root> {
        let dir = RootDir::open_root(path, &place, changes)?;
        // Opening a folder by its path says nothing of what is in it.
        rustix::fs::accessat(&dir, ".", rustix::fs::Access::EXEC_OK, AtFlags::empty())?;
        Ok(Root {
            path: path.to_owned(),
            place,
            dir: ArcSwap::from_pointee(dir),
            checked_ms: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            opening: Mutex::new(()),
            lane,
        })
    }

    /// It is below another root, and was not there when it was last looked for.
    pub fn is_gone(&self) -> bool {
        matches!(self.place, RootPlace::Below { .. }) && self.is_lost.load(Ordering::Relaxed)
    }

    /// The folder as it was opened last.
    pub fn dir(&self) -> Arc<RootDir> {
        self.dir.load_full()
    }

    /// Its lane in the file pool: no two roots have the same.
    pub fn lane(&self) -> u64 {
        self.lane
    }

    /// Its path, as configured.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kernel's number of the mount it is on.
    pub fn mount(&self) -> u64 {
        self.dir.load().identity.mount
    }

    /// Sees to it that the folder is the one its path leads to, known no longer ago than `age_ms`.
    /// Returns the moment of which that is known, in milliseconds. A path that leads nowhere leaves
    /// the folder as it was, but one that requests have a part in: that is missing then.
    pub fn refresh(&self, now_ms: u64, age_ms: u64, may: May) -> Result<u64, FileOpenError> {
        let checked_ms = self.checked_ms.load(Ordering::Acquire);
        let known = |moment_ms| match self.is_gone() {
            true => Err(FileOpenError::Missing),
            false => Ok(moment_ms),
        };
        if now_ms < checked_ms + age_ms {
            return known(checked_ms);
        }
        if let RootPlace::Below { fixed, .. } = &self.place {
            fixed.refresh(now_ms, age_ms, may)?;
        }
        match may {
            May::TouchMemoryOnly if self.is_gone() || !self.is_still_there() => {
                return Err(FileOpenError::WouldWait);
            }
            May::TouchMemoryOnly => {}
            May::Wait => self.open_again(),
        }
        self.checked_ms.fetch_max(now_ms, Ordering::AcqRel);
        known(now_ms)
    }

    /// True when it is known without asking any file system that the folder is the same.
    fn is_still_there(&self) -> bool {
        let found = self.place.open(&self.path, ResolveFlags::CACHED);
        let found = found.and_then(|fd| FolderIdentity::of(&fd));
        found.is_ok_and(|found| found == self.dir.load().identity)
    }

    fn open_again(&self) {
        let _opening = self.opening.lock();
        match RootDir::open_root(&self.path, &self.place, &self.dir.load().changes) {
            Ok(dir) => {
                self.is_lost.store(false, Ordering::Relaxed);
                if dir.identity != self.dir.load().identity {
                    self.dir.store(Arc::new(dir));
                }
            }
            Err(error) => {
                // Accounts come and go.
                let is_news = !self.is_lost.swap(true, Ordering::Relaxed) && !self.is_gone();
                if is_news {
                    let root = self.path.display();
                    tracing::warn!(%root, %error, "a root folder cannot be opened any more");
                }
            }
        }
    }
}

impl RootPlace {
    /// Opens the folder that is there now; `path` is the root's.
    fn open(&self, path: &Path, resolve: ResolveFlags) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mode = Mode::empty();
        match self {
            RootPlace::Path if resolve.is_empty() => rustix::fs::open(path, flags, mode),
            RootPlace::Path => rustix::fs::openat2(rustix::fs::CWD, path, flags, mode, resolve),
            RootPlace::Below {
                fixed,
                name,
                symlinks,
            } => {
                let resolve = resolve | resolve_flags(*symlinks);
                let name = Path::new(OsStr::from_bytes(name));
                rustix::fs::openat2(&*fixed.dir.load_full(), name, flags, mode, resolve)
            }
        }
    }
}

impl RootDir {
    fn open_root(
        path: &Path,
        place: &RootPlace,
        changes: &Arc<FolderChanges>,
    ) -> io::Result<RootDir> {
        let fd = place.open(path, ResolveFlags::empty())?;
        let identity = FolderIdentity::of(&fd)?;
        let is_local = is_local(rustix::fs::fstatfs(&fd)?.f_type as u64);
        Ok(RootDir {
            fd,
            identity,
            is_local,
            precompressed: PrecompressedNames::default(),
            changes: Arc::clone(changes),
        })
    }

    /// What stands at `path`, which is relative; empty is the root itself.
    pub fn look(
        &self,
        path: &[u8],
        symlinks: Symlinks,
        may: May,
    ) -> Result<FileOrFolder, FileOpenError> {
        if may == May::TouchMemoryOnly && !self.is_local {
            return Err(FileOpenError::WouldWait);
        }
        let mut resolve = resolve_flags(symlinks);
        if may == May::TouchMemoryOnly {
            resolve |= ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
        }
        // Non-blocking, so that a named pipe does not hold the thread.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened = self.open_with(path, flags, resolve);
        let fd = opened.map_err(|error| trouble_of(error, may))?;
        let stat = rustix::fs::fstat(&fd).map_err(|error| FileOpenError::Failed(error.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(FileOrFolder::File(fd, Stamp::of(&stat))),
            FileType::Directory => Ok(FileOrFolder::Folder),
            _ => Err(FileOpenError::Forbidden),
        }
    }

    /// The state of what stands at `path`, whether or not it may be read; empty is the root itself.
    pub fn state(&self, path: &[u8], symlinks: Symlinks, may: May) -> Result<Stat, FileOpenError> {
        Ok(self.reach(path, symlinks, may)?.1)
    }

    /// The same, with a descriptor that names it and reads nothing (`O_PATH`).
    pub fn reach(
        &self,
        path: &[u8],
        symlinks: Symlinks,
        may: May,
    ) -> Result<(OwnedFd, Stat), FileOpenError> {
        let mut resolve = resolve_flags(symlinks);
        if may == May::TouchMemoryOnly {
            if !self.is_local {
                return Err(FileOpenError::WouldWait);
            }
            resolve |= ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let opened = self.open_with(path, flags, resolve);
        let fd = opened.map_err(|error| trouble_of(error, may))?;
        let stat = rustix::fs::fstat(&fd).map_err(|error| FileOpenError::Failed(error.into()))?;
        Ok((fd, stat))
    }

    /// Has the kernel tell of changes in a folder. `None` when it does not, or a link or a mount is
    /// on the way, whose changes it would not tell. May wait for a disk.
    pub(super) fn tell_of(&self, folder: &[u8]) -> Option<ToldFolder> {
        let ends = memchr::memchr_iter(b'/', folder).chain([folder.len()]);
        let parts = ends
            .map(|end| &folder[..end])
            .filter(|part| !part.is_empty());
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |part| self.open_with(part, flags, resolve);
        let way = std::iter::once(&b""[..]).chain(parts).map(open);
        let way = way.collect::<Result<Vec<_>, _>>().ok()?;
        let told = self.changes.tell_of(&way)?;
        // What became of the way before that was told to nobody.
        let now = FolderIdentity::of(&open(folder).ok()?).ok()?;
        (FolderIdentity::of(way.last()?) == Ok(now)).then_some(told)
    }

    /// What stands at `path` whatever links lead there, and where that is. May wait for a disk.
    pub fn follow(&self, path: &[u8]) -> io::Result<(PathBuf, Stat)> {
        let fd = self.open(path, OFlags::PATH | OFlags::CLOEXEC, Symlinks::Follow)?;
        let stat = rustix::fs::fstat(&fd)?;
        // Of what was opened, not of the path: that may lead elsewhere by now.
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        Ok((std::fs::read_link(link)?, stat))
    }

    /// Opens a folder to read its names. May wait for a disk.
    pub fn open_folder(&self, path: &[u8], symlinks: Symlinks) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.open(path, flags, symlinks)
    }

    /// The state of what stands at `path`, whether or not it may be read. May wait for a disk.
    pub fn status(&self, path: &[u8], symlinks: Symlinks) -> io::Result<Stat> {
        let fd = self.open(path, OFlags::PATH | OFlags::CLOEXEC, symlinks)?;
        Ok(rustix::fs::fstat(&fd)?)
    }

    fn open(&self, path: &[u8], flags: OFlags, symlinks: Symlinks) -> io::Result<OwnedFd> {
        Ok(self.open_with(path, flags, resolve_flags(symlinks))?)
    }

    fn open_with(
        &self,
        path: &[u8],
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> rustix::io::Result<OwnedFd> {
        let name = if path.is_empty() { b"." } else { path };
        let path = Path::new(OsStr::from_bytes(name));
        let opened = rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), resolve);
        opened.map_err(|error| match error {
            // No name has a slash in it.
            Errno::INVAL if name.contains(&ENCODED_SLASH) => Errno::NOENT,
            error => error,
        })
    }
}

impl FolderIdentity {
    /// Asks no file system: one that hangs would hold whoever asks.
    fn of(fd: &OwnedFd) -> rustix::io::Result<FolderIdentity> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = rustix::fs::statx(fd, c"", flags, StatxFlags::INO | StatxFlags::MNT_ID)?;
        Ok(FolderIdentity {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            mount: stat.stx_mnt_id,
        })
    }
}

fn resolve_flags(symlinks: Symlinks) -> ResolveFlags {
    let always = ResolveFlags::NO_MAGICLINKS;
    match symlinks {
        Symlinks::Inside => always | ResolveFlags::BENEATH,
        Symlinks::Follow => always,
        Symlinks::Refuse => always | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    }
}

impl AsFd for RootDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn trouble_of(error: Errno, may: May) -> FileOpenError {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => FileOpenError::Missing,
        // A link that leads out of the root, or any link where none are followed, is not told apart
        // from nothing.
        Errno::LOOP => FileOpenError::Missing,
        Errno::XDEV if may == May::TouchMemoryOnly => FileOpenError::WouldWait,
        Errno::XDEV => FileOpenError::Missing,
        Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::NODEV => FileOpenError::Forbidden,
        // A kernel before 5.12 cannot be asked for what is in memory only.
        Errno::AGAIN | Errno::INVAL if may == May::TouchMemoryOnly => FileOpenError::WouldWait,
        error => FileOpenError::Failed(error.into()),
    }
}

/// File systems that answer from memory what is in memory, by their magic number (`statfs(2)`).
pub(crate) fn is_local(magic: u64) -> bool {
    const LOCAL: &[u64] = &[
        0xef53,      // ext2, ext3, ext4
        0x5846_5342, // xfs
        0x9123_683e, // btrfs
        0x0102_1994, // tmpfs
        0x8584_58f6, // ramfs
        0x794c_7630, // overlay
        0xf2f5_2010, // f2fs
        0x2fc1_2fc1, // zfs
        0x7371_7368, // squashfs
        0xe0f5_e1e2, // erofs
        0x9660,      // iso9660
        0xca45_1a4e, // bcachefs
    ];
    LOCAL.contains(&(magic & 0xffff_ffff))
}
