//! Upgrades: the same process goes over to the program on disk, and no connection notices.

#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

use std::io::Read;
use std::process::Stdio;

use harness::client::{begin_download, get};
use harness::load::{Clients, Load};
use harness::{BIG_BYTES, Hob, Place, send_signal, text_of, wait_for_end};
use rustix::process::Signal;

fn copy_of_program(place: &Place) {
    place.replace_program(|path| {
        std::fs::copy(harness::program(), path).unwrap();
    });
}

fn upgraded(hob: &Hob, count: usize) {
    hob.wait_for_count("upgraded, the new server is process", count);
}

#[test]
fn upgrade_under_load_fails_no_request() {
    let place = Place::new();
    let hob = place.serve_config("");
    let (port, keeper, old) = (hob.port(), hob.pid(), hob.server());
    let load = Load::begin(port, Clients::OneRequestEach);
    load.go_on(50);
    copy_of_program(&place);
    hob.signal(Signal::USR2);
    upgraded(&hob, 1);
    wait_for_end(old);
    load.go_on(50);
    assert_eq!(load.end(), Vec::<String>::new());
    assert_eq!(hob.pid(), keeper);
    assert_ne!(hob.server(), old);
    let program = std::fs::read_link(format!("/proc/{keeper}/exe"));
    if let Ok(program) = program {
        assert_eq!(program, place.path("hob"), "not the replaced file");
    }
    hob.stop();
}

#[test]
fn clients_that_keep_their_connections_lose_no_request_either() {
    let place = Place::new();
    let hob = place.serve_config("");
    let load = Load::begin(hob.port(), Clients::KeepAlive);
    for round in 1..=3 {
        let old = hob.server();
        load.go_on(200);
        hob.signal(Signal::HUP);
        hob.wait_for_count("reloaded, generation", round);
        load.go_on(200);
        hob.signal(Signal::USR2);
        upgraded(&hob, round);
        load.go_on(200);
        wait_for_end(old);
    }
    assert_eq!(load.end(), Vec::<String>::new());
    hob.stop();
}

