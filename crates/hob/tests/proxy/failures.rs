//! Peers that break the protocol, or off.

use crate::peer::{Act, Peer, sends, serve};

#[test]
fn whatever_breaks_before_the_answer_is_a_502_with_its_reason() {
    let no_answer = "what the other server sent is no answer";
    let closed = "the other server closed the connection before its answer ended";
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}\r\n", "x".repeat(70_000));
    let flood = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100);
    let cases = [
        ("", closed),
        ("HTTP/1.1 200 OK\r\nContent-Le", closed),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", closed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", closed),
        ("SSH-2.0-OpenSSH_9.2\r\n", no_answer),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            no_answer,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            no_answer,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            no_answer,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            no_answer,
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
            no_answer,
        ),
        ("HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n", no_answer),
        (&endless, no_answer),
        (&flood, no_answer),
    ];
    let acts = cases.iter().map(|(bytes, _)| sends(*bytes)).collect();
    let peer = Peer::start(acts);
    let site = serve(&[&peer], "");
    for (at, (bytes, reason)) in cases.iter().enumerate() {
        let target = format!("/app/{at}");
        let shown: String = bytes.chars().take(80).collect();
        assert_eq!(site.get(&target).answer.status, 502, "{shown}");
        let record = site.record(&target);
        assert_eq!(
            (&record["reason"], &record["fault"]),
            (&(*reason).into(), &"upstream".into()),
            "{shown}"
        );
        let detail = record["detail"].as_str().unwrap();
        assert!(
            detail.starts_with(&format!("127.0.0.1:{}", peer.port)),
            "{detail}"
        );
    }
    peer.join();
    site.stop();
}

#[test]
fn answer_that_breaks_off_is_seen_to_break_off() {
    let long = "x".repeat(200_000);
    let cases = [
        format!("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n{long}"),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n{long}\r\n"),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n{long}\r\nzz\r\n"),
    ];
    let count = cases.len();
    let peer = Peer::start(cases.into_iter().map(sends).collect());
    let site = serve(&[&peer], "");
    for at in 0..count {
        let reply = site.get(&format!("/app/{at}"));
        assert!(reply.broke_off(), "{at}");
        let record = site.record(&format!("/app/{at}"));
        assert_eq!(record["fault"], "upstream", "{record}");
    }
    peer.join();
    site.stop();
}

#[test]
fn answer_comes_whole_however_it_is_cut() {
    let bytes =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let acts = (1..4).map(|step: usize| {
        let act: Act = Box::new(move |taken| {
            for piece in bytes.as_bytes().chunks(step) {
                taken.write(piece);
            }
        });
        act
    });
    let peer = Peer::start(acts.collect());
    let site = serve(&[&peer], "");
    for at in 1..4 {
        assert_eq!(site.get(&format!("/app/{at}")).answer.text(), "abcde");
    }
    peer.join();
    site.stop();
}

#[test]
fn what_follows_an_answer_is_nobodys() {
    let two = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirstHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    let peer = Peer::start(vec![sends(two), sends(two)]);
    let site = serve(&[&peer], "");
    for _ in 0..2 {
        assert_eq!(site.get("/app/").answer.text(), "first");
    }
    assert_eq!(site.place.counter("upstream_reuses"), 0);
    peer.join();
    site.stop();
}
