//! A socket at which a program listens that hob runs, and that nobody but this server reaches: it
//! has no name in any folder. It stays while the program starts again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, open};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};

/// Folders in which it has a name while it is made.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];
/// Connections that wait there; a request that finds it full tries again.
const BACKLOG: i32 = 511;

/// The socket of a program.
#[derive(Debug)]
pub struct RunSocket {
    /// The program's name, for people.
    name: String,
    listener: OwnedFd,
    /// Its file, by which it is connected to. It is in no folder any more.
    _file: OwnedFd,
    path: PathBuf,
}

/// Each is another one.
impl PartialEq for RunSocket {
    fn eq(&self, other: &RunSocket) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for RunSocket {}

impl RunSocket {
    /// A new one for the program of this name.
    ///
    /// # Errors
    /// There is no folder for it, or no descriptor.
    pub fn new(name: &str) -> io::Result<RunSocket> {
        // What runs takes connections from it as it would from one of its own: it waits for them.
        let flags = SocketFlags::CLOEXEC;
        let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let file = bind_nameless(&listener)?;
        listen(&listener, BACKLOG)?;
        Ok(RunSocket {
            name: name.to_owned(),
            path: PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())),
            listener,
            _file: file,
        })
    }

    /// Where this process finds it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it is called for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The end that takes connections.
    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Ends connections that nobody has taken, while no program is there that would.
    pub(super) fn refuse_waiting(&self) {
        // It may not be told to wait for nothing: that would hold for the program too.
        let has_some = || {
            let mut looked = [PollFd::new(&self.listener, PollFlags::IN)];
            poll(&mut looked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        };
        while has_some() && accept_with(&self.listener, SocketFlags::CLOEXEC).is_ok() {}
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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn nameless_socket_is_reached_and_what_waits_there_can_be_refused() {
        let socket = RunSocket::new("php").unwrap();
        assert_eq!(socket, socket);
        assert_ne!(socket, RunSocket::new("php").unwrap());
        let mut waiting = UnixStream::connect(socket.path()).unwrap();
        socket.refuse_waiting();
        assert_eq!(waiting.read(&mut [0; 1]).unwrap(), 0);
    }
}
