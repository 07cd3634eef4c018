//! Upgrades again and again while warm scripts are asked for: every request is answered whole.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;

use crate::harness::client::Connection;
use crate::harness::wait_for_end;
use crate::pool::until;
use crate::site::Programs;
use crate::watch::{OnDrop, besieged, family, take_turn};

/// Upgrades at least.
const UPGRADES: usize = 3;
/// Requests that are answered between two of them.
const ANSWERS: usize = 20;

const SHORT_PYTHON: &str = "print('Content-Type: text/plain\\n')\nprint('short')\n";
const SHORT_PERL: &str = "print \"Content-Type: text/plain\\n\\nshort\\n\";\n";
/// Many writes, so that an upgrade finds it between two of them.
const LONG_PYTHON: &str = "print('Content-Type: text/plain\\n', flush=True)\n\
    for number in range(200):\n    print('%0999d' % number, flush=True)\n";
const LONG_PERL: &str = "$| = 1;\nprint \"Content-Type: text/plain\\n\\n\";\n\
    printf \"%0999d\\n\", $_ for 0 .. 199;\n";

#[test]
fn upgrades_amid_warm_scripts_break_no_request() {
    let _turn = take_turn();
    let programs = Programs::new()
        .with("short.py", SHORT_PYTHON)
        .with("long.py", LONG_PYTHON)
        .with("short.pl", SHORT_PERL)
        .with("long.pl", LONG_PERL)
        .serve_route(
            "path = \"*.py\"\nwarm = { dir = \"cgi\", interpreter = \"python3\" }\n\
             [[site.route]]\npath = \"*.pl\"\nwarm = { dir = \"cgi\", interpreter = \"perl\" }\n",
        );
    let (hob, port) = (programs.hob(), programs.port());
    let asked = ["/short.py", "/long.py", "/short.pl", "/long.pl"];
    for path in asked {
        assert_eq!(ask(port, path, &mut None).unwrap(), 200, "{path}");
    }
    let (is_over, answered) = (&AtomicBool::new(false), &AtomicUsize::new(0));
    let (upgrades, outcomes) = std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for path in asked {
            for keeps in [false, true] {
                clients.push(scope.spawn(move || ask_until(is_over, answered, port, path, keeps)));
            }
        }
        let over = OnDrop(is_over);
        let goes_on = besieged();
        let (mut upgrades, mut old) = (0, Vec::new());
        while upgrades < UPGRADES || goes_on() {
            let before = answered.load(Ordering::SeqCst);
            until("requests are answered", || {
                assert!(!clients.iter().any(|client| client.is_finished()));
                answered.load(Ordering::SeqCst) >= before + ANSWERS
            });
            old.extend(hob.servers());
            hob.signal(Signal::USR2);
            upgrades += 1;
            hob.wait_for_count("upgraded, the new server is process", upgrades);
        }
        drop(over);
        let mut outcomes = BTreeMap::new();
        for outcome in clients.into_iter().flat_map(|one| one.join().unwrap()) {
            *outcomes.entry(outcome).or_insert(0) += 1;
        }
        // Each but the last has drained.
        old.into_iter().for_each(wait_for_end);
        (upgrades, outcomes)
    });
    println!("{upgrades} upgrades; answers: {outcomes:?}");
    for (path, outcome) in outcomes.keys() {
        assert_eq!(outcome, "200", "{path}: {outcomes:?}");
    }
    for path in asked {
        assert_eq!(ask(port, path, &mut None).unwrap(), 200, "{path}");
    }
    until("one server and one spawner are left", || {
        let names: Vec<_> = family(hob).into_iter().map(|one| one.name).collect();
        let count = |name: &str| names.iter().filter(|one| *one == name).count();
        (count("hob-server"), count("hob-spawner")) == (1, 1)
    });
    programs.stop();
}

/// What became of each request: its status, or how it broke off.
fn ask_until(
    is_over: &AtomicBool,
    answered: &AtomicUsize,
    port: u16,
    path: &'static str,
    keeps: bool,
) -> Vec<(&'static str, String)> {
    let (mut outcomes, mut kept) = (Vec::new(), None);
    while !is_over.load(Ordering::SeqCst) {
        let outcome = match ask(port, path, &mut kept) {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        if !keeps {
            kept = None;
        }
        answered.fetch_add(1, Ordering::SeqCst);
        outcomes.push((path, outcome));
    }
    outcomes
}

/// Asks over a connection that was kept, or another one. An answer with 200 is the right one.
fn ask(port: u16, path: &str, kept: &mut Option<Connection>) -> io::Result<u16> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Connection::open(port)?,
    };
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    connection.send(head.as_bytes())?;
    let answer = connection.read()?;
    if answer.status == 200 {
        let right = match path.starts_with("/short") {
            true => "short\n".to_owned(),
            false => (0..200).map(|number| format!("{number:0999}\n")).collect(),
        };
        assert!(answer.text() == right, "{path}: {}", answer.text());
    }
    if answer.header("connection") != Some("close") {
        *kept = Some(connection);
    }
    Ok(answer.status)
}
