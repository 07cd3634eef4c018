//! Services (SRV) as several members, which come and go as a name server says.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use serde_json::Value;
use socket2::{Domain, Socket, Type};

use crate::harness::client::call;
use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place, text_of};
use crate::peer::{Taken, answer};
use crate::zone::{Service, Srv, Zone};

/// A server at 127.0.0.2, 3, 4 or 5, which answers with its name, for `/app/slow` once it may, and
/// for `/health` with its health.
struct Server {
    host: &'static str,
    port: u16,
    health: Arc<AtomicU16>,
    /// Connections to it.
    open: Arc<AtomicUsize>,
    began: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Server {
    fn start(host: &'static str) -> Server {
        let last = 2 + host.as_bytes()[0] - b'a';
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        Server::at(host, listener)
    }

    fn at(host: &'static str, listener: TcpListener) -> Server {
        let port = listener.local_addr().unwrap().port();
        let health = Arc::new(AtomicU16::new(200));
        let (begin, began) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let (own, open) = (Arc::clone(&health), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&open);
        let may_go_on = Arc::new(std::sync::Mutex::new(may_go_on));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (health, begin, stream) = (Arc::clone(&own), begin.clone(), stream.unwrap());
                let (may_go_on, open) = (Arc::clone(&may_go_on), Arc::clone(&counted));
                open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let mut taken = Taken::new(stream);
                    while let Some(request) = taken.next() {
                        if request.contains("/health") {
                            let status = health.load(Ordering::SeqCst);
                            let head =
                                format!("HTTP/1.1 {status} Told\r\nContent-Length: 0\r\n\r\n");
                            taken.write(head.as_bytes());
                            continue;
                        }
                        if request.contains("/app/slow") {
                            begin.send(()).unwrap();
                            may_go_on.lock().unwrap().recv().unwrap();
                        }
                        taken.write(&answer(host));
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Server {
            host,
            port,
            health,
            open,
            began,
            go_on,
        }
    }

    fn srv(&self, priority: u16, weight: u16) -> Srv {
        Srv {
            target: self.host,
            port: self.port,
            priority,
            weight,
        }
    }

    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

fn servers<const COUNT: usize>(servers: [Srv; COUNT]) -> Service {
    Service::Servers(servers.to_vec())
}

/// A site whose upstream `app` is the service, with these keys.
fn serve(zone: &Zone, keys: &str) -> Site {
    let text = format!(
        "[[upstream]]\nname = \"app\"\nto = \"srv:_app._tcp.test\"\n\
         resolver = \"127.0.0.1:{}\"\n{keys}\n",
        zone.port
    );
    Site::serve(Place::new(), "", "proxy = \"upstream:app\"", &text)
}

fn get(site: &Site) -> String {
    let answer = site.get("/app/").answer;
    assert_eq!(answer.status, 200);
    answer.text()
}

/// Who answers so many requests.
fn counts(site: &Site, count: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..count {
        *counts.entry(get(site)).or_default() += 1;
    }
    counts
}

fn are<const COUNT: usize>(counts: [(&str, usize); COUNT]) -> BTreeMap<String, usize> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

fn told(site: &Site) -> Value {
    site.place.status()["programs"]["upstreams"][0].clone()
}

/// What is told of the upstream once it is so.
fn wait_until(site: &Site, is_so: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + DEADLINE;
    loop {
        let told = told(site);
        if is_so(&told) {
            return told;
        }
        assert!(Instant::now() < until, "{told:#}");
    }
}

/// Waits until these are its members.
fn wait_for(site: &Site, servers: &[&Server]) -> Value {
    let mut wanted: Vec<_> = servers.iter().map(|one| one.address()).collect();
    wanted.sort();
    wait_until(site, |told| {
        let members = told["members"].as_array().unwrap().iter();
        let mut now: Vec<_> = members
            .map(|one| one["address"].as_str().unwrap())
            .collect();
        now.sort_unstable();
        now == wanted
    })
}

#[test]
fn servers_come_and_go_and_no_request_is_lost() {
    let [a, b, c] = ["a.test", "b.test", "c.test"].map(Server::start);
    let zone = Zone::start(servers([a.srv(1, 1), b.srv(1, 1)]));
    let site = serve(&zone, "keep = 4");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = || {
            let mut count = 0;
            while !is_over.load(Ordering::SeqCst) {
                get(&site);
                count += 1;
            }
            count
        };
        let clients = [scope.spawn(client), scope.spawn(client)];
        wait_for(&site, &[&a, &b]);
        // One is swapped for another, one goes, and two come back.
        zone.says(servers([b.srv(1, 1), c.srv(1, 1)]));
        wait_for(&site, &[&b, &c]);
        zone.says(servers([c.srv(1, 1)]));
        wait_for(&site, &[&c]);
        zone.says(servers([a.srv(1, 1), b.srv(1, 1), c.srv(1, 1)]));
        wait_for(&site, &[&a, &b, &c]);
        is_over.store(true, Ordering::SeqCst);
        for client in clients {
            assert!(client.join().unwrap() > 0);
        }
    });
    assert_eq!(site.place.counter("upstream_lookups_failed"), 0);
    site.stop();
}

#[test]
fn server_that_is_gone_finishes_what_it_has() {
    let [a, b] = ["a.test", "b.test"].map(Server::start);
    let zone = Zone::start(servers([a.srv(1, 1)]));
    let site = serve(&zone, "keep = 4");
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| site.get("/app/slow").answer);
        a.began.recv().unwrap();
        zone.says(servers([b.srv(1, 1)]));
        let told = wait_until(&site, |told| told["members"][0]["address"] == b.address());
        let gone = &told["members"][1];
        assert_eq!(
            (&gone["state"], &gone["requests"]),
            (&"draining".into(), &1.into())
        );
        assert_eq!(gone["why"], "srv:_app._tcp.test has it no more");
        assert_eq!(get(&site), "b.test");
        a.go_on.send(()).unwrap();
        assert_eq!(slow.join().unwrap().text(), "a.test");
    });
    wait_for(&site, &[&b]);
    // No connection to it rests.
    wait_until(&site, |_| a.open.load(Ordering::SeqCst) == 0);
    assert!(b.open.load(Ordering::SeqCst) > 0);
    site.stop();
}

