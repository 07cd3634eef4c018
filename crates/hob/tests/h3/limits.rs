//! Limits of connections over QUIC, each with its counter.

use super::harness::Place;
use super::{CGI, begin, config, has_client, run, site};

#[test]
fn floods_end_the_connection_and_are_counted() {
    if !has_client() {
        return;
    }
    let place = Place::new();
    place.script("cgi/wait", "#!/bin/sh\nexec sleep 100\n");
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

/// Requests refused of so many clients whose bodies wait, one after the other; what they hold back.
fn refused(clients: &str, body_bytes: &str, held_back: &str) -> u64 {
    let place = Place::new();
    place.script("cgi/never", "#!/bin/sh\nexec sleep 600\n");
    let limits = "[limits]\nh3_unread = \"8MiB\"\n";
    let hob = place.serve_text(&config(limits, "true", CGI));
    let asked = ["/cgi/never", clients, "8", body_bytes, "/hello.txt"];
    run(&hob, &[&["all_unread"], &asked[..], &[held_back]].concat());
    let refused = place.counter("limit_h3_unread");
    hob.stop();
    refused
}

#[test]
fn bodies_that_nobody_reads_have_a_limit_over_all_connections() {
    if !has_client() {
        return;
    }
    // Two MiB of each at most, and one at least: what a program that starts late has in its pipe
    // was read after its client had been looked at.
    assert_eq!(refused("2", "600000", ""), 0);
    assert!(refused("9", "600000", "") > 0);
}

#[test]
fn bytes_behind_one_that_is_held_back_count_as_unread() {
    if !has_client() {
        return;
    }
    // In a head, and in a body; some 800 kB and 1600 kB of each.
    for held_back in ["5", "100000"] {
        assert_eq!(refused("2", "200000", held_back), 0);
        assert!(refused("12", "200000", held_back) > 0);
    }
}
