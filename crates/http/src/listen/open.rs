//! Opening a listening socket, or taking one that a service manager bound for us.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat};
use rustix::io::{Errno, FdFlags};
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    getsockname, listen, socket_with, sockopt,
};
use rustix::process::umask;

use super::{BindAddress, Error, ListeningSocket, SocketOptions, tune};

/// Who may connect to a Unix listener: everybody whom the folders above it let through, as on a
/// TCP port. A front server usually runs as another user.
pub(super) const UNIX_LISTENER_MODE: u32 = 0o666;

/// Opens a socket on an address and listens.
///
/// A socket file whose owner is gone is removed first; one that still answers is an error.
pub fn open(address: &BindAddress, options: &SocketOptions) -> Result<ListeningSocket, Error> {
    let (socket, file) = match address {
        BindAddress::Tcp(address) => (open_tcp(*address, options)?, None),
        BindAddress::Unix(path) => {
            let (socket, file) = open_unix(path)?;
            (socket, Some(file))
        }
    };
    let mut warnings = tune(&socket, options);
    let named = || match address {
        BindAddress::Tcp(address) => address.to_string(),
        BindAddress::Unix(path) => unix_name(path),
    };
    listen(&socket, backlog(options)).map_err(|errno| error(named(), "listen on", errno))?;
    let shown = shown(&socket);
    prefix(&mut warnings, &shown);
    Ok(ListeningSocket {
        socket,
        shown,
        file,
        warnings,
    })
}

/// Sees whether [`open`] would get an address, and leaves it free. Of a port it gives the bound
/// socket, which listens to nothing.
pub fn probe(address: &BindAddress, options: &SocketOptions) -> Result<Option<OwnedFd>, Error> {
    let path = match address {
        BindAddress::Tcp(address) => return open_tcp(*address, options).map(Some),
        BindAddress::Unix(path) => path,
    };
    let refuse = |step, errno| error(unix_name(path), step, errno);
    let at = SocketAddrUnix::new(path).map_err(|errno| refuse("bind to", errno))?;
    is_stale(path, &at)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    accessat(CWD, folder, wanted, AtFlags::EACCESS).map_err(|errno| refuse("bind to", errno))?;
    Ok(None)
}

/// True when the machine has this address, as far as the kernel lets us use it.
pub fn has_address(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

/// Takes a socket that somebody else bound, as systemd does, and makes it ours.
pub fn adopt(
    socket: OwnedFd,
    name: &str,
    options: &SocketOptions,
) -> Result<ListeningSocket, Error> {
    let refuse = |step, errno| error(format!("the inherited socket `{name}`"), step, errno);
    let kind = sockopt::socket_type(&socket).map_err(|errno| refuse("use", errno))?;
    if kind != SocketType::STREAM {
        let mut error = refuse("use", Errno::PROTOTYPE);
        error.advice = "it must be a stream socket: ListenStream= in the socket unit";
        return Err(error);
    }
    let is_listening = sockopt::socket_acceptconn(&socket).map_err(|errno| refuse("use", errno))?;
    if !is_listening {
        let mut error = refuse("use", Errno::INVAL);
        error.advice = "it does not listen: the socket unit needs Accept=no";
        return Err(error);
    }
    make_private(&socket).map_err(|errno| refuse("set flags of", errno))?;
    let mut warnings = tune(&socket, options);
    let shown = shown(&socket);
    prefix(&mut warnings, &shown);
    Ok(ListeningSocket {
        socket,
        shown,
        file: None,
        warnings,
    })
}

/// The real address of a socket as a person reads it.
pub fn shown(socket: impl AsFd) -> String {
    let Ok(address) = getsockname(socket) else {
        return "unknown".to_owned();
    };
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        return address.to_string();
    }
    match SocketAddrUnix::try_from(address) {
        Ok(unix) => match unix.path() {
            Some(path) => format!("unix:{}", path.to_string_lossy()),
            None => "unix:".to_owned(),
        },
        Err(_) => "unknown".to_owned(),
    }
}

/// The file that a Unix socket stands at, known by what it is and not only by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundFile {
    /// Where.
    pub path: PathBuf,
    /// Device of the file.
    pub device: u64,
    /// Inode of the file.
    pub inode: u64,
}