#[test]
fn requests_are_shared_by_weight_among_those_of_the_lowest_priority() {
    let [a, b, c] = ["a.test", "b.test", "c.test"].map(Server::start);
    let zone = Zone::start(servers([a.srv(5, 30), b.srv(5, 10), c.srv(9, 90)]));
    let site = serve(&zone, "balance = \"round_robin\"");
    // 100 and 33 of 133.
    let counted = counts(&site, 133);
    assert_eq!(counted, are([("a.test", 100), ("b.test", 33)]));
    let told = told(&site);
    let member = |at: usize| {
        let member = &told["members"][at];
        (member["weight"].clone(), member["is_backup"].clone())
    };
    assert_eq!(member(0), (100.into(), false.into()));
    assert_eq!(member(1), (33.into(), false.into()));
    assert_eq!(member(2), (100.into(), true.into()));
    site.stop();
}

#[test]
fn higher_priority_is_asked_where_the_lower_ones_are_left_out() {
    // A port that nobody listens at, and nobody else can take meanwhile.
    let closed = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 2], 0));
    closed.bind(&any.into()).unwrap();
    let port = closed.local_addr().unwrap().as_socket().unwrap().port();
    let b = Server::start("b.test");
    let first = Srv {
        target: "a.test",
        port,
        priority: 1,
        weight: 1,
    };
    let zone = Zone::start(servers([first, b.srv(2, 9)]));
    let site = serve(&zone, "keep = 0\nfail = { pause = \"100ms\" }");
    // The first takes no connection: nothing was sent, and the second is asked.
    for _ in 0..5 {
        let posted = call(site.port(), "POST", "/app/", "", b"once");
        assert_eq!(posted.answer.text(), "b.test");
    }
    assert_eq!(site.place.counter("upstream_out"), 1);
    closed.listen(16).unwrap();
    let _a = Server::at("a.test", closed.into());
    let until = Instant::now() + DEADLINE;
    while get(&site) != "a.test" {
        assert!(Instant::now() < until, "it does not come back");
    }
    assert_eq!(counts(&site, 10), are([("a.test", 10)]));
    site.stop();
}

