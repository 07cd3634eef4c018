//! Sockets without a name in any folder: only who has the file of one reaches it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, Mode, OFlags, fchmod, mkdirat, open};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::process::umask;

use super::open::UNIX_LISTENER_MODE;

/// Folders in which it has a name while it is made.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];
/// Connections that wait there.
const BACKLOG: i32 = 511;

/// A Unix socket that listens, and the file that it was.
#[derive(Debug)]
pub struct NamelessSocket {
    /// The end that takes connections.
    pub listener: OwnedFd,
    /// Who has it may connect, of whichever user: see [`path_of`].
    pub file: OwnedFd,
}

/// Where this process finds the socket whose file this is.
pub fn path_of(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl NamelessSocket {
    /// A new one for this process's user, closed on exec.
    ///
    /// # Errors
    /// There is no folder for it, or no descriptor.
    pub fn open(flags: SocketFlags) -> io::Result<NamelessSocket> {
        NamelessSocket::bound(flags, bind_nameless)
    }

    /// The same for every user. To be called while the process has one thread: the mask of new
    /// files is another one meanwhile.
    ///
    /// # Errors
    /// There is no folder for it, or no descriptor.
    pub fn open_for_others(flags: SocketFlags) -> io::Result<NamelessSocket> {
        NamelessSocket::bound(flags, |listener| {
            // The file takes the mode that the socket has when it is bound.
            fchmod(listener, Mode::from_raw_mode(UNIX_LISTENER_MODE))?;
            let usual_mask = umask(Mode::empty());
            let file = bind_nameless(listener);
            umask(usual_mask);
            file
        })
    }

    fn bound(
        flags: SocketFlags,
        bind: impl FnOnce(&OwnedFd) -> io::Result<OwnedFd>,
    ) -> io::Result<NamelessSocket> {
        let flags = flags | SocketFlags::CLOEXEC;
        let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let file = bind(&listener)?;
        listen(&listener, BACKLOG)?;
        Ok(NamelessSocket { listener, file })
    }
}

/// Gives it a name in a folder that is its own, and takes both away again. The file that it was is
/// left, open.
fn bind_nameless(listener: &OwnedFd) -> io::Result<OwnedFd> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for folder in FOLDERS {
        let folder = match own_folder(Path::new(folder)) {
            Ok(folder) => folder,
            Err(error) => {
                failed = error;
                continue;
            }
        };
        let path = folder.join("socket");
        let bound = SocketAddrUnix::new(&*path).and_then(|address| bind(listener, &address));
        let file = bound.and_then(|()| open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
        let _ = std::fs::remove_file(&path);
        std::fs::remove_dir(&folder)?;
        return Ok(file?);
    }
    Err(failed)
}

/// A new folder that nobody else enters.
fn own_folder(within: &Path) -> io::Result<PathBuf> {
    /// Names that others may have before.
    const TRIES: usize = 100;
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let own = std::process::id();
    let mut made = Err(io::Error::from(io::ErrorKind::AlreadyExists));
    for _ in 0..TRIES {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = within.join(format!("hob-{own}-{number}"));
        made = match mkdirat(CWD, &folder, Mode::RWXU) {
            Ok(()) => return Ok(folder),
            Err(error) => Err(error.into()),
        };
        if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    made
}