impl BoundFile {
    /// Looks at a socket file that was just bound.
    pub fn of(path: &Path) -> io::Result<BoundFile> {
        let stat = rustix::fs::lstat(path)?;
        Ok(BoundFile {
            path: path.to_owned(),
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }

    /// Removes the file, unless another one stands there by now.
    pub fn remove(&self) {
        if BoundFile::of(&self.path).is_ok_and(|now| now == *self) {
            // Nothing depends on it: who comes next removes a socket file that nobody answers.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn open_tcp(address: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, Error> {
    let refuse = |step, errno| error(address.to_string(), step, errno);
    let family = if address.is_ipv6() {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let socket = stream_socket(family).map_err(|errno| refuse("make a socket for", errno))?;
    // A port whose last connections are in TIME_WAIT is free for a server that starts again.
    sockopt::set_socket_reuseaddr(&socket, true)
        .map_err(|errno| refuse("set SO_REUSEADDR of", errno))?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, options.v6only)
            .map_err(|errno| refuse("set IPV6_V6ONLY of", errno))?;
    }
    bind(&socket, &SocketAddrAny::from(address)).map_err(|errno| refuse("bind to", errno))?;
    Ok(socket)
}

fn open_unix(path: &Path) -> Result<(OwnedFd, BoundFile), Error> {
    let refuse = |step, errno| error(unix_name(path), step, errno);
    let address = SocketAddrUnix::new(path).map_err(|errno| refuse("bind to", errno))?;
    remove_stale(path, &address)?;
    let socket =
        stream_socket(AddressFamily::UNIX).map_err(|errno| refuse("make a socket for", errno))?;
    // The file takes the mode that the socket has when it is bound. Changed by its name, it could
    // be another's: whoever owns the folder may put a link in its place.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(UNIX_LISTENER_MODE))
        .map_err(|errno| refuse("set the mode of", errno))?;
    let usual_mask = umask(Mode::empty());
    let bound = bind(&socket, &address);
    umask(usual_mask);
    bound.map_err(|errno| refuse("bind to", errno))?;
    let file = BoundFile::of(path).map_err(|source| Error {
        address: unix_name(path),
        step: "look at",
        advice: "",
        source,
    })?;
    Ok((socket, file))
}

/// Removes the socket file of a server that is gone. Anything else that stands there stays.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), Error> {
    let refuse = |errno| error(unix_name(path), "remove the stale socket file", errno);
    match is_stale(path, address)? {
        true => rustix::fs::unlink(path).map_err(refuse),
        false => Ok(()),
    }
}

/// True for the socket file of a server that is gone; false where nothing stands.
fn is_stale(path: &Path, address: &SocketAddrUnix) -> Result<bool, Error> {
    let refuse = |step, errno| error(unix_name(path), step, errno);
    let Ok(stat) = rustix::fs::lstat(path) else {
        return Ok(false);
    };
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::Socket {
        let mut error = refuse("bind to", Errno::EXIST);
        error.advice = "something that is not a socket stands there; remove it or choose another";
        return Err(error);
    }
    let probe =
        stream_socket(AddressFamily::UNIX).map_err(|errno| refuse("make a socket for", errno))?;
    match connect(&probe, address) {
        Err(Errno::CONNREFUSED) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) if errno != Errno::AGAIN => Err(refuse("ask who holds", errno)),
        _ => Err(refuse("bind to", Errno::ADDRINUSE)),
    }
}

fn stream_socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(family, SocketType::STREAM, flags, None)
}

pub(super) fn make_private(socket: &OwnedFd) -> rustix::io::Result<()> {
    rustix::io::fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    let flags = rustix::fs::fcntl_getfl(socket)?;
    rustix::fs::fcntl_setfl(socket, flags | OFlags::NONBLOCK)
}

pub(super) fn backlog(options: &SocketOptions) -> i32 {
    i32::try_from(options.backlog).unwrap_or(i32::MAX)
}

fn unix_name(path: &Path) -> String {
    format!("unix:{}", path.display())
}

fn prefix(warnings: &mut [String], shown: &str) {
    for warning in warnings {
        warning.insert_str(0, ": ");
        warning.insert_str(0, shown);
    }
}

pub(super) fn error(address: String, step: &'static str, errno: Errno) -> Error {
    let advice = match errno {
        Errno::ADDRINUSE => "another process listens there; stop it or choose another address",
        Errno::ADDRNOTAVAIL => "this machine has no such address",
        Errno::ACCESS if address.starts_with("unix:") => "the folder must let this user write",
        Errno::ACCESS => "ports below 1024 need root, CAP_NET_BIND_SERVICE, or systemd's socket",
        Errno::NAMETOOLONG => "a Unix socket's path has at most 107 bytes",
        Errno::NOENT => "make the folder first",
        Errno::AFNOSUPPORT => "the kernel does not know this kind of address",
        _ => "",
    };
    Error {
        address,
        step,
        advice,
        source: errno.into(),
    }
}
