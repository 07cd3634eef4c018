//! A C program over both carriers: every call, bodies of any size, threads, event loops, drain,
//! and a server that vanishes.

mod worker;

use std::path::PathBuf;

use hob_ipc::message::{Carrier, LAST, MessageHead, MessageKind, TUNNEL};

use worker::{Answer, Asked, Server, compiled, get};

fn program() -> PathBuf {
    compiled("crates/libhob/tests/program.c")
}

fn on_both(run: impl Fn(Server)) {
    for carrier in [Carrier::Shm, Carrier::Stream] {
        let server = Server::start(&program(), carrier, &[]);
        assert_eq!(server.carrier(), carrier);
        run(server);
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n % 251) as u8).collect()
}

#[test]
fn small_answers_are_a_head_and_one_last_message() {
    on_both(|mut server| {
        assert_eq!(
            server.library,
            concat!("libhob/", env!("CARGO_PKG_VERSION"))
        );
        let expected = Answer {
            fields: "Content-Type: text/plain\n".to_string(),
            body: b"hello\n".to_vec(),
            end: "over".to_string(),
            ..Answer::default()
        };
        for _ in 0..3 {
            let id = server.send(&get("/hello"));
            let kinds = [server.turn(), server.turn()].map(|head| (head.kind, head.flags));
            assert_eq!(kinds, [(MessageKind::Head, 0), (MessageKind::Data, LAST)]);
            assert_eq!(server.answer(id), expected);
        }
        let empty = server.ask(&get("/empty"));
        assert_eq!(
            (empty.status, &*empty.end, empty.body.len()),
            (304, "over", 0)
        );
        server.finish();
    });
}

#[test]
fn bodies_of_any_size_go_both_ways() {
    on_both(|mut server| {
        for bytes in [0, 1, 4096, 4097, 65_535, 65_536, 65_537, 131_072, 3_000_000] {
            let body = pattern(bytes);
            let echo = Asked {
                body: &body,
                ..get("/echo")
            };
            assert!(server.ask(&echo).body == body, "{bytes} bytes back");
            for path in ["/bulk", "/blocks", "/direct"] {
                let asked = Asked {
                    query: &bytes.to_string(),
                    ..get(path)
                };
                let answer = server.ask(&asked);
                assert!(answer.body == body, "{bytes} bytes of {path}");
            }
        }
        let flushed = server.ask(&Asked {
            query: "3",
            ..get("/flush")
        });
        assert_eq!(flushed.body, b"xxx");
        server.finish();
    });
}

#[test]
fn every_call_does_what_the_header_says() {
    on_both(|mut server| {
        let variables = server.ask(&Asked {
            query: "a=1",
            ..get("/variables")
        });
        let expected =
            b"REQUEST_METHOD=GET\nCONTENT_TYPE=\nPATH_INFO=/variables\nQUERY_STRING=a=1\n";
        assert_eq!(variables.body, expected);
        assert_eq!(server.ask(&get("/misuse")).status, 204);
        assert_eq!(server.ask(&get("/fork")).body, b"forked\n");
        assert_eq!(server.ask(&get("/nowhere")).status, 404);
        let file = std::fs::read(program()).unwrap();
        let sent = server.ask(&Asked {
            query: program().to_str().unwrap(),
            ..get("/file")
        });
        assert!(sent.body == [&file[100..], &file[..100]].concat());
        let called = server.ask(&get("/callouts"));
        let callouts = [
            "LOG: info a line",
            "TRACE: a trace",
            "TIMEOUT: 5",
            "LIFETIME: -1",
            "MAP-PATH: /a/b",
            "WHAT: ",
        ];
        assert_eq!(called.callouts, callouts);
        assert_eq!(called.body, b"called out\n");
        let interim = server.ask(&get("/interim"));
        assert_eq!(interim.infos, [(103, "Link: </a.css>\n".to_string())]);
        assert_eq!((interim.status, &*interim.fields), (201, "A: b\nC: d\n"));
        assert_eq!(
            (&interim.body[..], &*interim.end),
            (&b"made"[..], "over Checksum: 1")
        );
        let failed = server.ask(&get("/fail"));
        assert_eq!((failed.is_failed, &*failed.end), (true, "over no database"));
        server.finish();
    });
}

#[test]
fn a_client_that_leaves_is_heard_of_by_poll_and_by_calls() {
    on_both(|mut server| {
        let id = server.send(&get("/until-cancelled"));
        assert_eq!(server.turn().kind, MessageKind::Head);
        server.push(MessageHead::new(MessageKind::Cancel, id), &[]);
        assert_eq!(server.answer(id).body, b"");
        // One whose output nobody takes any more.
        let id = server.send(&Asked {
            query: "90000000",
            ..get("/blocks")
        });
        assert_eq!(server.turn().kind, MessageKind::Head);
        server.push(MessageHead::new(MessageKind::Cancel, id), &[]);
        assert!(server.answer(id).body.len() < 90_000_000);
        assert_eq!(server.ask(&get("/hello")).body, b"hello\n");
        server.finish();
    });
}

