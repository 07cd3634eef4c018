//! `concurrency`: how many requests are in service at once, and who waits. The program that answers
//! is the test: a request is in service once it has come there, until the test has answered.
#![allow(clippy::unwrap_used)]

mod harness;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use harness::client::Connection;
use harness::site::{TOP, ask_from_with, record};
use harness::{DEADLINE, Hob, Place, text_of};

/// Another server, whose answers are the test's.
struct Member(TcpListener);

/// A request that has come there.
struct InService {
    target: String,
    stream: TcpStream,
}

impl Member {
    fn new() -> Member {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        Member(listener)
    }

    /// A route at `/app/*` that it answers, with these keys.
    fn route(&self, keys: &str) -> String {
        self.route_at("/app/*", keys)
    }

    fn route_at(&self, path: &str, keys: &str) -> String {
        let port = self.0.local_addr().unwrap().port();
        format!(
            "[[site.route]]\npath = \"{path}\"\n\
             proxy = {{ to = \"http://127.0.0.1:{port}\", http = \"1.1\", connections = 1000 }}\n{keys}\n"
        )
    }

    /// The next request that comes there.
    fn next(&self) -> InService {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(request) = self.next_at_once() {
                return request;
            }
            assert!(Instant::now() < until, "no request came");
            std::thread::yield_now();
        }
    }

    /// One that has come already.
    fn next_at_once(&self) -> Option<InService> {
        let (mut stream, _) = match self.0.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("{error}"),
        };
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let target = head.split(' ').nth(1).unwrap().to_owned();
        Some(InService { target, stream })
    }
}

impl InService {
    fn answer(mut self) {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
        self.stream.write_all(answer.as_bytes()).unwrap();
    }
}

fn serve(place: &Place, site: &str) -> Hob {
    place.serve_text(&format!("threads = 2\n{TOP}{site}"))
}

/// A request that is under way.
fn begin(hob: &Hob, target: &str) -> Connection {
    begin_from(hob, "192.0.2.1", target, "")
}

fn begin_from(hob: &Hob, client: &str, target: &str, fields: &str) -> Connection {
    let mut connection = Connection::open(hob.port()).unwrap();
    let fields = format!("X-Forwarded-For: {client}\r\n{fields}");
    connection.send_ask("GET", target, &fields);
    connection
}

fn status(connection: &mut Connection) -> u16 {
    connection.read().unwrap().status
}

/// Reloads with another config, and waits until it is in force.
fn reload(place: &Place, hob: &Hob, site: &str, generation: u32) {
    place.write("hob.toml", &format!("threads = 2\n{TOP}{site}"));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    hob.wait_for(&format!("reloaded, generation {generation}"));
}

#[test]
fn as_many_as_are_said_are_in_service_and_the_next_is_refused() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "concurrency = { requests = 64, queue = 0, by = \"all\", wait = \"1500ms\" }";
    let hob = serve(&place, &member.route(keys));
    let mut asked: Vec<_> = (0..64).map(|_| begin(&hob, "/app/a")).collect();
    let mut inside: Vec<_> = (0..64).map(|_| member.next()).collect();
    assert_eq!(place.counter("concurrency_running"), 64);
    let refused = begin(&hob, "/app/refused").read().unwrap();
    // It is nobody's own fault that others are there.
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("2"))
    );
    let record = record(&place, "/app/refused");
    let reason = "concurrency: as many requests are in service and wait as may";
    assert_eq!(
        (&record["reason"], &record["fault"]),
        (&reason.into(), &"server".into())
    );
    assert_eq!(place.counter("limit_concurrency"), 1);
    // One place is free, and no more.
    inside.pop().unwrap().answer();
    place.wait_for_counter("concurrency_running", 63);
    let mut next = begin(&hob, "/app/next");
    let last = member.next();
    assert_eq!(last.target, "/app/next");
    assert_eq!(status(&mut begin(&hob, "/app/b")), 503);
    last.answer();
    assert_eq!(status(&mut next), 200);
    inside.into_iter().for_each(InService::answer);
    assert!(asked.iter_mut().all(|one| status(one) == 200));
    place.wait_for_counter("concurrency_running", 0);
    assert_eq!(place.counter("concurrency_ended"), 65);
    hob.stop();
}

