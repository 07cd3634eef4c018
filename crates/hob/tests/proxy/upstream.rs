//! Upstreams by name: shared by routes, with members of different shares, looked at and drained.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use serde_json::Value;

use crate::harness::client::call;
use crate::harness::over::Protocol;
use crate::harness::site::Site;
use crate::harness::{DEADLINE, Place};
use crate::peer::Taken;

/// A server that answers every request with its name, and those for `/health` with a status.
struct Member {
    port: u16,
    health: Arc<AtomicU16>,
    checks: Arc<AtomicUsize>,
}

impl Member {
    fn start(name: &'static str) -> Member {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let member = Member {
            port: listener.local_addr().unwrap().port(),
            health: Arc::new(AtomicU16::new(200)),
            checks: Arc::default(),
        };
        let (health, checks) = (Arc::clone(&member.health), Arc::clone(&member.checks));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (health, checks) = (Arc::clone(&health), Arc::clone(&checks));
                std::thread::spawn(move || {
                    let mut taken = Taken::new(stream);
                    while let Some(request) = taken.next() {
                        let is_check = request.starts_with("GET /health?deep=1 ");
                        let status = match is_check {
                            true => health.load(Ordering::SeqCst),
                            false => 200,
                        };
                        checks.fetch_add(usize::from(is_check), Ordering::SeqCst);
                        let head = format!("HTTP/1.1 {status} Told\r\nContent-Length: ");
                        let answer = format!("{head}{}\r\n\r\n{name}", name.len());
                        taken.write(answer.as_bytes());
                    }
                });
            }
        });
        member
    }

    fn to(&self) -> String {
        format!("to = \"http://127.0.0.1:{}\"", self.port)
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// A site with an upstream `app` of these keys and members, each with keys of its own. Two routes
/// ask it: `/app/*` and `/other/*`.
fn serve(keys: &str, members: &[(&Member, &str)]) -> Site {
    Site::serve(
        Place::new(),
        "",
        "proxy = \"upstream:app\"",
        &upstream(keys, members),
    )
}

fn upstream(keys: &str, members: &[(&Member, &str)]) -> String {
    let mut text = "[[site.route]]\npath = \"/other/*\"\nproxy = \"upstream:app\"\n".to_owned();
    text.push_str(&format!("[[upstream]]\nname = \"app\"\n{keys}\n"));
    for (member, keys) in members {
        text.push_str(&format!("[[upstream.member]]\n{}\n{keys}\n", member.to()));
    }
    text
}

/// Who answers so many requests.
fn counts(site: &Site, count: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for at in 0..count {
        let path = ["/app/", "/other/"][at % 2];
        let answer = site.get(path).answer;
        assert_eq!(answer.status, 200);
        *counts.entry(answer.text()).or_default() += 1;
    }
    counts
}

fn are<const COUNT: usize>(counts: [(&str, usize); COUNT]) -> BTreeMap<String, usize> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

/// What is told of a member of the first upstream once its state is this one.
fn wait_for_state(site: &Site, member: usize, state: &str) -> Value {
    wait_for_state_of(site, (0, member), state)
}

fn wait_for_state_of(site: &Site, (upstream, member): (usize, usize), state: &str) -> Value {
    let until = Instant::now() + DEADLINE;
    loop {
        let told =
            site.place.status()["programs"]["upstreams"][upstream]["members"][member].clone();
        if told["state"] == state {
            return told;
        }
        assert!(Instant::now() < until, "{told}");
    }
}

#[test]
fn routes_share_an_upstream_whose_members_have_different_shares() {
    let (a, b, c) = (Member::start("a"), Member::start("b"), Member::start("c"));
    let members = [(&a, "weight = 3"), (&b, ""), (&c, "backup = true")];
    let site = serve("balance = \"round_robin\"\nkeep = 4", &members);
    assert_eq!(counts(&site, 8), are([("a", 6), ("b", 2)]));
    assert_eq!(site.place.counter("upstream_connects"), 2);
    let told = site.place.status()["programs"]["upstreams"].clone();
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told[0]["name"], "app");
    assert_eq!(told[0]["members"][0]["weight"], 3);
    assert_eq!(told[0]["members"][2]["is_backup"], true);
    site.stop();
}

