//! Servers on one machine, the client on another: two processes that hear each other over the
//! loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use super::harness::{DEADLINE, Place, User, send_signal, text_of, wait_for_end};
use super::{SHORT, below, compare, has_nginx, left, result};

/// The servers' machine, as a process.
struct ServersMachine {
    child: Child,
    output: BufReader<ChildStdout>,
    address: SocketAddr,
    token: String,
}

impl ServersMachine {
    fn start(place: &Place) -> ServersMachine {
        let mut command = compare(place, &["--serve", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let rest = line.strip_prefix("listens on ").unwrap();
        let address = rest.split(';').next().unwrap().parse().unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
        let token = line.trim().strip_prefix("HOB_COMPARE_TOKEN=").unwrap();
        ServersMachine {
            child,
            output,
            address,
            token: token.split(' ').next().unwrap().to_owned(),
        }
    }

    /// A client of it.
    fn client(&self, place: &Place, arguments: &[&str]) -> Command {
        let mut command = compare(place, &["--target", &self.address.to_string()]);
        command
            .args(arguments)
            .env("HOB_COMPARE_TOKEN", &self.token);
        command
    }

    /// Reads on until a line ends so.
    fn wait_for(&mut self, end: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(end) {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "no {end}");
        }
    }

    /// Says a line and hears one.
    fn ask(&self, line: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        // It may close the connection before all was read.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    fn hello(&self, protocol: u32, version: &str, token: &str) -> String {
        self.ask(&format!(
            "{{\"ask\":\"hello\",\"protocol\":{protocol},\"version\":\"{version}\",\
             \"token\":\"{token}\"}}\n"
        ))
    }

    fn end(mut self) {
        send_signal(self.child.id(), Signal::TERM);
        assert!(self.child.wait().unwrap().success());
    }
}

fn finished(mut command: Command) -> (Output, String) {
    let output = command.output().unwrap();
    let text = text_of(&output);
    (output, text)
}

#[test]
fn client_measures_servers_that_another_process_starts() {
    let place = Place::new();
    let machine = ServersMachine::start(&place);
    let json = place.path("run/it.json");
    let json = json.to_str().unwrap();
    let more = ["--servers", "nginx", "--json", json];
    for _ in 0..2 {
        let (output, text) = finished(machine.client(&place, &[&SHORT[..], &more].concat()));
        assert_eq!(output.status.code(), Some(0), "{text}");
        let told = result(&place, json);
        let target = &told["target"];
        assert_eq!(target["address"], machine.address.to_string());
        assert!(
            target["round_trip_us"].as_f64().unwrap() > 0.0,
            "{target:#}"
        );
        // No network card is between them.
        assert_eq!(target["card_bits_per_second"], Value::Null);
        assert_eq!(target["lost"], Value::Null);
        assert!(
            text.contains("on another machine: servers at 127.0.0.1"),
            "{text}"
        );
        assert!(text.contains("servers' machine program: hob"), "{text}");
        for cell in told["rows"][0]["cells"].as_array().unwrap() {
            assert_eq!(cell["failed"], 0, "{cell:#}");
            assert_eq!(cell["not_measured"], Value::Null, "{cell:#}");
            assert_eq!(cell["cpu_us"]["n"], 2, "{cell:#}");
        }
        assert!(told["servers"][0]["configuration"].is_string(), "{told:#}");
    }
    std::fs::remove_file(json).unwrap();
    // Ended by its own last word and not by that of the process which heard it.
    assert_eq!(below(machine.child.id()), Vec::<u32>::new());
    machine.end();
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn whoever_does_not_know_the_token_or_is_another_hob_is_refused() {
    let place = Place::new();
    let machine = ServersMachine::start(&place);
    let mut wrong = machine.client(&place, &SHORT);
    wrong.env("HOB_COMPARE_TOKEN", "0".repeat(32));
    let (output, text) = finished(wrong);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("that is not the token which it printed"),
        "{text}"
    );

    let mut none = machine.client(&place, &SHORT);
    none.env_remove("HOB_COMPARE_TOKEN");
    let (output, text) = finished(none);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("give it in HOB_COMPARE_TOKEN"), "{text}");