#[test]
fn who_waits_is_served_in_the_order_they_came() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "concurrency = { requests = 1, queue = 5 }";
    let hob = serve(&place, &member.route(keys));
    let mut asked = vec![begin(&hob, "/app/0")];
    let mut inside = member.next();
    for count in 1..=5 {
        asked.push(begin(&hob, &format!("/app/{count}")));
        place.wait_for_counter("concurrency_waiting", count);
    }
    assert!(member.next_at_once().is_none());
    // A client that asks for too much itself.
    let refused = begin(&hob, "/app/refused").read().unwrap();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (429, Some("10"))
    );
    assert_eq!(record(&place, "/app/refused")["fault"], "client");
    // Another client is counted alone.
    let mut other = begin_from(&hob, "192.0.2.2", "/app/other", "");
    member.next().answer();
    assert_eq!(status(&mut other), 200);
    for count in 1..=5 {
        inside.answer();
        inside = member.next();
        assert_eq!(inside.target, format!("/app/{count}"));
    }
    inside.answer();
    assert!(asked.iter_mut().all(|one| status(one) == 200));
    let waited = record(&place, "/app/5")["queue_us"].as_u64().unwrap();
    assert!(waited > 0);
    assert_eq!(place.counter("concurrency_waiting"), 0);
    assert_eq!(place.counter("concurrency_queued"), 5);
    hob.stop();
}

#[test]
fn who_waits_for_too_long_is_refused() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "concurrency = { requests = 1, queue = 5, wait = \"200ms\" }";
    let hob = serve(&place, &member.route(keys));
    let mut first = begin(&hob, "/app/first");
    let inside = member.next();
    let late = begin(&hob, "/app/late").read().unwrap();
    assert_eq!((late.status, late.header("retry-after")), (429, Some("1")));
    let reason = "concurrency: no request in service ended in time";
    assert_eq!(record(&place, "/app/late")["reason"], reason);
    assert_eq!(place.counter("limit_concurrency_wait"), 1);
    assert_eq!(place.counter("concurrency_waiting"), 0);
    inside.answer();
    assert_eq!(status(&mut first), 200);
    hob.stop();
}

#[test]
fn who_leaves_frees_the_place_waiting_or_in_service() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "concurrency = { requests = 1, queue = 1 }";
    let hob = serve(&place, &member.route(keys));
    let first = begin(&hob, "/app/first");
    let inside = member.next();
    for _ in 0..3 {
        let waits = begin(&hob, "/app/waits");
        place.wait_for_counter("concurrency_waiting", 1);
        assert_eq!(status(&mut begin(&hob, "/app/more")), 429);
        waits.leave();
        place.wait_for_counter("concurrency_waiting", 0);
    }
    let mut second = begin(&hob, "/app/second");
    place.wait_for_counter("concurrency_waiting", 1);
    first.leave();
    let next = member.next();
    assert_eq!(next.target, "/app/second");
    drop(inside);
    next.answer();
    assert_eq!(status(&mut second), 200);
    place.wait_for_counter("concurrency_running", 0);
    hob.stop();
}

