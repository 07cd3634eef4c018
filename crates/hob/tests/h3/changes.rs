//! Reloads, upgrades and stops with downloads over HTTP/3 in flight.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::harness::{Place, program, send_signal, wait_for_end};
use super::{CGI, begin, config, has_client, run, site};

/// A file that no window and no buffer holds whole.
pub(super) fn write_long(place: &Place) {
    let text: String = (0..400_000)
        .map(|number| format!("{number:09}\n"))
        .collect();
    place.write("site/long.txt", &text);
}

#[test]
fn stop_lets_a_download_come_to_its_end() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    let hob = place.serve_text(&config("", "true", ""));
    let server = hob.server();
    let download = begin(&hob, &["slow", &site(&place), "long.txt"]);
    hob.signal(Signal::TERM);
    hob.wait_for("stopping");
    assert_eq!(download.finish(), "goaway\n");
    wait_for_end(server);
    hob.stop();
}

#[test]
fn stop_waits_for_no_client_that_has_gone_without_a_word() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    let keys = "drain = \"1h\"\n[limits]\nhandshake_time = \"500ms\"\nhead_time = \"500ms\"\n";
    let hob = place.serve_text(&config(keys, "true", ""));
    let states = ["idle", "closed", "shaking", "asking", "answered"];
    let _gone = begin(&hob, &[&["silent"], &states[..]].concat());
    hob.stop();
}

#[test]
fn stop_cuts_what_clients_that_have_gone_were_amid_when_its_time_is_up() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    place.script("cgi/count", "#!/bin/sh\nwc -c\n");
    let keys = "drain = \"1s\"\n";
    let hob = place.serve_text(&config(keys, "true", CGI));
    let _gone = begin(&hob, &["silent", "taking", "sending"]);
    hob.stop();
}

#[test]
fn reload_changes_certificates_and_leaves_downloads_alone() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    place.certificate("site", "old.test");
    place.certificate("new", "new.test");
    let files = "{ certificate = \"site.pem\", key = \"site.key\" }";
    let hob = place.serve_text(&config("", files, ""));
    assert_eq!(run(&hob, &["named", "x.test"]), "CN=old.test\n");
    let download = begin(&hob, &["slow", &site(&place), "long.txt"]);
    for end in [".pem", ".key"] {
        std::fs::copy(
            place.path(&format!("new{end}")),
            place.path(&format!("site{end}")),
        )
        .unwrap();
    }
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation 2");
    assert_eq!(run(&hob, &["named", "x.test"]), "CN=new.test\n");
    assert_eq!(download.finish(), "stayed\n");
    hob.stop();
}

#[test]
fn listener_can_begin_and_end_with_http3_at_a_reload() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    let hob = place.serve_text(&config("", "{ http3 = false }", ""));
    let text = |tls: &str| config("", tls, "");
    place.write("hob.toml", &text("true"));
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation 2");
    run(&hob, &["fetch", "/hello.txt"]);
    let download = begin(&hob, &["slow", &site(&place), "long.txt"]);
    place.write("hob.toml", &text("{ http3 = false }"));
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation 3");
    download.finish();
    place.wait_for_counter("connections_closed", place.counter("connections_accepted"));
    // No connection is left that would need the socket.
    let until = Instant::now() + Duration::from_secs(20);
    while UdpSocket::bind(("127.0.0.1", hob.tls_port())).is_err() {
        assert!(Instant::now() < until, "the socket is still open");
        place.status();
    }
    hob.stop();
}

#[test]
fn upgrade_passes_the_datagrams_of_a_download_on_to_the_server_that_drains() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    place.replace_program(|path| {
        std::fs::copy(program(), path).unwrap();
    });
    let hob = place.serve_text(&config("threads = 2", "true", ""));
    let old = hob.server();
    let downloads = [0; 3].map(|_| begin(&hob, &["slow", &site(&place), "long.txt"]));
    hob.signal(Signal::USR2);
    hob.wait_for("upgraded, the new server is process");
    // The new one answers; both have the sockets.
    for _ in 0..3 {
        run(&hob, &["fetch", "/hello.txt"]);
    }
    for download in downloads {
        assert_eq!(download.finish(), "goaway\n");
    }
    wait_for_end(old);
    run(&hob, &["fetch", "/hello.txt"]);
    hob.stop();
}

#[test]
fn clients_of_a_server_that_was_killed_are_told_at_once() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    // Connections are of both threads, whose sockets the next server has.
    let hob = place.serve_text(&config("threads = 2", "true", ""));
    let clients = [0; 4].map(|_| begin(&hob, &["stray", "long.txt"]));
    send_signal(hob.server(), Signal::KILL);
    hob.wait_for_count("server ready", 2);
    for client in clients {
        assert_eq!(client.finish(), "reset\n");
    }
    assert!(place.counter("h3_stateless_resets") >= 4);
    assert_eq!(place.counter("limit_h3_stateless_resets"), 0);
    run(&hob, &["fetch", "/hello.txt"]);
    hob.stop();
}

#[test]
fn clients_of_an_old_server_are_told_when_it_has_ended_and_not_before() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    place.replace_program(|path| {
        std::fs::copy(program(), path).unwrap();
    });
    let hob = place.serve_text(&config("threads = 2", "true", ""));
    let old = hob.server();
    let kept = begin(&hob, &["slow", &site(&place), "long.txt"]);
    let lost = [0; 3].map(|_| begin(&hob, &["stray", "long.txt"]));
    hob.signal(Signal::USR2);
    hob.wait_for("upgraded, the new server is process");
    assert_eq!(kept.finish(), "goaway\n");
    assert_eq!(place.counter("h3_stateless_resets"), 0);
    send_signal(old, Signal::KILL);
    hob.wait_for("old server ended");
    for client in lost {
        assert_eq!(client.finish(), "reset\n");
    }
    hob.stop();
}

#[test]
fn request_behind_the_last_one_is_rejected_and_answered_when_it_comes_again() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    write_long(&place);
    place.replace_program(|path| {
        std::fs::copy(program(), path).unwrap();
    });
    let hob = place.serve_text(&config("", "true", ""));
    let old = hob.server();
    let late = begin(&hob, &["rejected", &site(&place), "long.txt", "/hello.txt"]);
    hob.signal(Signal::USR2);
    hob.wait_for("upgraded, the new server is process");
    // H3_REQUEST_REJECTED, both ways: nothing was done, it may be sent again.
    assert_eq!(late.finish(), "0x10b 0x10b\n");
    wait_for_end(old);
    hob.stop();
}
