//! A site whose programs are behind FastCGI.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;

use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place, send_signal};

/// A program that listens at a socket of the place, ended with this.
pub(crate) struct Kept(Child);

impl Kept {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(place: &Place, mut command: Command, socket: &str) -> Kept {
        // What it leaves running must not hold what the test prints to.
        let child = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut kept = Kept(child.spawn().unwrap());
        let until = Instant::now() + DEADLINE;
        while UnixStream::connect(place.path(socket)).is_err() {
            let ended = kept.0.try_wait().unwrap();
            assert!(ended.is_none(), "it does not listen: {ended:?}");
            assert!(Instant::now() < until, "it does not listen");
            std::thread::yield_now();
        }
        kept
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It ends its own processes, which killed it could not.
        send_signal(self.0.id(), Signal::TERM);
        self.0.wait().unwrap();
    }
}

/// Serves `keys` of `fastcgi` at `/app/*`, and `more` of the site.
pub(crate) fn serve(place: Place, keys: &str, more: &str) -> Site {
    serve_with(place, "", keys, more)
}

/// The same with keys of the server.
pub(crate) fn serve_with(place: Place, own: &str, keys: &str, more: &str) -> Site {
    Site::serve(place, own, &format!("fastcgi = {{ {keys} }}"), more)
}

/// A program of the system, wherever it is.
pub(crate) fn found(names: &[&str]) -> PathBuf {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    let paths = folders.iter().flat_map(|folder| {
        let paths = names
            .iter()
            .map(move |name| PathBuf::from(folder).join(name));
        paths.collect::<Vec<_>>()
    });
    let mut there = paths.filter(|path| path.is_file());
    there
        .next()
        .unwrap_or_else(|| panic!("{names:?} is not here; `make setup-test` installs it"))
}
