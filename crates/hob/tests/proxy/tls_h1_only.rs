//! Tunnels to members over TLS, and another hob as such a member, with a config of its own.

use std::sync::mpsc;

use crate::authority::Authority;
use crate::harness::Place;
use crate::harness::client::{Connection, call};
use crate::harness::site::Site;
use crate::peer::Act;
use crate::secure::serve;

#[test]
fn certificate_itself_may_stand_for_its_authority() {
    let place = Place::new();
    // As `openssl req -x509` makes it: that of an authority.
    place.certificate("own", "localhost");
    let member = place.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { certificate = \"own.pem\", key = \
         \"own.key\" }\n[[site]]\nroot = \"site\"\n",
    );
    let front = Place::new();
    std::fs::copy(place.path("own.pem"), front.path("own.pem")).unwrap();
    let handler = format!(
        "proxy = {{ to = \"https://localhost:{}/\", tls = {{ ca = \"own.pem\" }} }}",
        member.tls_port()
    );
    let site = Site::serve(front, "", &handler, "");
    assert_eq!(site.get("/app/hello.txt").answer.text(), "hello\n");
    site.stop();
    member.stop();
}

#[test]
fn large_bodies_pass_both_ways_through_two_hobs() {
    let member = Place::new();
    member.folder("cgi");
    let count = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nwc -c\n";
    member.script("cgi/count", count);
    member.fill_big();
    let behind = member.serve_text(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[[site]]\nroot = \"site\"\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\nbody = \"64MiB\"\n",
    );
    let front = Place::new();
    let kept = member.path("run/hob/tls/self-signed.pem");
    front.write("ca.pem", &std::fs::read_to_string(kept).unwrap());
    let handler = format!(
        "proxy = {{ to = \"https://localhost:{}/\", tls = {{ ca = \"ca.pem\" }} }}",
        behind.tls_port()
    );
    let site = Site::serve(front, "", &handler, "");
    let expected = std::fs::read(member.path("site/big.bin")).unwrap();
    let body = vec![b'x'; 10 << 20];
    for _ in 0..2 {
        let reply = site.get("/app/big.bin");
        assert!(reply.is_whole && reply.answer.body == expected);
        let reply = call(site.port(), "POST", "/app/cgi/count", "", &body).answer;
        assert_eq!(reply.text().trim(), body.len().to_string());
    }
    // The end of a large answer may be with the client before its connection is free again.
    assert!(site.place.counter("upstream_reuses") > 0);
    site.stop();
    behind.stop();
}

const ASK: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
const OPEN: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst";

#[test]
fn tunnel_passes_bytes_both_ways_and_each_end() {
    let authority = Authority::new("ca");
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let sent = bytes.clone();
    let (told, tell) = mpsc::channel();
    let act: Act = Box::new(move |taken| {
        taken.write(OPEN);
        told.send(taken.stay_to_the_end()).unwrap();
        taken.write(&sent);
        taken.end();
    });
    let peer = authority.sign(&["localhost"]).peer(vec![act]);
    let site = serve(&authority, &[&peer], "ca = \"ca.pem\"", "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("GET", "/app/ws", ASK);
    assert_eq!(client.read_head().unwrap().0, 101);
    client.read_until("first");
    client.send(&bytes).unwrap();
    client.end_sending();
    let (came, is_in_order) = tell.recv().unwrap();
    assert!(came == bytes && is_in_order, "{}", came.len());
    assert!(client.read_to_end() == bytes);
    site.stop();
    peer.join();
}
