//! A peer at a socket that sends what a test says, and nothing else.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use crate::harness::Place;

/// Its thread; ends with the connections it was told to take.
pub(crate) struct Peer(JoinHandle<Vec<Vec<u8>>>);

/// What it does with a connection after it has read the request's head.
pub(crate) type Act = Box<dyn FnOnce(&mut UnixStream) + Send>;

impl Peer {
    /// Listens at `run/peer.sock`, and does one thing for each connection.
    pub(crate) fn start(place: &Place, acts: Vec<Act>) -> Peer {
        let path = place.path("run/peer.sock");
        let listener = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
        Peer(std::thread::spawn(move || {
            let taken = acts.into_iter().map(|act| {
                let mut stream = listener.accept().unwrap().0;
                let request = read_params(&mut stream);
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

/// Reads up to the empty record that ends the variables.
pub(crate) fn read_params(stream: &mut UnixStream) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).unwrap();
        let len = u16::from_be_bytes([header[4], header[5]]) as usize;
        let mut content = vec![0; len + usize::from(header[6])];
        stream.read_exact(&mut content).unwrap();
        all.extend_from_slice(&header);
        all.extend_from_slice(&content);
        if header[1] == 4 && len == 0 {
            return all;
        }
    }
}

/// A record of the request.
pub(crate) fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0][..], content].concat()
}

pub(crate) fn output(text: &str) -> Vec<u8> {
    record(6, text.as_bytes())
}

pub(crate) fn end() -> Vec<u8> {
    record(3, &[0; 8])
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
