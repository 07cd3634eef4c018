//! Tunnels of programs that stay, and WebSockets in them, over HTTP/1.1, the same over TLS, HTTP/2
//! and HTTP/3, opened by clients that share no line with hob (`tunnel/pipe.py`,
//! `tunnel/sockets.py`).
#![allow(clippy::unwrap_used)]

mod harness;

#[path = "tunnel/keyed.rs"]
mod keyed;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use harness::{Hob, Place, library, text_of};
use rustix::process::Signal;

// Cargo builds the library beside the tests because of this.
use hob as _;

const WAYS: [&str; 4] = ["h1", "h1s", "h2", "h3"];

/// The program behind both ports, with further keys of its table.
fn serve(place: &Place, top: &str, keys: &str) -> Hob {
    place.folder("cgi");
    library::compile("crates/hob/tests/tunnel/program.c", &place.path("cgi"));
    let keys = format!("run = [\"cgi/program\"]{keys}");
    serve_route(place, top, "/app/*", &keys)
}

fn serve_route(place: &Place, top: &str, path: &str, keys: &str) -> Hob {
    place.serve_text(&format!(
        "{top}\n[[listen]]\naddress = \"127.0.0.1:0\"\n\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n\
         [[site]]\nroot = \"site\"\n[[site.route]]\npath = \"{path}\"\n\
         resident = {{ workers = {{ concurrency = 8, max = 1 }}, {keys} }}\n"
    ))
}

/// Which carrier an ASGI application is reached by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Means {
    /// Pure Python, over a socket.
    Stream,
    /// The native part, through shared memory.
    Native,
}

/// The application with WebSockets; `None` where the native part cannot be built.
fn serve_app(place: &Place, means: Means) -> Option<Hob> {
    place.folder("cgi");
    place.write("cgi/app.py", include_str!("tunnel/app.py"));
    library::readable(&place.path("cgi/app.py"));
    let mut env = String::from("HOB_WEBSOCKET_MESSAGE_MAX = \"1500000\"");
    if means == Means::Native {
        let part = place.path("_native.abi3.so");
        let build = Command::new("python3")
            .arg(library::root().join("lang/python/build_native.py"))
            .arg(&part)
            .output()
            .unwrap();
        if !build.status.success() {
            println!("skipped: {}", text_of(&build));
            return None;
        }
        library::readable(&part);
        let library = library::copy(&place.path(""));
        let (part, library) = (part.display(), library.display());
        env += &format!(", HOB_NATIVE = \"{part}\", HOB_LIBRARY = \"{library}\"");
    }
    let keys = format!("asgi = \"app:application\", dir = \"cgi\", env = {{ {env} }}");
    Some(serve_route(place, "drain = \"20s\"", "/ws/*", &keys))
}

/// False, with a line that says why, where the clients cannot be had.
fn has_clients() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let install = Command::new("python3").arg(pipe()).arg("install").output();
        match install {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(text_of(&output)),
            Err(error) => Some(error.to_string()),
        }
    });
    if let Some(reason) = reason {
        println!("skipped: the clients cannot be installed: {reason}");
    }
    reason.is_none()
}

fn pipe() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tunnel/pipe.py")
}

fn client(hob: &Hob, file: &str, way: &str, cases: &[&str]) -> Command {
    let python = "/../../target/tunnels/bin/python";
    let port = match way {
        "h1" => hob.port(),
        _ => hob.tls_port(),
    };
    let mut command = Command::new(format!("{}{python}", env!("CARGO_MANIFEST_DIR")));
    command.arg(Path::new(pipe()).with_file_name(file));
    command.args([way, &port.to_string()]);
    command.args(cases);
    command
}

/// Runs cases to their end; the client must be content.
fn run(hob: &Hob, way: &str, cases: &[&str]) {
    run_file(hob, "pipe.py", way, cases);
}

fn run_file(hob: &Hob, file: &str, way: &str, cases: &[&str]) {
    let output = client(hob, file, way, cases).output().unwrap();
    let printed = hob.printed();
    assert!(
        output.status.success(),
        "{way} {cases:?}: {}\n{printed}",
        text_of(&output)
    );
}

#[test]
fn bytes_go_both_ways_until_both_sides_have_ended() {
    if !has_clients() {
        return;
    }
    for (carrier, ways) in [("shm", &WAYS[..]), ("stream", &["h1"])] {
        let place = Place::new();
        let hob = serve(&place, "", &format!(", carrier = \"{carrier}\""));
        for way in ways {
            run(&hob, way, &["echo", "about", "refused"]);
        }
        hob.stop();
    }
}

#[test]
fn each_side_hears_of_the_end_of_the_other() {
    if !has_clients() {
        return;
    }
    let place = Place::new();
    let hob = serve(&place, "", "");
    for (at, way) in WAYS.iter().enumerate() {
        run(&hob, way, &["gone"]);
        // The next case kills the worker, which must have told of this one by then.
        hob.wait_for_count("echo: the client has left", at + 1);
        run(&hob, way, &["killed"]);
        hob.wait_for_count("signal 9", at + 1);
        assert_eq!(place.counter("tunnels"), 2 * at as u64 + 2);
    }
    assert_eq!(place.counter("worker_crashes"), 4);
    hob.stop();
}

