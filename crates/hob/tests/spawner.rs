//! The process that starts programs: when there is one, what it may do, and what happens when it,
//! the server or the keeper goes.
#![allow(clippy::unwrap_used)]

mod harness;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use harness::client::{Connection, call};
use harness::{
    DEADLINE, Hob, Place, User, children_of, is_root, send_signal, status_line, text_of,
    wait_for_end,
};
use rustix::process::Signal;

const ROUTE: &str = "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n";
const HELLO: &str = "printf 'Content-Type: text/plain\\n\\nhello\\n'";
/// Answers and goes on until it is ended, as does its child.
const LASTING: &str = "printf 'Content-Type: text/plain\\n\\nbegun\\n'\n\
                       sleep 1000 > /dev/null 2>&1 &\necho $! > child\necho $$ > pid\nwait";
/// Answers, and says more when `go` is written to.
const OPEN: &str = "printf 'Content-Type: text/plain\\n\\nbegun\\n'\necho $$ > pid-open\n\
                    read line < go\necho \"$line\"";

fn place_for(user: User) -> Place {
    let place = Place::for_user(user);
    place.folder("cgi");
    for (name, text) in [("hello", HELLO), ("lasting", LASTING), ("open", OPEN)] {
        let path = format!("cgi/{name}");
        place.script(&path, &format!("#!/bin/sh\n{text}\n"));
    }
    place
}

fn place() -> Place {
    place_for(User::Unprivileged)
}

/// The body of a whole answer.
fn text(hob: &Hob, path: &str) -> String {
    let reply = call(hob.port(), "GET", path, "", b"");
    assert!(reply.answer.status == 200 && reply.is_whole, "{reply:?}");
    reply.answer.text()
}

fn hello(hob: &Hob) {
    assert_eq!(text(hob, "/cgi/hello"), "hello\n");
}

/// Waits for something that nobody tells.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < limit, "not so: {what}");
        std::thread::yield_now();
    }
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

/// The number in a file that a program writes.
fn number_in(place: &Place, name: &str) -> u32 {
    let mut number = None;
    until(name, || {
        let text = std::fs::read_to_string(place.path("cgi").join(name)).unwrap_or_default();
        number = text.strip_suffix('\n').map(|text| text.parse().unwrap());
        number.is_some()
    });
    number.unwrap()
}

/// Asks for something and waits for the beginning of its answer.
fn begin(hob: &Hob, path: &str) -> Connection {
    let mut connection = Connection::open(hob.port()).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.send(head.as_bytes()).unwrap();
    connection
}

/// Starts a program that lasts: its process and that of its child.
fn begin_lasting(place: &Place, hob: &Hob) -> (Connection, u32, u32) {
    let connection = begin(hob, "/cgi/lasting");
    (
        connection,
        number_in(place, "pid"),
        number_in(place, "child"),
    )
}

/// Begins an answer that stays open until `go` is written to; the program's process.
fn begin_open(place: &Place, hob: &Hob) -> (Connection, u32) {
    let fifo = place.path("cgi/go");
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    std::fs::set_permissions(&fifo, PermissionsExt::from_mode(0o666)).unwrap();
    let connection = begin(hob, "/cgi/open");
    (connection, number_in(place, "pid-open"))
}