    // Who does not know it hears nothing of versions.
    let told = machine.hello(9, "9.9.9", "wrong");
    assert!(
        told.contains("not the token") && !told.contains("9.9.9"),
        "{told}"
    );
    let told = machine.hello(1, "9.9.9", &machine.token);
    assert!(
        told.contains("the client hob 9.9.9 (protocol 1): both must be the same"),
        "{told}"
    );
    let told = machine.hello(9, "0.1.0", &machine.token);
    assert!(
        told.contains("(protocol 9): both must be the same"),
        "{told}"
    );
    // Nothing may come before, be unknown, or be longer than a line may.
    assert!(machine.ask("{\"ask\":\"ping\"}\n").contains("\"refused\""));
    assert_eq!(machine.ask("{\"ask\":\"shell\"}\n"), "");
    assert_eq!(machine.ask(&"x".repeat(100_000)), "");
    let (output, text) = finished(machine.client(&place, &SHORT));
    assert_eq!(output.status.code(), Some(0), "{text}");
    machine.end();
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn plan_that_makes_no_sense_is_refused_by_the_other_side() {
    let place = Place::new();
    let machine = ServersMachine::start(&place);
    for (arguments, wanted) in [
        (["--only", "nonsense"], "no row has nonsense in its id"),
        (["--servers", "iis"], "no server of that name is known"),
    ] {
        let (output, text) = finished(machine.client(&place, &arguments));
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted), "{text}");
    }
    machine.end();
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

/// A client in the middle of a comparison, and all that was started for it.
fn under_way(place: &Place, machine: &mut ServersMachine) -> (Child, Vec<u32>) {
    let only = ["--only", SHORT[1], "--servers", "nginx", "--round", "200ms"];
    let mut command = machine.client(place, &only);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let client = command.spawn().unwrap();
    machine.wait_for(" compares");
    let begun = std::time::Instant::now();
    let is_nginx = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "nginx")
    };
    let mut started = below(machine.child.id());
    while started.iter().filter(|pid| is_nginx(pid)).count() < 2 {
        assert!(begun.elapsed() < DEADLINE, "nginx does not run");
        std::thread::yield_now();
        started = below(machine.child.id());
    }
    (client, started)
}

#[test]
fn servers_of_a_client_that_dies_end_and_the_next_one_is_heard() {
    if !has_nginx() {
        return;
    }
    let place = Place::for_user(User::Same);
    let mut machine = ServersMachine::start(&place);
    let (mut client, started) = under_way(&place, &mut machine);
    send_signal(client.id(), Signal::KILL);
    client.wait().unwrap();
    for pid in started {
        wait_for_end(pid);
    }
    machine.wait_for(" has closed the connection");
    assert_eq!(left(&place), Vec::<PathBuf>::new());
    let (output, text) = finished(machine.client(&place, &SHORT));
    assert_eq!(output.status.code(), Some(0), "{text}");
    machine.end();
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn client_says_that_the_servers_machine_died_and_nothing_of_that_stays() {
    if !has_nginx() {
        return;
    }
    let place = Place::for_user(User::Same);
    let mut machine = ServersMachine::start(&place);
    let (client, started) = under_way(&place, &mut machine);
    send_signal(machine.child.id(), Signal::KILL);
    machine.child.wait().unwrap();
    let output = client.wait_with_output().unwrap();
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let said = format!("hob: --target: the servers' machine {} ", machine.address);
    assert!(text.contains(&said), "{text}");
    // What there was is told.
    assert!(
        text.contains("interrupted: rows at the end are missing"),
        "{text}"
    );
    for pid in started {
        wait_for_end(pid);
    }
    assert_eq!(left(&place), Vec::<PathBuf>::new());
}

#[test]
fn addresses_that_are_none_are_refused_with_what_to_write() {
    let place = Place::new();
    for (arguments, wanted, code) in [
        (&["--serve", "7070"][..], "as in 0.0.0.0:7070", 2),
        (&["--target", "host"], "write HOST:PORT", 2),
        (
            &["--serve", "192.0.2.1:0"],
            "--serve 192.0.2.1:0: cannot listen",
            1,
        ),
        (&["--token", "x"], "--target", 2),
        (
            &["--serve", "127.0.0.1:0", "--quick"],
            "cannot be used with",
            2,
        ),
        (
            &["--serve", "127.0.0.1:0", "--releases", "x", "--rival", "y"],
            "cannot be used with",
            2,
        ),
    ] {
        let (output, text) = finished(compare(&place, arguments));
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(wanted), "{text}");
    }
}
