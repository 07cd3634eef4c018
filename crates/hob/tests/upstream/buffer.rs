//! Programs are shielded from slow clients.

use std::io::Write;
use std::sync::mpsc::channel;

use crate::harness::Place;
use crate::harness::client::Connection;
use crate::peer::{Act, Peer};
use crate::site::serve_members;
use crate::wire::{end, output};

/// Pieces of an answer, together more than sockets hold.
const PIECES: usize = 500;

#[test]
fn program_is_free_before_a_slow_client_has_its_answer() {
    let piece = "x".repeat(60_000);
    let (written, is_written) = channel();
    let told = output(&piece);
    let act: Act = Box::new(move |stream| {
        let head = output("Content-Type: text/plain\r\n\r\n");
        stream.write_all(&head).unwrap();
        for _ in 0..PIECES {
            stream.write_all(&told).unwrap();
        }
        stream.write_all(&end()).unwrap();
        written.send(()).unwrap();
    });
    let place = Place::new();
    let peer = Peer::start(&place, vec![act]);
    let keys = "buffer = { response = \"64MiB\" }";
    let site = serve_members(place, &["peer.sock"], keys);
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get("/app/").unwrap();
    is_written.recv().unwrap();
    peer.join();
    let told = client.read().unwrap();
    assert!(told.body == piece.repeat(PIECES).as_bytes());
    site.stop();
}
