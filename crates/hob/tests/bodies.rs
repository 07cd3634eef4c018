//! Limits of bodies, set small: what is refused or given up, and that a counter moves.
#![allow(clippy::unwrap_used)]

mod harness;

use std::os::unix::fs::PermissionsExt;

use harness::client::{Connection, exchange};
use harness::{BIG_BYTES, Hob, Place};

/// Serves with these limits and a program that counts what it is sent, at `/cgi/count`.
fn serve(place: &Place, limits: &str) -> Hob {
    place.folder("cgi");
    let count = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nwc -c\n";
    place.write("cgi/count", count);
    let open = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("cgi/count"), open).unwrap();
    place.serve_config_with(
        &format!("[limits]\n{limits}\n"),
        "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n",
    )
}

#[test]
fn announced_body_above_its_limit_gets_413_and_the_route_may_allow_more() {
    let place = Place::new();
    let hob = place.serve_config_with(
        "[limits]\nbody = \"1KiB\"\n",
        "[[site.route]]\npath = \"/more\"\nrespond = {}\nbody = \"2KiB\"\n\
         [[site.route]]\npath = \"/none\"\nrespond = {}\nbody = 0\n\
         [[site.route]]\npath = \"/sink\"\nrespond = {}\n",
    );
    for (path, length, status) in [
        ("/sink", 1024, 200),
        ("/sink", 1025, 413),
        ("/more", 2048, 200),
        ("/more", 2049, 413),
        ("/none", 0, 200),
        ("/none", 1, 413),
    ] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{}",
            "x".repeat(length)
        );
        let mut connection = Connection::open(hob.port()).unwrap();
        connection.send(request.as_bytes()).unwrap();
        assert_eq!(connection.read().unwrap().status, status, "{path} {length}");
    }
    assert_eq!(place.counter("limit_body"), 3);
    hob.stop();
}

#[test]
fn body_of_unknown_size_above_its_limit_fails_while_it_is_read() {
    let place = Place::new();
    let hob = serve(&place, "body = \"64KiB\"");
    for (bytes, status) in [(64 * 1024, 200), (200_000, 413)] {
        let request = format!(
            "POST /cgi/count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
             Connection: close\r\n\r\n{bytes:x}\r\n{}\r\n0\r\n\r\n",
            "x".repeat(bytes)
        );
        let reply = exchange(hob.port(), request.as_bytes());
        assert_eq!(reply.answer.status, status, "{reply:?}");
        if status == 200 {
            assert_eq!(reply.answer.text().trim(), bytes.to_string());
        }
    }
    assert_eq!(place.counter("limit_body"), 1);
    hob.stop();
}

#[test]
fn client_that_takes_nothing_of_its_answer_is_left() {
    let place = Place::new();
    let hob = serve(&place, "write_progress = \"300ms\"");
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send_get("/big.bin").unwrap();
    place.wait_for_counter("limit_write_progress", 1);
    assert!(connection.read_to_end().len() < BIG_BYTES);
    hob.stop();
}
