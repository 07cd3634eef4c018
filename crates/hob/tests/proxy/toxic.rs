//! Another server at its worst: it stalls, resets, floods, lies and trickles. Every request ends
//! with the right status and reason, and costs no memory.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::harness::client::{Connection, Reply, call};
use crate::harness::site::Site;
use crate::harness::{Place, status_line};
use crate::peer::{Act, Peer, Taken, answer, sends, serve, serve_to, stays_after};

const CLOSED: &str = "the other server closed the connection before its answer ended";
const NO_ANSWER: &str = "what the other server sent is no answer";
const FIRST_BYTE: &str = "limits: proxy.timeout.first_byte: no head of an answer in time";
const PROGRESS: &str = "limits: proxy.timeout.progress: the answer fell silent";
const TOTAL: &str = "limits: proxy.timeout.total: the answer took too long";

/// Answers of each kind of end, each with the body `hello`.
const ANSWERS: [&str; 3] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX: y\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
];

/// What a server does after it has sent a part of an answer.
#[derive(Clone, Copy)]
enum Then {
    Stalls,
    Resets,
    Closes,
}

/// A server that sends so many bytes of an answer, as the target of a request says:
/// `/app/ANSWER-BYTES`. Returns its port.
fn cut_short(then: Then) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut taken = Taken::new(stream);
                let Some(request) = taken.next() else { return };
                let target = request.split(' ').nth(1).unwrap();
                let (of, bytes) = target["/app/".len()..].split_once('-').unwrap();
                let answer = ANSWERS[of.parse::<usize>().unwrap()];
                taken.write(&answer.as_bytes()[..bytes.parse().unwrap()]);
                match then {
                    Then::Stalls => drop(taken.stay()),
                    Then::Resets => taken.reset(),
                    Then::Closes => {}
                }
            });
        }
    });
    port
}

/// Where the head of an answer ends, interim ones before it.
fn head_end(answer: &str) -> usize {
    let last = answer.rfind("HTTP/1.1 ").unwrap();
    last + answer[last..].find("\r\n\r\n").unwrap() + 4
}

/// Asks for every beginning of every answer, many at a time; what came of each, where its target
/// and whether the head was all there come first.
fn for_each_cut(site: &Site, check: impl Fn(&str, bool, &Reply, &Value)) {
    const AT_ONCE: usize = 16;
    let cuts: Vec<_> = ANSWERS
        .iter()
        .enumerate()
        .flat_map(|(of, answer)| (0..answer.len()).map(move |bytes| (of, bytes)))
        .collect();
    let (next, replies) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(&(of, bytes)) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let target = format!("/app/{of}-{bytes}");
                    let reply = site.get(&target);
                    let has_head = bytes >= head_end(ANSWERS[of]);
                    replies.lock().unwrap().push((target, has_head, reply));
                }
            });
        }
    });
    let replies = replies.into_inner().unwrap();
    assert_eq!(replies.len(), cuts.len());
    for (target, has_head, reply) in &replies {
        let record = site.record(target);
        assert_eq!(record["fault"], "upstream", "{target}: {record}");
        check(target, *has_head, reply, &record);
    }
}

#[test]
fn stall_at_every_byte_ends_with_the_limit_that_it_meets() {
    let to = format!("\"http://127.0.0.1:{}\"", cut_short(Then::Stalls));
    let timeout = "timeout = { first_byte = \"300ms\", progress = \"300ms\" }";
    let site = serve_to(&to, timeout);
    for_each_cut(&site, |target, has_head, reply, record| {
        match has_head {
            true => {
                assert!(reply.broke_off(), "{target}");
                assert_eq!(record["reason"], PROGRESS, "{target}");
            }
            false => {
                assert_eq!(reply.answer.status, 504, "{target}");
                assert_eq!(record["reason"], FIRST_BYTE, "{target}");
            }
        };
    });
    site.stop();
}

#[test]
fn end_at_every_byte_is_seen_however_the_connection_ends() {
    for then in [Then::Closes, Then::Resets] {
        let to = format!("\"http://127.0.0.1:{}\"", cut_short(then));
        let site = serve_to(&to, "");
        for_each_cut(&site, |target, has_head, reply, record| {
            // One that had begun when it broke cannot be taken back.
            let is_told = reply.answer.status == 502 || has_head && !reply.is_whole;
            assert!(is_told, "{target}: {reply:?}");
            assert_eq!(record["reason"], CLOSED, "{target}");
        });
        site.stop();
    }
}

