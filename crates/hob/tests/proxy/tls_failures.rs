//! What goes wrong with TLS to members, and what is cut off.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use rcgen::date_time_ymd;

use crate::authority::Authority;
use crate::harness::Place;
use crate::harness::client::{Connection, call};
use crate::harness::over::Protocol;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, answers, sends};
use crate::secure::{over, serve, serve_in};

const CA: &str = "ca = \"ca.pem\"";

/// Reason and detail of a request that such a peer gets, with these keys of `tls`; it is a 502.
fn told(authority: &Authority, peer: &Peer, tls: &str) -> (String, String) {
    let site = serve(authority, &[peer], tls, "");
    assert_eq!(site.get("/app/x").answer.status, 502);
    let record = site.record("/app/x");
    assert_eq!(record["fault"], "upstream");
    assert_eq!(site.place.counter("upstream_tls_failed"), 1);
    site.stop();
    let text = |name: &str| record[name].as_str().unwrap().to_owned();
    (text("reason"), text("detail"))
}

#[test]
fn certificate_that_is_no_good_is_told_with_what_to_do() {
    let authority = Authority::new("ca");
    let stranger = Authority::new("other").sign(&["localhost"]);
    let named = authority.sign(&["elsewhere.test", "other.test"]);
    let old = authority.sign_with(&["localhost"], |params| {
        params.not_before = date_time_ymd(2020, 1, 2);
        params.not_after = date_time_ymd(2021, 3, 4);
    });
    let cases = [
        (
            stranger,
            "the certificate of the other server is signed by nobody who is believed",
            "nobody who is believed has signed its certificate; name a file of who signed it, or \
             of itself, in `tls.ca`",
        ),
        (
            named,
            "the certificate of the other server is for another name",
            "its certificate is for DnsName(\"elsewhere.test\"), DnsName(\"other.test\"), not for \
             localhost; write a name that it has in `to`, or in `tls.name`",
        ),
        (
            old,
            "the certificate of the other server is not good today",
            "its certificate expired on 2021-03-04; renew it there, or set the clock",
        ),
    ];
    for (signed, reason, detail) in cases {
        let peer = signed.peer(vec![answers(1)]);
        let expected = format!("127.0.0.1:{}: {detail}", peer.port);
        let told = told(&authority, &peer, CA);
        assert_eq!(told, (reason.to_owned(), expected));
        peer.join();
    }
}

#[test]
fn server_that_wants_a_certificate_gets_it_or_says_so() {
    let (authority, clients) = (Authority::new("ca"), Authority::new("clients"));
    let signed = authority.sign(&["localhost"]);
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let config = signed.config(&[version], Some(&clients));
        let peer = Peer::start_over(over(config.clone()), vec![answers(1)]);
        let (reason, detail) = told(&authority, &peer, CA);
        let wants = "the other server wants a certificate of ours, or another one";
        assert_eq!(reason, wants, "{detail}");
        assert!(
            detail.ends_with("; name one that it accepts in `tls.certificate`"),
            "{detail}"
        );
        peer.join();

        let shown = format!("{CA}, certificate = \"own.pem\", key = \"own.key\"");
        let in_place = |own: &Authority, peer: &Peer| {
            let place = Place::new();
            own.sign(&["hob"]).write(&place, "own");
            serve_in(place, &authority, &[peer.port], &shown, "")
        };
        let peer = Peer::start_over(over(config.clone()), vec![answers(1)]);
        let site = in_place(&clients, &peer);
        assert_eq!(site.get("/app/").answer.status, 200);
        site.stop();
        peer.join();

        let peer = Peer::start_over(over(config), vec![answers(1)]);
        let site = in_place(&authority, &peer);
        assert_eq!(site.get("/app/x").answer.status, 502);
        assert_eq!(site.record("/app/x")["reason"], wants);
        site.stop();
        peer.join();
    }
}

/// A peer that takes one connection, has these bytes for it, and closes.
fn blunt(bytes: &'static [u8]) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut room = [0; 4096];
        let _ = stream.read(&mut room).unwrap();
        stream.write_all(bytes).unwrap();
    });
    (port, thread)
}

#[test]
fn peer_that_speaks_no_tls_is_told_apart() {
    let clear = "the other server speaks no TLS";
    let none = "there is no TLS with the other server";
    let authority = Authority::new("ca");
    for (bytes, reason, detail) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            clear,
            "; write it without TLS in `to`",
        ),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n",
            clear,
            "what it sent first is no TLS",
        ),
        (b"", none, "it closed the connection within the handshake"),
        (
            b"\x15\x03\x03\x00\x02\x02\x46",
            none,
            "it gave up: ProtocolVersion (70)",
        ),
        (b"\x16\x03\x03\x40\xff", none, "within the handshake"),
    ] {
        let (port, thread) = blunt(bytes);
        let site = serve_at(&authority, port, "");
        assert_eq!(site.get("/app/x").answer.status, 502);
        let record = site.record("/app/x");
        assert_eq!(record["reason"], reason, "{record}");
        let told = record["detail"].as_str().unwrap();
        assert!(told.contains(detail), "{told}");
        site.stop();
        thread.join().unwrap();
    }
}

