//! A site whose programs are behind an upstream.
// Every test program uses its own part of this.
#![allow(dead_code)]

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;

use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place, send_signal};
use crate::wire::{KEY, KEYS};

/// A program that listens at a socket of the place, ended with this.
pub(crate) struct Kept(Child);

impl Kept {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(place: &Place, command: Command, socket: &str) -> Kept {
        let socket = place.path(socket);
        let listens = || UnixStream::connect(&socket).is_ok();
        Kept::until(command, listens).expect("it listens")
    }

    /// Starts one that does not choose a port itself, at one that was free a moment ago.
    pub(crate) fn start_at_port(command: impl Fn(u16) -> Command) -> (u16, Kept) {
        let start = || {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            drop(listener);
            let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
            Some((port, Kept::until(command(port), listens)?))
        };
        let mut tries = std::iter::repeat_with(start).take(10).flatten();
        tries.next().expect("it listens")
    }

    /// `None` where it ends before it listens.
    fn until(mut command: Command, listens: impl Fn() -> bool) -> Option<Kept> {
        // What it leaves running must not hold what the test prints to.
        let child = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut kept = Kept(child.spawn().unwrap());
        let until = Instant::now() + DEADLINE;
        while !listens() {
            if kept.0.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(Instant::now() < until, "it does not listen");
            std::thread::yield_now();
        }
        Some(kept)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It ends its own processes, which killed it could not.
        if self.0.try_wait().unwrap().is_none() {
            send_signal(self.0.id(), Signal::TERM);
            self.0.wait().unwrap();
        }
    }
}

/// Serves one program for all paths at `/app/*`, which members of the place answer: names of their
/// sockets, and further keys.
pub(crate) fn serve_members(place: Place, sockets: &[&str], keys: &str) -> Site {
    let to: Vec<_> = sockets
        .iter()
        .map(|one| format!("\"unix:run/{one}\""))
        .collect();
    let more = if keys.is_empty() { "" } else { ", " };
    let keys = format!("to = [{}]{KEYS}{more}{keys}", to.join(", "));
    serve(place, &keys, "")
}

/// Serves `keys` of the handler at `/app/*`, and `more` of the site.
pub(crate) fn serve(place: Place, keys: &str, more: &str) -> Site {
    serve_with(place, "", keys, more)
}

/// The same with keys of the server.
pub(crate) fn serve_with(place: Place, own: &str, keys: &str, more: &str) -> Site {
    Site::serve(place, own, &format!("{KEY} = {{ {keys} }}"), more)
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
