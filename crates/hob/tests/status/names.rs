//! Names of clients from a real name server, dnsmasq, on loopback; and what a dead one costs.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Instant;

use socket2::{Domain, Socket, Type};

use super::told;
use crate::harness::client::Connection;
use crate::harness::name_server::NameServer;
use crate::harness::{DEADLINE, Hob, Place};

/// Knows 127.0.0.5 well, 127.0.0.6 by a name that is somebody else's, and nobody else.
fn start() -> NameServer {
    let records = [
        "--host-record=visitor.test,127.0.0.5",
        "--ptr-record=6.0.0.127.in-addr.arpa,liar.test",
        "--host-record=liar.test,127.0.0.99",
    ];
    NameServer::start(&records.map(str::to_owned), "visitor.test")
}

/// Asks from an address of this machine.
fn get_from(client: [u8; 4], hob: &Hob, target: &str) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let own = SocketAddr::from((Ipv4Addr::from(client), 0));
    socket.bind(&own.into()).unwrap();
    let port = hob.clear_port();
    socket
        .connect(&SocketAddr::from(([127, 0, 0, 1], port)).into())
        .unwrap();
    let mut connection = Connection::of(OwnedFd::from(socket));
    connection.send_get(target).unwrap();
    assert_eq!(connection.read().unwrap().status, 200);
}

/// A site whose log has names from this name server.
fn serve(place: &Place, server: &str) -> Hob {
    place.folder("logs");
    place.serve_config(&format!(
        "default_log = \"main\"\nnames = {{ server = \"{server}\", time = \"300ms\" }}\n\
         [[log]]\nname = \"main\"\nfile = \"logs/access\"\n\
         format = \"{{client}} {{client_name}}\"\n"
    ))
}

fn log(place: &Place) -> Vec<String> {
    let text = std::fs::read_to_string(place.path("logs/access")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn log_names_clients_whose_name_leads_back_to_them() {
    let server = start();
    let place = Place::new();
    let hob = serve(&place, &format!("127.0.0.1:{}", server.port));
    for client in [5, 6, 7, 5] {
        get_from([127, 0, 0, client], &hob, "/hello.txt");
    }
    place.wait_for_counter("requests", 4);
    for (name, count) in [
        ("names_asked", 3),
        ("names_found", 1),
        ("names_mismatched", 1),
    ] {
        place.wait_for_counter(name, count);
    }
    let names = &told(&place, "/v1/status")["names"];
    assert_eq!((&names["on"], &names["entries"]), (&true.into(), &3.into()));
    hob.stop();
    let mut lines = log(&place);
    lines.sort();
    assert_eq!(
        lines,
        [
            "127.0.0.5 visitor.test",
            "127.0.0.5 visitor.test",
            "127.0.0.6 -",
            "127.0.0.7 -"
        ]
    );
}

#[test]
fn name_server_that_is_silent_keeps_nobody_waiting() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let place = Place::new();
    let hob = serve(&place, &silent.local_addr().unwrap().to_string());
    let begin = Instant::now();
    for client in 1..50 {
        get_from([127, 0, 2, client], &hob, "/hello.txt");
    }
    assert!(begin.elapsed() < DEADLINE / 2, "{:?}", begin.elapsed());
    hob.stop();
    // Every line was written, though no name came.
    let lines = log(&place);
    assert_eq!(lines.len(), 49);
    assert!(lines.iter().all(|line| line.ends_with(" -")), "{lines:?}");
}

#[test]
fn name_server_that_is_gone_leaves_clients_without_names() {
    let gone = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let place = Place::new();
    let hob = serve(&place, &gone.to_string());
    get_from([127, 0, 0, 5], &hob, "/hello.txt");
    place.wait_for_counter("names_failed", 1);
    hob.stop();
    assert_eq!(log(&place), ["127.0.0.5 -"]);
}