#[test]
fn reset_is_no_end_of_an_answer_that_lasts_until_the_end() {
    let act: Act = Box::new(|taken| {
        taken.write(b"HTTP/1.1 200 OK\r\n\r\nhello");
        taken.reset();
    });
    let peer = Peer::start(vec![act]);
    let site = serve(&[&peer], "");
    assert!(site.get("/app/").is_broken());
    assert_eq!(site.record("/app/")["reason"], CLOSED);
    peer.join();
    site.stop();
}

/// Bytes without a meaning, the same for the same seed.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn garbage_is_no_answer_wherever_it_stands() {
    let sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut all: Vec<Vec<u8>> = (0..32).map(|seed| noise(seed, 4000)).collect();
    all.extend(
        [
            "\0".to_owned(),
            "\x16\x03\x03\0\x7a".to_owned(),
            "\0\0\x12\x04\0\0\0\0\0".to_owned(),
            "220 mail ESMTP\r\n".to_owned(),
            "HTTP/1.1\r\n".to_owned(),
            "HTTP/1.1 2 OK\r\n".to_owned(),
            "HTTP/1.1 2000 OK\r\n".to_owned(),
            "HTTP/1.1 -20 OK\r\n".to_owned(),
            "HTTP/1.1 600 OK\r\n".to_owned(),
            "HTTP/2.0 200 OK\r\n".to_owned(),
            "http/1.1 200 OK\r\n".to_owned(),
            "GET / HTTP/1.1\r\n".to_owned(),
            format!("{sized}Content-Length: 6\r\n"),
            format!("{sized}Content-Length: 5, 5\r\n"),
            format!("{sized}Content-Length: -5\r\n"),
            format!("{sized}Transfer-Encoding: chunked\r\n"),
            format!("{sized}X\r\n"),
            format!("{sized}X : y\r\n"),
            format!("{sized}X: y\r\n z\r\n"),
            format!("{sized}X: \0\r\n"),
            format!("{sized}X: a\rb\r\n"),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n".to_owned(),
            format!("{chunked}5\r\nhelloX"),
            format!("{chunked}-5\r\nhello\r\n"),
            format!("{chunked}0x5\r\nhello\r\n"),
            format!("{chunked}5 \r\nhello\r\n"),
            format!("{chunked}5\nhello\r\n"),
            format!("{chunked}ffffffffffffffff\r\nhello\r\n"),
            format!("{chunked}5;{}\r\n", "x".repeat(20_000)),
            format!("{chunked}0\r\nX\r\n"),
        ]
        .map(|text| format!("{text}\r\n\r\n").into_bytes()),
    );
    let count = all.len();
    let acts = all.iter().map(|bytes| stays_after(bytes.clone()));
    let peer = Peer::start(acts.collect());
    let site = serve(&[&peer], "timeout = { first_byte = \"60s\" }");
    let replies: Vec<_> = (0..count)
        .map(|at| site.get(&format!("/app/{at}")))
        .collect();
    for (at, (bytes, reply)) in all.iter().zip(&replies).enumerate() {
        let shown = bytes.escape_ascii();
        assert!(reply.is_broken(), "{shown}: {reply:?}");
        let record = site.record(&format!("/app/{at}"));
        assert_eq!(
            (&record["reason"], &record["fault"]),
            (&NO_ANSWER.into(), &"upstream".into()),
            "{shown}: {record}"
        );
    }
    peer.join();
    site.stop();
}

#[test]
fn more_than_was_announced_goes_to_nobody() {
    let one = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    let forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    let first = [one, chunked, empty].map(|answer| sends(format!("{answer}{forged}")));
    // And where it comes while the connection rests.
    let later: Act = Box::new(move |taken| {
        taken.write(one.as_bytes());
        taken.write(forged.as_bytes());
        taken.stay();
    });
    let acts = first.into_iter().chain([later, sends(one)]);
    let peer = Peer::start(acts.collect());
    let site = serve(&[&peer], "");
    let bodies = (0..5).map(|_| site.get("/app/").answer.text());
    let bodies: Vec<_> = bodies.collect();
    assert_eq!(bodies, ["hello", "hello", "", "hello", "hello"]);
    assert_eq!(site.place.counter("upstream_reuses"), 0);
    peer.join();
    site.stop();
}

/// A peer that sends these bytes again and again behind others, until the other side has enough.
fn floods(first: &'static str, again: &'static str, sent: &Arc<AtomicUsize>) -> Act {
    let (sent, many) = (Arc::clone(sent), again.repeat(16 * 1024 / again.len()));
    Box::new(move |taken| {
        taken.write(first.as_bytes());
        while taken.try_write(many.as_bytes()) {
            sent.fetch_add(many.len(), Ordering::Relaxed);
        }
    })
}