#[test]
fn place_is_free_again_when_the_exchange_breaks() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "concurrency = { requests = 1, queue = 0 }";
    let route = member.route(keys).replace(
        "connections = 1000",
        "connections = 1000, timeout = { first_byte = \"300ms\" }, retry = { times = 0 }",
    );
    let hob = serve(&place, &route);
    // No answer, half an answer, and none in time.
    let mut broken = begin(&hob, "/app/none");
    drop(member.next());
    assert_eq!(status(&mut broken), 502);
    // A client may have its answer before the place is free.
    place.wait_for_counter("concurrency_running", 0);
    let mut broken = begin(&hob, "/app/half");
    let mut inside = member.next();
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\nhalf";
    inside.stream.write_all(half).unwrap();
    drop(inside);
    assert!(broken.read().map_or(true, |answer| answer.status == 502));
    place.wait_for_counter("concurrency_running", 0);
    let mut late = begin(&hob, "/app/late");
    let silent = member.next();
    assert_eq!(status(&mut late), 504);
    drop(silent);
    place.wait_for_counter("concurrency_running", 0);
    let mut whole = begin(&hob, "/app/whole");
    member.next().answer();
    assert_eq!(status(&mut whole), 200);
    hob.stop();
}

#[test]
fn many_requests_of_a_connection_have_the_place_one_after_the_other() {
    let place = Place::new();
    let hob = serve(
        &place,
        "concurrency = { requests = 1, queue = 0 }\n\
         [[site.route]]\npath = \"/text\"\nrespond = { body = \"text\" }\n",
    );
    let mut connection = Connection::open(hob.port()).unwrap();
    for _ in 0..100 {
        for path in ["/text", "/hello.txt", "/missing"] {
            let ask = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            connection.send(ask.as_bytes()).unwrap();
            let expected = if path == "/missing" { 404 } else { 200 };
            assert_eq!(status(&mut connection), expected, "{path}");
        }
    }
    place.wait_for_counter("concurrency_ended", 300);
    assert_eq!(place.counter("limit_concurrency"), 0);
    hob.stop();
}

#[test]
fn tunnel_keeps_its_place_until_it_ends_h1_only() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "concurrency = { requests = 1, queue = 0 }";
    let route = member.route(keys).replace(
        "connections = 1000",
        "connections = 1000, upgrade = [\"websocket\"]",
    );
    let hob = serve(&place, &route);
    let mut tunnel = Connection::open(hob.port()).unwrap();
    let ask = "GET /app/socket HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\
               Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
               Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    tunnel.send(ask.as_bytes()).unwrap();
    let mut inside = member.next();
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                   Upgrade: websocket\r\n\
                   Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello";
    inside.stream.write_all(switch).unwrap();
    assert_eq!(tunnel.read_head().unwrap().0, 101);
    tunnel.read_until("hello");
    assert_eq!(status(&mut begin(&hob, "/app/more")), 429);
    assert_eq!(place.counter("concurrency_running"), 1);
    drop(inside);
    tunnel.leave();
    place.wait_for_counter("concurrency_running", 0);
    let mut next = begin(&hob, "/app/next");
    member.next().answer();
    assert_eq!(status(&mut next), 200);
    hob.stop();
}

#[test]
fn what_is_counted_together_is_what_the_config_says() {
    let (place, member) = (Place::new(), Member::new());
    let limit = |by: &str| format!("concurrency = {{ requests = 1, queue = 0, by = \"{by}\" }}");
    let routes = [
        member.route_at("/field", &limit("field:X-Api-Key")),
        member.route_at("/cookie", &limit("cookie:sid")),
        member.route_at("/shop/{name}/*", &limit("capture:name")),
    ];
    let site = format!(
        "{}\n{}{}",
        limit("path"),
        routes.concat(),
        member.route_at("/one/*", "") + &member.route_at("/two/*", "")
    );
    let hob = serve(&place, &site);
    let (me, you) = ("192.0.2.1", "192.0.2.2");
    // Who comes first is in service while the others ask, of whom one has to be refused.
    for (first, same, other, status_of_same) in [
        (
            (me, "/field", "X-Api-Key: a\r\n"),
            (you, "/field", "X-Api-Key: a\r\n"),
            (me, "/field", "X-Api-Key: b\r\n"),
            429,
        ),
        // Who leaves it out is known by its address.
        (
            (me, "/field", ""),
            (me, "/field", ""),
            (you, "/field", ""),
            429,
        ),
        (
            (me, "/cookie", "Cookie: a=b; sid=1\r\n"),
            (you, "/cookie", "Cookie: sid=1\r\n"),
            (you, "/cookie", "Cookie: sid=2\r\n"),
            429,
        ),
        (
            (me, "/shop/a/1", ""),
            (you, "/shop/a/2", ""),
            (me, "/shop/b/1", ""),
            503,
        ),
        (
            (me, "/one/1", ""),
            (you, "/one/2", ""),
            (me, "/two/1", ""),
            503,
        ),
    ] {
        let begin = |(client, target, fields)| begin_from(&hob, client, target, fields);
        let mut in_service = begin(first);
        let inside = member.next();
        assert_eq!(status(&mut begin(same)), status_of_same, "{same:?}");
        let mut beside = begin(other);
        member.next().answer();
        assert_eq!(status(&mut beside), 200, "{other:?}");
        inside.answer();
        assert_eq!(status(&mut in_service), 200, "{first:?}");
        place.wait_for_counter("concurrency_running", 0);
    }
    hob.stop();
}

