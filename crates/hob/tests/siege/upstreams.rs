//! Servers behind hob are killed, restarted one after the other, and exchanged by reloads while
//! they are asked.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};

use crate::harness::Place;
use crate::harness::client::{Connection, call};
use crate::harness::site::Site;
use crate::pool::until;
use crate::watch::{besieged, long, take_turn};

/// A server in a process of its own, which comes back at the same port.
struct Member {
    port: u16,
    log: PathBuf,
    /// Keeps the port while nobody listens.
    _place: OwnedFd,
    child: Child,
}

impl Member {
    fn start(place: &Place, name: &str) -> Member {
        let reserved = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_reuseport(&reserved, true).unwrap();
        bind(&reserved, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = SocketAddrV4::try_from(getsockname(&reserved).unwrap())
            .unwrap()
            .port();
        let log = place.path(name);
        Member {
            port,
            _place: reserved,
            child: run(port, &log),
            log,
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = run(self.port, &self.log);
    }

    fn to(&self) -> String {
        format!("\"http://127.0.0.1:{}\"", self.port)
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What it did that must not be done twice.
    fn done(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(port: u16, log: &std::path::Path) -> Child {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/siege/member.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(port.to_string()).arg(log);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// Clients that ask one after the other: every second request is a POST with an id of its own.
struct Askers {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    /// Of each method and status, how many.
    counts: Arc<Mutex<HashMap<(&'static str, u16), usize>>>,
    clients: Vec<JoinHandle<()>>,
}

impl Askers {
    fn begin(port: u16) -> Askers {
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let counts = Arc::default();
        let client = |number: usize| {
            let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
            let counts: Arc<Mutex<HashMap<_, usize>>> = Arc::clone(&counts);
            std::thread::spawn(move || {
                for at in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let method = ["GET", "POST"][at % 2];
                    let target = format!("/app/{number}-{at}");
                    let status = call(port, method, &target, "", b"").answer.status;
                    *counts.lock().unwrap().entry((method, status)).or_default() += 1;
                    AtomicUsize::fetch_add(&answered, 1, Ordering::SeqCst);
                }
            })
        };
        Askers {
            clients: (0..4).map(client).collect(),
            is_over,
            answered,
            counts,
        }
    }

    /// Waits until so many more were answered.
    fn go_on(&self, count: usize) {
        let target = self.answered.load(Ordering::SeqCst) + count;
        while self.answered.load(Ordering::SeqCst) < target
            && !self.clients.iter().any(JoinHandle::is_finished)
        {
            std::thread::yield_now();
        }
    }

    fn end(self) -> HashMap<(&'static str, u16), usize> {
        self.is_over.store(true, Ordering::SeqCst);
        for client in self.clients {
            client.join().unwrap();
        }
        std::mem::take(&mut *self.counts.lock().unwrap())
    }
}

fn config(members: &[&Member], keys: &str) -> String {
    let to: Vec<_> = members.iter().map(|member| member.to()).collect();
    let to = to.join(", ");
    format!("[[upstream]]\nname = \"app\"\nto = [{to}]\n{keys}\n")
}

fn serve(place: Place, upstream: &str) -> Site {
    Site::serve(place, "", "proxy = \"upstream:app\"", upstream)
}

fn none_twice(members: &[&Member], counts: &HashMap<(&'static str, u16), usize>) {
    let mut done = HashMap::<_, usize>::new();
    for target in members.iter().flat_map(|member| member.done()) {
        *done.entry(target).or_default() += 1;
    }
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let answered = counts.get(&("POST", 200)).copied().unwrap_or_default();
    assert!(done.len() >= answered, "{} of {answered}", done.len());
}

#[test]
fn killed_members_lose_nothing_that_may_be_asked_again_and_do_nothing_twice() {
    let _turn = take_turn();
    let place = Place::new();
    let (mut a, mut b) = (Member::start(&place, "a"), Member::start(&place, "b"));
    let site = serve(place, &config(&[&a, &b], "last_resort = true"));
    let askers = Askers::begin(site.port());
    let (goes_on, mut kills) = (besieged(), 0);
    while goes_on() {
        for member in [&mut a, &mut b] {
            askers.go_on(40);
            member.kill();
            askers.go_on(20);
            member.start_again();
            kills += 1;
        }
    }
    let counts = askers.end();
    println!("{kills} kills, {counts:?}");
    for (method, status) in counts.keys() {
        // What was sent to a member that died before its answer may have been done.
        let is_right = *status == 200 || *method == "POST" && *status == 502;
        assert!(is_right, "{method} {status}: {counts:?}");
    }
    none_twice(&[&a, &b], &counts);
    site.stop();
}

#[test]
fn members_that_drain_restart_one_after_the_other_without_a_failure() {
    let _turn = take_turn();
    let place = Place::new();
    let mut members = [Member::start(&place, "a"), Member::start(&place, "b")];
    let site = serve(place, &config(&[&members[0], &members[1]], ""));
    let askers = Askers::begin(site.port());
    let (goes_on, mut restarts) = (besieged(), 0);
    while goes_on() {
        for (index, member) in members.iter_mut().enumerate() {
            let told = |verb: &str| {
                let command = ["upstream", verb, "app", &member.address()];
                assert!(site.place.run(&command).status.success());
            };
            told("drain");
            until("it has finished what it had", || {
                let told = site.place.status();
                told["programs"]["upstreams"][0]["members"][index]["requests"] == 0
            });
            member.kill();
            askers.go_on(20);
            member.start_again();
            let command = ["upstream", "resume", "app", &member.address()];
            assert!(site.place.run(&command).status.success());
            askers.go_on(20);
            restarts += 1;
        }
    }
    let counts = askers.end();
    println!("{restarts} restarts, {counts:?}");
    assert!(
        counts.keys().all(|(_, status)| *status == 200),
        "{counts:?}"
    );
    none_twice(&[&members[0], &members[1]], &counts);
    site.stop();
}

/// A tunnel to a member that sends back what comes.
fn tunnel(port: u16) -> Connection {
    let mut tunnel = Connection::open(port).unwrap();
    let request = "GET /app/tunnel HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    tunnel.send(request.as_bytes()).unwrap();
    assert_eq!(tunnel.read_head().unwrap().0, 101);
    tunnel
}

#[test]
fn reloads_exchange_members_without_a_failure_and_leave_tunnels_open() {
    let (tunnel_count, reload_count) = match long() {
        Some(_) => (1_000, 100),
        None => (20, 8),
    };
    let _turn = take_turn();
    let place = Place::new();
    let (a, b) = (Member::start(&place, "a"), Member::start(&place, "b"));
    let lists = [config(&[&a, &b], ""), config(&[&b], ""), config(&[&a], "")];
    let site = serve(place, &lists[0]);
    let mut tunnels: Vec<_> = (0..tunnel_count).map(|_| tunnel(site.port())).collect();
    let text = std::fs::read_to_string(site.place.path("hob.toml")).unwrap();
    let askers = Askers::begin(site.port());
    for at in 1..=reload_count {
        let list = &lists[at % lists.len()];
        site.place.write("hob.toml", &text.replace(&lists[0], list));
        let reloaded = site.place.run(&["reload"]);
        assert!(reloaded.status.success(), "{reloaded:?}");
        askers.go_on(20);
    }
    let counts = askers.end();
    println!("{reload_count} reloads, {counts:?}");
    assert!(
        counts.keys().all(|(_, status)| *status == 200),
        "{counts:?}"
    );
    none_twice(&[&a, &b], &counts);
    for tunnel in &mut tunnels {
        tunnel.send(b"still here").unwrap();
        tunnel.read_until("still here");
    }
    drop(tunnels);
    site.stop();
}