#[test]
fn member_drains_and_comes_back_by_command() {
    let (a, b) = (Member::start("a"), Member::start("b"));
    let site = serve("balance = \"round_robin\"", &[(&a, ""), (&b, "")]);
    let run = |verb: &str, name: &str, member: &str| {
        let output = site.place.run(&["upstream", verb, name, member]);
        let text = String::from_utf8(output.stdout).unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text + &error)
    };
    let (code, text) = run("drain", "app", &a.address());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("gets no new requests"), "{text}");
    assert_eq!(counts(&site, 4), are([("b", 4)]));
    // It outlives a reload that adds a member.
    let c = Member::start("c");
    let config = std::fs::read_to_string(site.place.path("hob.toml")).unwrap();
    let more = format!("{config}\n[[upstream.member]]\n{}\n", c.to());
    site.place.write("hob.toml", &more);
    assert!(site.place.run(&["reload"]).status.success());
    assert_eq!(counts(&site, 4), are([("b", 2), ("c", 2)]));
    assert_eq!(wait_for_state(&site, 0, "draining")["requests"], 0);
    assert_eq!(run("resume", "app", &a.address()).0, Some(0));
    assert_eq!(counts(&site, 6), are([("a", 2), ("b", 2), ("c", 2)]));
    let (code, text) = run("drain", "nobody", &a.address());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("those are app"), "{text}");
    let (code, text) = run("drain", "app", "10.0.0.1:1");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&b.address()), "{text}");
    site.stop();
}

#[test]
fn member_whose_check_fails_is_left_out_before_anybody_asks_it() {
    let (a, b) = (Member::start("a"), Member::start("b"));
    a.health.store(503, Ordering::SeqCst);
    let check = "health = { path = \"/health?deep=1\", every = \"10ms\", fall = 2, rise = 3 }";
    let site = serve(check, &[(&a, ""), (&b, "")]);
    let told = wait_for_state(&site, 0, "out");
    assert_eq!(told["why"], "its status is 503");
    site.hob
        .wait_for("it is left out, its check failed: its status is 503");
    assert_eq!(counts(&site, 10), are([("b", 10)]));
    a.health.store(204, Ordering::SeqCst);
    wait_for_state(&site, 0, "in");
    site.hob.wait_for("its check is well again");
    assert!(a.checks.load(Ordering::SeqCst) >= 5);
    site.stop();
}

#[test]
fn same_path_on_two_sites_is_two_upstreams() {
    let (a, b) = (Member::start("a"), Member::start("b"));
    let handler = |member: &Member| {
        let health = "health = { path = \"/health?deep=1\", every = \"10ms\" }";
        format!("proxy = {{ {}, {health} }}", member.to())
    };
    let first = format!(
        "names = [\"a.test\"]\n[[site.route]]\npath = \"/app/*\"\n{}\n[[site]]",
        handler(&a)
    );
    let site = Site::serve(Place::new(), "", &handler(&b), &first);
    let told = site.place.status()["programs"]["upstreams"].clone();
    let names = told.as_array().unwrap().iter();
    let names: Vec<_> = names.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["/app/* proxy", "a.test/app/* proxy"]);
    // Both are looked at.
    for member in [&a, &b] {
        member.health.store(500, Ordering::SeqCst);
    }
    wait_for_state_of(&site, (0, 0), "out");
    wait_for_state_of(&site, (1, 0), "out");
    site.stop();
}

#[test]
fn lone_member_whose_check_fails_is_a_503_at_once_unless_it_is_the_last_resort() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let nowhere = listener.local_addr().unwrap().port();
    drop(listener);
    for (last_resort, status) in [(false, 503), (true, 502)] {
        let text = format!(
            "[[upstream]]\nname = \"app\"\nto = \"http://127.0.0.1:{nowhere}\"\n\
             health = {{ every = \"10ms\" }}\nlast_resort = {last_resort}\n"
        );
        let site = Site::serve(Place::new(), "", "proxy = \"upstream:app\"", &text);
        let told = wait_for_state(&site, 0, "out");
        let why = told["why"].as_str().unwrap();
        assert!(why.contains("Connection refused"), "{told}");
        assert_eq!(site.get("/app/x").answer.status, status);
        site.stop();
    }
}

