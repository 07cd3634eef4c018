//! Headers that hob writes to servers behind it, read by nginx, by HAProxy, by hob, and here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use hob_http::proxy_protocol::{self, ProxyHeader};

use crate::behind;
use crate::harness::client::Connection;
use crate::harness::{DEADLINE, Hob, Place};
use crate::partners::{curl, haproxy, nginx};

/// hob in front of a server that hears of clients in a header of this version.
fn in_front(listen: &str, to: &str, version: &str) -> (Place, Hob) {
    let place = Place::new();
    let hob = place.serve_text(&front(listen, to, version));
    (place, hob)
}

fn front(listen: &str, to: &str, version: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{listen}\n[[site]]\n[[site.route]]\npath = \"/*\"\n\
         proxy = {{ to = \"{to}\", proxy_protocol = \"{version}\" }}\n"
    )
}

/// A server that answers one request on each of so many connections; what each began with.
fn peer(connections: usize) -> (u16, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let take = move |_| {
        let stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut reader = BufReader::new(stream);
        let mut begun = Vec::new();
        while !begun.ends_with(b"\r\n\r\n") || begun.len() < 16 {
            reader.read_until(b'\n', &mut begun).unwrap();
        }
        let stream = reader.get_mut();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .unwrap();
        // It is not kept, for whomever.
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
        begun
    };
    (
        port,
        std::thread::spawn(move || (0..connections).map(take).collect()),
    )
}

fn header(bytes: &[u8]) -> (ProxyHeader<'_>, &[u8]) {
    let (header, len) = proxy_protocol::read(bytes, 2048).unwrap().unwrap();
    (header, &bytes[len..])
}

#[test]
fn each_connection_is_one_clients_and_serves_one_request() {
    for version in ["v1", "v2"] {
        let (port, peer) = peer(3);
        let (place, hob) = in_front("", &format!("http://127.0.0.1:{port}"), version);
        let url = format!("http://127.0.0.1:{}/a", hob.clear_port());
        // Two over one connection of the client, the third over its own.
        curl(&[&url], &url);
        curl(&[], &url);
        let begun = peer.join().unwrap();
        let clients: Vec<_> = begun
            .iter()
            .map(|bytes| {
                let (header, request) = header(bytes);
                assert!(request.starts_with(b"GET /a HTTP/1.1\r\n"));
                let ends = header.ends.unwrap();
                assert_eq!((header.tls, ends.server.port()), (None, hob.clear_port()));
                assert_eq!(ends.client.ip().to_string(), "127.0.0.9");
                ends.client
            })
            .collect();
        assert_eq!(clients[0], clients[1]);
        assert_ne!(clients[1], clients[2]);
        assert_eq!(place.counter("upstream_connects"), 3);
        assert_eq!(place.counter("upstream_reuses"), 0);
        hob.stop();
    }
}

#[test]
fn version_2_says_that_the_client_came_over_tls() {
    let (port, peer) = peer(1);
    let (_place, hob) = in_front("tls = true", &format!("http://127.0.0.1:{port}"), "v2");
    curl(&[], &format!("https://127.0.0.1:{}/a", hob.tls_port()));
    let begun = peer.join().unwrap();
    let tls = header(&begun[0]).0.tls.unwrap();
    assert_eq!((tls.version, tls.is_verified), (&b"TLSv1.3"[..], false));
    hob.stop();
}

#[test]
fn check_of_a_member_speaks_for_hob_itself() {
    for version in ["v1", "v2"] {
        let (port, peer) = peer(1);
        let place = Place::new();
        let hob = place.serve_text(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"app\"\n\
             to = \"http://127.0.0.1:{port}\"\nproxy_protocol = \"{version}\"\n\
             health = {{ path = \"/well\", every = \"1h\" }}\n[[site]]\n[[site.route]]\n\
             path = \"/*\"\nproxy = \"upstream:app\"\n"
        ));
        let begun = peer.join().unwrap();
        let (header, request) = header(&begun[0]);
        assert_eq!(header, ProxyHeader::default());
        assert!(request.starts_with(b"GET /well HTTP/1.1\r\n"));
        hob.stop();
    }
}

#[test]
fn header_stands_before_what_fastcgi_begins_with() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Place::new();
    let hob = place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n[[site.route]]\n\
         path = \"/*\"\nfastcgi = {{ to = \"127.0.0.1:{port}\", split = \"\", \
         proxy_protocol = \"v2\" }}\n"
    ));
    let mut client = Connection::open(hob.port()).unwrap();
    client.send_get("/a").unwrap();
    let mut begun = [0; 32];
    listener.accept().unwrap().0.read_exact(&mut begun).unwrap();
    let (header, request) = header(&begun);
    assert_eq!(header.ends.unwrap().server.port(), hob.port());
    // Version 1, and the record that begins a request.
    assert_eq!(request, [1, 1, 0, 1]);
    hob.stop();
}

#[test]
fn nginx_behind_hears_who_the_client_is() {
    for version in ["v1", "v2"] {
        let place = Place::new();
        let Some(_nginx) = nginx(&place) else { return };
        let hob = place.serve_text(&front("", "unix:run/nginx.sock", version));
        let port = hob.clear_port();
        let told = curl(&[], &format!("http://127.0.0.1:{port}/"));
        assert!(told.starts_with("127.0.0.9 "), "{told}");
        assert!(told.ends_with(&format!(" 127.0.0.1 {port}")), "{told}");
        hob.stop();
    }
}

#[test]
fn haproxy_behind_hears_who_the_client_is() {
    for version in ["v1", "v2"] {
        let answers = "mode http\nbind fd@3 accept-proxy\nhttp-request return status 200 \
                       content-type text/plain lf-string \"%[src] %[src_port] %[dst] %[dst_port]\"";
        let place = Place::new();
        let Some(back) = haproxy(&place, answers) else {
            return;
        };
        let to = format!("http://127.0.0.1:{}", back.port);
        let hob = place.serve_text(&front("", &to, version));
        let port = hob.clear_port();
        let told = curl(&[], &format!("http://127.0.0.1:{port}/"));
        assert!(told.starts_with("127.0.0.9 "), "{told}");
        assert!(told.ends_with(&format!(" 127.0.0.1 {port}")), "{told}");
        hob.stop();
    }
}

#[test]
fn hob_behind_hob_knows_the_client_and_its_tls() {
    let (_behind, back) = behind("address = \"127.0.0.1:0\"", "", "https_only = true");
    let to = format!("http://127.0.0.1:{}", back.clear_port());
    let (_place, hob) = in_front("tls = true", &to, "v2");
    let port = hob.tls_port();
    for version in ["--http1.1", "--http2"] {
        let told = curl(&[version], &format!("https://127.0.0.1:{port}/who"));
        assert!(told.starts_with("127.0.0.9 "), "{told}");
        assert!(
            told.ends_with(&format!(" 127.0.0.1 {port} https")),
            "{told}"
        );
    }
    hob.stop();
    back.stop();
}