#[test]
fn an_event_loop_is_told_which_requests_something_has_come_for() {
    on_both(|mut server| {
        let body = |id| MessageHead::new(MessageKind::Body, id);
        let first = server.send(&get("/together"));
        assert_eq!(server.turn().kind, MessageKind::Head);
        let second = server.send(&get("/together"));
        assert_eq!(server.turn().kind, MessageKind::Head);
        server.push(body(second), b"one");
        while server.turn().kind != MessageKind::Data {}
        server.push(body(first), b"one");
        while server.turn().kind != MessageKind::Data {}
        let third = server.send(&get("/hello"));
        while server.turn().kind != MessageKind::Data {}
        server.push(MessageHead::new(MessageKind::Cancel, second), &[]);
        while server.turn().kind != MessageKind::Data {}
        server.push(body(first).flags(LAST), &[]);
        assert_eq!(server.answer(first).body, b"ba0ba");
        assert_eq!(server.answer(third).body, b"hello\n");
        server.finish();
    });
}

#[test]
fn a_tunnel_carries_bytes_both_ways_at_once() {
    on_both(|mut server| {
        let id = server.send(&get("/tunnel"));
        assert_eq!(server.turn().kind, MessageKind::Head);
        for word in [&b"ping"[..], b"pong"] {
            server.push(MessageHead::new(MessageKind::Body, id), word);
            assert_eq!(server.turn().kind, MessageKind::Data);
        }
        server.push(MessageHead::new(MessageKind::Body, id).flags(LAST), &[]);
        assert_eq!(server.answer(id).body, b"pingpong");
        server.finish();
    });
}

#[test]
fn a_half_closed_tunnel_is_still_read() {
    on_both(|mut server| {
        let id = server.send(&get("/half"));
        assert_eq!(server.turn().kind, MessageKind::Head);
        let last = server.turn();
        assert_eq!((last.kind, last.flags), (MessageKind::Data, LAST | TUNNEL));
        server.push(MessageHead::new(MessageKind::Body, id), b"still read");
        server.push(MessageHead::new(MessageKind::Body, id).flags(LAST), &[]);
        let answer = server.answer(id);
        assert_eq!((&answer.body[..], &answer.end[..]), (&b"last"[..], "over"));
        assert!(!answer.is_failed);
        server.finish();
    });
}

#[test]
fn threads_and_event_loops_lose_no_request() {
    for environment in [("THREADS", "8"), ("POLL", "1")] {
        for carrier in [Carrier::Shm, Carrier::Stream] {
            let mut server = Server::start(&program(), carrier, &[environment]);
            for round in 0..60usize {
                let body = pattern(30_000 * (round % 3));
                let ids: Vec<_> = (0..12)
                    .map(|number| {
                        let path = if number % 2 == 0 { "/hello" } else { "/echo" };
                        server.send(&Asked {
                            body: &body,
                            ..get(path)
                        })
                    })
                    .collect();
                for (number, id) in ids.into_iter().enumerate() {
                    let answer = server.answer(id);
                    let expected: &[u8] = if number % 2 == 0 { b"hello\n" } else { &body };
                    assert!(answer.body == expected, "round {round}, {environment:?}");
                }
            }
            server.finish();
        }
    }
}

#[test]
fn the_program_ends_when_the_server_vanishes() {
    for environment in [("THREADS", "4"), ("POLL", "1"), ("A", "B")] {
        for carrier in [Carrier::Shm, Carrier::Stream] {
            let mut server = Server::start(&program(), carrier, &[environment]);
            assert_eq!(server.ask(&get("/hello")).body, b"hello\n");
            assert!(server.vanish().success());
        }
    }
}

#[test]
fn the_environment_can_ask_for_the_stream() {
    let stream = [("HOB_CARRIER", "stream")];
    let mut server = Server::start(&program(), Carrier::Shm, &stream);
    assert_eq!(server.carrier(), Carrier::Stream);
    assert_eq!(server.ask(&get("/hello")).body, b"hello\n");
    server.finish();
}

#[test]
fn without_hob_the_same_program_is_plain_cgi() {
    let run = |path: &str, body: &str| {
        let mut child = std::process::Command::new(program())
            .env_clear()
            .env("PATH_INFO", path)
            .env("QUERY_STRING", "")
            .env("CONTENT_LENGTH", body.len().to_string())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, body.as_bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run("/hello", ""), "Content-Type: text/plain\n\nhello\n");
    assert_eq!(
        run("/echo", "body"),
        "Content-Type: application/octet-stream\n\nbody"
    );
    assert_eq!(run("/empty", ""), "Status: 304\n\n");
    assert_eq!(
        run("/fail", ""),
        "Status: 500\nContent-Type: text/plain\n\nThe program failed.\n"
    );
}