/// A site where ann and bob sign in, both with `sesame`, with these keys of the route.
fn signing_in(place: &Place, route: &str) -> String {
    let line = |name: &str| {
        let mut command = Command::new("htpasswd");
        command.args(["-nb", "-B", "-C", "4", name, "sesame"]);
        let output = command.output().expect("apt-get install apache2-utils");
        format!("{}\n", String::from_utf8(output.stdout).unwrap().trim())
    };
    place.write("users", &(line("ann") + &line("bob")));
    format!("{route}[[auth]]\nname = \"staff\"\nhtpasswd = \"users\"\n")
}

const ANN: &str = "Authorization: Basic YW5uOnNlc2FtZQ==\r\n";
const BOB: &str = "Authorization: Basic Ym9iOnNlc2FtZQ==\r\n";

#[test]
fn users_are_counted_each_for_itself_once_they_have_signed_in() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "require = \"staff\"\nconcurrency = { requests = 1, queue = 1, by = \"user\" }\n\
                rate = { requests = \"1/h\", burst = 4, by = \"user\" }";
    let hob = serve(&place, &signing_in(&place, &member.route(keys)));
    let ask = |client, target, fields| begin_from(&hob, client, target, fields);
    let mut ann = ask("192.0.2.1", "/app/ann", ANN);
    let inside = member.next();
    // Whoever has not signed in takes nobody's place, whatever name it gives.
    let wrong = "Authorization: Basic YW5uOndyb25n\r\n";
    for _ in 0..3 {
        assert_eq!(status(&mut ask("192.0.2.1", "/app/wrong", wrong)), 401);
    }
    // The same user from another machine.
    let mut second = ask("192.0.2.2", "/app/second", ANN);
    place.wait_for_counter("concurrency_waiting", 1);
    assert_eq!(status(&mut ask("192.0.2.3", "/app/third", ANN)), 429);
    let mut bob = ask("192.0.2.1", "/app/bob", BOB);
    member.next().answer();
    assert_eq!(status(&mut bob), 200);
    inside.answer();
    assert_eq!(status(&mut ann), 200);
    let inside = member.next();
    assert_eq!(inside.target, "/app/second");
    inside.answer();
    assert_eq!(status(&mut second), 200);
    // The rate counts three of hers, and wrong passwords are none of anybody's.
    assert_eq!(place.counter("limit_rate"), 0);
    let mut fourth = ask("192.0.2.4", "/app/fourth", ANN);
    member.next().answer();
    assert_eq!(status(&mut fourth), 200);
    assert_eq!(status(&mut ask("192.0.2.5", "/app/fifth", ANN)), 429);
    assert_eq!(place.counter("limit_rate"), 1);
    let mut bob = ask("192.0.2.5", "/app/bob", BOB);
    member.next().answer();
    assert_eq!(status(&mut bob), 200);
    hob.stop();
}

