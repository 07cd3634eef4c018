//! Reloads again and again while requests live through many of them: each has exactly one line in
//! the access logs, whose file every reload changes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use crate::harness::client::{Connection, begin_download, get};
use crate::harness::{BIG_BYTES, text_of};
use crate::site::Programs;
use crate::watch::{besieged, take_turn};

/// Reloads at least, and how many a long request lives through.
const RELOADS: usize = 8;
const LIVES_THROUGH: usize = 3;

/// Answers when it has a line of its request's body.
const SLOW: &str = "printf 'Content-Type: text/plain\\n\\n'\nread line\necho \"$line\"\n";
const ECHO: &str = include_str!("../tunnel/app.py");

#[test]
fn requests_that_live_through_many_reloads_have_one_line_each() {
    let _turn = take_turn();
    let programs = Programs::new()
        .with_sh("slow.cgi", SLOW)
        .with_mode("app.py", ECHO, 0o644);
    let place = &programs.place;
    let hob = place.serve_text(&config(&programs, 0));
    let (port, is_over) = (hob.port(), &AtomicBool::new(false));
    let (serial, reloads) = (&AtomicUsize::new(0), &Reloads::default());
    let count = std::thread::scope(|scope| {
        let kinds: [fn(u16, usize, &Reloads); 4] = [short, download, slow_program, web_socket];
        let clients: Vec<_> = kinds
            .into_iter()
            .chain(kinds)
            .map(|kind| {
                scope.spawn(move || {
                    while !is_over.load(Ordering::SeqCst) {
                        kind(port, serial.fetch_add(1, Ordering::SeqCst), reloads);
                    }
                })
            })
            .collect();
        let _over = Over(is_over, reloads);
        let goes_on = besieged();
        let mut count = 0;
        while count < RELOADS || goes_on() {
            count += 1;
            place.write("hob.toml", &config(&programs, count));
            let output = place.run(&["reload"]);
            assert!(output.status.success(), "{}", text_of(&output));
            // However busy the machine, each file has a request of its own.
            short(port, serial.fetch_add(1, Ordering::SeqCst), reloads);
            reloads.tell(|state| state.count += 1);
            assert!(!clients.iter().any(|client| client.is_finished()));
        }
        count
    });
    assert_eq!(place.counter("log_dropped"), 0);
    hob.stop();
    let asked = serial.load(Ordering::SeqCst);
    println!("{count} reloads, {asked} requests");
    let mut lines = vec![0; asked];
    for number in 0..=count {
        let log = std::fs::read_to_string(place.path(&format!("run/{number}.log"))).unwrap();
        for line in log.lines() {
            let asked = line
                .split_once("?n=")
                .and_then(|(_, rest)| rest.parse().ok());
            let asked: usize = asked.unwrap_or_else(|| panic!("{line}"));
            lines[asked] += 1;
        }
    }
    let wrong = lines.iter().enumerate().filter(|(_, count)| **count != 1);
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "requests without one line: {wrong:?}");
}

/// The log is another file for each number.
fn config(programs: &Programs, number: usize) -> String {
    let log = programs.place.path(&format!("run/{number}.log"));
    format!(
        "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"{}\"\n\
         format = \"{{status}} {{target}}\"\n[limits]\nbody_progress = \"10m\"\n\
         write_progress = \"10m\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[site]]\nroot = \"site\"\n[[site.route]]\npath = \"/cgi/*\"\n\
         cgi = {{ dir = \"cgi\", first_byte = \"10m\", total = \"10m\" }}\n\
         [[site.route]]\npath = \"/ws/*\"\nresident = {{ asgi = \"app:application\", \
         dir = \"cgi\", workers = {{ concurrency = 8, max = 1 }} }}\n",
        log.display()
    )
}

/// Reloads so far, for those who wait for more.
#[derive(Default)]
struct Reloads {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    count: usize,
    /// There are no more.
    is_over: bool,
}

impl Reloads {
    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.more.notify_all();
    }

    /// Waits until there are so many more.
    fn wait_for(&self, more: usize) {
        let state = self.state.lock().unwrap();
        let wanted = state.count + more;
        let lacks = |state: &mut State| state.count < wanted && !state.is_over;
        drop(self.more.wait_while(state, lacks).unwrap());
    }
}

/// Says that it is over, also when an assertion ends it.
struct Over<'a>(&'a AtomicBool, &'a Reloads);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.tell(|state| state.is_over = true);
    }
}

fn short(port: u16, number: usize, _: &Reloads) {
    let answer = get(port, &format!("/hello.txt?n={number}")).unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello\n"));
}

fn download(port: u16, number: usize, reloads: &Reloads) {
    let (mut connection, headers) = begin_download(port, &format!("/big.bin?n={number}"));
    reloads.wait_for(LIVES_THROUGH);
    assert_eq!(connection.read_body(&headers).unwrap().len(), BIG_BYTES);
}

fn slow_program(port: u16, number: usize, reloads: &Reloads) {
    let mut connection = Connection::open(port).unwrap();
    let target = format!("/cgi/slow.cgi?n={number}");
    connection.send_ask("POST", &target, "Content-Length: 5\r\n");
    reloads.wait_for(LIVES_THROUGH);
    connection.send(b"done\n").unwrap();
    let reply = connection.read_reply();
    let answer = &reply.answer;
    assert_eq!((answer.status, answer.text().as_str()), (200, "done\n"));
    assert!(reply.is_whole);
}

fn web_socket(port: u16, number: usize, reloads: &Reloads) {
    let mut connection = Connection::open(port).unwrap();
    let head = format!(
        "GET /ws/echo?n={number} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    connection.send(head.as_bytes()).unwrap();
    let (status, headers) = connection.read_head().unwrap();
    assert_eq!(status, 101, "{headers:?}");
    for _ in 0..LIVES_THROUGH {
        // A text, masked by zeros; and it comes back without a mask.
        connection.send(b"\x81\x85\0\0\0\0hello").unwrap();
        connection.read_until("\u{5}hello");
        reloads.wait_for(1);
    }
    // Its end, and the answer to that.
    connection.send(b"\x88\x80\0\0\0\0").unwrap();
    connection.read_to_end();
}
