//! Peers that break the protocol, or off.

use crate::harness::Place;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, sends};
use crate::site;
use crate::wire::{end, output, record};

const HEAD: &str = "Content-Type: text/plain\r\n\r\n";

/// A site whose peer does these things, one for each request.
fn serve(acts: Vec<Act>) -> (Site, Peer) {
    let place = Place::new();
    let peer = Peer::start(&place, acts);
    let keys = "to = \"unix:run/peer.sock\", split = \"\"";
    (site::serve(place, keys, ""), peer)
}

#[test]
fn whatever_is_not_the_protocol_is_a_502_with_its_reason() {
    let malformed = "what the program sent is not FastCGI";
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), malformed),
        (record(5, b"x"), malformed),
        (record(3, b"x"), malformed),
        ([&[1, 6, 0, 2, 0, 1, 0, 0][..], b"x"].concat(), malformed),
        (end(), "the program ended without output"),
    ];
    let (bytes, reasons): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let (site, peer) = serve(bytes.into_iter().map(sends).collect());
    for (at, reason) in reasons.iter().enumerate() {
        let target = format!("/app/{at}");
        assert_eq!(site.get(&target).answer.status, 502, "{reason}");
        let record = site.record(&target);
        assert_eq!(
            (&record["reason"], &record["fault"]),
            (&(*reason).into(), &"script".into())
        );
        assert!(
            record["detail"].as_str().unwrap().contains("peer.sock"),
            "{record}"
        );
    }
    peer.join();
    site.stop();
}

#[test]
fn program_that_takes_no_more_is_a_503() {
    let refusals = (1..=3).map(|why| sends(record(3, &[0, 0, 0, 0, why, 0, 0, 0])));
    let (site, peer) = serve(refusals.collect());
    for at in 1..=3 {
        let target = format!("/app/{at}");
        let answer = site.get(&target).answer;
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (503, Some("1"))
        );
        assert_eq!(
            site.record(&target)["reason"],
            "the program takes no more requests"
        );
    }
    peer.join();
    site.stop();
}

#[test]
fn answer_that_breaks_off_is_seen_to_break_off() {
    let begun = output(&format!("{HEAD}{}", "x".repeat(60_000)));
    let more = output(&"y".repeat(60_000));
    let cases = [
        [begun.clone(), more.clone()].concat(),
        [begun.clone(), more.clone(), b"garbage!".to_vec()].concat(),
    ];
    let (site, peer) = serve(cases.into_iter().map(sends).collect());
    for at in 0..2 {
        let reply = site.get(&format!("/app/{at}"));
        assert!(reply.is_broken(), "{at}");
        let record = site.record(&format!("/app/{at}"));
        assert_eq!(record["fault"], "script", "{record}");
    }
    peer.join();
    site.stop();
}

#[test]
fn answer_comes_whole_however_its_records_are_cut() {
    let bytes = [
        output("Content-Ty"),
        record(7, b"careful\n"),
        output("pe: text/plain\r\n\r"),
        output("\nbo"),
        output(""),
        output("dy"),
        end(),
    ]
    .concat();
    let acts = (1..4).map(|step: usize| {
        let bytes = bytes.clone();
        let act: Act = Box::new(move |stream| {
            for piece in bytes.chunks(step) {
                std::io::Write::write_all(stream, piece).unwrap();
            }
        });
        act
    });
    let (site, peer) = serve(acts.collect());
    for at in 1..4 {
        let answer = site.get(&format!("/app/{at}")).answer;
        assert_eq!((answer.status, answer.text().as_str()), (200, "body"));
    }
    let asked = peer.join();
    // A request of one connection: a responder, which closes after it.
    assert_eq!(
        asked[0][..16],
        [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    );
    let printed = site.stop_and_print();
    assert_eq!(printed.matches("stderr: careful").count(), 3, "{printed}");
}
