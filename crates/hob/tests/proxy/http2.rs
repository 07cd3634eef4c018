//! Members that speak HTTP/2: many requests over a connection, what is asked again, what breaks.

use std::sync::atomic::Ordering;

use crate::harness::Place;
use crate::harness::client::{Connection, call};
use crate::harness::site::Site;
use crate::http2_member::{Allows, Http2Member, wait_until};
use crate::peer::{Act, Peer, Taken, answers, serve_to};

const HTTP2: &str = "http = \"2\"";
const NO_ANSWER: &str = "what the other server sent is no answer";
const CLOSED: &str = "the other server closed the connection before its answer ended";

/// A site of one thread: each has connections of its own.
pub(crate) fn serve(member: &Http2Member, keys: &str) -> Site {
    let handler = format!("proxy = {{ to = {}, {HTTP2}, {keys} }}", member.to());
    Site::serve(Place::new(), "threads = 1\n", &handler, "")
}

#[test]
fn requests_share_connections_and_none_has_more_than_its_member_allows() {
    const ALLOWED: usize = 3;
    let member = Http2Member::start(Allows {
        streams: ALLOWED as u32,
        ..Allows::default()
    });
    let site = serve(&member, "");
    let count = 7;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..count)
            .map(|_| scope.spawn(|| site.get("/app/held")))
            .collect();
        member.await_held(count);
        // More would wait for nothing; and a connection is not made for each.
        let connections = member.connections();
        assert!(
            (count.div_ceil(ALLOWED)..count).contains(&connections),
            "{connections}"
        );
        member.release();
        for client in clients {
            assert_eq!(client.join().unwrap().answer.text(), "held");
        }
    });
    site.stop();
}

#[test]
fn bodies_flow_both_ways_through_narrow_windows() {
    let member = Http2Member::start(Allows {
        window: 1000,
        ..Allows::default()
    });
    let site = serve(&member, "");
    let body: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    for length in [1, 999, 1000, 1001, 70_000, body.len()] {
        let reply = call(site.port(), "POST", "/app/echo", "", &body[..length]);
        assert!(
            reply.is_whole && reply.answer.body == body[..length],
            "{length}"
        );
    }
    // One whose length nobody knows before its end.
    let mut client = Connection::open(site.port()).unwrap();
    let head = "POST /app/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\
                Connection: close\r\n\r\n5\r\nhello\r\n";
    client.send(head.as_bytes()).unwrap();
    let (status, _) = client.read_head().unwrap();
    assert_eq!(status, 200);
    client.read_until("hello");
    client.send(b"6\r\n world\r\n0\r\n\r\n").unwrap();
    client.read_until(" world");
    site.stop();
}

#[test]
fn answer_that_its_client_does_not_read_waits_at_the_member() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "");
    let (client, _) = crate::harness::client::begin_download(site.port(), "/app/flood");
    // Others are not held up by it.
    assert_eq!(site.get("/app/empty").answer.status, 204);
    let sent = || member.seen.sent.load(Ordering::SeqCst);
    let mut before = u64::MAX;
    // It stops by itself: what is sent stays the same while others are answered.
    wait_until(|| {
        let is_still = sent() == before;
        before = sent();
        (0..20).for_each(|_| assert_eq!(site.get("/app/empty").answer.status, 204));
        is_still
    });
    assert!(before < 16 * 1024 * 1024, "{before} bytes are somewhere");
    client.leave();
    wait_until(|| member.seen.resets.load(Ordering::SeqCst) == 1);
    assert_eq!(member.connections(), 1);
    site.stop();
}

#[test]
fn what_was_refused_unseen_is_asked_again_whatever_its_method() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "");
    assert_eq!(site.get("/app/told").answer.status, 200);
    let reply = call(site.port(), "POST", "/app/refuse-once", "", b"body");
    assert_eq!(reply.answer.status, 200);
    let asked = [
        "GET /app/told",
        "POST /app/refuse-once",
        "POST /app/refuse-once",
    ];
    assert_eq!(member.requests(), asked);
    assert_eq!(site.place.counter("upstream_retries"), 1);
    // Who always refuses is not asked for ever.
    assert_eq!(
        call(site.port(), "POST", "/app/refuse", "", b"x")
            .answer
            .status,
        502
    );
    assert_eq!(site.record("/app/refuse")["reason"], CLOSED);
    site.stop();
}