#[test]
fn rate_may_go_by_the_parts_of_a_path() {
    let place = Place::new();
    let route = |path: &str, more: &str| {
        format!("[[site.route]]\npath = \"{path}\"\nrespond = {{ body = \"x\" }}\n{more}\n")
    };
    let by = |by: &str| format!("rate = {{ requests = \"1/h\", burst = 1, by = \"{by}\" }}\n");
    let site = [
        by("path"),
        route("/one/*", ""),
        route("/two/*", ""),
        route("/shop/{name}/*", &by("capture:name")),
    ];
    let hob = serve(&place, &site.concat());
    let ask = |client, path| ask_from_with(&hob, client, path, "").status;
    let (me, you) = ("192.0.2.1", "192.0.2.2");
    assert_eq!((ask(me, "/one/1"), ask(you, "/one/2")), (200, 429));
    assert_eq!((ask(me, "/two/1"), ask(you, "/two/2")), (200, 429));
    assert_eq!((ask(me, "/shop/a/1"), ask(you, "/shop/a/2")), (200, 429));
    assert_eq!((ask(me, "/shop/b/1"), ask(you, "/shop/b/2")), (200, 429));
    hob.stop();
}

#[test]
fn reload_forgets_nobody_in_service_or_waiting() {
    let (place, member) = (Place::new(), Member::new());
    let site = |requests: u32, queue: u32| {
        let keys =
            format!("concurrency = {{ requests = {requests}, queue = {queue}, by = \"all\" }}");
        member.route(&keys)
    };
    let hob = serve(&place, &site(1, 2));
    let mut first = begin(&hob, "/app/first");
    let inside = member.next();
    let mut second = begin(&hob, "/app/second");
    place.wait_for_counter("concurrency_waiting", 1);
    for generation in [2, 3] {
        reload(&place, &hob, &site(1, 1), generation);
        assert_eq!(place.counter("concurrency_running"), 1);
        assert_eq!(status(&mut begin(&hob, "/app/more")), 503);
        assert!(member.next_at_once().is_none());
    }
    // More places: who waits has one at once.
    reload(&place, &hob, &site(2, 0), 4);
    let other = member.next();
    assert_eq!(other.target, "/app/second");
    assert_eq!(status(&mut begin(&hob, "/app/more")), 503);
    // Fewer: those who are in service stay.
    reload(&place, &hob, &site(1, 0), 5);
    inside.answer();
    assert_eq!(status(&mut first), 200);
    place.wait_for_counter("concurrency_running", 1);
    assert_eq!(status(&mut begin(&hob, "/app/more")), 503);
    other.answer();
    assert_eq!(status(&mut second), 200);
    hob.stop();
}

#[test]
fn dry_run_lets_everybody_in_and_tells() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "concurrency = { requests = 1, queue = 1, dry_run = true }";
    let hob = serve(&place, &member.route(keys));
    let mut asked = Vec::new();
    let mut inside = Vec::new();
    for count in 1..=3 {
        asked.push(begin(&hob, &format!("/app/{count}")));
        inside.push(member.next());
    }
    inside.into_iter().for_each(InService::answer);
    assert!(asked.iter_mut().all(|one| status(one) == 200));
    let note = |target| record(&place, target)["note"].as_str().unwrap().to_owned();
    let what = ["", "would wait", "would be refused"].map(|what| match what {
        "" => String::new(),
        what => format!("concurrency: without `dry_run` this {what}"),
    });
    assert_eq!(["/app/1", "/app/2", "/app/3"].map(note), what);
    assert_eq!(place.counter("concurrency_dry_run"), 2);
    assert_eq!(place.counter("concurrency_queued"), 0);
    hob.stop();
}

