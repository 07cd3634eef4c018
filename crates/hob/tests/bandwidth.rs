//! `bandwidth`: how fast answers leave. What a test asks is that no answer comes sooner than it
//! may; how much later it comes is up to the machine.
#![allow(clippy::unwrap_used)]

mod harness;

use std::time::{Duration, Instant};

use harness::client::Connection;
use harness::site::TOP;
use harness::{DEADLINE, Hob, Place, text_of};

const KIB: usize = 1024;

fn serve(place: &Place, site: &str) -> Hob {
    place.serve_text(&format!("threads = 2\n{TOP}{site}"))
}

/// Bytes of which each tells where it stands.
fn numbered(bytes: usize) -> Vec<u8> {
    let lines = (0_u32..).flat_map(|count| format!("{count:07}\n").into_bytes());
    lines.take(bytes).collect()
}

fn begin(hob: &Hob, client: &str, target: &str) -> Connection {
    let mut connection = Connection::open(hob.port()).unwrap();
    connection.send_ask("GET", target, &format!("X-Forwarded-For: {client}\r\n"));
    connection
}

/// Reads the whole answer, which has these bytes.
fn read(mut connection: Connection, bytes: &[u8]) {
    let answer = connection.read_last("GET");
    assert_eq!((answer.status, answer.body.len()), (200, bytes.len()));
    assert!(answer.body == bytes, "the bytes are others");
}

/// The least time in which so many bytes may come: the first piece comes at once.
fn least(bytes: usize, per_second: usize) -> Duration {
    let first = (per_second / 20).clamp(KIB, 64 * KIB);
    Duration::from_millis(((bytes - first) * 1000 / per_second) as u64)
}

#[test]
fn files_programs_and_other_servers_answers_leave_no_faster_than_they_may() {
    let place = Place::new();
    let bytes = numbered(384 * KIB);
    std::fs::write(place.path("site/large.txt"), &bytes).unwrap();
    place.folder("cgi");
    let file = place.path("site/large.txt").display().to_string();
    place.script(
        "cgi/large",
        &format!("#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\ncat {file}\n"),
    );
    let other_place = Place::new();
    std::fs::write(other_place.path("site/large.txt"), &bytes).unwrap();
    let other = other_place.serve_config("");
    let hob = serve(
        &place,
        &format!(
            "bandwidth = \"256KiB/s\"\n\
             [[site.route]]\npath = \"/cgi/*\"\ncgi = {{ dir = \"cgi\" }}\n\
             [[site.route]]\npath = \"/fast/*\"\nfiles = {{ root = \"site\" }}\n\
             bandwidth = \"1GiB/s\"\n\
             [[site.route]]\npath = \"/other/*\"\nrewrite = \"/large.txt\"\n\
             proxy = {{ to = \"http://127.0.0.1:{}\", http = \"1.1\" }}\n",
            other.port()
        ),
    );
    let began = Instant::now();
    let paths = ["/large.txt", "/cgi/large", "/other/x"];
    let all = paths.map(|path| (path, begin(&hob, "192.0.2.1", path)));
    std::thread::scope(|scope| {
        for (path, connection) in all {
            let bytes = &bytes;
            scope.spawn(move || {
                read(connection, bytes);
                let took = began.elapsed();
                assert!(took >= least(bytes.len(), 256 * KIB), "{path}: {took:?}");
            });
        }
    });
    let held = place.counter("bandwidth_held");
    assert!(held > 0);
    assert!(place.counter("bandwidth_held_us") >= 3_000_000);
    // A route of its own has its own.
    read(begin(&hob, "192.0.2.1", "/fast/large.txt"), &bytes);
    hob.stop();
    other.stop();
}

#[test]
fn answers_to_one_client_share_what_it_may_have() {
    let place = Place::new();
    let bytes = numbered(128 * KIB);
    std::fs::write(place.path("site/large.txt"), &bytes).unwrap();
    let hob = serve(&place, "bandwidth = { client = \"256KiB/s\" }\n");
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let connection = begin(&hob, "192.0.2.1", "/large.txt");
            scope.spawn(|| read(connection, &bytes));
        }
    });
    let took = began.elapsed();
    assert!(took >= least(3 * bytes.len(), 256 * KIB), "{took:?}");
    // One after the other is no faster, on whichever connection or thread.
    let began = Instant::now();
    for _ in 0..2 {
        read(begin(&hob, "192.0.2.1", "/large.txt"), &bytes);
    }
    let took = began.elapsed();
    assert!(took >= least(2 * bytes.len(), 256 * KIB), "{took:?}");
    hob.stop();
}

