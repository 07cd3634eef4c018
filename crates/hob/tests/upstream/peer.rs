//! A peer at a socket that sends what a test says, and nothing else.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use crate::harness::Place;
use crate::wire::read_variables;

/// Its thread; ends with the connections it was told to take.
pub(crate) struct Peer(JoinHandle<Vec<Vec<u8>>>);

/// What it does with a connection after it has read the request's head.
pub(crate) type Act = Box<dyn FnOnce(&mut UnixStream) + Send>;

impl Peer {
    /// Listens at `run/peer.sock`, and does one thing for each connection.
    pub(crate) fn start(place: &Place, acts: Vec<Act>) -> Peer {
        Peer::start_at(place, "run/peer.sock", acts)
    }

    /// The same at another socket.
    pub(crate) fn start_at(place: &Place, socket: &str, acts: Vec<Act>) -> Peer {
        let path = place.path(socket);
        let listener = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
        Peer(std::thread::spawn(move || {
            let taken = acts.into_iter().map(|act| {
                let mut stream = listener.accept().unwrap().0;
                let request = read_variables(&mut stream);
                act(&mut stream);
                request
            });
            taken.collect()
        }))
    }

    /// The requests it got, up to the end of their variables.
    pub(crate) fn join(self) -> Vec<Vec<u8>> {
        self.0.join().unwrap()
    }
}

/// Sends these bytes and closes.
pub(crate) fn sends(bytes: Vec<u8>) -> Act {
    Box::new(move |stream| {
        // Who is refused does not read to the end.
        let _ = stream.write_all(&bytes);
    })
}

/// Sends these bytes, and stays until the other side closes.
pub(crate) fn stays_after(bytes: Vec<u8>) -> Act {
    Box::new(move |stream| {
        stream.write_all(&bytes).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    })
}