#[test]
fn those_known_last_are_asked_while_a_look_fails() {
    let [a, b] = ["a.test", "b.test"].map(Server::start);
    let zone = Zone::start(servers([a.srv(1, 1)]));
    let site = serve(&zone, "");
    assert_eq!(get(&site), "a.test");
    let failures = [
        (
            Service::Failure,
            "no name server answered for _app._tcp.test",
        ),
        (Service::Nothing, "_app._tcp.test has no servers"),
    ];
    for (failure, why) in failures {
        zone.says(failure);
        let told = wait_until(&site, |told| told["services"][0]["why"] == why);
        assert_eq!(told["services"][0]["servers"], 1);
        assert_eq!(get(&site), "a.test");
        zone.says(servers([a.srv(1, 1), b.srv(1, 1)]));
        let told = wait_for_found(&site);
        assert_eq!(told["services"][0]["servers"], 2);
        zone.says(servers([a.srv(1, 1)]));
        wait_for(&site, &[&a]);
    }
    assert!(site.place.counter("upstream_lookups_failed") >= 2);
    let text = text_of(&site.place.run(&["status", "--programs"]));
    assert!(text.contains("srv:_app._tcp.test: 1 found"), "{text}");
    site.hob.wait_for("not all of its servers are known");
    site.stop();
}

/// Waits until a look at the service succeeds again. That may take ten seconds.
fn wait_for_found(site: &Site) -> Value {
    wait_until(site, |told| told["services"][0]["why"].is_null())
}

#[test]
fn server_whose_address_nobody_says_stays_where_it_was_and_a_new_one_is_left_out() {
    let [a, b] = ["a.test", "b.test"].map(Server::start);
    let zone = Zone::start(servers([a.srv(1, 1)]));
    let site = serve(&zone, "");
    assert_eq!(get(&site), "a.test");
    zone.forgets(&["a.test", "b.test"]);
    zone.says(servers([a.srv(1, 1), b.srv(1, 1)]));
    let why = "no name server answered for b.test";
    let told = wait_until(&site, |told| told["services"][0]["why"] == why);
    assert_eq!(told["services"][0]["servers"], 1);
    assert_eq!(counts(&site, 5), are([("a.test", 5)]));
    zone.forgets(&[]);
    wait_for(&site, &[&a, &b]);
    site.stop();
}

#[test]
fn service_that_is_not_offered_has_no_members() {
    let a = Server::start("a.test");
    let zone = Zone::start(servers([a.srv(1, 1)]));
    let site = serve(&zone, "");
    assert_eq!(get(&site), "a.test");
    zone.says(Service::Unoffered);
    wait_for(&site, &[]);
    assert_eq!(site.get("/app/none").answer.status, 502);
    let record = site.record("/app/none");
    assert_eq!(record["reason"], "the other server cannot be reached");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("_app._tcp.test is not offered"), "{detail}");
    zone.says(servers([a.srv(1, 1)]));
    wait_for(&site, &[&a]);
    assert_eq!(get(&site), "a.test");
    site.stop();
}

#[test]
fn service_that_nobody_has_is_a_502_until_somebody_offers_it() {
    let a = Server::start("a.test");
    let zone = Zone::start(Service::Nothing);
    let site = serve(&zone, "");
    assert_eq!(site.get("/app/x").answer.status, 502);
    let record = site.record("/app/x");
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.contains("_app._tcp.test has no servers"), "{detail}");
    zone.says(servers([a.srv(1, 1)]));
    wait_for(&site, &[&a]);
    assert_eq!(get(&site), "a.test");
    site.stop();
}

#[test]
fn first_request_waits_no_longer_for_a_look_than_for_a_connection() {
    let zone = Zone::start(Service::Silence);
    let handler = format!(
        "proxy = {{ to = \"srv:_app._tcp.test\", resolver = \"127.0.0.1:{}\", \
         timeout = {{ connect = \"100ms\" }} }}",
        zone.port
    );
    let site = Site::serve(Place::new(), "", &handler, "");
    assert_eq!(site.get("/app/").answer.status, 504);
    assert_eq!(site.place.counter("limit_upstream_connect"), 1);
    site.stop();
}

