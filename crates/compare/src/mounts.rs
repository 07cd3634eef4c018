//! File systems that are mounted for one server, in a mount namespace of its own: its supervisor
//! mounts them before it starts anything, and they go with the last process in there, whatever
//! ends it. What a daemon of a file system does is counted as the server's: it is one of the
//! programs below the supervisor.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde::{Deserialize, Serialize};

/// What a file can lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileSystem {
    /// That of the temporary folder, with nothing mounted.
    Own,
    /// Memory.
    Tmpfs,
    /// One folder that shows through another one, as the layers of a container do.
    Overlay,
    /// A process that answers for the kernel: see [`crate::fuse`].
    Fuse,
    /// Another machine's.
    Nfs,
}

/// What is mounted where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MountOrder {
    pub(crate) kind: FileSystem,
    /// A folder whose files are to be found there.
    pub(crate) source: PathBuf,
    /// A folder that is there, and empty.
    pub(crate) at: PathBuf,
}

impl FileSystem {
    pub(crate) const ALL: [FileSystem; 5] = [
        FileSystem::Own,
        FileSystem::Tmpfs,
        FileSystem::Overlay,
        FileSystem::Fuse,
        FileSystem::Nfs,
    ];

    /// As people and `/proc/filesystems` call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FileSystem::Own => "temporary folder",
            FileSystem::Tmpfs => "tmpfs",
            FileSystem::Overlay => "overlay",
            FileSystem::Fuse => "fuse",
            FileSystem::Nfs => "nfs",
        }
    }

    /// Why it cannot be mounted here, as far as that is known before it is tried.
    pub(crate) fn lack(self) -> Option<String> {
        let name = self.name();
        if self == FileSystem::Own {
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            return Some(format!("only root can mount {name}"));
        }
        let known = hob_machine::read("/proc/filesystems");
        let is_known = known
            .lines()
            .any(|line| line.trim_start_matches("nodev").trim() == name);
        match self {
            _ if !is_known => Some(format!(
                "this kernel knows no {name} (/proc/filesystems); its module may have to be loaded"
            )),
            FileSystem::Nfs => Some(
                "nothing is exported for a comparison; set TMPDIR to a folder on NFS: the first of \
                 these lines is then what lies there"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

impl MountOrder {
    /// Mounts it. What comes back is the other side of a file system that a process answers for.
    ///
    /// # Errors
    /// What was refused, as a sentence.
    pub(crate) fn mount(&self) -> Result<Option<OwnedFd>, String> {
        let tell = |error: io::Error| format!("cannot mount {}: {error}", self.kind.name());
        match self.kind {
            FileSystem::Own | FileSystem::Nfs => Ok(None),
            FileSystem::Tmpfs => self.mount_memory().map(|()| None).map_err(tell),
            FileSystem::Overlay => self.mount_layers().map(|()| None).map_err(tell),
            FileSystem::Fuse => self.mount_process().map(Some).map_err(tell),
        }
    }

    fn mount_memory(&self) -> io::Result<()> {
        self.call("tmpfs", MountFlags::empty(), "mode=755,size=16m")?;
        for entry in fs::read_dir(&self.source)? {
            let entry = entry?;
            fs::copy(entry.path(), self.at.join(entry.file_name()))?;
        }
        Ok(())
    }

    /// Read-only, of two layers of which the lower one has the files: so it lies on any other file
    /// system, another overlay included.
    fn mount_layers(&self) -> io::Result<()> {
        let above = self.at.with_extension("above");
        fs::create_dir(&above)?;
        let layers = format!("lowerdir={}:{}", above.display(), self.source.display());
        self.call("overlay", MountFlags::RDONLY, &layers)
    }

    fn mount_process(&self) -> io::Result<OwnedFd> {
        let device = File::options().read(true).write(true).open("/dev/fuse")?;
        let options = format!(
            "fd={},rootmode=40755,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        self.call("fuse", MountFlags::empty(), &options)?;
        Ok(device.into())
    }

    fn call(&self, kind: &str, flags: MountFlags, options: &str) -> io::Result<()> {
        let options = CString::new(options)?;
        let flags = flags | MountFlags::NOSUID | MountFlags::NODEV;
        Ok(mount("hob-compare", &self.at, kind, flags, &*options)?)
    }

    /// Takes it away, so that what it stood on can be removed.
    pub(crate) fn unmount(&self) {
        while unmount_once(&self.at) == Ok(()) {}
    }
}

fn unmount_once(at: &Path) -> Result<(), Errno> {
    unmount(at, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
}

/// The kind of file system that a folder lies on, as the kernel calls it.
pub(crate) fn kind_of(folder: &Path) -> String {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let stat = statx(CWD, folder, AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID);
    let kind = stat
        .ok()
        .and_then(|stat| hob_machine::mounts::kinds().remove(&stat.stx_mnt_id));
    kind.unwrap_or_else(|| FileSystem::Own.name().to_owned())
}
