//! Connections that stay open between requests.

use std::io::{Read, Write};

use crate::harness::Place;
use crate::harness::client::call;
use crate::harness::site::Site;
use crate::peer::{Act, Peer};
use crate::php::fpm;
use crate::site;
use crate::wire::{end, output, read_variables};

fn answer(text: &str) -> Vec<u8> {
    let head = "Content-Type: text/plain\r\n\r\n";
    [output(&format!("{head}{text}")), end()].concat()
}

#[test]
fn connection_stays_and_serves_the_next_request() {
    let place = Place::new();
    place.folder("php");
    place.write("php/pid.php", "<?php echo getmypid();");
    place.write(
        "php/body.php",
        "<?php echo strlen(file_get_contents('php://input'));",
    );
    let _fpm = fpm(&place);
    let keys = "to = \"unix:run/fpm.sock\", root = \"php\", keep = 1";
    let site = site::serve(place, keys, "");
    let pid = site.get("/app/pid.php").answer.text();
    for _ in 0..20 {
        // The child that has the connection answers all of them.
        assert_eq!(site.get("/app/pid.php").answer.text(), pid);
    }
    assert_eq!(site.place.counter("upstream_connects"), 1);
    assert_eq!(site.place.counter("upstream_reuses"), 20);
    // Over the same, which is closed then if the script has answered before all of it was sent.
    let body = vec![b'x'; 200_000];
    let told = call(site.port(), "POST", "/app/body.php", "", &body)
        .answer
        .text();
    assert_eq!(told, "200000");
    assert_eq!(site.place.counter("upstream_reuses"), 21);
    site.stop();
}

#[test]
fn connection_that_has_served_enough_requests_leaves_its_child_to_others() {
    let place = Place::new();
    place.folder("php");
    place.write("php/x.php", "<?php echo 'x';");
    let _fpm = fpm(&place);
    let keys = "to = \"unix:run/fpm.sock\", root = \"php\", keep = 1, keep_requests = 2";
    let site = site::serve(place, keys, "");
    for _ in 0..5 {
        assert_eq!(site.get("/app/x.php").answer.text(), "x");
    }
    let told = ["upstream_connects", "upstream_reuses"].map(|name| site.place.counter(name));
    assert_eq!(told, [3, 2]);
    assert_eq!(site.place.counter("limit_upstream_keep_requests"), 2);
    site.stop();
}

#[test]
fn one_child_serves_many_threads_and_a_client_of_its_own() {
    let place = Place::new();
    place.folder("php");
    place.write("php/x.php", "<?php usleep(1000); echo 'x';");
    let _fpm = fpm(&place);
    // Of two children one is hob's alone; the other serves whoever comes, hob as well.
    let keys = "to = \"unix:run/fpm.sock\", root = \"php\", keep = 1";
    let site = site::serve_with(place, "threads = 8\n", keys, "");
    std::thread::scope(|scope| {
        let ask = || {
            let port = site.port();
            scope.spawn(move || call(port, "GET", "/app/x.php", "", b"").answer.text())
        };
        let asked: Vec<_> = (0..40).map(|_| ask()).collect();
        for one in asked {
            assert_eq!(one.join().unwrap(), "x");
        }
    });
    let mut foreign =
        std::os::unix::net::UnixStream::connect(site.place.path("run/fpm.sock")).unwrap();
    // BEGIN_REQUEST, no variables, no body: php-fpm says that it has no script.
    foreign
        .write_all(&[
            1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 4, 0, 1, 0, 0, 0, 0, 1, 5, 0, 1, 0,
            0, 0, 0,
        ])
        .unwrap();
    assert!(foreign.read(&mut [0; 64]).unwrap() > 0);
    site.stop();
}

#[test]
fn no_request_waits_for_a_child_that_a_resting_connection_holds() {
    let place = Place::new();
    place.folder("php");
    place.write("php/x.php", "<?php usleep(1000); echo 'x';");
    let _fpm = fpm(&place);
    // As many as there are children, and more requests than that.
    let keys =
        "to = \"unix:run/fpm.sock\", root = \"php\", keep = 2, timeout = { first_byte = \"0s\" }";
    let site = site::serve_with(place, "threads = 2\n", keys, "");
    std::thread::scope(|scope| {
        for _ in 0..20 {
            let port = site.port();
            scope.spawn(move || {
                for _ in 0..10 {
                    assert_eq!(call(port, "GET", "/app/x.php", "", b"").answer.text(), "x");
                }
            });
        }
    });
    site.stop();
}

/// Answers a request, and does what is said with the connection once the next one has come.
fn answers_then(act: Act) -> Act {
    Box::new(move |stream| {
        stream.write_all(&answer("first")).unwrap();
        act(stream);
    })
}

fn serve(acts: Vec<Act>) -> (Site, Peer) {
    let place = Place::new();
    let peer = Peer::start(&place, acts);
    let keys = "to = \"unix:run/peer.sock\", split = \"\", keep = 1";
    (site::serve(place, keys, ""), peer)
}

#[test]
fn connection_that_ends_as_it_is_used_again_is_no_error_for_who_may_ask_twice() {
    // The second request is read, and the connection closed without a word.
    let closes = || {
        answers_then(Box::new(|stream| {
            read_variables(stream);
        }))
    };
    let second: Act = Box::new(|stream| stream.write_all(&answer("second")).unwrap());
    let (site, peer) = serve(vec![closes(), second]);
    assert_eq!(site.get("/app/").answer.text(), "first");
    assert_eq!(site.get("/app/").answer.text(), "second");
    assert_eq!(site.place.counter("upstream_retries"), 1);
    let asked = peer.join();
    // Such a program is asked to leave the connection open.
    assert_eq!(asked[0][10], 1);
    site.stop();

    // It may have been done: nobody does it twice.
    let (site, peer) = serve(vec![closes()]);
    assert_eq!(site.get("/app/").answer.text(), "first");
    let posted = call(site.port(), "POST", "/app/", "", b"once").answer;
    assert_eq!(posted.status, 502);
    assert_eq!(site.place.counter("upstream_retries"), 0);
    peer.join();
    site.stop();
}

#[test]
fn what_has_begun_to_answer_is_not_asked_again() {
    let breaks = answers_then(Box::new(|stream| {
        read_variables(stream);
        stream.write_all(&output("Content-Type: te")).unwrap();
    }));
    let (site, peer) = serve(vec![breaks]);
    assert_eq!(site.get("/app/").answer.text(), "first");
    assert_eq!(site.get("/app/").answer.status, 502);
    assert_eq!(site.place.counter("upstream_retries"), 0);
    peer.join();
    site.stop();
}

#[test]
fn connection_that_was_closed_while_it_rested_is_not_used() {
    let (closed, is_closed) = std::sync::mpsc::channel::<()>();
    let first: Act = Box::new(move |stream| {
        stream.write_all(&answer("first")).unwrap();
        stream.shutdown(std::net::Shutdown::Both).unwrap();
        closed.send(()).unwrap();
    });
    let second: Act = Box::new(|stream| stream.write_all(&answer("second")).unwrap());
    let (site, peer) = serve(vec![first, second]);
    assert_eq!(site.get("/app/").answer.text(), "first");
    is_closed.recv().unwrap();
    // A POST, too: it was looked at before.
    assert_eq!(
        call(site.port(), "POST", "/app/", "", b"x").answer.text(),
        "second"
    );
    assert_eq!(site.place.counter("upstream_connects"), 2);
    peer.join();
    site.stop();
}