#[test]
fn client_stays_with_its_member_by_a_cookie_that_nobody_else_makes() {
    let (a, b) = (Member::start("a"), Member::start("b"));
    let keys = "balance = \"round_robin\"\nsticky = { cookie = \"node\" }";
    let site = serve(keys, &[(&a, ""), (&b, "")]);
    let ask = |cookie: &str| {
        let fields = format!("Cookie: x=1; {cookie}; y=2\r\n");
        let answer = call(site.port(), "GET", "/app/", &fields, b"").answer;
        let set = answer.header("set-cookie").map(str::to_owned);
        (answer.text(), set)
    };
    let (first, set) = ask("z=3");
    let set = set.unwrap();
    let attributes = set.trim_end_matches("; Secure");
    assert!(
        attributes.ends_with("; Path=/; HttpOnly; SameSite=Lax"),
        "{set}"
    );
    let is_secure = Protocol::tested().scheme() == "https";
    assert_eq!(attributes != set, is_secure, "{set}");
    let cookie = set.split(';').next().unwrap();
    assert!(cookie.starts_with("node="), "{set}");
    for _ in 0..6 {
        assert_eq!(ask(cookie), (first.clone(), None));
    }
    // Its own clients stay while it drains; others do not come.
    let address = if first == "a" { &a } else { &b }.address();
    let drained = site.place.run(&["upstream", "drain", "app", &address]);
    assert!(drained.status.success());
    assert_eq!(ask(cookie), (first.clone(), None));
    let (other, set) = ask("node=0123456789abcdef.0123456789abcdef");
    assert_ne!(other, first);
    assert!(set.is_some());
    site.stop();
}

#[test]
fn same_path_comes_to_the_same_member() {
    let members = [Member::start("a"), Member::start("b"), Member::start("c")];
    let all: Vec<_> = members.iter().map(|member| (member, "")).collect();
    let site = serve("balance = \"hash\"", &all);
    let of = |at: usize| site.get(&format!("/app/{at}")).answer.text();
    let first: Vec<_> = (0..40).map(of).collect();
    assert_eq!(first, (0..40).map(of).collect::<Vec<_>>());
    for name in ["a", "b", "c"] {
        assert!(first.iter().any(|one| one == name), "{first:?}");
    }
    site.stop();
}

#[test]
fn member_gets_no_more_requests_at_once_than_it_may_and_others_wait() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (begin, began) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let peer = std::thread::spawn(move || {
        for _ in 0..2 {
            let mut taken = Taken::new(listener.accept().unwrap().0);
            taken.next().unwrap();
            begin.send(()).unwrap();
            may_go_on.recv().unwrap();
            taken.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let text = format!(
        "[[upstream]]\nname = \"app\"\nqueue = {{ wait = \"100ms\" }}\n\
         [[upstream.member]]\nto = \"http://127.0.0.1:{port}\"\nconnections = 1\n"
    );
    let site = Site::serve(Place::new(), "", "proxy = \"upstream:app\"", &text);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| site.get("/app/").answer.status);
        began.recv().unwrap();
        assert_eq!(site.get("/app/late").answer.status, 503);
        assert_eq!(site.place.counter("limit_upstream_member"), 1);
        assert_eq!(
            site.record("/app/late")["reason"],
            "limits: upstream.member.connections: each member has as many requests as it may"
        );
        go_on.send(()).unwrap();
        assert_eq!(first.join().unwrap(), 200);
        let second = scope.spawn(|| site.get("/app/").answer.status);
        began.recv().unwrap();
        go_on.send(()).unwrap();
        assert_eq!(second.join().unwrap(), 200);
    });
    peer.join().unwrap();
    site.stop();
}
