//! The control socket: 0600 in a folder of mode 0700 that is ours, so that only this user and root
//! reach it. Connections are the server's; the keeper only holds the socket.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hob_http::listen::BoundFile;
use rustix::fs::{FileType, FlockOperation, Mode, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use super::{ControlChoice, KeeperFailure};
use crate::Config;
use crate::servers::private_folder;

const BACKLOG: i32 = 64;
/// Beside the sockets that are named after a config: a link to the first of them.
const USUAL: &str = "control.sock";

/// The control socket.
#[derive(Debug)]
pub(super) struct KeptControl {
    pub(super) socket: OwnedFd,
    pub(super) file: BoundFile,
}

/// The socket, if there is one, and what the operator should know.
pub(super) type Opened = (Option<Rc<KeptControl>>, Option<String>);

impl KeptControl {
    /// Removes what only a running hob should leave in the file system.
    pub(super) fn remove(&self) {
        let link = self.file.path.with_file_name(USUAL);
        let target = std::fs::read_link(&link).ok();
        if target.as_deref().map(Path::as_os_str) == self.file.path.file_name() {
            // A link that leads nowhere is replaced by who comes next.
            let _ = std::fs::remove_file(link);
        }
        self.file.remove();
    }
}

/// Where the socket stands: the command line before the config, `own` where neither names a place.
pub(super) fn place(
    choice: &ControlChoice,
    config: &Config,
    own: Option<PathBuf>,
) -> Option<PathBuf> {
    match (choice, &config.control) {
        (ControlChoice::Off, _) => None,
        (ControlChoice::At(path), _) => Some(path.clone()),
        (ControlChoice::Config, _) if config.control_off => None,
        (ControlChoice::Config, Some(path)) => Some(path.clone()),
        (ControlChoice::Config, None) => own,
    }
}

/// Opens the socket where it was chosen to be.
///
/// Without its own place there is none, and the second value says so. A place that somebody named
/// must work.
pub(super) fn open(
    choice: &ControlChoice,
    config: &Config,
    own: Option<PathBuf>,
) -> Result<Opened, KeeperFailure> {
    let Some(path) = place(choice, config, own.clone()) else {
        return Ok((None, None));
    };
    let is_own = own.as_ref() == Some(&path);
    match open_at(&path) {
        Ok(control) if is_own => {
            let linked = link_usual(&path).err();
            let warning = linked.map(|reason| format!("no {USUAL} beside the socket: {reason}"));
            Ok((Some(Rc::new(control)), warning))
        }
        Ok(control) => Ok((Some(Rc::new(control)), None)),
        Err(reason) => {
            let text = format!("no control socket at {}: {reason}", path.display());
            match is_own {
                true => Ok((None, Some(format!("{text}; going on without one")))),
                false => Err(KeeperFailure::System(text)),
            }
        }
    }
}

/// Programs that know of one server find the first one by a link.
fn link_usual(own: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (own.parent(), own.file_name()) else {
        return Ok(());
    };
    let folder = private_folder(folder)?;
    flock(&folder, FlockOperation::LockExclusive)?;
    let link = own.with_file_name(USUAL);
    if is_answered(&SocketAddrUnix::new(&link)?)? {
        return Ok(());
    }
    remove_stale(&link)?;
    std::os::unix::fs::symlink(name, link)
}

fn open_at(path: &Path) -> io::Result<KeptControl> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = private_folder(folder)?;
    // Two that start at once must not each remove the other's socket; the lock goes with `folder`.
    flock(&folder, FlockOperation::LockExclusive)?;
    let address = SocketAddrUnix::new(path)?;
    if !is_link(path) && is_answered(&address)? {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another hob answers there",
        ));
    }
    remove_stale(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file takes the mode that the socket has when it is bound: there is no moment in between.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(0o600))?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(KeptControl {
        socket,
        file: BoundFile::of(path)?,
    })
}

