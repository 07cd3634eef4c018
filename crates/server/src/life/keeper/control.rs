//! The control socket: 0600 in a folder of mode 0700 that is ours, so that only this user and root
//! reach it. Connections are the server's; the keeper only holds the socket.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use hob_http::listen::BoundFile;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

use super::{ControlChoice, Failure};
use crate::config::Config;

const BACKLOG: i32 = 64;

/// The control socket.
#[derive(Debug)]
pub(super) struct KeptControl {
    pub(super) socket: OwnedFd,
    pub(super) file: BoundFile,
}

/// Opens the socket where it was chosen to be.
///
/// The usual place may be taken by another hob of the same user: then there is none, and the
/// second value says so. A place that somebody named must work.
pub(super) fn open(
    choice: &ControlChoice,
    config: &Config,
) -> Result<(Option<KeptControl>, Option<String>), Failure> {
    let named = match (choice, &config.control) {
        (ControlChoice::Off, _) => return Ok((None, None)),
        (ControlChoice::At(path), _) => path.as_path(),
        (ControlChoice::Config { .. }, _) if config.control_off => return Ok((None, None)),
        (ControlChoice::Config { .. }, Some(path)) => path,
        (ControlChoice::Config { usual }, None) => return Ok(open_usual(usual)),
    };
    match open_at(named) {
        Ok(control) => Ok((Some(control), None)),
        Err(reason) => Err(Failure::System(sentence(named, &reason))),
    }
}

fn open_usual(usual: &Path) -> (Option<KeptControl>, Option<String>) {
    match open_at(usual) {
        Ok(control) => (Some(control), None),
        Err(reason) => {
            let text = sentence(usual, &reason);
            (
                None,
                Some(format!(
                    "{text}; going on without one (choose another with --control)"
                )),
            )
        }
    }
}

fn sentence(path: &Path, reason: &io::Error) -> String {
    format!("no control socket at {}: {reason}", path.display())
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
    if is_answered(&address)? {
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

/// The folder, made if it is missing, checked if it is not.
fn private_folder(folder: &Path) -> io::Result<OwnedFd> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let text = format!("cannot make the folder {}: {error}", folder.display());
            return Err(io::Error::new(error.kind(), text));
        }
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty())?;
    let facts = std::fs::File::from(opened.try_clone()?).metadata()?;
    let mode = facts.mode() & 0o777;
    if facts.uid() != geteuid().as_raw() || mode != 0o700 {
        let (folder, uid) = (folder.display(), facts.uid());
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "its folder {folder} belongs to user {uid} and has mode {mode:o}; \
                 it must be yours and 0700 (chmod 700 {folder})"
            ),
        ));
    }
    Ok(opened)
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

fn remove_stale(path: &Path) -> io::Result<()> {
    match rustix::fs::lstat(path) {
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
        Ok(stat)
            if rustix::fs::FileType::from_raw_mode(stat.st_mode)
                == rustix::fs::FileType::Socket =>
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
    use crate::config::{self, Sources};

    fn config(text: &str) -> Config {
        let sources = Sources::from_text("test", text, Path::new("/"), &|_| None).unwrap();
        config::load(&sources).unwrap().0
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
        let (control, warning) = open(&ControlChoice::At(path.clone()), &no_key()).unwrap();
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
        let failure = open(&choice, &no_key()).unwrap_err().to_string();
        assert!(
            failure.contains("mode 755") && failure.contains("chmod 700"),
            "{failure}"
        );
    }

    #[test]
    fn taken_usual_place_is_a_warning_and_a_taken_named_place_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hob/control.sock");
        let choice = ControlChoice::Config {
            usual: path.clone(),
        };
        let (first, _) = open(&choice, &no_key()).unwrap();
        let (second, warning) = open(&choice, &no_key()).unwrap();
        assert!(
            first.is_some() && second.is_none(),
            "{first:?} {second:?} {warning:?}"
        );
        assert!(
            warning
                .unwrap()
                .contains("another hob answers there; going on without one")
        );
        open(
            &choice,
            &Config {
                control: Some(path.clone()),
                ..no_key()
            },
        )
        .unwrap_err();
        open(&ControlChoice::At(path.clone()), &no_key()).unwrap_err();

        drop(first);
        assert!(path.exists(), "left behind as by a kill -9");
        let (third, warning) = open(&choice, &no_key()).unwrap();
        assert!(third.is_some() && warning.is_none());
    }

    #[test]
    fn file_in_the_way_stays_and_off_is_off() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let path = folder.path().join("control.sock");
        std::fs::write(&path, "mine").unwrap();
        open(&ControlChoice::At(path.clone()), &no_key()).unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        assert!(open(&ControlChoice::Off, &no_key()).unwrap().0.is_none());
        let choice = ControlChoice::Config { usual: path };
        let off = Config {
            control_off: true,
            ..no_key()
        };
        assert!(open(&choice, &off).unwrap().0.is_none());
    }
}