#[test]
fn site_without_programs_has_no_spawner_until_a_reload_brings_one() {
    let place = place();
    let hob = place.serve_config("");
    assert!(hob.spawners().is_empty());
    place.write(
        "hob.toml",
        &format!("{}{ROUTE}", harness::config("", "site")),
    );
    let output = place.run(&["reload"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    hello(&hob);
    assert_eq!(place.status()["spawner"]["pid"], hob.spawner());
    hob.stop();
}

#[test]
fn killed_spawner_is_replaced_and_what_it_ran_ends() {
    let place = place();
    let hob = place.serve_config_with("", ROUTE);
    let (_connection, program, child) = begin_lasting(&place, &hob);
    let (mut open, opened) = begin_open(&place, &hob);
    let first = hob.spawner();
    let began = Instant::now();
    send_signal(first, Signal::KILL);
    // Whoever asks at this very moment may be told to come again; soon nobody is.
    until("programs start again", || outcome(hob.port()) == Some(true));
    assert!(began.elapsed().as_millis() < 1000, "{:?}", began.elapsed());
    let second = hob.spawner();
    assert_ne!(first, second);
    for pid in [program, opened] {
        until("the programs are gone", || !is_alive(pid));
    }
    until("what they started is gone", || !is_alive(child));
    // Its answer breaks off visibly, or says so if it had not begun.
    let reply = open.read_reply();
    assert!(reply.answer.status == 503 || !reply.is_whole, "{reply:?}");
    until("it is counted", || place.counter("programs_lost") >= 2);
    until("status knows", || {
        place.status()["spawner"]["pid"] == second
    });
    hob.stop();
}

/// Asks for hello: whether it came, or what tells that it did not. Nothing else may come.
fn outcome(port: u16) -> Option<bool> {
    let mut connection = Connection::open(port).ok()?;
    let head = "GET /cgi/hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    connection.send(head.as_bytes()).ok()?;
    // It breaks off visibly: by a reset before anything, or in the middle.
    let Ok((status, headers)) = connection.read_head() else {
        return Some(false);
    };
    let raw = connection.read_to_end();
    let is_chunked = headers.iter().any(|(_, value)| value == "chunked");
    let whole: &[u8] = if is_chunked {
        b"6\r\nhello\n\r\n0\r\n\r\n"
    } else {
        b"hello\n"
    };
    match status {
        200 if raw == whole => Some(true),
        200 => {
            assert!(whole.starts_with(&raw), "{}", String::from_utf8_lossy(&raw));
            Some(false)
        }
        502 | 503 => Some(false),
        other => panic!("{other}"),
    }
}

#[test]
fn spawner_killed_again_and_again_under_load_costs_only_what_it_ran() {
    let place = place();
    let hob = place.serve_config_with("", ROUTE);
    hello(&hob);
    let port = hob.port();
    let descriptors = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count);
    let before = descriptors(hob.server());
    let is_over = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
            std::thread::spawn(move || {
                let mut lost = 0;
                while !is_over.load(Ordering::SeqCst) {
                    match outcome(port) {
                        Some(true) => drop(answered.fetch_add(1, Ordering::SeqCst)),
                        Some(false) => lost += 1,
                        None => {}
                    }
                }
                lost
            })
        })
        .collect();
    for round in 2..10 {
        let spawner = hob.spawner();
        send_signal(spawner, Signal::KILL);
        hob.wait_for_count("spawner started", round);
        let enough = answered.load(Ordering::SeqCst) + 8;
        until("programs start again", || {
            answered.load(Ordering::SeqCst) >= enough
        });
    }
    is_over.store(true, Ordering::SeqCst);
    let lost: u32 = clients
        .into_iter()
        .map(|client| client.join().unwrap())
        .sum();
    // At most what ran at the moment of a kill: four clients, eight kills.
    assert!(lost <= 32, "{lost}");
    until("no program is left", || {
        children_of(hob.spawner()).is_empty()
    });
    until("no descriptor is left", || {
        match (descriptors(hob.server()), &before) {
            (Ok(now), Ok(before)) => now <= *before + 8,
            // The server's folder in /proc is root's.
            _ => true,
        }
    });
    hob.stop();
}

#[test]
fn server_that_is_killed_takes_its_programs_along_and_the_spawner_stays() {
    let place = place();
    let hob = place.serve_config_with("", ROUTE);
    let (_connection, program, child) = begin_lasting(&place, &hob);
    let spawner = hob.spawner();
    send_signal(hob.server(), Signal::KILL);
    hob.wait_for_count("server ready", 2);
    until("the program is gone", || {
        !is_alive(program) && !is_alive(child)
    });
    hello(&hob);
    assert_eq!(hob.spawner(), spawner);
    hob.stop();
}

#[test]
fn stop_leaves_no_process_behind() {
    let place = place();
    let hob = place.serve_config_with("drain = \"500ms\"\n", ROUTE);
    let (connection, program, child) = begin_lasting(&place, &hob);
    drop(connection);
    let (server, spawner) = (hob.server(), hob.spawner());
    hob.stop();
    for pid in [server, spawner, program, child] {
        until("it is gone", || !is_alive(pid));
    }
}

#[test]
fn keeper_that_is_killed_leaves_no_program_behind() {
    let place = place();
    let hob = place.serve_config_with("", ROUTE);
    let (_connection, program, child) = begin_lasting(&place, &hob);
    let (server, spawner) = (hob.server(), hob.spawner());
    send_signal(hob.pid(), Signal::KILL);
    for pid in [server, spawner, program] {
        until("it is gone", || !is_alive(pid));
    }
    until("what it started is gone", || !is_alive(child));
}