fn memory_kib(site: &Site) -> u64 {
    let line = status_line(site.hob.server(), "VmHWM");
    line.trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn floods_end_with_their_limits_and_cost_no_memory() {
    const SENT_BYTES_MAX: usize = 16 << 20;
    const GROWTH_KIB_MAX: u64 = 8 * 1024;
    let begun = "HTTP/1.1 200 OK\r\nX: ";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases = [
        ("", "x", NO_ANSWER),
        ("HTTP/1.1 ", "2", NO_ANSWER),
        (begun, "x", NO_ANSWER),
        (begun, "y\r\nX: ", NO_ANSWER),
        ("", "HTTP/1.1 103 Early Hints\r\n\r\n", NO_ANSWER),
        ("", "HTTP/1.1 100 Continue\r\n\r\n", NO_ANSWER),
        ("HTTP/1.1 103 Early Hints\r\nX: ", "x", NO_ANSWER),
        (chunked, "0", NO_ANSWER),
        (
            concat!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "1;"
            ),
            "x",
            NO_ANSWER,
        ),
        (
            concat!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "0\r\n"
            ),
            "X: y\r\n",
            NO_ANSWER,
        ),
    ];
    let sent = Arc::new(AtomicUsize::new(0));
    let acts = cases.map(|(first, again, _)| floods(first, again, &sent));
    let peer = Peer::start([sends(answer("first"))].into_iter().chain(acts).collect());
    let site = serve(&[&peer], "");
    assert_eq!(site.get("/app/first").answer.text(), "first");
    let before = memory_kib(&site);
    for (at, (first, again, reason)) in cases.iter().enumerate() {
        let target = format!("/app/{at}");
        let reply = site.get(&target);
        assert!(reply.is_broken(), "{first}{again}: {reply:?}");
        assert_eq!(site.record(&target)["reason"], *reason, "{first}{again}");
    }
    peer.join();
    let sent = sent.load(Ordering::Relaxed);
    assert!(
        sent < cases.len() * SENT_BYTES_MAX,
        "{sent} bytes were taken"
    );
    let growth = memory_kib(&site).saturating_sub(before);
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB");
    site.stop();
}

#[test]
fn endless_answer_waits_for_a_client_that_does_not_read() {
    const GROWTH_KIB_MAX: u64 = 8 * 1024;
    let sent = Arc::new(AtomicUsize::new(0));
    let endless = floods("HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef", &sent);
    let peer = Peer::start(vec![sends(answer("first")), endless]);
    let site = serve(&[&peer], "");
    assert_eq!(site.get("/app/first").answer.text(), "first");
    let before = memory_kib(&site);
    let mut client = Connection::open(site.port()).unwrap();
    client.send_get("/app/endless").unwrap();
    assert_eq!(client.read_head().unwrap().0, 200);
    client.skip(64 << 20).unwrap();
    // Everything that can be on its way is there once no more goes in for a while.
    let mut last = usize::MAX;
    while last != sent.load(Ordering::Relaxed) {
        last = sent.load(Ordering::Relaxed);
        site.place.status();
    }
    let growth = memory_kib(&site).saturating_sub(before);
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB");
    client.leave();
    peer.join();
    site.stop();
}

/// Sends bytes one by one, at a pace, until the other side closes; and says whether all went.
fn trickles(bytes: Vec<u8>, pace: Duration) -> Act {
    Box::new(move |taken| {
        for byte in bytes {
            if !taken.try_write(&[byte]) || taken.is_closed_within(pace) {
                return;
            }
        }
        taken.stay();
    })
}

#[test]
fn answer_that_trickles_passes_within_its_limits() {
    let pace = Duration::from_millis(2);
    for (at, answer) in ANSWERS.iter().enumerate() {
        let answer = answer.replace("X: y\r\n", "");
        let peer = Peer::start(vec![trickles(answer.as_bytes().to_vec(), pace)]);
        let site = serve(
            &[&peer],
            "timeout = { first_byte = \"60s\", progress = \"60s\" }",
        );
        let reply = site.get("/app/");
        assert_eq!(
            (reply.answer.text().as_str(), reply.is_whole),
            ("hello", true),
            "{at}"
        );
        assert_eq!(site.record("/app/")["fault"], "none");
        site.stop();
        peer.join();
    }
}