fn is_answered(address: &SocketAddrUnix) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&probe, address) {
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// A link is ours, as all in such a folder, and gives way to a socket of this very name.
fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

fn remove_stale(path: &Path) -> io::Result<()> {
    match rustix::fs::lstat(path) {
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
        Ok(stat)
            if matches!(
                FileType::from_raw_mode(stat.st_mode),
                FileType::Socket | FileType::Symlink
            ) =>
        {
            Ok(rustix::fs::unlink(path)?)
        }
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something that is not a socket stands there",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    use super::*;
    use hob_config::{ConfigSources, Handlers, NoHandlers, TrustedDisk, load_with};

    fn config(text: &str) -> Config {
        let sources =
            ConfigSources::from_text(NoHandlers::schema(), "test", text, Path::new("/"), &|_| {
                None
            })
            .unwrap();
        load_with::<NoHandlers>(&sources, &TrustedDisk).unwrap().0
    }

    fn no_key() -> Config {
        config("[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"/\"\n")
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn socket_is_0600_in_a_new_folder_of_0700() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hob/control.sock");
        let (control, warning) = open(&ControlChoice::At(path.clone()), &no_key(), None).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(warning, None);
        UnixStream::connect(&path).unwrap();
        control.unwrap().file.remove();
        assert!(!path.exists());
    }

    #[test]
    fn folder_that_others_may_enter_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let choice = ControlChoice::At(folder.path().join("control.sock"));
        let failure = open(&choice, &no_key(), None).unwrap_err().to_string();
        assert!(
            failure.contains("mode 755") && failure.contains("chmod 700"),
            "{failure}"
        );
    }

    #[test]
    fn taken_own_place_is_a_warning_and_a_taken_named_place_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hob/0.sock");
        let open_own = || open(&ControlChoice::Config, &no_key(), Some(path.clone())).unwrap();
        let (first, _) = open_own();
        let (second, warning) = open_own();
        assert!(
            first.is_some() && second.is_none(),
            "{first:?} {second:?} {warning:?}"
        );
        let warning = warning.unwrap();
        assert!(
            warning.contains("another hob answers there; going on without one"),
            "{warning}"
        );
        let named = Config {
            control: Some(path.clone()),
            ..no_key()
        };
        open(&ControlChoice::Config, &named, None).unwrap_err();
        open(&ControlChoice::At(path.clone()), &no_key(), None).unwrap_err();

        drop(first);
        assert!(path.exists(), "left behind as by a kill -9");
        let (third, warning) = open_own();
        assert!(third.is_some() && warning.is_none());
    }

    #[test]
    fn link_is_to_the_first_and_gives_way_to_a_socket_that_is_named_so() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join("hob").join(name);
        let own = |name: &str| {
            let opened = open(&ControlChoice::Config, &no_key(), Some(at(name))).unwrap();
            opened.0.unwrap()
        };
        let target = || std::fs::read_link(at(USUAL)).ok();
        let (first, second) = (own("1.sock"), own("2.sock"));
        assert_eq!(target(), Some("1.sock".into()));
        second.remove();
        assert_eq!(target(), Some("1.sock".into()));
        first.remove();
        assert_eq!(target(), None);
        drop((first, second));
        let left = own("3.sock");
        drop(left);
        let next = own("4.sock");
        assert_eq!(target(), Some("4.sock".into()), "what was left behind");
        let named = open(&ControlChoice::At(at(USUAL)), &no_key(), None).unwrap();
        assert_eq!(target(), None, "a socket");
        next.remove();
        UnixStream::connect(at(USUAL)).unwrap();
        drop(named);
    }

    #[test]
    fn file_in_the_way_stays_and_off_is_off() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let path = folder.path().join("control.sock");
        std::fs::write(&path, "mine").unwrap();
        open(&ControlChoice::At(path.clone()), &no_key(), None).unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        let own = || Some(folder.path().join("0.sock"));
        assert!(
            open(&ControlChoice::Off, &no_key(), own())
                .unwrap()
                .0
                .is_none()
        );
        let off = Config {
            control_off: true,
            ..no_key()
        };
        let opened = open(&ControlChoice::Config, &off, own()).unwrap();
        assert!(opened.0.is_none());
    }
}