#[test]
fn upgrade_brings_a_new_spawner_and_the_old_one_ends_with_its_server() {
    let place = place();
    let hob = place.serve_config_with("", ROUTE);
    hello(&hob);
    let (old_server, old_spawner) = (hob.server(), hob.spawner());
    let (mut open, program) = begin_open(&place, &hob);
    let output = place.run(&["upgrade"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    hello(&hob);
    assert_eq!(hob.spawners().len(), 2, "{}", hob.printed());
    assert!(is_alive(old_spawner) && is_alive(program));
    std::fs::write(place.path("cgi/go"), "went on\n").unwrap();
    let reply = open.read_reply();
    assert!(reply.is_whole);
    assert_eq!(reply.answer.text(), "begun\nwent on\n");
    drop(open);
    wait_for_end(old_server);
    wait_for_end(old_spawner);
    assert_ne!(hob.spawner(), old_spawner);
    hello(&hob);
    hob.stop();
}

#[test]
fn upgrade_that_fails_keeps_the_spawner_that_was() {
    let place = place();
    let hob = place.serve_config_with("", ROUTE);
    let spawner = hob.spawner();
    place.replace_program(|path| std::fs::write(path, "#!/bin/sh\nexit 9\n").unwrap());
    hob.signal(Signal::USR2);
    hob.wait_for("no upgrade");
    hello(&hob);
    assert_eq!(hob.spawner(), spawner);
    hob.stop();
}

#[test]
fn status_says_whether_anything_separates_programs_from_the_server() {
    let place = place();
    let hob = place.serve_config_with("", ROUTE);
    let status = place.status();
    assert!(
        status["warnings"]
            .to_string()
            .contains("nothing separates them"),
        "{status}"
    );
    assert_eq!(status["server"]["scripts_separated"], false);
    hob.stop();
}

#[test]
fn spawner_is_small_and_hides_its_memory() {
    let place = place();
    let hob = place.serve_config_with("", ROUTE);
    hello(&hob);
    let spawner = hob.spawner();
    assert_eq!(status_line(spawner, "Name"), "hob-spawner");
    assert_eq!(status_line(spawner, "Threads"), "1");
    assert_eq!(status_line(spawner, "CapEff"), "0000000000000000");
    let anonymous = status_line(spawner, "RssAnon");
    let kib: u32 = anonymous.split(' ').next().unwrap().parse().unwrap();
    // The loader fills in tables of addresses, of all of the program: 2.6 MiB of a build that
    // is not optimised, a third of that in others.
    assert!(kib < 4608, "{anonymous}");
    if is_root() {
        let owner = std::os::unix::fs::MetadataExt::uid;
        let environment = std::fs::metadata(format!("/proc/{spawner}/environ")).unwrap();
        assert_eq!(owner(&environment), 0, "not dumpable");
    }
    hob.stop();
}

#[test]
fn started_as_root_programs_are_a_third_account() {
    if !is_root() {
        return println!("skipped: needs root");
    }
    let place = place_for(User::Same);
    place.script(
        "cgi/who",
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nid -u\n",
    );
    let control = place.path("run/hob/control.sock").display().to_string();
    let hob = place.serve_config_with(&format!("control = {control:?}\n"), ROUTE);
    let server = status_line(hob.server(), "Uid");
    let program = text(&hob, "/cgi/who");
    let program = program.trim();
    assert!(
        program != "0" && !server.starts_with(program),
        "{program} {server}"
    );
    assert_eq!(status_line(hob.spawner(), "Uid"), "0 0 0 0");
    let output = place.run(&["status", "--json", "--control", &control]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["warnings"], serde_json::json!([]), "{status}");
    hob.stop();
}

#[test]
fn program_of_an_unknown_user_or_of_root_is_an_error_of_the_config() {
    if !is_root() {
        return println!("skipped: needs root");
    }
    let place = place_for(User::Same);
    for user in ["no-such-user", "root"] {
        let text = format!("{}{ROUTE}", harness::config("", "site"));
        place.write("hob.toml", &format!("[program]\nuser = {user:?}\n{text}"));
        let output = place.run(&["serve", "--config", "hob.toml", "--control", "off"]);
        assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
        assert!(text_of(&output).contains("user"), "{}", text_of(&output));
    }
}

#[test]
fn limits_of_the_config_reach_the_program() {
    let place = place();
    let limited = "[program]\nnice = 9\numask = \"077\"\nenv = { LEVEL = \"general\", ONE = \"1\" }\n\
                   [program.rlimits]\nnofile = 50\ncpu = \"5s\"\n";
    let script = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\n\
                ulimit -n; ulimit -t; umask; cut -d' ' -f19 < /proc/$$/stat; echo $LEVEL $ONE\n";
    place.script("cgi/what", script);
    let route = "[[site.route]]\npath = \"/cgi/*\"\n\
                 cgi = { dir = \"cgi\", env = { LEVEL = \"own\" }, rlimits = { nofile = 60 } }\n";
    let hob = place.serve_config_with(limited, route);
    assert_eq!(text(&hob, "/cgi/what"), "60\n5\n0077\n9\nown 1\n");
    hob.stop();
}