#[test]
fn answer_that_trickles_meets_the_limits_of_the_whole() {
    let pace = Duration::from_millis(5);
    let endless = |first: &str| [first.as_bytes(), &[b'x'; 100_000]].concat();
    for (first, timeout, status, reason) in [
        (
            "HTTP/1.1 200 OK\r\nX: ",
            "first_byte = \"300ms\"",
            504,
            FIRST_BYTE,
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\n",
            "total = \"1s\", progress = \"1s\"",
            200,
            TOTAL,
        ),
    ] {
        let peer = Peer::start(vec![trickles(endless(first), pace)]);
        let site = serve(&[&peer], &format!("timeout = {{ {timeout} }}"));
        let reply = site.get("/app/");
        assert_eq!(reply.answer.status, status);
        assert_eq!(reply.is_whole, status == 504);
        assert_eq!(site.record("/app/")["reason"], reason);
        peer.join();
        site.stop();
    }
}

#[test]
fn answer_before_the_body_counts_however_its_connection_ends() {
    const BODY_BYTES: usize = 5_000_000;
    const TIMES: usize = 20;
    // With bytes that nobody has read it closes by a reset.
    let closes = || sends(answer("enough"));
    let resets = || -> Act {
        Box::new(|taken| {
            taken.write(&answer("enough"));
            taken.reset();
        })
    };
    let acts = (0..TIMES).flat_map(|_| [closes(), resets()]);
    let peer = Peer::start_after_heads(acts.collect());
    let site = serve(&[&peer], "");
    let body = vec![b'x'; BODY_BYTES];
    for at in 0..2 * TIMES {
        let reply = call(site.port(), "POST", &format!("/app/{at}"), "", &body);
        assert_eq!(reply.answer.text(), "enough", "{at}");
    }
    for at in 0..2 * TIMES {
        // A client of HTTP/3 may close before it has confirmed what it read.
        let record = site.record(&format!("/app/{at}"));
        assert!(
            record["status"] == 200 && record["reason"] == "",
            "{record}"
        );
    }
    peer.join();
    site.stop();
}

#[test]
fn h1_only_half_close_by_the_client_means_what_the_route_says() {
    for (key, is_served) in [("", false), ("half_close = \"serve\"\n", true)] {
        let (begin, began) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let act: Act = Box::new(move |taken| {
            begin.send(()).unwrap();
            match is_served {
                true => {
                    may_go_on.recv().unwrap();
                    taken.write(&answer("late"));
                }
                // It hears that nobody waits any more.
                false => assert_eq!(taken.stay(), b""),
            }
        });
        let peer = Peer::start(vec![act]);
        let to = format!("{key}proxy = \"http://127.0.0.1:{}\"", peer.port);
        let site = Site::serve(Place::new(), "", &to, "");
        let mut client = Connection::open(site.port()).unwrap();
        client
            .send(b"GET /app/ HTTP/1.1\r\nHost: h\r\n\r\n")
            .unwrap();
        began.recv().unwrap();
        client.end_sending();
        go_on.send(()).unwrap();
        match is_served {
            true => assert_eq!(client.read().unwrap().text(), "late"),
            false => assert_eq!(client.read_to_end(), b""),
        }
        peer.join();
        let fault = if is_served { "none" } else { "client" };
        let record = site.record("/app/");
        assert_eq!(record["fault"], fault, "{record}");
        let told = site.place.status()["programs"]["upstreams"][0]["members"][0].clone();
        assert_eq!(told["failures"], 0, "{told}");
        site.stop();
    }
}

#[test]
fn body_that_its_client_ends_early_is_never_whole_for_the_other_server() {
    for (fields, begun) in [
        ("Content-Length: 100000\r\n", vec![b'x'; 70_000]),
        ("Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n".to_vec()),
    ] {
        let (tell, told) = std::sync::mpsc::channel();
        let act: Act = Box::new(move |taken| {
            taken.some();
            tell.send(()).unwrap();
            assert!(!taken.ends_in_order(), "it could take the body for whole");
        });
        let peer = Peer::start_after_heads(vec![act]);
        let site = serve(&[&peer], "");
        let mut client = Connection::open(site.port()).unwrap();
        let head = format!("POST /app/ HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        client.send(&[head.as_bytes(), &begun].concat()).unwrap();
        told.recv().unwrap();
        client.end_sending();
        client.read_to_end();
        peer.join();
        assert_eq!(site.record("/app/")["fault"], "client");
        site.stop();
    }
}