#[test]
fn request_that_is_sent_on_keeps_its_place_and_no_second_of_the_same() {
    let place = Place::new();
    place.folder("cgi");
    place.script(
        "cgi/go",
        "#!/bin/sh\nprintf 'Location: %s\\n\\n' \"$QUERY_STRING\"\n",
    );
    let hob = serve(
        &place,
        "concurrency = { requests = 1, queue = 0 }\n\
         [[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n\
         [[site.route]]\npath = \"/own\"\nrespond = { body = \"own\" }\n\
         concurrency = { requests = 1, queue = 0 }\n",
    );
    let ask = |path| ask_from_with(&hob, "192.0.2.1", path, "").status;
    assert_eq!(ask("/cgi/go?/hello.txt"), 200);
    place.wait_for_counter("concurrency_running", 0);
    assert_eq!(place.counter("concurrency_begun"), 1);
    assert_eq!(ask("/cgi/go?/own"), 200);
    place.wait_for_counter("concurrency_running", 0);
    assert_eq!(place.counter("concurrency_begun"), 3);
    hob.stop();
}

#[test]
fn all_threads_together_have_no_more_in_service_than_may_be() {
    let (place, member) = (Place::new(), Member::new());
    // Who waits is not to be refused because the machine is busy.
    let keys = "concurrency = { requests = 3, queue = 8, by = \"all\", wait = \"10m\" }";
    let hob = serve(&place, &member.route(keys));
    let most = AtomicUsize::new(0);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let (answered, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        // Answers one when no more of those who ask all the time comes along with it.
        scope.spawn(|| {
            let mut inside = Vec::new();
            while !is_over.load(Ordering::SeqCst) {
                for _ in 0..5 {
                    inside.extend(member.next_at_once());
                    std::thread::yield_now();
                }
                most.fetch_max(inside.len(), Ordering::SeqCst);
                if !inside.is_empty() {
                    inside.remove(0).answer();
                }
            }
        });
        let clients: Vec<_> = (0..24)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let count = match status(&mut begin(&hob, "/app/a")) {
                            200 => &answered,
                            503 => &refused,
                            _ => continue,
                        };
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let ends: Vec<_> = clients.into_iter().map(|one| one.join()).collect();
        is_over.store(true, Ordering::SeqCst);
        assert!(ends.iter().all(Result::is_ok));
    });
    assert_eq!(most.into_inner(), 3);
    let (answered, refused) = (answered.into_inner(), refused.into_inner());
    assert_eq!(answered + refused, 240);
    assert!(answered > 0);
    place.wait_for_counter("concurrency_running", 0);
    assert_eq!(place.counter("concurrency_begun"), answered as u64);
    assert_eq!(place.counter("limit_concurrency"), refused as u64);
    hob.stop();
}

#[test]
fn clients_beyond_those_that_are_counted_share_with_their_neighbours() {
    let (place, member) = (Place::new(), Member::new());
    let keys = "concurrency = { requests = 1, queue = 0, keys = 100 }";
    let hob = serve(&place, &member.route(keys));
    let begin = |client: &str| begin_from(&hob, client, "/app/a", "");
    let mut asked: Vec<_> = (0..100).map(|at| begin(&format!("192.0.2.{at}"))).collect();
    let mut inside: Vec<_> = (0..100).map(|_| member.next()).collect();
    assert_eq!(place.counter("limit_concurrency_keys"), 0);
    // One of these has the place of their network, and one of another network that one's.
    asked.push(begin("198.51.100.1"));
    inside.push(member.next());
    assert_eq!(status(&mut begin("198.51.100.2")), 429);
    asked.push(begin("203.0.113.1"));
    inside.push(member.next());
    assert_eq!(place.counter("limit_concurrency_keys"), 3);
    inside.into_iter().for_each(InService::answer);
    assert!(asked.iter_mut().all(|one| status(one) == 200));
    place.wait_for_counter("concurrency_running", 0);
    // Nobody is known any more, so there is room for their own.
    let mut again = ["198.51.100.1", "198.51.100.2"].map(begin);
    let inside = [member.next(), member.next()];
    assert_eq!(place.counter("limit_concurrency_keys"), 3);
    inside.into_iter().for_each(InService::answer);
    assert!(again.iter_mut().all(|one| status(one) == 200));
    hob.stop();
}

