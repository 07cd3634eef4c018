//! Finding and opening a file below a root: `openat2` with everything the route forbids forbidden
//! to the kernel.
//!
//! The same look-up runs in two ways. On a serving thread it may touch only what is in memory:
//! cached directory entries, no other mount, a file system known to answer from memory. In the file
//! pool it may wait.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::cache::entry::Stamp;
use crate::config::Symlinks;

/// A root folder, looked at again now and then so that a replaced folder or link is seen.
pub struct Root {
    path: PathBuf,
    dir: ArcSwap<RootDir>,
    checked_ms: AtomicU64,
    is_rechecking: AtomicBool,
}

/// The root as it was opened last.
pub struct RootDir {
    fd: OwnedFd,
    device: u64,
    inode: u64,
    /// Its file system answers from memory what is in memory.
    pub is_local: bool,
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
pub enum Found {
    /// A regular file, open for reading.
    File(OwnedFd, Stamp),
    /// A folder.
    Folder,
}

/// Why nothing was found.
#[derive(Debug)]
pub enum Trouble {
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
    pub fn open(path: &Path) -> io::Result<Root> {
        Ok(Root {
            path: path.to_owned(),
            dir: ArcSwap::from_pointee(RootDir::open_root(path)?),
            checked_ms: AtomicU64::new(0),
            is_rechecking: AtomicBool::new(false),
        })
    }

    /// The folder as it was opened last.
    pub fn dir(&self) -> Arc<RootDir> {
        self.dir.load_full()
    }

    /// Its path, as configured.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True for the one caller that is to have it looked at again: it is older than `age_ms`.
    pub fn begin_recheck(&self, now_ms: u64, age_ms: u64) -> bool {
        now_ms >= self.checked_ms.load(Ordering::Relaxed) + age_ms
            && !self.is_rechecking.swap(true, Ordering::AcqRel)
    }

    /// The look could not be had now.
    pub fn recheck_later(&self) {
        self.is_rechecking.store(false, Ordering::Release);
    }

    /// Opens the path again and keeps the folder when it is another. May wait for a disk. Returns
    /// true when it is another.
    pub fn recheck(&self, now_ms: u64) -> bool {
        let mut changed = false;
        match RootDir::open_root(&self.path) {
            Ok(dir) => {
                let known = self.dir.load();
                if (dir.device, dir.inode) != (known.device, known.inode) {
                    self.dir.store(Arc::new(dir));
                    changed = true;
                }
            }
            Err(error) => {
                tracing::warn!(root = %self.path.display(), %error, "a root folder cannot be opened");
            }
        }
        self.checked_ms.store(now_ms, Ordering::Relaxed);
        self.is_rechecking.store(false, Ordering::Release);
        changed
    }
}

impl RootDir {
    fn open_root(path: &Path) -> io::Result<RootDir> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        let is_local = is_local(rustix::fs::fstatfs(&fd)?.f_type as u64);
        Ok(RootDir {
            fd,
            device: stat.st_dev,
            inode: stat.st_ino,
            is_local,
        })
    }

    /// What stands at `path`, which is relative; empty is the root itself.
    pub fn look(&self, path: &[u8], symlinks: Symlinks, may: May) -> Result<Found, Trouble> {
        if may == May::TouchMemoryOnly && !self.is_local {
            return Err(Trouble::WouldWait);
        }
        let name = if path.is_empty() { b"." } else { path };
        let mut resolve = resolve_flags(symlinks);
        if may == May::TouchMemoryOnly {
            resolve |= ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
        }
        // Non-blocking, so that a named pipe does not hold the thread.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened = rustix::fs::openat2(
            &self.fd,
            Path::new(OsStr::from_bytes(name)),
            flags,
            Mode::empty(),
            resolve,
        );
        let fd = opened.map_err(|error| trouble_of(error, may))?;
        let stat = rustix::fs::fstat(&fd).map_err(|error| Trouble::Failed(error.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Found::File(fd, stamp_of(&stat))),
            FileType::Directory => Ok(Found::Folder),
            _ => Err(Trouble::Forbidden),
        }
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
        let name = if path.is_empty() { b"." } else { path };
        let path = Path::new(OsStr::from_bytes(name));
        let resolve = resolve_flags(symlinks);
        Ok(rustix::fs::openat2(
            &self.fd,
            path,
            flags,
            Mode::empty(),
            resolve,
        )?)
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

fn trouble_of(error: Errno, may: May) -> Trouble {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Trouble::Missing,
        // A link that leads out of the root, or any link where none are followed, is not told apart
        // from nothing.
        Errno::LOOP => Trouble::Missing,
        Errno::XDEV if may == May::TouchMemoryOnly => Trouble::WouldWait,
        Errno::XDEV => Trouble::Missing,
        Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::NODEV => Trouble::Forbidden,
        Errno::AGAIN if may == May::TouchMemoryOnly => Trouble::WouldWait,
        error => Trouble::Failed(error.into()),
    }
}

/// The state of an open file. Attributes are in memory once a local file is open.
pub fn stamp_of(stat: &Stat) -> Stamp {
    let nanos = |secs: i64, nanos: u64| i128::from(secs) * 1_000_000_000 + i128::from(nanos);
    Stamp {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: stat.st_size.cast_unsigned(),
        modified_ns: nanos(stat.st_mtime, stat.st_mtime_nsec),
        changed_ns: nanos(stat.st_ctime, stat.st_ctime_nsec),
    }
}

/// File systems that answer from memory what is in memory, by their magic number (`statfs(2)`).
fn is_local(magic: u64) -> bool {
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
