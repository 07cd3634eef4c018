//! Access logs that a program reads: a real rotatelogs, and one that is killed.
#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

use std::time::Instant;

use harness::client::get;
use harness::{DEADLINE, Hob, Place, children_of, is_root, send_signal, status_line};
use rustix::process::Signal;

/// Serves with a log of queries that this program reads.
fn serve(place: &Place, pipe: &str) -> Hob {
    place.serve_config(&format!(
        "threads = 1\ndefault_log = \"piped\"\n[[log]]\nname = \"piped\"\npipe = {pipe}\nformat = \"{{target}}\"\n"
    ))
}

fn ask(hob: &Hob, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let answer = get(hob.port(), &format!("/hello.txt?{number}"));
        assert_eq!(answer.unwrap().status, 200);
    }
}

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers
        .map(|number| format!("/hello.txt?{number}\n"))
        .collect()
}

/// The program of the log: the server's only child.
fn reader(hob: &Hob) -> u32 {
    let until = Instant::now() + DEADLINE;
    loop {
        if let Some(pid) = children_of(hob.server()).first() {
            return *pid;
        }
        assert!(Instant::now() < until, "the server has started a program");
    }
}

#[test]
fn rotatelogs_has_every_line_when_the_server_has_ended() {
    let rotatelogs = "/usr/bin/rotatelogs";
    if !std::path::Path::new(rotatelogs).exists() {
        println!("skipped: there is no rotatelogs; `make setup` installs it");
        return;
    }
    let place = Place::new();
    place.folder("logs");
    let path = place.path("logs/access");
    let pipe = format!(
        "[\"{rotatelogs}\", \"-n\", \"3\", \"{}\", \"1M\"]",
        path.display()
    );
    let hob = serve(&place, &pipe);
    ask(&hob, 0..200);
    assert_eq!(place.counter("log_dropped"), 0);
    hob.stop();
    assert_eq!(std::fs::read_to_string(path).unwrap(), lines(0..200));
}

#[test]
fn program_that_is_killed_is_followed_by_another_and_no_line_is_lost() {
    let place = Place::new();
    place.folder("logs");
    let script = place.script("reader", "#!/bin/sh\nexec cat >> \"$1\"\n");
    let pipe = format!(
        "[\"{}\", \"{}\"]",
        script.display(),
        place.path("logs/got").display()
    );
    let hob = serve(&place, &pipe);
    let read = || std::fs::read_to_string(place.path("logs/got")).unwrap_or_default();
    let wait_for = |text: String| {
        let until = Instant::now() + DEADLINE;
        while read() != text {
            assert!(Instant::now() < until, "{}", read());
        }
    };
    ask(&hob, 0..20);
    wait_for(lines(0..20));
    let first = reader(&hob);
    if is_root() {
        let uid = |pid| status_line(pid, "Uid");
        assert_eq!(uid(first), uid(hob.server()), "it has the server's rights");
    }
    send_signal(first, Signal::KILL);
    ask(&hob, 20..40);
    wait_for(lines(0..40));
    assert_ne!(reader(&hob), first);
    assert_eq!(place.counter("log_dropped"), 0);
    // A reload has another program read what comes from then on.
    assert!(place.run(&["reload"]).status.success());
    ask(&hob, 40..60);
    hob.stop();
    let mut lines_read: Vec<String> = read().lines().map(str::to_owned).collect();
    // The two may write at the same time.
    lines_read.sort_by_key(|line| line[11..].parse::<u32>().unwrap());
    assert_eq!(lines_read.join("\n") + "\n", lines(0..60));
}

#[test]
fn config_with_a_program_that_is_not_there_is_refused() {
    let place = Place::new();
    place.write(
        "hob.toml",
        "[[log]]\nname = \"piped\"\npipe = [\"/no/such/program\"]\n[[site]]\nroot = \"site\"\n",
    );
    let output = place.run(&["check", "--config", "hob.toml"]);
    let text = harness::text_of(&output);
    assert!(!output.status.success(), "{text}");
    assert!(
        text.contains("there is no program /no/such/program"),
        "{text}"
    );
}