#[test]
fn what_may_have_been_done_is_not_asked_again() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "");
    for what in ["reset", "gone"] {
        let target = format!("/app/{what}");
        assert_eq!(site.get("/app/empty").answer.status, 204);
        assert_eq!(
            call(site.port(), "POST", &target, "", b"x").answer.status,
            502,
            "{what}"
        );
        let asked = member.requests();
        let count = asked.iter().filter(|one| one.ends_with(what)).count();
        assert_eq!(count, 1, "{asked:?}");
    }
    let reason = "the other server broke its answer off";
    assert_eq!(site.record("/app/reset")["reason"], reason);
    assert_eq!(site.record("/app/gone")["reason"], CLOSED);
    site.stop();
}

#[test]
fn member_that_takes_leave_loses_nothing() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for at in 0..40 {
                    let target = if at % 5 == 0 {
                        "/app/leave"
                    } else {
                        "/app/told"
                    };
                    let reply = call(site.port(), "POST", target, "", b"once");
                    assert_eq!(reply.answer.status, 200);
                }
            });
        }
    });
    assert!(member.connections() > 8, "each leave costs a connection");
    assert_eq!(member.requests().len(), 160, "nothing was done twice");
    site.stop();
}

#[test]
fn answer_before_the_end_of_a_body_is_the_answer() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "");
    let mut client = Connection::open(site.port()).unwrap();
    let head = "POST /app/early HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n";
    client.send(head.as_bytes()).unwrap();
    let (status, fields) = client.read_head().unwrap();
    assert_eq!(status, 200);
    assert_eq!(client.read_body(&fields).unwrap(), b"early");
    drop(client);
    assert_eq!(site.get("/app/empty").answer.status, 204);
    site.stop();
}

