//! Tunnels through another server.

use crate::harness::client::Connection;
use crate::peer::{Act, Peer, answer, serve};

const ASK: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
const OPEN: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
                      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nfirst";

fn ask(site: &crate::harness::site::Site, fields: &str) -> Connection {
    let mut client = Connection::open(site.port()).unwrap();
    let head = format!("GET /app/ws HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    client.send(head.as_bytes()).unwrap();
    client
}

#[test]
fn raw_bytes_flow_both_ways_until_the_client_ends() {
    let (told, tell) = std::sync::mpsc::channel();
    let act: Act = Box::new(move |taken| {
        taken.write(OPEN);
        let rest = taken.stay();
        told.send(rest).unwrap();
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "");
    let mut client = ask(&site, ASK);
    let (status, fields) = client.read_head().unwrap();
    assert_eq!(status, 101);
    let value = |name: &str| {
        fields
            .iter()
            .find(|(one, _)| one == name)
            .map(|(_, value)| &**value)
    };
    assert_eq!(value("upgrade"), Some("websocket"));
    assert_eq!(
        value("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    client.read_until("first");
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    client.send(&bytes).unwrap();
    client.end_sending();
    assert_eq!(tell.recv().unwrap(), bytes);
    let asked = peer.join().remove(0);
    assert!(
        asked.contains("Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        "{asked}"
    );
    assert!(
        asked.contains("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
        "{asked}"
    );
    site.stop();
}

#[test]
fn only_tunnels_that_the_route_lists_are_asked_for() {
    for (keys, fields) in [
        ("", "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
        ("upgrade = []", ASK),
        ("upgrade = [\"other\"]", ASK),
    ] {
        let peer = Peer::start(vec![Box::new(|taken| taken.write(&answer("no tunnel")))]);
        let site = serve(&[&peer], keys);
        let mut client = ask(&site, fields);
        assert_eq!(client.read().unwrap().text(), "no tunnel");
        let asked = peer.join().remove(0);
        assert!(!asked.to_lowercase().contains("upgrade"), "{asked}");
        site.stop();
    }
}

#[test]
fn tunnel_for_another_protocol_is_none() {
    let open = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n";
    let peer = Peer::start(vec![crate::peer::sends(open)]);
    let site = serve(&[&peer], "");
    let mut client = ask(&site, ASK);
    assert_eq!(client.read().unwrap().status, 502);
    assert_eq!(
        site.record("/app/ws")["reason"],
        "the other server opened a tunnel for another protocol"
    );
    peer.join();
    site.stop();
}

#[test]
fn tunnel_through_which_nothing_comes_is_broken_off() {
    let act: Act = Box::new(|taken| {
        taken.write(OPEN);
        taken.stay();
    });
    let peer = Peer::start(vec![act]);
    let site = serve(
        &[&peer],
        "timeout = { tunnel = \"200ms\", first_byte = \"60s\" }",
    );
    let mut client = ask(&site, ASK);
    assert_eq!(client.read_head().unwrap().0, 101);
    client.read_to_end();
    assert_eq!(
        site.record("/app/ws")["reason"],
        "limits: proxy.timeout.tunnel: nothing went either way"
    );
    assert_eq!(site.place.counter("limit_upstream_tunnel"), 1);
    peer.join();
    site.stop();
}

#[test]
fn tunnel_outlives_a_reload() {
    let act: Act = Box::new(|taken| {
        taken.write(OPEN);
        let asked = taken.stay();
        assert_eq!(asked, b"after");
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "");
    let mut client = ask(&site, ASK);
    client.read_until("first");
    for _ in 0..2 {
        let reloaded = site.place.run(&["reload"]);
        assert!(reloaded.status.success(), "{reloaded:?}");
    }
    client.send(b"after").unwrap();
    client.end_sending();
    peer.join();
    site.stop();
}
