//! TLS to members: who is asked for, connections that stay, bodies and tunnels.

use std::sync::mpsc;

use crate::authority::Authority;
use crate::harness::Place;
use crate::harness::client::call;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, answer, answers, sends, stays_after};
use crate::secure::{over, serve};

const CA: &str = "ca = \"ca.pem\"";

#[test]
fn connections_stay_and_outlive_a_reload() {
    let authority = Authority::new("ca");
    let peer = authority.sign(&["localhost"]).peer(vec![answers(4)]);
    let site = serve(&authority, &[&peer], CA, "");
    for at in 0..2 {
        assert_eq!(site.get("/app/").answer.text(), at.to_string());
    }
    let reloaded = site.place.run(&["reload"]);
    assert!(reloaded.status.success(), "{reloaded:?}");
    // Before what must not be sent again it is looked at.
    for at in 2..4 {
        let reply = call(site.port(), "POST", "/app/", "", b"once").answer;
        assert_eq!(reply.text(), at.to_string());
    }
    let counts = [
        "upstream_connects",
        "upstream_reuses",
        "upstream_tls_handshakes",
    ];
    assert_eq!(counts.map(|name| site.place.counter(name)), [1, 3, 1]);
    site.stop();
    peer.join();
}

#[test]
fn new_connections_resume_their_session() {
    let authority = Authority::new("ca");
    let signed = authority.sign(&["localhost"]);
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let speaks = over(signed.config(&[version], None));
        let peer = Peer::start_over(speaks, (0..4).map(|_| answers(1)).collect());
        let site = serve(&authority, &[&peer], CA, "keep = 0");
        for at in 0..4 {
            assert_eq!(site.get("/app/").answer.text(), "0");
            if at == 2 {
                // What has not changed keeps its sessions.
                assert!(site.place.run(&["reload"]).status.success());
            }
        }
        assert_eq!(site.place.counter("upstream_tls_handshakes"), 4);
        assert_eq!(site.place.counter("upstream_tls_resumed"), 3, "{version:?}");
        site.stop();
        peer.join();
    }
}

#[test]
fn session_is_not_taken_along_to_other_authorities() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    let peer = authority
        .sign(&["localhost"])
        .peer(vec![stays_after(answer("x")), answers(1)]);
    let site = serve(&authority, &[&peer], CA, "");
    assert_eq!(site.get("/app/").answer.status, 200);
    other.write(&site.place, "ca.pem");
    assert!(site.place.run(&["reload"]).status.success());
    // The connection that rests was made while another authority was believed.
    assert_eq!(site.get("/app/").answer.status, 502);
    assert_eq!(site.place.counter("upstream_tls_resumed"), 0);
    site.stop();
    peer.join();
}

#[test]
fn change_of_keys_while_a_connection_rests_is_nothing_said() {
    let authority = Authority::new("ca");
    let (changed, was_changed) = mpsc::channel();
    let act: Act = Box::new(move |taken| {
        taken.write(&answer("first"));
        taken.change_keys();
        changed.send(()).unwrap();
        for _ in 0..2 {
            taken.read();
            taken.write(&answer("more"));
        }
    });
    let peer = authority.sign(&["localhost"]).peer(vec![act]);
    let site = serve(&authority, &[&peer], CA, "");
    assert_eq!(site.get("/app/").answer.text(), "first");
    was_changed.recv().unwrap();
    for method in ["POST", "GET"] {
        let reply = call(site.port(), method, "/app/", "", b"").answer;
        assert_eq!(reply.text(), "more");
    }
    assert_eq!(site.place.counter("upstream_connects"), 1);
    site.stop();
    peer.join();
}

#[test]
fn connection_that_ended_while_it_rested_is_nobodys_error() {
    let authority = Authority::new("ca");
    let (ended, has_ended) = mpsc::channel();
    let ends = || -> Act {
        let ended = ended.clone();
        Box::new(move |taken| {
            taken.write(&answer("one"));
            taken.end();
            ended.send(()).unwrap();
            taken.stay();
        })
    };
    let acts = vec![ends(), ends(), sends(answer("last"))];
    let peer = authority.sign(&["localhost"]).peer(acts);
    let site = serve(&authority, &[&peer], CA, "");
    for (at, text) in ["one", "one", "last"].into_iter().enumerate() {
        let target = format!("/app/{at}");
        let reply = call(site.port(), "POST", &target, "", b"once").answer;
        assert_eq!(reply.text(), text);
        if text == "one" {
            has_ended.recv().unwrap();
        }
    }
    assert_eq!(site.place.counter("upstream_reuses"), 0);
    site.stop();
    peer.join();
}

#[test]
fn name_is_asked_for_and_checked_instead_of_the_host() {
    let authority = Authority::new("ca");
    let peer = authority.sign(&["app.test"]).peer(vec![answers(1)]);
    let place = Place::new();
    authority.write(&place, "ca.pem");
    let handler = format!(
        "proxy = {{ to = \"https://127.0.0.1:{}\", host = \"upstream\", tls = {{ {CA}, name = \
         \"app.test\" }} }}",
        peer.port
    );
    let site = Site::serve(place, "", &handler, "");
    assert_eq!(site.get("/app/").answer.status, 200);
    site.stop();
    let port = peer.port;
    let asked = peer.join().remove(0);
    assert!(
        asked.contains(&format!("Host: 127.0.0.1:{port}\r\n")),
        "{asked}"
    );
}

#[test]
fn clear_and_sealed_members_stand_in_one_list() {
    let authority = Authority::new("ca");
    let clear = Peer::start(vec![answers(2)]);
    let sealed = authority.sign(&["127.0.0.1"]).peer(vec![answers(2)]);
    let place = Place::new();
    authority.write(&place, "ca.pem");
    let handler = format!(
        "proxy = {{ to = [\"http://127.0.0.1:{}\", \"https://127.0.0.1:{}\"], balance = \
         \"round_robin\", tls = {{ {CA} }} }}",
        clear.port, sealed.port
    );
    let site = Site::serve(place, "", &handler, "");
    for at in ["0", "0", "1", "1"] {
        assert_eq!(site.get("/app/").answer.text(), at);
    }
    assert_eq!(site.place.counter("upstream_connects"), 2);
    assert_eq!(site.place.counter("upstream_tls_handshakes"), 1);
    site.stop();
    for peer in [clear, sealed] {
        peer.join();
    }
}

#[test]
fn unchecked_certificates_are_anybodys() {
    let authority = Authority::new("ca");
    let peer = Authority::new("other")
        .sign(&["elsewhere.test"])
        .peer(vec![answers(1)]);
    let site = serve(&authority, &[&peer], "verify = false", "");
    assert_eq!(site.get("/app/").answer.status, 200);
    site.stop();
    peer.join();
}
