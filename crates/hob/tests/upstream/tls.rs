//! Members over TLS: HAProxy in front of a program, which takes TLS off, and peers that break it
//! off.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::authority::{Authority, Signed};
use crate::harness::Place;
use crate::harness::client::call;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, sends};
use crate::site::{self, Kept, found};
use crate::wire::{KEYS, end, output, read_variables};

/// Whose certificates are believed.
const CA: &str = "tls = { ca = \"ca.pem\" }";

/// HAProxy that takes TLS off in front of a socket of the place, with further words of `bind`.
pub(crate) fn in_front(place: &Place, signed: &Signed, socket: &str, bind: &str) -> (u16, Kept) {
    signed.write(place, "front");
    let part = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    place.write("front-all.pem", &(part("front.pem") + &part("front.key")));
    let path = |name: &str| place.path(name).display().to_string();
    let times = "timeout connect 30s\ntimeout client 30s\ntimeout server 30s\n";
    Kept::start_at_port(|port| {
        let config = format!(
            "global\nmaxconn 64\ndefaults\nmode tcp\n{times}listen all\n\
             bind 127.0.0.1:{port} ssl crt {} {bind}\nserver program unix@{}\n",
            path("front-all.pem"),
            path(socket)
        );
        place.write("front.cfg", &config);
        let mut command = Command::new(found(&["haproxy"]));
        command.args(["-db", "-f"]).arg(path("front.cfg"));
        command
    })
}

fn well() -> Vec<u8> {
    [output("Content-Type: text/plain\r\n\r\nwell"), end()].concat()
}

/// A program behind HAProxy that answers so many requests, and `ca.pem` of who signed for it.
fn behind(names: &[&str], bind: &str, answers: usize) -> (Place, Peer, u16, Kept) {
    let (place, authority) = (Place::new(), Authority::new("ca"));
    authority.write(&place, "ca.pem");
    authority.sign(&["hob"]).write(&place, "own");
    let bind = bind.replace("CA", &place.path("ca.pem").display().to_string());
    let acts: Vec<Act> = (0..answers).map(|_| sends(well())).collect();
    let peer = Peer::start(&place, acts);
    let (port, front) = in_front(&place, &authority.sign(names), "run/peer.sock", &bind);
    (place, peer, port, front)
}

/// A site that asks these members, with further keys.
fn serve(place: Place, to: &str, keys: &str) -> Site {
    site::serve(place, &format!("to = [{to}]{KEYS}, {keys}"), "")
}

/// The reason of a request that gets no answer.
fn refused(site: &Site) -> String {
    assert_eq!(site.get("/app/x").answer.status, 502);
    assert_eq!(site.place.counter("upstream_tls_failed"), 1);
    let record = site.record("/app/x");
    record["reason"].as_str().unwrap().to_owned()
}

#[test]
fn program_behind_tls_is_asked_where_its_certificate_is_good() {
    let (place, peer, port, _front) = behind(&["localhost"], "", 2);
    let site = serve(place, &format!("\"tls://localhost:{port}\""), CA);
    for _ in 0..2 {
        assert_eq!(
            call(site.port(), "POST", "/app/", "", b"").answer.text(),
            "well"
        );
    }
    let counted = ["upstream_tls_handshakes", "upstream_tls_resumed"];
    assert_eq!(counted.map(|name| site.place.counter(name)), [2, 1]);
    site.stop();
    peer.join();
}

#[test]
fn program_whose_certificate_is_another_ones_is_not_asked() {
    let by_nobody = "the certificate of the other server is signed by nobody who is believed";
    let (place, _peer, port, _front) = behind(&["localhost"], "", 1);
    Authority::new("other").write(&place, "ca.pem");
    let site = serve(place, &format!("\"tls://localhost:{port}\""), CA);
    assert_eq!(refused(&site), by_nobody);
    site.stop();

    let for_another = "the certificate of the other server is for another name";
    let (place, peer, port, _front) = behind(&["program.internal"], "", 1);
    let to = format!("\"tls://127.0.0.1:{port}\"");
    let site = serve(place, &to, CA);
    assert_eq!(refused(&site), for_another);
    let Site { place, hob } = site;
    hob.stop();
    let named = "tls = { ca = \"ca.pem\", name = \"program.internal\" }";
    let site = serve(place, &to, named);
    assert_eq!(site.get("/app/").answer.text(), "well");
    site.stop();
    peer.join();
}

