//! Limits of connections over QUIC, each with its counter.

use super::harness::Place;
use super::{CGI, begin, config, has_client, run, script, site};

#[test]
fn floods_end_the_connection_and_are_counted() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    script(&place, "cgi/wait", "#!/bin/sh\nexec sleep 100\n");
    let hob = place.serve_text(&config("", "true", CGI));
    for (what, counter) in [
        ("resets", "limit_h3_resets"),
        ("empty", "limit_h3_empty"),
        ("tiny", "limit_h3_tiny_data"),
    ] {
        run(&hob, &["floods", what]);
        assert_eq!(place.counter(counter), 1, "{what}");
    }
    hob.stop();
}

#[test]
fn heads_beyond_their_limits_are_answered() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    let hob = place.serve_text(&config("", "true", ""));
    assert_eq!(run(&hob, &["long_heads"]), "431\n431\n414\n");
    hob.stop();
}

#[test]
fn many_handshakes_at_a_time_have_to_prove_their_address() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    // Half of one is none: every client is asked.
    let hob = place.serve_text(&config("[limits]\nhandshakes = 1\n", "true", ""));
    run(&hob, &["retry", "/hello.txt"]);
    assert_eq!(place.counter("h3_retries"), 1);
    hob.stop();
}

#[test]
fn connection_there_is_no_room_for_is_refused() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    let keys = "[limits]\nconnections_per_client = 1\n";
    let hob = place.serve_text(&config(keys, "true", ""));
    place.write("site/page.txt", &"a page of text\n".repeat(70_000));
    let held = begin(&hob, &["slow", &site(&place), "page.txt"]);
    let told = run(&hob, &["refused"]);
    assert_eq!(told, "the connection was closed: (2, '')\n");
    assert_eq!(place.counter("limit_connections_per_client"), 1);
    held.finish();
    hob.stop();
}

#[test]
fn idle_connection_is_told_that_it_ends() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    let hob = place.serve_text(&config("[limits]\nidle = \"300ms\"\n", "true", ""));
    assert_eq!(run(&hob, &["idle", "/hello.txt"]), "256\n");
    assert_eq!(place.counter("limit_idle"), 1);
    hob.stop();
}

#[test]
fn client_that_goes_amid_an_answer_is_booked_as_gone() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    let hob = place.serve_text(&config("", "true", ""));
    run(&hob, &["leave", "/big.bin"]);
    place.wait_for_counter("client_left", 1);
    hob.stop();
}

#[test]
fn reader_that_stops_loses_its_answer_and_not_its_connection() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    let keys = "default_log = \"a\"\n[[log]]\nname = \"a\"\nfile = \"access.log\"\n\
        format = \"{outcome} {target}\"\n[limits]\nwrite_progress = \"300ms\"\n";
    let hob = place.serve_text(&config(keys, "true", ""));
    // H3_REQUEST_CANCELLED, after no more than the client had room for.
    let told = run(&hob, &["stuck", "/big.bin", "/hello.txt"]);
    assert_eq!(told, "0x10c True\n");
    assert_eq!(place.counter("limit_write_progress"), 1);
    hob.stop();
    let log = std::fs::read_to_string(place.path("access.log")).unwrap();
    assert_eq!(log, "timeout /big.bin\ncomplete /hello.txt\n");
}
