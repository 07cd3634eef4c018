//! No thread that serves waits for a disk: a file system hangs, and everything else goes on.
//!
//! The file system is a real one behind FUSE. Where it cannot be mounted, the tests say so in a
//! line and end.
#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

#[path = "disk/hanging.rs"]
mod hanging;
mod harness;

use std::time::{Duration, Instant};

use hanging::{Hanging, LARGE_BYTES, Operation, large_content, small_content};
use harness::client::{Answer, Connection};
use harness::{Hob, Place, text_of};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

/// Threads of the file pool that work for one root, and jobs that may wait for one.
const POOL_THREADS: usize = 16;
const POOL_QUEUE: usize = 1024;
const CLIENTS: u64 = 20;
/// A hundred answers from memory take a hundredth of this.
const PROMPT: Duration = Duration::from_secs(10);

/// Where the file system that hangs is.
#[derive(Clone, Copy, Debug)]
enum Mounted {
    /// It is the root of a route.
    AsRoot,
    /// On a folder below a root that does not hang.
    BelowRoot,
}

impl Mounted {
    fn folder(self) -> &'static str {
        match self {
            Mounted::AsRoot => "slow",
            Mounted::BelowRoot => "site/slow",
        }
    }
}

fn make_place() -> Place {
    let place = Place::new();
    for folder in ["slow", "site/slow", "site/other"] {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    for number in 0..50 {
        place.write(&format!("site/other/{number}.txt"), "other\n");
    }
    place
}

/// Mounts the file system; says in a line why it cannot be.
fn mount(place: &Place, folder: &str) -> Option<Hanging> {
    match Hanging::mount(&place.path(folder)) {
        Ok(hanging) => Some(hanging),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

fn serve(place: &Place, mounted: Mounted) -> Hob {
    let route = match mounted {
        Mounted::AsRoot => "[[site.route]]\npath = \"/slow/*\"\nfiles = \"slow\"\n",
        Mounted::BelowRoot => "",
    };
    place.write(
        "hob.toml",
        &format!(
            "threads = 1\ndefault_log = \"all\"\n[[log]]\nname = \"all\"\nfile = \"all.log\"\n\
             format = \"{{target}} {{status}} {{disk_wait_us}}\"\n\
             [[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n{route}"
        ),
    );
    place.serve(&["--config", "hob.toml"])
}

fn ask(connection: &mut Connection, path: &str) -> Answer {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    connection.send(head.as_bytes()).unwrap();
    connection.read().unwrap()
}

/// Requests for different files, none answered yet.
fn ask_without_reading(port: u16, paths: impl Iterator<Item = String>) -> Vec<Connection> {
    let ask = |path: String| {
        let mut connection = Connection::open(port).unwrap();
        connection.send_get(&path).unwrap();
        connection
    };
    paths.map(ask).collect()
}

/// Has the cache hold what `others_go_on` asks for.
fn warm(client: &mut Connection) {
    assert_eq!(ask(client, "/hello.txt").text(), "hello\n");
    for number in 0..50 {
        assert_eq!(
            ask(client, &format!("/other/{number}.txt")).text(),
            "other\n"
        );
    }
}

/// A hundred answers on the thread whose other requests hang.
fn others_go_on(client: &mut Connection) {
    let begun = Instant::now();
    for number in 0..50 {
        assert_eq!(ask(client, "/hello.txt").text(), "hello\n");
        assert_eq!(
            ask(client, &format!("/other/{number}.txt")).text(),
            "other\n"
        );
    }
    assert!(begun.elapsed() < PROMPT, "took {:?}", begun.elapsed());
}

/// Lines of the access log of requests below `/slow/`: status and microseconds waited.
fn waits(place: &Place) -> Vec<(u16, u64)> {
    let log = std::fs::read_to_string(place.path("all.log")).unwrap();
    let slow = log.lines().filter_map(|line| line.strip_prefix("/slow/"));
    slow.map(|line| {
        let mut words = line.split(' ').skip(1);
        let (status, wait) = (words.next().unwrap(), words.next().unwrap());
        (status.parse().unwrap(), wait.parse().unwrap())
    })
    .collect()
}

fn thread_goes_on_while(operation: Operation) {
    for mounted in [Mounted::AsRoot, Mounted::BelowRoot] {
        let place = make_place();
        let Some(hanging) = mount(&place, mounted.folder()) else {
            return;
        };
        let hob = serve(&place, mounted);
        let client = &mut Connection::open(hob.port()).unwrap();
        if let Mounted::BelowRoot = mounted {
            // What is not cached would wait behind the rest of its root.
            warm(client);
        }
        hanging.hang(&[operation]);
        let paths = (0..CLIENTS).map(|number| format!("/slow/{number}.txt"));
        let waiting = ask_without_reading(hob.port(), paths);
        hanging.wait_for_held(POOL_THREADS);
        others_go_on(client);
        hanging.release();
        for (mut connection, number) in waiting.into_iter().zip(0..) {
            let answer = connection.read().unwrap();
            assert_eq!(answer.status, 200, "{mounted:?}");
            assert_eq!(answer.body, small_content(number), "{mounted:?}");
        }
        hob.stop();
        let waits = waits(&place);
        assert_eq!(waits.len() as u64, CLIENTS, "{waits:?}");
        // Each waited while a hundred others were answered.
        assert!(
            waits.iter().all(|wait| wait.0 == 200 && wait.1 > 1000),
            "{waits:?}"
        );
    }
}

#[test]
fn thread_goes_on_while_look_ups_hang() {
    thread_goes_on_while(Operation::Lookup);
}

#[test]
fn thread_goes_on_while_attributes_hang() {
    thread_goes_on_while(Operation::GetAttributes);
}

#[test]
fn thread_goes_on_while_opens_hang() {
    thread_goes_on_while(Operation::Open);
}

#[test]
fn thread_goes_on_while_reads_hang() {
    thread_goes_on_while(Operation::Read);
}

#[test]
fn thread_goes_on_while_programs_are_looked_for_in_vain() {
    for mounted in [Mounted::AsRoot, Mounted::BelowRoot] {
        let place = make_place();
        let Some(hanging) = mount(&place, mounted.folder()) else {
            return;
        };
        let (path, dir) = match mounted {
            Mounted::AsRoot => ("/slow/*", "slow"),
            Mounted::BelowRoot => ("/cgi/*", "site"),
        };
        let hob = place.serve_text(&format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n\
             [[site.route]]\npath = \"{path}\"\ncgi = \"{dir}\"\n"
        ));
        let client = &mut Connection::open(hob.port()).unwrap();
        warm(client);
        hanging.hang(&[Operation::Lookup, Operation::GetAttributes]);
        let paths = (0..CLIENTS).map(|number| match mounted {
            Mounted::AsRoot => format!("/slow/{number}.txt/info"),
            Mounted::BelowRoot => format!("/cgi/slow/{number}.txt/info"),
        });
        let waiting = ask_without_reading(hob.port(), paths);
        hanging.wait_for_held(POOL_THREADS);
        others_go_on(client);
        hanging.release();
        // What is there is no program.
        for mut connection in waiting {
            assert_eq!(connection.read().unwrap().status, 403, "{mounted:?}");
        }
        hob.stop();
    }
}

#[test]
fn thread_goes_on_while_bodies_of_large_files_hang() {
    for mounted in [Mounted::AsRoot, Mounted::BelowRoot] {
        let place = make_place();
        let Some(hanging) = mount(&place, mounted.folder()) else {
            return;
        };
        let hob = serve(&place, mounted);
        let client = &mut Connection::open(hob.port()).unwrap();
        warm(client);
        hanging.hang(&[Operation::Read]);
        let path = |number: u64| format!("/slow/{number}.big");
        // As many as the pool has threads: each file is opened while reads of the others hang.
        let mut waiting = ask_without_reading(hob.port(), (0..POOL_THREADS as u64).map(path));
        // Their heads are there, what is behind them is not.
        let mut heads: Vec<_> = waiting
            .iter_mut()
            .map(|one| one.read_head().unwrap())
            .collect();
        hanging.wait_for_held(POOL_THREADS);
        // Behind them even an open has to wait.
        let late = (POOL_THREADS as u64..CLIENTS).map(path);
        waiting.extend(ask_without_reading(hob.port(), late));
        others_go_on(client);
        hanging.release();
        for one in &mut waiting[POOL_THREADS..] {
            heads.push(one.read_head().unwrap());
        }
        for ((connection, (status, headers)), number) in waiting.iter_mut().zip(heads).zip(0..) {
            assert_eq!(status, 200);
            let body = connection.read_body(&headers).unwrap();
            assert_eq!(body.len(), LARGE_BYTES);
            assert!(body == large_content(number), "{mounted:?}: {number}");
        }
        hob.stop();
        let waits = waits(&place);
        assert!(waits.iter().all(|wait| wait.1 > 1000), "{waits:?}");
    }
}

#[test]
fn thread_goes_on_while_a_root_hangs_that_was_mounted_over() {
    let place = make_place();
    place.write("slow/0.txt", "before\n");
    let hob = serve(&place, Mounted::AsRoot);
    let client = &mut Connection::open(hob.port()).unwrap();
    assert_eq!(ask(client, "/slow/0.txt").text(), "before\n");
    let Some(hanging) = mount(&place, "slow") else {
        return;
    };
    hanging.hang(&[
        Operation::Facts,
        Operation::GetAttributes,
        Operation::Lookup,
        Operation::Open,
        Operation::Read,
    ]);
    // Until the root is looked at again, the old one answers.
    let mut waiting = Connection::open(hob.port()).unwrap();
    waiting.send_get("/slow/1.txt").unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        others_go_on(client);
    }
    hanging.release();
    let answer = waiting.read().unwrap();
    assert!(
        answer.status == 404 || answer.body == small_content(1),
        "{} {}",
        answer.status,
        answer.text()
    );
    assert_eq!(ask(client, "/slow/0.txt").body, small_content(0));
    hob.stop();
}

fn status(place: &Place) -> Value {
    let output = place.run(&["status", "--json"]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text_of(&output)))
}