#[test]
fn program_may_end_its_direction_first() {
    if !has_clients() {
        return;
    }
    for (carrier, ways) in [("shm", &WAYS[..]), ("stream", &["h1", "h2"])] {
        let place = Place::new();
        let hob = serve(&place, "", &format!(", carrier = \"{carrier}\""));
        for (at, way) in ways.iter().enumerate() {
            let mut client = begin(&hob, "pipe.py", way, "half");
            hob.wait_for_count("half: 300004 bytes, then 0", at + 1);
            drop(client.stdin.take());
            assert!(client.wait().unwrap().success(), "{way}: {}", hob.printed());
        }
        run(&hob, "h2", &["over"]);
        assert_eq!(place.counter("worker_crashes"), 0);
        hob.stop();
    }
}

#[test]
fn silent_tunnel_is_broken_off() {
    if !has_clients() {
        return;
    }
    let place = Place::new();
    let hob = serve(&place, "", ", timeout = { tunnel = \"1s\" }");
    for way in ["h1", "h2"] {
        run(&hob, way, &["silent"]);
    }
    assert_eq!(place.counter("limit_resident_tunnel"), 2);
    hob.stop();
}

#[test]
fn slow_side_stops_the_other() {
    const BYTES_MAX: u64 = 24_000_000;
    if !has_clients() {
        return;
    }
    let place = Place::new();
    let hob = serve(&place, "", "");
    for (at, way) in WAYS.iter().enumerate() {
        run(&hob, way, &["slow", "deaf"]);
        let printed = hob.wait_for_count("flood: ", at + 1);
        let told = printed.rsplit("flood: ").next().unwrap();
        let written: u64 = told.split(' ').next().unwrap().parse().unwrap();
        assert!(written < BYTES_MAX, "{way}: {written} bytes were written");
        hob.wait_for_count("deaf: the client has left", at + 1);
    }
    hob.stop();
}

/// Starts a case, and waits until it is where it wants to be.
fn begin(hob: &Hob, file: &str, way: &str, case: &str) -> Child {
    let mut client = client(hob, file, way, &[case])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(client.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n", "{way}: {}", hob.printed());
    client
}

/// Starts a case, and stops the server within it.
fn stop_within(mut hob: Hob, file: &str, way: &str) {
    let mut client = begin(&hob, file, way, "drained");
    hob.signal(Signal::TERM);
    assert!(client.wait().unwrap().success(), "{way}: {}", hob.printed());
    assert_eq!(hob.exit_code(), Some(0), "{}", hob.printed());
}

#[test]
fn tunnels_end_when_the_server_does() {
    if !has_clients() {
        return;
    }
    for way in WAYS {
        let place = Place::new();
        let hob = serve(&place, "drain = \"2s\"", "");
        stop_within(hob, "pipe.py", way);
    }
}

/// Another hob, which passes everything on to this one.
fn in_front(place: &Place, behind: &Hob) -> Hob {
    in_front_of(place, behind.clear_port())
}

/// A hob that passes everything on to a port.
fn in_front_of(place: &Place, port: u16) -> Hob {
    place.serve_text(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n\n\
         [[site]]\n[[site.route]]\npath = \"/*\"\n\
         proxy = {{ to = \"http://127.0.0.1:{port}\", upgrade = [\"echo\", \"websocket\"] }}\n"
    ))
}

#[test]
fn tunnels_go_through_another_server() {
    const BYTES_MAX: u64 = 32_000_000;
    if !has_clients() {
        return;
    }
    let (place, own) = (Place::new(), Place::new());
    let behind = serve(&place, "", "");
    let hob = in_front(&own, &behind);
    for (at, way) in WAYS.iter().enumerate() {
        run(&hob, way, &["echo"]);
        let mut client = begin(&hob, "pipe.py", way, "half");
        behind.wait_for_count("half: 300004 bytes, then 0", at + 1);
        drop(client.stdin.take());
        assert!(client.wait().unwrap().success(), "{way}: {}", hob.printed());
        run(&hob, way, &["slow"]);
        let printed = behind.wait_for_count("flood: ", at + 1);
        let told = printed.rsplit("flood: ").next().unwrap();
        let written: u64 = told.split(' ').next().unwrap().parse().unwrap();
        assert!(written < BYTES_MAX, "{way}: {written} bytes were written");
        run(&hob, way, &["gone"]);
        behind.wait_for_count("echo: the client has left", at + 1);
        run(&hob, way, &["killed"]);
        behind.wait_for_count("signal 9", at + 1);
    }
    hob.stop();
    behind.stop();
}

#[test]
fn websockets_go_through_another_server() {
    if !has_clients() {
        return;
    }
    let (place, own) = (Place::new(), Place::new());
    let Some(behind) = serve_app(&place, Means::Stream) else {
        return;
    };
    let hob = in_front(&own, &behind);
    for way in WAYS {
        run_file(&hob, "sockets.py", way, &["echo", "limits"]);
    }
    hob.stop();
    behind.stop();
}

#[test]
fn websocket_whose_server_has_not_read_the_key_is_none() {
    if !has_clients() {
        return;
    }
    let place = Place::new();
    let hob = in_front_of(&place, keyed::start());
    for way in ["h2", "h3"] {
        run(&hob, way, &["keyed"]);
    }
    hob.stop();
}

#[test]
fn websockets_work_over_every_protocol() {
    if !has_clients() {
        return;
    }
    for (means, carrier) in [(Means::Stream, "stream"), (Means::Native, "shm")] {
        let place = Place::new();
        let Some(hob) = serve_app(&place, means) else {
            return;
        };
        for way in WAYS {
            run_file(&hob, "sockets.py", way, &["echo", "limits"]);
        }
        let status = place.status();
        let text = status.to_string();
        assert!(
            text.contains(&format!("\"carrier\":\"{carrier}\"")),
            "{text}"
        );
        stop_within(hob, "sockets.py", "h2");
    }
}
