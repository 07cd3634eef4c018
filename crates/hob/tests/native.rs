//! Programs in Python and Perl through their native parts, in shared memory, behind the real
//! server: what `cargo xtask native` builds is found beside the program and used by every host.
//!
//! Needs a C compiler, Python's headers and Perl's (Debian: `python3-dev`, `perl`). Without
//! them the tests fail and say so: what nobody runs is broken.
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "native/parts.rs"]
mod parts;
#[path = "resident/pool.rs"]
mod pool;
#[path = "cgi/site.rs"]
mod site;

use harness::client::{Connection, Reply, call, exchange};
use parts::{HOSTS, PYTHONS, Uses, at, serve};
use pool::wait_for_file;
use serde_json::Value;
use site::Programs;

const MIB: usize = 1024 * 1024;
const SIZES: &[usize] = &[0, 1, 4096, 4097, 65_536, 65_537, 5 * MIB];

/// A site with all hosts, whose workers use the native parts.
fn native() -> Programs {
    serve(Uses::Parts, "")
}

/// The pool of a host.
fn pool(site: &Programs, host: &str) -> Value {
    let status = site.place.status();
    let pools = status["programs"]["pools"].as_array().unwrap();
    let name = format!("/{host}/* ");
    let found = pools.iter().find(|pool| {
        let told = pool["name"].as_str().unwrap();
        told.starts_with(&name)
    });
    found
        .unwrap_or_else(|| panic!("no {host} in {status}"))
        .clone()
}

fn pid(site: &Programs, host: &str) -> u32 {
    site.text(&format!("{}/pid", at(host))).parse().unwrap()
}

fn pattern(size: usize) -> Vec<u8> {
    (0..=250u8).cycle().take(size).collect()
}

fn is_pattern(reply: &Reply, size: usize, what: &str) {
    assert_eq!(reply.answer.status, 200, "{what}");
    assert!(reply.is_whole, "{what} broke off");
    assert_eq!(reply.answer.body.len(), size, "{what}");
    assert!(reply.answer.body == pattern(size), "{what}: other bytes");
}

/// Asks for something that begins an answer and then waits; what comes after it may go on.
fn begun_and_let_go(site: &Programs, host: &str, verb: &str) -> Vec<u8> {
    let name = format!("{verb}-{host}");
    let mut client = Connection::open(site.port()).unwrap();
    client.send_ask("GET", &format!("{}/{verb}/{name}", at(host)), "");
    assert_eq!(client.read_head().unwrap().0, 200, "{host}");
    client.read_until("first\n");
    site.go(&name);
    client.read_to_end()
}

#[test]
fn workers_of_every_host_use_them_and_status_says_so() {
    let site = native();
    for host in HOSTS {
        pid(&site, host);
        let worker = &pool(&site, host)["workers"][0];
        assert_eq!(worker["carrier"], "shm", "{host}: {worker}");
        let library = worker["library"].as_str().unwrap();
        assert!(library.starts_with("libhob/"), "{host}: {library}");
    }
    site.stop();
}

#[test]
fn without_them_every_host_serves_over_the_stream() {
    let site = serve(Uses::Nothing, "");
    for host in HOSTS {
        pid(&site, host);
        let worker = &pool(&site, host)["workers"][0];
        assert_eq!(worker["carrier"], "stream", "{host}: {worker}");
        let library = worker["library"].as_str().unwrap();
        let own = if PYTHONS.contains(host) {
            "hob-python/"
        } else {
            "Hob.pm/"
        };
        assert!(library.starts_with(own), "{host}: {library}");
    }
    site.stop();
}

#[test]
fn parts_that_cannot_be_loaded_or_trusted_are_passed_over() {
    for uses in [Uses::Broken, Uses::Writable] {
        let site = serve(uses, "");
        for host in HOSTS {
            pid(&site, host);
            let worker = &pool(&site, host)["workers"][0];
            assert_eq!(worker["carrier"], "stream", "{uses:?} {host}: {worker}");
        }
        let warning = "may be changed by others";
        match uses {
            Uses::Writable => drop(site.hob().wait_for(warning)),
            _ => assert!(!site.hob().printed().contains(warning)),
        }
        site.stop();
    }
}

#[test]
fn bodies_of_any_size_come_down_whole() {
    let site = native();
    for host in HOSTS {
        for &size in SIZES {
            let reply = site.get(&format!("{}/down/{size}", at(host)));
            is_pattern(&reply, size, &format!("{host} {size}"));
        }
    }
    site.stop();
}

#[test]
fn bodies_of_any_size_go_up_and_come_back() {
    let site = native();
    for host in HOSTS {
        for &size in SIZES {
            let target = format!("{}/echo", at(host));
            let reply = call(site.port(), "POST", &target, "", &pattern(size));
            is_pattern(&reply, size, &format!("{host} {size}"));
        }
    }
    site.stop();
}

