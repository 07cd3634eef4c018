//! HTTP/2 over TLS, and long answers over TLS, to clients that take little at a time.

use super::dummy::pattern;
use super::framed::Framed;
use super::tls::{Sealed, seal};
use super::*;

/// A client with room for everything, whose system holds little.
fn wide(sealed: &Sealed) -> Framed {
    let line = sealed.connect_narrow(&[b"h2"]);
    let mut client = Framed::begin(line, &[(4, 0x7fff_ffff)]);
    client.frame(8, 0, 0, &0x7fff_0000u32.to_be_bytes());
    client
}

#[test]
fn what_the_socket_did_not_take_leaves_without_anything_new() {
    let sealed = seal(HttpLimits::default());
    let mut client = wide(&sealed);
    // It has nothing to say meanwhile.
    client.takes = false;
    let ids: Vec<_> = (90..106)
        .map(|count| {
            // Some of these end where the socket takes nothing more.
            let id = client.get(&format!("/stream-and-wait?{}", count * 65_536));
            client.wait_for_body(id, count * 65_536);
            id
        })
        .collect();
    sealed.running.gate().open();
    assert!(ids.into_iter().all(|id| client.answer(id).is_ended));
}

#[test]
fn client_that_takes_nothing_loses_its_connection() {
    let sealed = seal(HttpLimits {
        write_progress: Duration::from_millis(300),
        ..HttpLimits::default()
    });
    let mut client = wide(&sealed);
    client.get("/endless");
    sealed.wait_for(|counters| counters.limit_write_progress.value(), 1);
    let finished = sealed.running.finished();
    assert_eq!(finished.outcome, Outcome::Timeout);
}

#[test]
fn frames_of_other_streams_follow_what_the_socket_did_not_take() {
    let sealed = seal(HttpLimits::default());
    let mut client = wide(&sealed);
    let later: Vec<_> = (0..20).map(|_| client.get("/later")).collect();
    for _ in &later {
        assert_eq!(sealed.running.note(), "waiting");
    }
    let long = client.get("/bytes?3000000");
    sealed.running.gate().open();
    for id in later {
        assert_eq!(client.answer(id).text(), "later");
    }
    assert!(client.answer(long).body == pattern(3_000_000));
    assert_eq!(client.ask("/ready").text(), "ready");
}

/// In tests a key is for few records: it changes amid an answer, whose bytes are stuck.
#[test]
fn keys_change_amid_an_answer_that_is_taken_slowly() {
    let sealed = seal(HttpLimits::default());
    let mut client = sealed.connect_narrow(&[]);
    for target in ["/bytes?20000000", "/file?9000000"] {
        let answer = client.ask(target);
        assert_eq!(answer.status, 200, "{target}");
        assert!(answer.body == pattern(answer.body.len() as u64), "{target}");
    }
}