#[test]
fn who_speaks_no_http2_is_followed_by_another_whatever_was_asked() {
    let old: Act = Box::new(|taken: &mut Taken| taken.write(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let peer = Peer::start_after_preface(vec![old]);
    let site = serve_to(&format!("\"http://127.0.0.1:{}\"", peer.port), HTTP2);
    assert_eq!(
        call(site.port(), "POST", "/app/x", "", b"x").answer.status,
        502
    );
    let record = site.record("/app/x");
    assert_eq!(record["reason"], "the other server cannot be reached");
    let detail = record["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("it speaks no HTTP/2"), "{detail}");
    site.stop();
    peer.join();
    let (silent, member) = (
        std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap(),
        Http2Member::start(Allows::default()),
    );
    let to = format!(
        "\"http://{}\", {}",
        silent.local_addr().unwrap(),
        member.to()
    );
    let site = serve_to(&to, "http = \"2\", timeout = { connect = \"1s\" }");
    for _ in 0..8 {
        assert_eq!(
            call(site.port(), "POST", "/app/told", "", b"x")
                .answer
                .status,
            200
        );
    }
    assert_eq!(member.requests().len(), 8);
    site.stop();
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
    frame.extend_from_slice(payload);
    frame
}

/// Frames by hand: a greeting, and an answer `hello` in pieces with trailers behind.
fn frames() -> Vec<u8> {
    [
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, b"\x88"),
        frame(0, 8, 1, b"\x02hel\0\0"),
        frame(0, 0, 1, b"lo"),
        frame(1, 5, 1, b"\0\x01t\x011"),
    ]
    .concat()
}

/// What took a connection in the moment before it ended was another server.
#[test]
fn server_that_is_about_to_end_is_followed_by_the_one_in_its_place() {
    let closes: Act = Box::new(|_: &mut Taken| {});
    let leaves: Act = Box::new(|taken: &mut Taken| {
        taken.write(&[frame(4, 0, 0, &[]), frame(7, 0, 0, &[0; 8])].concat());
        taken.stay();
    });
    let answers: Act = Box::new(|taken: &mut Taken| {
        taken.write(&frame(4, 0, 0, &[]));
        taken.read_http2_head();
        taken.write(&[frame(1, 4, 1, b"\x88"), frame(0, 1, 1, b"hello")].concat());
    });
    let peer = Peer::start_after_preface(vec![closes, leaves, answers]);
    let site = serve_to(&format!("\"http://127.0.0.1:{}\"", peer.port), HTTP2);
    // It may not be asked twice, and was asked once.
    let reply = call(site.port(), "POST", "/app/x", "", b"x");
    assert_eq!(
        (reply.answer.status, reply.answer.text().as_str()),
        (200, "hello")
    );
    site.stop();
    peer.join();
}

#[test]
fn end_or_stall_at_every_byte_is_seen() {
    let all = frames();
    // The greeting, and the head.
    let (greeting, head) = (9, 9 + 10);
    for stalls in [false, true] {
        // Whoever ends before it has greeted is asked for another connection, and one more.
        let times = |count: &usize| if *count < greeting && !stalls { 3 } else { 1 };
        let counts = (0..all.len()).flat_map(|count| vec![count; times(&count)]);
        let acts = counts.map(|count| -> Act {
            let part = all[..count].to_vec();
            Box::new(move |taken| {
                let (first, rest) = part.split_at(part.len().min(greeting));
                taken.write(first);
                if first.len() == greeting {
                    taken.read_http2_head();
                    taken.write(rest);
                }
                if stalls {
                    taken.stay();
                }
            })
        });
        let peer = Peer::start_after_preface(acts.collect());
        // Only who stalls is to meet them.
        let timeout = match stalls {
            true => {
                "timeout = { connect = \"500ms\", first_byte = \"500ms\", progress = \"100ms\" }"
            }
            false => "",
        };
        let to = format!("\"http://127.0.0.1:{}\"", peer.port);
        let site = serve_to(&to, &format!("{HTTP2}, keep = 0, {timeout}"));
        let mut begun = 0;
        for count in 0..all.len() {
            let target = format!("/app/{stalls}-{count}");
            let reply = site.get(&target);
            let status = reply.answer.status;
            let record = site.record(&target);
            match () {
                // On a busy machine the silence is over before the head has left.
                () if count >= head && stalls && status == 504 => {}
                // One that had begun when it broke cannot be taken back.
                () if count >= head && (stalls || status != 502) => {
                    assert!(reply.broke_off(), "{count}: {record}");
                    begun += 1;
                }
                () if stalls => assert_eq!(status, 504, "{count}: {record}"),
                () => assert_eq!(status, 502, "{count}: {record}"),
            }
            assert_eq!(record["fault"], "upstream", "{record}");
            let reason = record["reason"].as_str().unwrap();
            let is_early = reason.contains("reached") || reason.contains(".connect");
            assert_eq!(is_early, count < greeting, "{count}: {record}");
        }
        // Where the other ends, that may be known before the head has left.
        assert!(begun > 0 || !stalls);
        site.stop();
        peer.join();
    }
}

#[test]
fn connection_on_which_nothing_comes_has_no_other_request() {
    let acts: Vec<Act> = vec![
        Box::new(|taken| {
            taken.write(&frames()[..9]);
            taken.stay();
        }),
        Box::new(|taken| {
            taken.write(&frames()[..9]);
            taken.read_http2_head();
            taken.write(b"\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x05\0\x01\0\0\0\x01hello");
            taken.stay();
        }),
    ];
    let peer = Peer::start_after_preface(acts);
    let keys = format!("{HTTP2}, timeout = {{ first_byte = \"1s\" }}");
    let handler = format!(
        "proxy = {{ to = \"http://127.0.0.1:{}\", {keys} }}",
        peer.port
    );
    let site = Site::serve(Place::new(), "threads = 1\n", &handler, "");
    assert_eq!(site.get("/app/late").answer.status, 504);
    assert_eq!(site.get("/app/").answer.text(), "hello");
    site.stop();
    peer.join();
}

#[test]
fn frames_that_are_no_answer_are_a_502() {
    let greeting = frames()[..9].to_vec();
    let wrong: [&[u8]; 4] = [
        // A status of four digits, a push, a body before its head, noise.
        &[
            0, 0, 7, 1, 5, 0, 0, 0, 1, 0x48, 4, b'2', b'0', b'0', b'0', 0x88,
        ],
        &[0, 0, 4, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2],
        &[0, 0, 1, 0, 1, 0, 0, 0, 1, b'x'],
        &[0xff; 64],
    ];
    let acts = wrong.iter().map(|bytes| -> Act {
        let (greeting, bytes) = (greeting.clone(), bytes.to_vec());
        Box::new(move |taken| {
            taken.write(&greeting);
            taken.read_http2_head();
            taken.write(&bytes);
            taken.stay();
        })
    });
    let peer = Peer::start_after_preface(acts.collect());
    let keys = format!("{HTTP2}, keep = 0");
    let site = serve_to(&format!("\"http://127.0.0.1:{}\"", peer.port), &keys);
    for at in 0..wrong.len() {
        let target = format!("/app/{at}");
        assert_eq!(site.get(&target).answer.status, 502);
        assert_eq!(site.record(&target)["reason"], NO_ANSWER, "{at}");
    }
    site.stop();
    peer.join();
}

#[test]
fn one_request_a_connection_where_none_is_kept() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "keep = 0");
    for _ in 0..3 {
        assert_eq!(site.get("/app/told").answer.status, 200);
    }
    assert_eq!(member.connections(), 3);
    site.stop();
}

