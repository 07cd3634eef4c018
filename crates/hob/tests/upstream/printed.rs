//! What a program behind an upstream prints that is no answer, or breaks off.

use crate::harness::Place;
use crate::harness::site::Site;
use crate::peer::{Act, Peer, sends, stays_after};
use crate::site::{self, serve_members};
use crate::wire::{KEYS, end, output};

const HEAD: &str = "Content-Type: text/plain\r\n\r\n";

/// A site whose peer does these things, one for each request.
fn serve(acts: Vec<Act>, keys: &str) -> (Site, Peer) {
    let place = Place::new();
    let peer = Peer::start(&place, acts);
    (serve_members(place, &["peer.sock"], keys), peer)
}

/// All of an answer.
fn prints(text: &str) -> Act {
    sends([output(text), end()].concat())
}

#[test]
fn what_is_no_answer_is_a_502_with_its_reason() {
    let closed = "the program closed the connection before its answer ended";
    let cut = "the program's output ended before the empty line that ends a head";
    let short = "the answer is shorter than its Content-Length";
    let long = output(&format!("X: {}\r\n", "x".repeat(60_000))).repeat(2);
    let cases = [
        (sends(Vec::new()), closed),
        (prints("no head\n"), cut),
        (
            prints("a line\n\n"),
            "a line of the head is no field (`Name: value`)",
        ),
        (prints("Content-Length: 5\r\n\r\nfour"), short),
        (
            prints("Status: 204\r\n\r\nbody"),
            "the program sent a body with a status that has none",
        ),
        (
            prints("Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nxyz"),
            "the answer is not in chunks, as its head says",
        ),
        (
            sends(long),
            "limits: the head of the program's output is longer than `head`",
        ),
    ];
    let (acts, reasons): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let (site, peer) = serve(acts, "");
    for (at, reason) in reasons.iter().enumerate() {
        let target = format!("/app/{at}");
        assert_eq!(site.get(&target).answer.status, 502, "{reason}");
        let record = site.record(&target);
        assert_eq!(
            (&record["reason"], &record["fault"]),
            (&(*reason).into(), &"script".into())
        );
        let detail = record["detail"].as_str().unwrap();
        assert!(detail.contains("peer.sock"), "{record}");
    }
    assert_eq!(site.place.counter("limit_program_head"), 1);
    peer.join();
    site.stop();
}

#[test]
fn failure_is_explained_where_the_route_says_so() {
    let (site, peer) = serve(vec![prints("a <line>\n\n")], "dev = true");
    let told = site.get("/app/x").answer;
    assert_eq!(told.status, 502);
    let text = told.text();
    assert!(text.contains("a line of the head is no field"), "{text}");
    assert!(text.contains("a &lt;line&gt;"), "{text}");
    peer.join();
    site.stop();
}

#[test]
fn body_that_ends_before_its_length_is_seen_to_break_off() {
    // More than is waited for: its head has gone on when it ends.
    let begun = format!("Content-Length: 200000\r\n{HEAD}{}", "x".repeat(120_000));
    let pieces = begun.as_bytes().chunks(60_000);
    let bytes: Vec<u8> = pieces
        .flat_map(|piece| output(std::str::from_utf8(piece).unwrap()))
        .collect();
    let acts = vec![sends([bytes.clone(), end()].concat()), sends(bytes)];
    let (site, peer) = serve(acts, "");
    for at in 0..2 {
        let target = format!("/app/{at}");
        let reply = site.get(&target);
        assert!(reply.is_broken(), "{at}");
        assert_eq!(site.record(&target)["fault"], "script");
    }
    peer.join();
    site.stop();
}

#[test]
fn body_that_goes_on_behind_its_length_is_cut_there() {
    let long = format!("Content-Length: 4\r\n{HEAD}four and more");
    let (site, peer) = serve(vec![prints(&long)], "");
    assert_eq!(site.get("/app/x").answer.text(), "four");
    let note = "the body was cut to its Content-Length";
    assert_eq!(site.record("/app/x")["note"], note);
    peer.join();
    site.stop();
}

#[test]
fn answer_is_whole_with_its_length_whoever_closes_the_connection() {
    let whole = format!("Content-Length: 4\r\n{HEAD}four");
    let (site, peer) = serve(
        vec![stays_after(output(&whole))],
        "timeout = { total = \"1s\" }",
    );
    let told = site.get("/app/x");
    assert!(told.is_whole && told.answer.text() == "four");
    assert_eq!(site.record("/app/x")["fault"], "none");
    // It is closed once its time is over.
    peer.join();
    site.stop();
}

#[test]
fn path_that_a_program_names_is_for_the_client_to_ask_for() {
    let answer = || sends([output("Location: /secret/key\r\n\r\n"), end()].concat());
    let secret =
        "[[site.route]]\npath = \"/secret/*\"\nrespond = { body = \"secret\" }\ninternal = true\n";
    for (control, status, location) in [
        ("", 302, Some("/secret/key")),
        (", control = true", 200, None),
    ] {
        let place = Place::new();
        let peer = Peer::start(&place, vec![answer()]);
        let keys = format!("to = \"unix:run/peer.sock\"{KEYS}{control}");
        let site = site::serve(place, &keys, secret);
        let told = site.get("/app/").answer;
        assert_eq!((told.status, told.header("location")), (status, location));
        assert_eq!(told.text() == "secret", status == 200);
        peer.join();
        site.stop();
    }
}
