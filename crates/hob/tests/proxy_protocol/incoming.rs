//! Headers that come to hob: written by hand, by curl, and by HAProxy.

use std::time::Instant;

use crate::harness::DEADLINE;
use crate::harness::client::Connection;
use crate::partners::{curl, haproxy};
use crate::{CLIENT, VERSION_1, behind, header_2, version_2, who};

const TCP: &str = "address = \"127.0.0.1:0\"";

#[test]
fn header_names_the_client_for_programs_and_the_log() {
    let (place, hob) = behind(TCP, "", "");
    for header in [VERSION_1, &version_2(b"")] {
        let mut connection = Connection::open(hob.port()).unwrap();
        assert_eq!(who(&mut connection, header, ""), CLIENT);
    }
    // It holds for all requests of the connection, and no field says otherwise.
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send(VERSION_1).unwrap();
    for _ in 0..2 {
        let said = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n";
        let head = format!("GET /who HTTP/1.1\r\nHost: h\r\n{said}\r\n");
        connection.send(head.as_bytes()).unwrap();
        assert_eq!(connection.read().unwrap().text().trim_end(), CLIENT);
    }
    hob.stop();
    let log = std::fs::read_to_string(place.path("run/access.log")).unwrap();
    let of_client = log.lines().filter(|line| line.starts_with("192.0.2.7 "));
    assert_eq!(of_client.count(), 4, "{log}");
}

#[test]
fn who_speaks_for_itself_keeps_its_own_addresses() {
    let (_place, hob) = behind(TCP, "", "");
    for header in [
        &b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"[..],
        &header_2(0x20, 0x11, &[9; 12]),
        &header_2(0x21, 0, b""),
    ] {
        let mut connection = Connection::open(hob.port()).unwrap();
        let told = who(&mut connection, header, "");
        let is_own = told.starts_with("127.0.0.1 ");
        let to = format!(" 127.0.0.1 {} http", hob.clear_port());
        assert!(is_own && told.ends_with(&to), "{told}");
    }
    hob.stop();
}

#[test]
fn header_may_come_byte_by_byte_and_with_the_request() {
    let (_place, hob) = behind(TCP, "", "");
    for header in [VERSION_1, &version_2(b"\x04\0\x03abc")] {
        let mut connection = Connection::open(hob.port()).unwrap();
        rustix::net::sockopt::set_tcp_nodelay(&connection, true).unwrap();
        for byte in header {
            connection.send(&[*byte]).unwrap();
        }
        assert_eq!(who(&mut connection, b"", ""), CLIENT);
        let request = b"GET /who HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let mut connection = Connection::open(hob.port()).unwrap();
        connection.send(&[header, request].concat()).unwrap();
        // All of it has come, and the end with it.
        connection.end_sending();
        assert_eq!(connection.read_last("GET").text().trim_end(), CLIENT);
    }
    hob.stop();
}

#[test]
fn header_comes_over_unix_sockets_too() {
    let listen = "address = \"unix:run/front.sock\"\ntrusted = [\"unix\"]";
    let (place, hob) = behind(listen, "", "");
    hob.wait_for("listening on unix:");
    let open = || Connection::open_unix(&place.path("run/front.sock")).unwrap();
    assert_eq!(who(&mut open(), VERSION_1, ""), CLIENT);
    let own = who(&mut open(), b"PROXY UNKNOWN\r\n", "");
    assert!(own.ends_with(" http"), "{own}");
    assert!(!own.contains("192.0.2.7"), "{own}");
    hob.stop();
}

#[test]
fn field_is_believed_only_where_the_listener_says_so() {
    let said = "X-Forwarded-For: 6.6.6.6, 203.0.113.5\r\nX-Forwarded-Proto: https\r\n";
    let balancer = b"PROXY TCP4 10.1.1.1 198.51.100.2 4711 443\r\n";
    let trusted = format!("{TCP}\ntrusted = [\"127.0.0.1\", \"10.0.0.0/8\"]\n");
    let (_place, hob) = behind(&trusted, "", "");
    let mut connection = Connection::open(hob.port()).unwrap();
    let told = who(&mut connection, balancer, said);
    assert_eq!(told, "10.1.1.1 4711 198.51.100.2 443 http");
    hob.stop();
    let (_place, hob) = behind(
        &format!("{trusted}client_from = \"X-Forwarded-For\"\n"),
        "",
        "",
    );
    let told = |header: &[u8]| {
        let mut connection = Connection::open(hob.port()).unwrap();
        who(&mut connection, header, said)
    };
    // One balancer behind the other: the first says who its client is.
    let passed = "6.6.6.6, 203.0.113.5";
    assert_eq!(
        told(balancer),
        format!("203.0.113.5 0 198.51.100.2 443 https {passed}")
    );
    assert_eq!(told(VERSION_1), format!("{CLIENT} {passed}"));
    hob.stop();
}