#[test]
fn connection_has_as_many_requests_as_it_may() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "keep_requests = 3");
    for _ in 0..7 {
        assert_eq!(site.get("/app/told").answer.status, 200);
    }
    assert_eq!(member.connections(), 3);
    site.stop();
}

#[test]
fn checks_ask_over_http2() {
    let member = Http2Member::start(Allows::default());
    let site = serve(&member, "health = { path = \"/empty\", every = \"50ms\" }");
    wait_until(|| {
        member
            .requests()
            .iter()
            .filter(|one| *one == "GET /empty")
            .count()
            > 1
    });
    assert_eq!(site.get("/app/told").answer.status, 200);
    site.stop();
}

/// A member that offers versions of HTTP over TLS, the first one before the second.
mod over_tls {
    use super::*;
    use crate::authority::Authority;
    use crate::secure::over;

    fn site(place: Place, port: u16, keys: &str) -> Site {
        let handler = format!(
            "proxy = {{ to = \"https://localhost:{port}\", tls = {{ ca = \"ca.pem\" }}, {keys} }}"
        );
        Site::serve(place, "threads = 1\n", &handler, "")
    }

    #[test]
    fn http2_is_spoken_where_both_sides_want_it() {
        let authority = Authority::new("ca");
        let place = Place::new();
        authority.write(&place, "ca.pem");
        let versions = &[&rustls::version::TLS13];
        let config = authority.sign(&["localhost"]).config(versions, None);
        let mut config = (*config).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let member = Http2Member::start_over(Allows::default(), Some(config.into()));
        let site = site(place, member.port, "");
        for _ in 0..3 {
            let told = site.get("/app/told").answer.text();
            assert!(told.contains("https://localhost/app/told"), "{told}");
        }
        assert_eq!(member.connections(), 1);
        site.stop();
    }

    #[test]
    fn http1_is_spoken_where_one_side_wants_no_other() {
        let authority = Authority::new("ca");
        let config = authority
            .sign(&["localhost"])
            .config(&[&rustls::version::TLS13], None);
        let peer = Peer::start_over(over(config), vec![answers(3)]);
        let place = Place::new();
        authority.write(&place, "ca.pem");
        let own = site(place, peer.port, "");
        for at in 0..3 {
            assert_eq!(own.get("/app/").answer.text(), at.to_string());
        }
        own.stop();
        peer.join();
        let config = authority
            .sign(&["localhost"])
            .config(&[&rustls::version::TLS13], None);
        let peer = Peer::start_over(over(config), vec![answers(0)]);
        let place = Place::new();
        authority.write(&place, "ca.pem");
        let own = site(place, peer.port, HTTP2);
        assert_eq!(own.get("/app/").answer.status, 502);
        let reason = "there is no TLS with the other server";
        assert_eq!(own.record("/app/")["reason"], reason);
        own.stop();
        drop(peer);
    }
}
