//! Members whose addresses a real name server has, dnsmasq: as long as it says, and no longer.

use std::net::{TcpListener, UdpSocket};
use std::time::Instant;

use rustix::process::Signal;

use crate::harness::name_server::NameServer;
use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place, send_signal};
use crate::peer::{Taken, answer};

/// A name server with the names of a file; its answers hold for so many seconds.
fn start(place: &Place, names: &str, ttl_s: u32) -> NameServer {
    place.write("names", names);
    let arguments = [
        "--local=/test/".to_owned(),
        format!("--addn-hosts={}", place.path("names").display()),
        format!("--local-ttl={ttl_s}"),
    ];
    NameServer::start(&arguments, "app.test")
}

/// It has other names from now on, this address for `app.test`.
fn change(server: &NameServer, place: &Place, names: &str, address: [u8; 4]) {
    place.write("names", names);
    send_signal(server.child.id(), Signal::HUP);
    let until = Instant::now() + DEADLINE;
    while server.address("app.test") != Some(address) {
        assert!(Instant::now() < until, "dnsmasq does not change");
    }
}

/// Two servers at one port of 127.0.0.2 and 127.0.0.3, which answer with the last of that.
fn two_places() -> u16 {
    let both = std::iter::repeat_with(|| {
        let first = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = first.local_addr().unwrap().port();
        let second = TcpListener::bind(("127.0.0.3", port)).ok()?;
        Some(([first, second], port))
    });
    let (listeners, port) = both.flatten().next().unwrap();
    listeners.into_iter().for_each(answer_at);
    port
}

/// Answers with the address at which requests come.
fn answer_at(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let name = stream.local_addr().unwrap().ip().to_string();
            std::thread::spawn(move || {
                let mut taken = Taken::new(stream);
                while taken.next().is_some() {
                    taken.write(&answer(&name));
                }
            });
        }
    });
}

const FIRST: &str = "127.0.0.2 app.test\n";
const SECOND: &str = "127.0.0.3 app.test\n";

/// A site that asks `app.test` at a port, where this name server has it.
fn serve(place: Place, port: u16, resolver: u16, keys: &str) -> Site {
    let handler = format!(
        "proxy = {{ to = \"http://app.test:{port}\", resolver = \"127.0.0.1:{resolver}\", {keys} }}"
    );
    Site::serve(place, "", &handler, "")
}

fn get(site: &Site) -> String {
    let answer = site.get("/app/").answer;
    assert_eq!(answer.status, 200);
    answer.text()
}

#[test]
fn name_is_looked_up_again_once_its_answer_holds_no_more() {
    let place = Place::new();
    let server = start(&place, FIRST, 1);
    let site = serve(place, two_places(), server.port, "keep = 4");
    for _ in 0..3 {
        assert_eq!(get(&site), "127.0.0.2");
    }
    change(&server, &site.place, SECOND, [127, 0, 0, 3]);
    let until = Instant::now() + DEADLINE;
    // No request is lost, and the connections that rest do not lead to the old place for ever.
    while get(&site) != "127.0.0.3" {
        assert!(Instant::now() < until, "it is not looked up again");
    }
    for _ in 0..3 {
        assert_eq!(get(&site), "127.0.0.3");
    }
    assert_eq!(site.place.counter("upstream_connects"), 2);
    // What is not known any more holds: nobody says anything else.
    drop(server);
    assert_eq!(get(&site), "127.0.0.3");
    site.stop();
}

#[test]
fn name_is_not_looked_up_while_its_answer_holds() {
    let place = Place::new();
    let server = start(&place, FIRST, 3600);
    let site = serve(place, two_places(), server.port, "keep = 0");
    assert_eq!(get(&site), "127.0.0.2");
    change(&server, &site.place, SECOND, [127, 0, 0, 3]);
    for _ in 0..20 {
        assert_eq!(get(&site), "127.0.0.2");
    }
    site.stop();
}

#[test]
fn name_that_nobody_has_is_a_502_with_its_reason() {
    let place = Place::new();
    let server = start(&place, "127.0.0.2 other.test\n", 1);
    let site = serve(place, 1, server.port, "");
    assert_eq!(site.get("/app/x").answer.status, 502);
    let record = site.record("/app/x");
    assert_eq!(record["reason"], "the other server cannot be reached");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("app.test has no address"), "{detail}");
    site.stop();

    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let resolver = silent.local_addr().unwrap().port();
    let site = serve(Place::new(), 1, resolver, "");
    assert_eq!(site.get("/app/x").answer.status, 502);
    let record = site.record("/app/x");
    let detail = record["detail"].as_str().unwrap();
    assert!(
        detail.contains("no name server answered for app.test"),
        "{detail}"
    );
    site.stop();
}