#[test]
fn limit_of_one_client_counts_whom_headers_name() {
    let (place, hob) = behind(TCP, "[limits]\nconnections_per_client = 1\n", "");
    let mut first = Connection::open(hob.port()).unwrap();
    first.send(VERSION_1).unwrap();
    first.send(b"GET /who HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    assert_eq!(first.read().unwrap().status, 200);
    let mut second = Connection::open(hob.port()).unwrap();
    second.send(&version_2(b"")).unwrap();
    second.send_get("/who").unwrap();
    assert_eq!(second.read().unwrap().status, 503);
    assert_eq!(place.counter("limit_connections_per_client"), 1);
    // Another client, from the same balancer, and the first one again when it has gone.
    let other = b"PROXY TCP4 192.0.2.8 198.51.100.2 1 2\r\n";
    let mut third = Connection::open(hob.port()).unwrap();
    assert_eq!(
        who(&mut third, other, ""),
        "192.0.2.8 1 198.51.100.2 2 http"
    );
    drop(first);
    let until = Instant::now() + DEADLINE;
    loop {
        let mut fourth = Connection::open(hob.port()).unwrap();
        fourth.send(VERSION_1).unwrap();
        fourth.send_get("/who").unwrap();
        match fourth.read().unwrap().status {
            200 => break,
            status => assert_eq!(status, 503),
        }
        assert!(Instant::now() < until, "the first one's place stays taken");
    }
    hob.stop();
}

#[test]
fn who_finds_no_room_hears_so_behind_its_header() {
    let (place, hob) = behind(TCP, "[limits]\nconnections = 1\n", "");
    let mut first = Connection::open(hob.port()).unwrap();
    first.send(VERSION_1).unwrap();
    first.send(b"GET /who HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    assert_eq!(first.read().unwrap().status, 200);
    let mut second = Connection::open(hob.port()).unwrap();
    second.send(VERSION_1).unwrap();
    second.send_get("/who").unwrap();
    assert_eq!(second.read().unwrap().status, 503);
    assert_eq!(place.counter("limit_connections"), 1);
    hob.stop();
}

#[test]
fn curl_names_itself_in_each_version_of_http() {
    let (_place, hob) = behind(TCP, "", "");
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let url = format!("http://127.0.0.1:{}/who", hob.clear_port());
        let told = curl(&[version, "--haproxy-protocol"], &url);
        assert!(told.starts_with("127.0.0.9 "), "{told}");
    }
    hob.stop();
}

#[test]
fn haproxy_in_front_names_its_clients() {
    let (place, hob) = behind(TCP, "", "");
    let to = hob.clear_port();
    for sends in [
        "send-proxy",
        "send-proxy-v2",
        "send-proxy-v2-ssl",
        "send-proxy-v2 proxy-v2-options crc32c,unique-id,authority",
    ] {
        let lines = format!(
            "mode tcp\nbind fd@3\nunique-id-format %{{+X}}o\\ %ci:%cp\nserver hob 127.0.0.1:{to} {sends}"
        );
        let Some(front) = haproxy(&place, &lines) else {
            return;
        };
        let url = format!("http://127.0.0.1:{}/who", front.port);
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let told = curl(&[version], &url);
            let to = format!(" 127.0.0.1 {} http", front.port);
            assert!(told.starts_with("127.0.0.9 "), "{sends}: {told}");
            assert!(told.ends_with(&to), "{sends}: {told}");
        }
    }
    hob.stop();
}

#[test]
fn header_comes_before_tls_that_haproxy_passes_through() {
    let (place, hob) = behind(&format!("{TCP}\ntls = true"), "", "https_only = true");
    for sends in ["send-proxy", "send-proxy-v2-ssl"] {
        let lines = format!(
            "mode tcp\nbind fd@3\nserver hob 127.0.0.1:{} {sends}",
            hob.tls_port()
        );
        let Some(front) = haproxy(&place, &lines) else {
            return;
        };
        let url = format!("https://127.0.0.1:{}/who", front.port);
        for version in ["--http1.1", "--http2"] {
            let told = curl(&[version], &url);
            assert!(told.starts_with("127.0.0.9 "), "{sends}: {told}");
            assert!(told.ends_with(" https"), "{sends}: {told}");
        }
    }
    assert_eq!(place.counter("tls_handshakes_failed"), 0);
    hob.stop();
}

#[test]
fn https_only_knows_the_tls_that_haproxy_ends() {
    let (place, hob) = behind(TCP, "", "https_only = true");
    place.certificate("front", "localhost");
    let pem =
        ["front.pem", "front.key"].map(|file| std::fs::read_to_string(place.path(file)).unwrap());
    std::fs::write(place.path("both.pem"), pem.concat()).unwrap();
    for (bind, scheme, status) in [("ssl crt both.pem", "https", "200"), ("", "http", "301")] {
        let bind = bind.replace("both.pem", &place.path("both.pem").display().to_string());
        let lines = format!(
            "mode tcp\nbind fd@3 {bind}\nserver hob 127.0.0.1:{} send-proxy-v2-ssl",
            hob.clear_port()
        );
        let Some(front) = haproxy(&place, &lines) else {
            return;
        };
        let url = format!("{scheme}://127.0.0.1:{}/who", front.port);
        let told = curl(&["-o", "/dev/null", "-w", "%{http_code}"], &url);
        assert_eq!(told, status, "{scheme}");
    }
    let mut connection = Connection::open(hob.port()).unwrap();
    let told = who(&mut connection, &version_2(b"\x20\0\x05\x01\0\0\0\x01"), "");
    assert_eq!(told, CLIENT.replace("http", "https"));
    hob.stop();
}
