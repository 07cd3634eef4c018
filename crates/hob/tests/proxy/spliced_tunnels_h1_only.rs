//! Tunnels through which much comes at once: moved inside the kernel both ways, whole and in order.

use std::os::fd::AsFd;
use std::sync::{LazyLock, mpsc};

use crate::harness::client::Connection;
use crate::harness::site::Site;
use crate::harness::usage::open_files;
use crate::peer::{Act, Peer, Taken, serve};

const MUCH: usize = 8_000_000;
/// Made once: that takes a while.
static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let len = 2 * MUCH + 200_000;
    (0..len).map(|at| (at / 7 + at % 251) as u8).collect()
});
const OPEN: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

fn pattern(len: usize, seed: usize) -> &'static [u8] {
    &BYTES[1000 * seed..][..len]
}

fn open(site: &Site) -> Connection {
    let mut client = Connection::open(site.port()).unwrap();
    let head =
        "GET /app/ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    client.send(head.as_bytes()).unwrap();
    assert_eq!(client.read_head().unwrap().0, 101);
    client
}

fn take(taken: &mut Taken, len: usize) -> Vec<u8> {
    let mut all = Vec::new();
    taken.take(len, &mut all);
    all
}

fn read(client: &mut Connection, len: usize) -> Vec<u8> {
    let mut all = client.take_ahead();
    while all.len() < len {
        all.extend(client.read_some().unwrap());
    }
    all
}

#[test]
fn much_and_little_go_both_ways_in_order_and_are_counted() {
    let act: Act = Box::new(|taken| {
        taken.write(OPEN);
        for round in 0..3 {
            assert!(take(taken, MUCH) == pattern(MUCH, round), "{round}");
            assert_eq!(take(taken, 6), b"little");
            taken.write(pattern(MUCH, round + 100));
            taken.write(b"short");
        }
        assert!(taken.ends_in_order());
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "");
    let mut client = open(&site);
    for round in 0..3 {
        client.send(pattern(MUCH, round)).unwrap();
        client.send(b"little").unwrap();
        let came = read(&mut client, MUCH + 5);
        assert!(came[..MUCH] == *pattern(MUCH, round + 100), "{round}");
        assert_eq!(&came[MUCH..], b"short");
    }
    client.end_sending();
    assert_eq!(client.read_to_end(), b"");
    peer.join();
    assert_eq!(site.place.counter("spliced_tunnels"), 1);
    assert_eq!(site.place.counter("spliced_requests"), 0);
    let record = site.record("/app/ws");
    assert_eq!(record["outcome"], "complete", "{record}");
    assert_eq!(record["bytes"], 3 * (MUCH + 5), "{record}");
    let bytes_in = record["bytes_in"].as_u64().unwrap();
    assert!(bytes_in > 3 * (MUCH as u64 + 6) && bytes_in < 3 * (MUCH as u64 + 6) + 200);
    site.stop();
}

#[test]
fn both_ways_at_once_and_each_ends_for_itself() {
    let (sent, is_sent) = mpsc::channel();
    let act: Act = Box::new(move |taken| {
        taken.write(OPEN);
        taken.write(pattern(MUCH, 1));
        taken.shut();
        sent.send(()).unwrap();
        // The other direction goes on.
        assert!(take(taken, 2 * MUCH) == pattern(2 * MUCH, 2));
        assert!(taken.ends_in_order());
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "");
    let mut client = open(&site);
    let mut sending = Connection::of(client.as_fd().try_clone_to_owned().unwrap());
    let sender = std::thread::spawn(move || {
        let all = pattern(2 * MUCH, 2);
        sending.send(&all[..MUCH]).unwrap();
        is_sent.recv().unwrap();
        sending.send(&all[MUCH..]).unwrap();
        sending.end_sending();
    });
    assert!(client.read_to_end() == pattern(MUCH, 1));
    sender.join().unwrap();
    peer.join();
    assert_eq!(site.record("/app/ws")["outcome"], "complete");
    assert_eq!(site.place.counter("spliced_tunnels"), 1);
    site.stop();
}

#[test]
fn little_is_read_and_written_and_who_is_idle_holds_no_pipe() {
    let acts = || -> Act {
        Box::new(|taken| {
            taken.write(OPEN);
            for _ in 0..100 {
                assert_eq!(take(taken, 6), b"little");
                taken.write(b"short");
            }
            assert!(take(taken, MUCH) == pattern(MUCH, 3));
            taken.write(pattern(MUCH, 4));
            taken.stay();
        })
    };
    const COUNT: usize = 12;
    // Each of them takes as long as it likes.
    let peers: Vec<_> = (0..COUNT).map(|_| Peer::start(vec![acts()])).collect();
    let all: Vec<_> = peers.iter().collect();
    let site = serve(&all, "balance = \"round_robin\"");
    let mut clients: Vec<_> = (0..COUNT).map(|_| open(&site)).collect();
    for client in &mut clients {
        for _ in 0..100 {
            client.send(b"little").unwrap();
            assert_eq!(read(client, 5), b"short");
        }
    }
    assert_eq!(site.place.counter("spliced_tunnels"), 0);
    let files = open_files(site.hob.server());
    for client in &mut clients {
        client.send(pattern(MUCH, 3)).unwrap();
        assert!(read(client, MUCH) == pattern(MUCH, 4));
    }
    assert_eq!(site.place.counter("spliced_tunnels"), COUNT as u64);
    let threads = std::thread::available_parallelism().unwrap().get();
    // What a thread keeps for the next, and what else comes and goes.
    let more = 2 * 8 * threads + 8;
    let now = open_files(site.hob.server());
    assert!(now <= files + more, "{files} files, then {now}");
    drop(clients);
    peers.into_iter().for_each(|peer| drop(peer.join()));
    site.stop();
}

#[test]
fn silence_behind_much_ends_it() {
    let act: Act = Box::new(|taken| {
        taken.write(OPEN);
        assert!(take(taken, MUCH) == pattern(MUCH, 5));
        taken.write(pattern(MUCH, 6));
        taken.stay();
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "timeout = { tunnel = \"1s\" }");
    let mut client = open(&site);
    client.send(pattern(MUCH, 5)).unwrap();
    assert!(client.read_to_end() == pattern(MUCH, 6));
    assert_eq!(
        site.record("/app/ws")["reason"],
        "limits: proxy.timeout.tunnel: nothing went either way"
    );
    assert_eq!(site.place.counter("limit_upstream_tunnel"), 1);
    assert_eq!(site.place.counter("spliced_tunnels"), 1);
    peer.join();
    site.stop();
}

#[test]
fn who_leaves_in_the_middle_ends_the_other_side() {
    let act: Act = Box::new(|taken| {
        taken.write(OPEN);
        take(taken, 1_000_000);
        // Until the other side is gone.
        while taken.try_write(&[b'x'; 65_536]) {}
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "");
    let mut client = open(&site);
    client.send(pattern(1_000_000, 7)).unwrap();
    client.skip(1_000_000).unwrap();
    client.leave();
    peer.join();
    assert_eq!(site.record("/app/ws")["outcome"], "client-left");
    assert_eq!(site.place.counter("spliced_tunnels"), 1);
    site.stop();
}