#[test]
fn program_knows_hob_by_its_certificate() {
    let (place, peer, port, _front) = behind(&["localhost"], "verify required ca-file CA", 1);
    let to = format!("\"tls://localhost:{port}\"");
    let site = serve(place, &to, CA);
    assert_eq!(
        refused(&site),
        "the other server wants a certificate of ours, or another one"
    );
    let Site { place, hob } = site;
    hob.stop();
    let own = "tls = { ca = \"ca.pem\", certificate = \"own.pem\", key = \"own.key\" }";
    let site = serve(place, &to, own);
    assert_eq!(site.get("/app/").answer.text(), "well");
    site.stop();
    peer.join();
}

#[test]
fn member_in_the_clear_answers_where_one_over_tls_is_not_believed() {
    let (place, peer, port, _front) = behind(&["program.internal"], "", 1);
    let to = format!("\"tls://127.0.0.1:{port}\", \"unix:run/peer.sock\"");
    let keys = format!("{CA}, balance = \"round_robin\"");
    let site = serve(place, &to, &keys);
    // Nothing was sent: whatever it is, it goes to the next one.
    let posted = call(site.port(), "POST", "/app/", "", b"once").answer;
    assert_eq!((posted.status, posted.text().as_str()), (200, "well"));
    assert_eq!(site.place.counter("upstream_retries"), 1);
    site.stop();
    peer.join();
}

/// What a peer over TLS does once it has read the variables.
type ActOverTls = fn(StreamOwned<ServerConnection, TcpStream>);

/// A peer at a port that takes one connection.
fn peer(config: Arc<ServerConfig>, act: ActOverTls) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let connection = ServerConnection::new(config).unwrap();
        let stream = listener.accept().unwrap().0;
        let mut stream = StreamOwned::new(connection, stream);
        read_variables(&mut stream);
        // Longer than what is held back for its end.
        let begun = format!("Content-Type: text/plain\r\n\r\n{}", "x".repeat(60_000));
        for _ in 0..2 {
            stream.write_all(&output(&begun)).unwrap();
        }
        act(stream);
    });
    (port, thread)
}

#[test]
fn end_that_is_none_of_tls_is_no_end_of_an_answer() {
    let ends: ActOverTls = |mut stream| {
        stream.write_all(&end()).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
    };
    let falls_silent: ActOverTls = |stream| drop(stream);
    let resets: ActOverTls = |stream| {
        let at_once = Some(std::time::Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&stream.sock, at_once).unwrap();
    };
    for (act, is_whole) in [(ends, true), (falls_silent, false), (resets, false)] {
        let (place, authority) = (Place::new(), Authority::new("ca"));
        authority.write(&place, "ca.pem");
        let config = authority
            .sign(&["localhost"])
            .config(rustls::ALL_VERSIONS, None);
        let (port, thread) = peer(config, act);
        let site = serve(place, &format!("\"tls://localhost:{port}\""), CA);
        let reply = call(site.port(), "POST", "/app/", "", b"a body");
        assert_eq!(reply.is_broken(), !is_whole);
        site.stop();
        thread.join().unwrap();
    }
}

#[test]
fn authorities_that_are_not_there_are_told_before_anything_runs() {
    let place = Place::new();
    place.write(
        "hob.toml",
        &format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\n[[site.route]]\npath = \"/app/*\"\n\
             {} = {{ to = \"tls://localhost:1\"{KEYS}, tls = {{ ca = \"none.pem\" }} }}\n",
            crate::wire::KEY
        ),
    );
    let checked = place.run(&["check", "--config", "hob.toml"]);
    let told = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(
        !checked.status.success() && told.contains("none.pem"),
        "{told}"
    );
}

#[test]
fn no_version_of_http_is_offered() {
    let authority = Authority::new("ca");
    let place = Place::new();
    authority.write(&place, "ca.pem");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let hello = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut acceptor = rustls::server::Acceptor::default();
        loop {
            acceptor.read_tls(&mut stream).unwrap();
            if let Some(accepted) = acceptor.accept().map_err(|(error, _)| error).unwrap() {
                let hello = accepted.client_hello();
                let names = hello
                    .alpn()
                    .map(|names| names.map(<[u8]>::to_vec).collect());
                return (hello.server_name().map(str::to_owned), names);
            }
        }
    });
    let site = serve(place, &format!("\"tls://localhost:{port}\""), CA);
    assert_eq!(site.get("/app/x").answer.status, 502);
    let (name, offered): (Option<String>, Option<Vec<Vec<u8>>>) = hello.join().unwrap();
    assert_eq!(name.as_deref(), Some("localhost"));
    assert_eq!(offered, None);
    site.stop();
}