#[test]
fn answers_to_all_clients_share_what_the_route_may_send_over_a_reload() {
    let place = Place::new();
    let bytes = numbered(128 * KIB);
    std::fs::write(place.path("site/large.txt"), &bytes).unwrap();
    let site = "bandwidth = { all = \"256KiB/s\" }\n";
    let hob = serve(&place, site);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let answers = [1, 2, 3].map(|client| {
            let connection = begin(&hob, &format!("192.0.2.{client}"), "/large.txt");
            scope.spawn(|| read(connection, &bytes))
        });
        let reload = place.run(&["reload"]);
        assert!(reload.status.success(), "{}", text_of(&reload));
        hob.wait_for("reloaded, generation 2");
        answers.into_iter().for_each(|one| one.join().unwrap());
    });
    let took = began.elapsed();
    assert!(took >= least(3 * bytes.len(), 256 * KIB), "{took:?}");
    hob.stop();
}

#[test]
fn begin_of_an_answer_may_come_at_once() {
    let place = Place::new();
    let bytes = numbered(200 * KIB);
    std::fs::write(place.path("site/large.txt"), &bytes).unwrap();
    let hob = serve(
        &place,
        "bandwidth = { answer = \"64KiB/s\", after = \"100KiB\" }\n\
         [[site.route]]\npath = \"/all/*\"\nfiles = { root = \"site\" }\n\
         bandwidth = { answer = \"1KiB/s\", after = \"200KiB\" }\n",
    );
    read(begin(&hob, "192.0.2.1", "/all/large.txt"), &bytes);
    assert_eq!(place.counter("bandwidth_held"), 0);
    let began = Instant::now();
    read(begin(&hob, "192.0.2.1", "/large.txt"), &bytes);
    let took = began.elapsed();
    assert!(took >= least(100 * KIB, 64 * KIB), "{took:?}");
    assert!(place.counter("bandwidth_held") > 0);
    hob.stop();
}

#[test]
fn client_that_leaves_a_slow_answer_leaves_nothing_behind() {
    let place = Place::new();
    place.fill_big();
    let hob = serve(&place, "bandwidth = \"1KiB/s\"\n");
    let mut connection = begin(&hob, "192.0.2.1", "/big.bin");
    assert_eq!(connection.read_head().unwrap().0, 200);
    assert_eq!(place.counter("requests_running"), 1);
    connection.leave();
    place.wait_for_counter("requests_running", 0);
    assert_eq!(place.counter("client_left"), 1);
    hob.stop();
}

#[test]
fn small_and_empty_answers_have_their_fields_and_explain_tells() {
    let place = Place::new();
    let hob = serve(
        &place,
        "bandwidth = { answer = \"1KiB/s\", client = \"2KiB/s\" }\n",
    );
    let answer = harness::client::ask(hob.port(), "GET", "/hello.txt", "");
    assert_eq!((answer.status, answer.text()), (200, "hello\n".to_owned()));
    assert_eq!(answer.header("content-length"), Some("6"));
    let missing = harness::client::ask(hob.port(), "GET", "/missing", "");
    assert_eq!(missing.status, 404);
    let told = text_of(&place.run(&["explain", "GET", "/hello.txt"]));
    let text = "`bandwidth`: an answer at 1KiB a second, all of a client at 2KiB a second at most";
    assert!(told.contains(text), "{told}");
    hob.stop();
}

#[test]
fn clients_beyond_those_that_are_counted_alone_share_with_their_network() {
    let place = Place::new();
    std::fs::write(place.path("site/large.txt"), numbered(1024 * KIB)).unwrap();
    let hob = serve(&place, "bandwidth = { client = \"1KiB/s\", keys = 100 }\n");
    // Each holds its place for as long as its answer leaves.
    let held: Vec<_> = (0..300)
        .map(|number| {
            begin(
                &hob,
                &format!("10.0.{}.{}", number / 200, number % 200),
                "/large.txt",
            )
        })
        .collect();
    let until = Instant::now() + DEADLINE;
    while place.counter("limit_bandwidth_keys") == 0 {
        assert!(Instant::now() < until, "all have places of their own");
    }
    drop(held);
    hob.stop();
}