#[test]
fn long_body_is_a_handle_for_psgi_that_is_read_as_it_comes() {
    let site = native();
    let md5 = |body: &[u8]| {
        std::fs::write(site.place.path("body"), body).unwrap();
        let mut sum = std::process::Command::new("md5sum");
        let output = sum.arg(site.place.path("body")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()[..32].to_owned()
    };
    let post = |target: &str, size: usize| {
        let body = pattern(size);
        call(
            site.port(),
            "POST",
            &format!("{}/{target}", at("psgi")),
            "",
            &body,
        )
        .answer
    };
    for (size, buffered) in [(1_000_000, " buffered"), (5_000_000, "")] {
        let told = post("digest", size).text();
        assert_eq!(told, format!("{}{buffered}", md5(&pattern(size))), "{size}");
    }
    // One that nobody reads is in nobody's way.
    assert_eq!(post("down/10", 5_000_000).body, pattern(10));
    assert_eq!(
        post("digest", 10).text(),
        format!("{} buffered", md5(&pattern(10)))
    );
    site.stop();
}

#[test]
fn bodies_in_chunks_arrive() {
    let site = native();
    for host in HOSTS {
        let mut request = format!(
            "POST {}/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Transfer-Encoding: chunked\r\n\r\n",
            at(host)
        )
        .into_bytes();
        let body = pattern(300_000);
        for piece in body.chunks(7_000) {
            request.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            request.extend_from_slice(piece);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"0\r\n\r\n");
        is_pattern(&exchange(site.port(), &request), body.len(), host);
    }
    site.stop();
}

#[test]
fn what_is_written_leaves_at_once() {
    let site = native();
    for host in HOSTS {
        let rest = begun_and_let_go(&site, host, "pieces");
        let rest = String::from_utf8(rest).unwrap();
        assert!(
            rest.contains("second\n") && rest.ends_with("0\r\n\r\n"),
            "{host}: {rest}"
        );
    }
    site.stop();
}

#[test]
fn program_notices_that_its_client_has_left() {
    let site = native();
    for host in HOSTS.iter().filter(|host| **host != "scripts") {
        let worker = pid(&site, host);
        let mut client = Connection::open(site.port()).unwrap();
        client.send_ask("GET", &format!("{}/endless/endless-{host}", at(host)), "");
        client.read_head().unwrap();
        client.skip(500_000).unwrap();
        drop(client);
        wait_for_file(&site.path(&format!("endless-{host}.left")));
        assert_eq!(pid(&site, host), worker, "{host} lives on");
    }
    site.stop();
}

#[test]
fn as_many_requests_at_a_time_as_asked_for() {
    let site = serve(Uses::Parts, "concurrency = 8");
    for host in ["wsgi", "asgi"] {
        let target = format!("{}/together", at(host));
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8).map(|_| scope.spawn(|| site.text(&target))).collect();
            for one in asked {
                assert_eq!(one.join().unwrap(), "together", "{host}");
            }
        });
        // And in turn, while bodies go both ways.
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for size in [1, 5_000, 200_000] {
                        let target = format!("{}/echo", at(host));
                        let reply = call(site.port(), "POST", &target, "", &pattern(size));
                        is_pattern(&reply, size, host);
                    }
                });
            }
        });
    }
    site.stop();
}

#[test]
fn failure_before_the_head_is_a_500_and_after_it_a_broken_answer() {
    let site = native();
    for host in HOSTS {
        let worker = pid(&site, host);
        let reply = site.get(&format!("{}/raise", at(host)));
        assert_eq!(reply.answer.status, 500, "{host}");
        let rest = begun_and_let_go(&site, host, "raise_late");
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{host}: as if whole");
        assert_eq!(pid(&site, host), worker, "{host} lives on");
    }
    site.hob().wait_for("told to raise");
    site.stop();
}

#[test]
fn killed_worker_loses_its_own_request_and_another_takes_its_place() {
    let site = native();
    for host in HOSTS {
        let worker = pid(&site, host);
        let reply = site.get(&format!("{}/kill", at(host)));
        assert_eq!(reply.answer.status, 502, "{host}");
        let second = pid(&site, host);
        assert_ne!(worker, second, "{host}");
        let rest = begun_and_let_go(&site, host, "kill_late");
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{host}: as if whole");
        assert_ne!(pid(&site, host), second, "{host}");
    }
    site.stop();
}

#[test]
fn thousand_requests_on_one_connection() {
    let site = native();
    for host in HOSTS {
        let worker = pid(&site, host);
        let mut client = Connection::open(site.port()).unwrap();
        for _ in 0..200 {
            let head = format!(
                "GET {}/down/5 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                at(host)
            );
            client.send(head.repeat(5).as_bytes()).unwrap();
            for _ in 0..5 {
                let (status, headers) = client.read_head().unwrap();
                let body = match headers.iter().any(|(name, _)| name == "content-length") {
                    true => client.read_body(&headers).unwrap(),
                    false => {
                        client.read_until("0\r\n\r\n");
                        pattern(5)
                    }
                };
                assert_eq!((status, body), (200, pattern(5)), "{host}");
            }
        }
        assert_eq!(pid(&site, host), worker, "{host}");
    }
    site.stop();
}