#[test]
fn who_runs_the_server_is_told_of_a_file_system_that_may_hang() {
    let place = make_place();
    let Some(hanging) = mount(&place, "slow") else {
        return;
    };
    let hob = serve(&place, Mounted::AsRoot);
    // It tells without asking that file system.
    hanging.hang(&[Operation::Lookup]);
    let folder = place.path("slow").display().to_string();
    let warnings = status(&place)["warnings"].to_string();
    let sentence = format!("{folder} stands on a file system (fuse");
    assert!(warnings.contains(&sentence), "{warnings}");
    let output = place.run(&["status", "--environment"]);
    let text = text_of(&output);
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with(&folder));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains("fuse") && line.contains("waited for"),
        "{line}"
    );
    hanging.release();
    hob.stop();
}

#[test]
fn full_queue_of_the_file_pool_is_answered_with_503_and_counted() {
    let limit = getrlimit(Resource::Nofile);
    let (current, maximum) = (limit.maximum, limit.maximum);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    if limit.maximum.is_some_and(|maximum| maximum < 4096) {
        println!("skipped: the limit of open files is too low for so many clients");
        return;
    }
    let place = make_place();
    let Some(hanging) = mount(&place, "slow") else {
        return;
    };
    let hob = serve(&place, Mounted::AsRoot);
    let client = &mut Connection::open(hob.port()).unwrap();
    hanging.hang(&[Operation::Lookup]);
    let count = (POOL_THREADS + POOL_QUEUE) as u64;
    let paths = (0..count).map(|number| format!("/slow/{number}.txt"));
    let waiting = ask_without_reading(hob.port(), paths);
    let begun = Instant::now();
    while status(&place)["file_pool"]["queued"] != POOL_QUEUE {
        assert!(begun.elapsed() < harness::DEADLINE, "{}", status(&place));
    }
    let refused = ask(client, &format!("/slow/{count}.txt"));
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Who asks for what is on its way already waits with the others.
    let mut joined = Connection::open(hob.port()).unwrap();
    joined.send_get("/slow/0.txt").unwrap();
    others_go_on(client);
    let counters = &status(&place)["counters"];
    assert_eq!(counters["limit_disk_queue"], 1, "{counters}");
    assert_eq!(counters["disk_refused"], 1, "{counters}");
    hanging.release();
    assert_eq!(joined.read().unwrap().body, small_content(0));
    for (mut connection, number) in waiting.into_iter().zip(0..) {
        let answer = connection.read().unwrap();
        assert_eq!((answer.status, answer.body), (200, small_content(number)));
    }
    hob.stop();
}