fn serve_at(authority: &Authority, port: u16, keys: &str) -> Site {
    serve_in(Place::new(), authority, &[port], CA, keys)
}

#[test]
fn handshake_that_takes_too_long_counts_as_a_connection_that_does() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let authority = Authority::new("ca");
    let site = serve_at(&authority, port, "timeout = { connect = \"100ms\" }");
    assert_eq!(site.get("/app/x").answer.status, 504);
    let reason = "limits: proxy.timeout.connect: the other server did not take the connection in \
                  time";
    assert_eq!(site.record("/app/x")["reason"], reason);
    assert_eq!(site.place.counter("limit_upstream_connect"), 1);
    site.stop();
}

#[test]
fn member_without_tls_is_followed_by_another_whatever_was_asked() {
    let authority = Authority::new("ca");
    let bad = Authority::new("other").sign(&["localhost"]);
    let (bad, good) = (
        bad.peer(vec![answers(1)]),
        authority.sign(&["localhost"]).peer(vec![answers(1)]),
    );
    let site = serve(&authority, &[&bad, &good], CA, "balance = \"round_robin\"");
    let reply = call(site.port(), "POST", "/app/", "", b"once").answer;
    assert_eq!((reply.status, reply.text()), (200, "0".to_owned()));
    assert_eq!(site.place.counter("upstream_retries"), 1);
    site.stop();
    for peer in [bad, good] {
        peer.join();
    }
}

#[test]
fn answer_that_is_cut_off_is_seen_to_be() {
    let authority = Authority::new("ca");
    let signed = authority.sign(&["localhost"]);
    let ends = |bytes: &'static str| -> Act {
        Box::new(move |taken| {
            taken.write(bytes.as_bytes());
            taken.end();
        })
    };
    let to_end = "HTTP/1.1 200 OK\r\n\r\nsome";
    let sized = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome";
    for (act, is_whole) in [
        (ends(to_end), true),
        (sends(to_end), false),
        (ends(sized), false),
        (sends(sized), false),
    ] {
        let peer = signed.peer(vec![act]);
        let site = serve(&authority, &[&peer], CA, "");
        let reply = site.get("/app/x");
        // One that is short breaks before its head is on its way, or after; over HTTP/3 the break
        // may come before what was on its way.
        match reply.answer.status {
            200 => assert_eq!(reply.is_whole, is_whole),
            status => {
                let is_lost = Protocol::tested().version() == "HTTP/3.0";
                assert!(!is_whole && (status == 502 || is_lost), "{status}");
            }
        }
        if !is_whole {
            let closed = "the other server closed the connection before its answer ended";
            assert_eq!(site.record("/app/x")["reason"], closed);
        }
        site.stop();
        peer.join();
    }
}

#[test]
fn request_that_breaks_off_is_not_taken_for_whole() {
    let authority = Authority::new("ca");
    let (told, tell) = mpsc::channel();
    let act: Act = Box::new(move |taken| {
        taken.some();
        told.send(None).unwrap();
        told.send(Some(taken.stay_to_the_end().1)).unwrap();
    });
    let config = authority
        .sign(&["localhost"])
        .config(rustls::ALL_VERSIONS, None);
    let peer = Peer::start_over_after_heads(over(config), vec![act]);
    let site = serve(&authority, &[&peer], CA, "");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("POST", "/app/", "Content-Length: 1000000\r\n");
    client.send(&[b'x'; 200_000]).unwrap();
    assert_eq!(tell.recv().unwrap(), None);
    client.leave();
    assert_eq!(tell.recv().unwrap(), Some(false));
    site.stop();
    peer.join();
}

#[test]
fn garbage_behind_the_handshake_breaks_visibly() {
    let authority = Authority::new("ca");
    let config = authority
        .sign(&["localhost"])
        .config(rustls::ALL_VERSIONS, None);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut conn = rustls::ServerConnection::new(config).unwrap();
        while conn.is_handshaking() {
            conn.complete_io(&mut stream).unwrap();
        }
        stream.write_all(b"\x17\x03\x03\x00\x20").unwrap();
        stream.write_all(&[7; 32]).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let site = serve_at(&authority, port, "");
    assert_eq!(site.get("/app/x").answer.status, 502);
    let record = site.record("/app/x");
    assert_eq!(record["reason"], "there is no TLS with the other server");
    let detail = record["detail"].as_str().unwrap();
    assert!(
        detail.ends_with(": a TLS record was changed on its way"),
        "{detail}"
    );
    site.stop();
    thread.join().unwrap();
}