#[test]
fn everything_works_after_an_upgrade() {
    let place = Place::new();
    let socket = place.path("web.sock");
    let mut hob = place.serve_config(&format!(
        "[[listen]]\naddress = \"unix:{}\"\n",
        socket.display()
    ));
    let port = hob.port();
    let output = place.run(&["upgrade"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    assert!(text_of(&output).starts_with("upgraded, the new server is process "));
    hob.wait_for("old server ended");

    let output = place.run(&["reload"]);
    assert_eq!(text_of(&output), "reloaded, generation 3\n");
    let server = hob.server();
    send_signal(server, Signal::KILL);
    hob.wait_for_count("server ready", 3);
    assert_eq!(get(port, "/hello.txt").unwrap().status, 200);

    let output = place.run(&["upgrade"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    assert_eq!(
        hob.printed().matches("listening on http://").count(),
        1,
        "said once"
    );
    assert!(socket.exists());
    hob.signal(Signal::TERM);
    assert_eq!(hob.exit_code(), Some(0));
    assert!(!socket.exists() && !place.path("run/hob/control.sock").exists());
}

#[test]
fn downloads_go_on_over_two_upgrades() {
    let place = Place::new();
    let hob = place.serve_config("");
    let port = hob.port();
    let (mut first, first_headers) = begin_download(port, "/big.bin");
    let oldest = hob.server();
    hob.signal(Signal::USR2);
    upgraded(&hob, 1);
    let (mut second, second_headers) = begin_download(port, "/big.bin");
    hob.signal(Signal::USR2);
    upgraded(&hob, 2);
    // The old server may have taken the second as well: it listens until it hears of its end.
    assert!(hob.servers().len() >= 2 && hob.servers().contains(&oldest));
    assert_eq!(get(port, "/hello.txt").unwrap().status, 200);
    assert_eq!(first.read_body(&first_headers).unwrap().len(), BIG_BYTES);
    assert_eq!(second.read_body(&second_headers).unwrap().len(), BIG_BYTES);
    drop((first, second));
    wait_for_end(oldest);
    hob.wait_for_count("old server ended", 2);
    hob.stop();
}

#[test]
fn stop_drains_old_servers_as_well() {
    let place = Place::new();
    let mut hob = place.serve_config("");
    let (mut download, headers) = begin_download(hob.port(), "/big.bin");
    hob.signal(Signal::USR2);
    upgraded(&hob, 1);
    hob.signal(Signal::TERM);
    hob.wait_for("stopping");
    assert_eq!(download.read_body(&headers).unwrap().len(), BIG_BYTES);
    assert_eq!(hob.exit_code(), Some(0));
}

#[test]
fn program_that_refuses_is_reported_and_nothing_changes() {
    let place = Place::new();
    let hob = place.serve_config("");
    let server = hob.server();
    place.replace_program(|path| {
        std::fs::write(path, "#!/bin/sh\necho wrong machine >&2\nexit 3\n").unwrap();
    });
    hob.signal(Signal::USR2);
    let line = hob.wait_for("no upgrade");
    assert!(
        line.contains("wrong machine") && line.contains("exit code 3"),
        "{line}"
    );

    std::fs::remove_file(place.path("hob")).unwrap();
    hob.signal(Signal::USR2);
    let line = hob.wait_for_count("no upgrade", 2);
    assert!(line.contains("cannot run the new program"), "{line}");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert_eq!(hob.server(), server);
    hob.stop();
}

#[test]
fn config_that_the_new_program_does_not_understand_stops_the_upgrade() {
    let place = Place::new();
    let hob = place.serve_config("");
    let server = hob.server();
    place.write("hob.toml", "drian = \"10s\"");
    let output = place.run(&["upgrade"]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("everything runs on as before") && text.contains("drian"),
        "{text}"
    );
    assert_eq!(hob.server(), server);
    hob.stop();
}

#[test]
fn new_server_that_does_not_start_leaves_the_old_one_serving() {
    let place = Place::new();
    let hob = place.serve_config("");
    let (port, server) = (hob.port(), hob.server());
    // Only the server itself finds out that its threads need more descriptors.
    let mut command = place.command_of("prlimit".as_ref());
    command.args([&format!("--pid={}", hob.pid()), "--nofile=64:64"]);
    assert!(command.status().unwrap().success());
    place.write_config("threads = 100", "site");
    let output = place.run(&["upgrade"]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("the old one goes on") && text.contains("Too many open files"),
        "{text}"
    );
    assert_eq!(get(port, "/hello.txt").unwrap().status, 200);
    assert_eq!(hob.server(), server);

    place.write_config("threads = 1", "site");
    let output = place.run(&["upgrade"]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    wait_for_end(server);
    assert_eq!(get(port, "/hello.txt").unwrap().status, 200);
    hob.stop();
}

#[test]
fn signals_in_the_middle_of_an_upgrade_wait_for_its_end() {
    let place = Place::new();
    let hob = place.serve_config("");
    hob.signal(Signal::USR2);
    while !hob.printed().contains("upgraded, the new server") {
        hob.signal(Signal::HUP);
        std::thread::yield_now();
    }
    hob.wait_for("reloaded, generation");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    hob.stop();
}

/// The kernel counts descriptors under way by user, and lets a process send more only while they
/// are fewer than it may have open itself.
#[test]
fn what_others_of_the_user_have_under_way_delays_messages_and_loses_none() {
    let place = Place::new();
    let hob = place.serve_config("");
    let mut command = place.command_of("prlimit".as_ref());
    command.args([&format!("--pid={}", hob.pid()), "--nofile=32:32"]);
    assert!(command.status().unwrap().success());
    let mut command = place.command_of("python3".as_ref());
    command.args(["-c", HOLDER]).stdin(Stdio::piped());
    let mut holder = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut held = [0; 5];
    let mut said = holder.stdout.take().unwrap();
    said.read_exact(&mut held).unwrap();
    assert_eq!(&held, b"held\n");

    let upgrade = place.run(&["upgrade"]);
    assert_eq!(upgrade.status.code(), Some(1), "{}", text_of(&upgrade));
    let says = "have as many descriptors under way as this one may have open";
    assert!(text_of(&upgrade).contains(says), "{}", text_of(&upgrade));
    let mut reload = place.command().arg("reload").spawn().unwrap();
    hob.wait_for_count("descriptors for another process wait", 2);
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    assert!(reload.wait().unwrap().success());
    hob.wait_for("reloaded, generation");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    hob.stop();
}

/// Has 40 descriptors under way until its standard input ends: too many for that hob alone.
const HOLDER: &str = "import socket, sys
ours, theirs = socket.socketpair()
socket.send_fds(ours, [b'x'], [0] * 40)
print('held', flush=True)
sys.stdin.read()";

/// More sockets than one message between two processes can carry.
#[test]
fn hundreds_of_listeners_are_handed_over() {
    const COUNT: usize = 450;
    let place = Place::new();
    let hob = place.serve_config(&"[[listen]]\naddress = \"127.0.0.1:0\"\n".repeat(COUNT));
    hob.wait_for_count("listening on http://", COUNT + 1);
    let printed = hob.printed();
    let ports: Vec<u16> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("listening on http://127.0.0.1:"))
        .map(|port| port.parse().unwrap())
        .collect();
    assert_eq!(place.run(&["reload"]).status.code(), Some(0));
    assert_eq!(place.run(&["upgrade"]).status.code(), Some(0));
    hob.wait_for("old server ended");
    for port in ports {
        assert_eq!(get(port, "/hello.txt").unwrap().status, 200);
    }
    assert_eq!(
        hob.printed().matches("listening on http://").count(),
        COUNT + 1
    );
    hob.stop();
}