#[test]
fn servers_beyond_the_limit_are_no_members() {
    let [a, b, c] = ["a.test", "b.test", "c.test"].map(Server::start);
    let zone = Zone::start(servers([c.srv(2, 9), b.srv(1, 1), a.srv(1, 5)]));
    let site = serve(&zone, "service_members = 2");
    let told = wait_for(&site, &[&a, &b]);
    let service = &told["services"][0];
    assert_eq!(
        (&service["servers"], &service["surplus"]),
        (&2.into(), &1.into())
    );
    assert!(site.place.counter("limit_upstream_service") >= 1);
    // A reload that allows more looks at once.
    let config = std::fs::read_to_string(site.place.path("hob.toml")).unwrap();
    let more = config.replace("service_members = 2", "service_members = 3");
    site.place.write("hob.toml", &more);
    assert!(site.place.run(&["reload"]).status.success());
    wait_for(&site, &[&a, &b, &c]);
    site.stop();
}

#[test]
fn servers_are_checked_from_when_they_come_and_drained_by_their_names() {
    let [a, b] = ["a.test", "b.test"].map(Server::start);
    let zone = Zone::start(servers([a.srv(1, 1)]));
    let check = "health = { path = \"/health\", every = \"10ms\", fall = 1 }";
    let site = serve(&zone, check);
    assert_eq!(get(&site), "a.test");
    b.health.store(503, Ordering::SeqCst);
    zone.says(servers([a.srv(1, 1), b.srv(1, 1)]));
    let told = wait_until(&site, |told| told["members"][1]["state"] == "out");
    assert_eq!(told["members"][1]["why"], "its status is 503");
    assert_eq!(counts(&site, 5), are([("a.test", 5)]));
    b.health.store(200, Ordering::SeqCst);
    wait_until(&site, |told| told["members"][1]["state"] == "in");
    let drained = site.place.run(&["upstream", "drain", "app", &a.address()]);
    assert_eq!(drained.status.code(), Some(0), "{}", text_of(&drained));
    assert_eq!(counts(&site, 5), are([("b.test", 5)]));
    site.stop();
}

#[test]
fn reload_keeps_the_servers_and_what_is_known_of_them() {
    let a = Server::start("a.test");
    let zone = Zone::start(servers([a.srv(1, 1)]));
    let site = serve(&zone, "keep = 4");
    assert_eq!(counts(&site, 3), are([("a.test", 3)]));
    zone.says(Service::Silence);
    let config = std::fs::read_to_string(site.place.path("hob.toml")).unwrap();
    site.place
        .write("hob.toml", &config.replace("keep = 4", "keep = 5"));
    assert!(site.place.run(&["reload"]).status.success());
    assert_eq!(get(&site), "a.test");
    assert_eq!(told(&site)["members"][0]["answers"], 4);
    assert_eq!(site.place.counter("upstream_connects"), 1);
    // Looks go on, and those of the upstream before do not.
    let asked = zone.asked();
    zone.says(servers([a.srv(1, 1)]));
    wait_until(&site, |_| zone.asked() > asked + 2);
    site.stop();
}

#[test]
fn member_beside_a_service_has_its_share_and_a_backup_waits() {
    let [a, b, c] = ["a.test", "b.test", "c.test"].map(Server::start);
    let zone = Zone::start(servers([a.srv(1, 1)]));
    let members = format!(
        "balance = \"round_robin\"\n\
         [[upstream.member]]\nto = \"http://127.0.0.3:{}\"\nweight = 3\n\
         [[upstream.member]]\nto = \"http://127.0.0.4:{}\"\nbackup = true\n",
        b.port, c.port
    );
    let site = serve(&zone, &members);
    wait_until(&site, |told| told["services"][0]["servers"] == 1);
    assert_eq!(counts(&site, 8), are([("a.test", 2), ("b.test", 6)]));
    zone.says(Service::Unoffered);
    wait_until(&site, |told| told["services"][0]["servers"] == 0);
    assert_eq!(counts(&site, 4), are([("b.test", 4)]));
    let drained = format!("127.0.0.3:{}", b.port);
    assert!(
        site.place
            .run(&["upstream", "drain", "app", &drained])
            .status
            .success()
    );
    assert_eq!(counts(&site, 4), are([("c.test", 4)]));
    site.stop();
}