/// A request to the control socket with this object, not answered yet.
fn ask_control(place: &Place, method: &str, target: &str, body: &Value) -> Connection {
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    let body = match method {
        "GET" => String::new(),
        _ => body.to_string(),
    };
    let fields = format!("Content-Length: {}\r\n", body.len());
    connection.send_ask(method, target, &fields);
    connection.send(body.as_bytes()).unwrap();
    connection
}

#[test]
fn jobs_of_config_pages_that_hang_are_left_and_hold_up_neither_others_nor_a_stop() {
    let place = make_place();
    let Some(hanging) = mount(&place, "slow") else {
        return;
    };
    // Nothing but the end of the requests ends the drain.
    let mut hob = place.serve_config("drain = \"1h\"");
    let none = Value::Null;
    let shown = || {
        let answer = ask_control(&place, "GET", "/v1/config", &none).read_last("GET");
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    let path = shown()["files"][0]["path"].clone();
    hanging.hang(&[Operation::Lookup]);
    let check = |number: usize| {
        let text = format!("include = [\"slow/{number}.txt\"]\n");
        let body = serde_json::json!({ "path": path, "text": text });
        ask_control(&place, "POST", "/v1/config/check", &body)
    };
    let told_to_come_again = |mut asking: Vec<Connection>| {
        for connection in &mut asking {
            let answer = connection.read_last("POST");
            assert_eq!(answer.status, 503, "{}", answer.text());
        }
    };
    let first: Vec<_> = (0..POOL_THREADS).map(check).collect();
    hanging.wait_for_held(POOL_THREADS);
    told_to_come_again(first);
    // All threads that this lane may have still hang.
    assert_eq!(shown()["files"][0]["path"], path);
    assert_eq!(status(&place)["file_pool"]["left"], POOL_THREADS);
    let second: Vec<_> = (POOL_THREADS..2 * POOL_THREADS).map(check).collect();
    hanging.wait_for_held(2 * POOL_THREADS);
    hob.signal(rustix::process::Signal::TERM);
    hob.wait_for("stopping");
    told_to_come_again(second);
    // The kernel ends no process that waits for such a file system.
    hanging.release();
    assert_eq!(hob.exit_code(), Some(0), "{}", hob.printed());
}