#[test]
fn limit_is_told_by_explain() {
    let place = Place::new();
    let hob = serve(
        &place,
        "concurrency = { requests = 8, by = \"cookie:sid\" }\nrate = \"10/s\"\n",
    );
    let told = text_of(&place.run(&["explain", "GET", "/hello.txt"]));
    for text in [
        "`rate`: 10 requests in 1s of one client, 10 at once; ",
        "`concurrency`: 8 requests in service at once with the same cookie \"sid\", 20 more wait \
         10s at most; ",
    ] {
        assert!(told.contains(text), "{told}");
    }
    hob.stop();
}

/// Has many requests wait for a member that answers one at a time, for two milliseconds at least.
fn crowd(place: &Place, hob: &Hob, member: &Member, queued_before: u64) {
    const COUNT: u64 = 30;
    let mut asked: Vec<_> = (0..COUNT).map(|_| begin(hob, "/app/a")).collect();
    let first = member.next();
    place.wait_for_counter("limit_program_concurrent", queued_before + COUNT - 1);
    let since = Instant::now();
    while since.elapsed().as_millis() < 3 {
        std::thread::yield_now();
    }
    first.answer();
    (1..COUNT).for_each(|_| member.next().answer());
    assert!(asked.iter_mut().all(|one| status(one) == 200));
}

fn wait_for_status(hob: &Hob, path: &str, wanted: u16) {
    let until = Instant::now() + DEADLINE;
    while ask_from_with(hob, "192.0.2.1", path, "").status != wanted {
        assert!(Instant::now() < until, "{path} never gives {wanted}");
        std::thread::yield_now();
    }
}

#[test]
fn lower_priorities_are_refused_while_requests_wait_too_long() {
    let (place, member) = (Place::new(), Member::new());
    let route = |path: &str, priority: &str| {
        format!(
            "[[site.route]]\npath = \"{path}\"\npriority = \"{priority}\"\n\
             respond = {{ body = \"{path}\" }}\n"
        )
    };
    let app = member.route("priority = \"high\"");
    let site = [
        app.replace(
            "connections = 1000",
            "connections = 1, queue = { max = 100 }",
        ),
        route("/low", "low"),
        route("/normal", "normal"),
        route("/high", "high"),
    ]
    .concat();
    let text = |top: &str| format!("threads = 2\n{top}{TOP}{site}");
    let hob = place.serve_text(&text(
        "overload = { queue = \"2ms\", retry_after = \"7s\" }\n",
    ));
    let ask = |path| ask_from_with(&hob, "192.0.2.1", path, "");
    assert_eq!(ask("/low").status, 200);
    let told = text_of(&place.run(&["explain", "GET", "/low"]));
    assert!(
        told.contains("this route is refused first while requests wait longer than 2ms"),
        "{told}"
    );
    crowd(&place, &hob, &member, 0);
    wait_for_status(&hob, "/low", 503);
    assert_eq!((ask("/normal").status, ask("/high").status), (200, 200));
    let refused = ask("/low?refused");
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("7"))
    );
    let record = record(&place, "/low?refused");
    let reason = "overload: requests wait too long, and routes of a higher priority come first";
    assert_eq!(
        (&record["reason"], &record["fault"]),
        (&reason.into(), &"server".into())
    );
    hob.wait_for("routes of priority low are refused");
    assert_eq!(place.counter("overload_level"), 1);
    crowd(&place, &hob, &member, 29);
    wait_for_status(&hob, "/normal", 503);
    assert_eq!((ask("/low").status, ask("/high").status), (503, 200));
    // The member's own route is of a high priority, and few come: that is no overload.
    wait_for_status(&hob, "/normal", 200);
    hob.wait_for("routes of priority normal answer again");
    // A config without it ends it.
    place.write("hob.toml", &text(""));
    let reload = place.run(&["reload"]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    wait_for_status(&hob, "/low", 200);
    assert_eq!(place.counter("overload_level"), 0);
    assert!(place.counter("overload_refused") >= 4);
    hob.stop();
}
