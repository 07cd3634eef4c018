//! As many programs under way at once as a route may have.

use std::fs::OpenOptions;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::client::Connection;
use crate::site::Programs;
use crate::watch::{Rest, family, long, take_turn};

const COUNT: usize = 500;
const COUNT_LONG: usize = 2_000;
/// In the server: the connection, three pipes, the process, and one of them twice for a while.
const DESCRIPTORS_EACH: u64 = 6;
const DESCRIPTORS_BESIDES: u64 = 300;

/// Says that it runs, waits until the gate is closed, and ends its answer.
const WAITS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    const char *own = getenv("QUERY_STRING");
    int gate = open(getenv("GATE"), O_RDONLY);
    char byte;
    if (gate < 0) return 1;
    printf("Content-Type: text/plain\n\nup %s\n", own);
    fflush(stdout);
    if (read(gate, &byte, 1) != 0) return 2;
    printf("done %s\n", own);
    return 0;
}
"#;

#[test]
fn thousands_of_programs_at_once_are_answered_and_leave_nothing() {
    let _turn = take_turn();
    let Some(count) = allowed(long().map_or(COUNT, |_| COUNT_LONG)) else {
        return;
    };
    let programs = Programs::new().with_c("waits.cgi", WAITS);
    let gate = programs.place.path("run/gate");
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, mode).unwrap();
    let open_gate = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&gate)
            .unwrap()
    };
    let programs = programs.serve(&format!(
        "env = {{ GATE = \"{}\" }}, concurrent = {count}, queue = 0, first_byte = \"10m\"",
        gate.display()
    ));
    run(&programs, 4, open_gate());
    let rest = Rest::of(&programs);
    run(&programs, count, open_gate());
    rest.wait_for(programs.hob());
    assert_eq!(programs.place.counter("limit_program_queue"), 0);
    run(&programs, 4, open_gate());
    programs.stop();
}

/// Starts so many, closes the gate when all say that they run, and holds each to its own answer.
fn run(programs: &Programs, count: usize, gate: std::fs::File) {
    let port = programs.port();
    let mut connections: Vec<Connection> = (0..count)
        .map(|number| {
            let mut connection = Connection::open(port).unwrap();
            connection
                .send_get(&format!("/cgi/waits.cgi?{number}"))
                .unwrap();
            connection
        })
        .collect();
    for (number, connection) in connections.iter_mut().enumerate() {
        let (status, _) = connection.read_head().unwrap();
        assert_eq!(status, 200, "{number}");
        connection.read_until(&format!("up {number}\n"));
    }
    let running = family(programs.hob());
    let running = running
        .iter()
        .filter(|one| one.name == "waits.cgi" && !one.is_zombie);
    assert_eq!(running.count(), count);
    drop(gate);
    for (number, mut connection) in connections.into_iter().enumerate() {
        let rest = connection.read_to_end();
        let done = format!("done {number}\n");
        // The rest of the first chunk, a chunk, and the last.
        let expected = format!("\r\n{:x}\r\n{done}\r\n0\r\n\r\n", done.len());
        assert_eq!(String::from_utf8_lossy(&rest), expected);
    }
}

/// As many of these as the machine lets us have; says so where they are fewer, and none where they
/// would be too few to tell anything.
fn allowed(wanted: usize) -> Option<usize> {
    let hard = |limit: Rlimit| limit.maximum.unwrap_or(u64::MAX);
    let files = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: files.maximum,
        ..files
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let by_files = hard(files).saturating_sub(DESCRIPTORS_BESIDES) / DESCRIPTORS_EACH;
    let by_processes = getrlimit(Resource::Nproc).current.unwrap_or(u64::MAX) / 2;
    let most = by_files.min(by_processes).min(wanted as u64) as usize;
    if most < wanted {
        println!(
            "skipped: {wanted} programs at once: limits of files ({files:?}) and processes \
             ({by_processes}) allow {most}"
        );
    }
    (most >= 10).then_some(most)
}
