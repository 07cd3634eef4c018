//! Memory of the server while clients take much, or nothing: it stays what it was.
//!
//! `bench/memory` does the same with ten gigabytes and a thousand readers.
#![allow(clippy::unwrap_used)]

mod harness;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use harness::client::{Connection, get};
use harness::{DEADLINE, Hob, Place, status_line, text_of};

const DOWNLOAD_BYTES: u64 = 200_000_000;
/// What aioquic takes in two seconds.
const DOWNLOAD_H3_BYTES: u64 = 20_000_000;
/// How often the server's memory is looked at in between.
const LOOK_BYTES: u64 = 4_000_000;
const READER_COUNT: usize = 100;
/// Above what all connections, threads and caches hold anyway.
const DOWNLOAD_GROWTH_BYTES_MAX: u64 = 12 << 20;
/// Held for a reader at most, by a server without optimisation and with its room to spare.
const READER_BYTES_MAX: u64 = 160 << 10;
/// Of a burst that is over.
const BURST_LEFT_BYTES_MAX: u64 = 12 << 20;
/// Of 900 connections, each of which has some 23 KiB while it lasts and for a moment after.
const ENDED_GROWTH_BYTES_MAX: u64 = 8 << 20;

const CONFIG: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[listen]]\naddress = \
    \"127.0.0.1:0\"\ntls = true\n\n[[site]]\nroot = \"site\"\n";

fn serve(place: &Place) -> Hob {
    for (name, bytes) in [("long.bin", DOWNLOAD_BYTES), ("h3.bin", DOWNLOAD_H3_BYTES)] {
        place.write(&format!("site/{name}"), "");
        let file = std::fs::File::options();
        let file = file
            .clone()
            .write(true)
            .open(place.path(&format!("site/{name}")));
        file.unwrap().set_len(bytes).unwrap();
    }
    let hob = place.serve_text(CONFIG);
    hob.wait_for("listening on https://");
    hob
}

/// What is the server's own: no files, no program.
fn memory_of(hob: &Hob) -> u64 {
    memory_of_process(hob.server())
}

fn memory_of_process(pid: u32) -> u64 {
    let line = status_line(pid, "RssAnon");
    let kib = line.strip_suffix(" kB").unwrap().parse::<u64>().unwrap();
    kib << 10
}

fn curl(hob: &Hob, protocol: &str, path: &str) -> Command {
    let address = match protocol {
        "h1" => format!("http://127.0.0.1:{}{path}", hob.port()),
        _ => format!("https://127.0.0.1:{}{path}", hob.tls_port()),
    };
    let mut command = Command::new("curl");
    command.args(["-q", "-sSk", "--noproxy", "*"]);
    command.arg(match protocol {
        "h2" => "--http2",
        _ => "--http1.1",
    });
    command.arg(address);
    command
}

/// The most memory the server has while a command prints what it fetches, which must be so much.
fn peak_while(hob: &Hob, mut command: Command, bytes: u64) -> u64 {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let (mut piece, mut count, mut next_look) = (vec![0; 1 << 20], 0, 0);
    let mut peak = 0;
    loop {
        if count >= next_look {
            peak = peak.max(memory_of(hob));
            next_look += LOOK_BYTES;
        }
        match output.read(&mut piece).unwrap() as u64 {
            0 => break,
            len => count += len,
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(count, bytes);
    peak.max(memory_of(hob))
}

/// False, with a line that says why, where the client for HTTP/3 cannot be had.
fn has_aioquic() -> bool {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/h3/client.py");
    let install = Command::new("python3")
        .args([client, "install"])
        .output()
        .unwrap();
    if !install.status.success() {
        println!(
            "skipped: over HTTP/3: aioquic cannot be installed: {}",
            text_of(&install)
        );
    }
    install.status.success()
}

fn aioquic(script: &str) -> Command {
    let python = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/aioquic/bin/python"
    );
    let mut command = Command::new(python);
    command.arg(format!("{}/tests/{script}", env!("CARGO_MANIFEST_DIR")));
    command
}

/// A frame of HTTP/2, as a client sends it.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A field without a table's help.
fn literal(name: &str, value: &str, block: &mut Vec<u8>) {
    block.extend([0, name.len() as u8]);
    block.extend(name.as_bytes());
    match value.len() {
        len @ ..127 => block.push(len as u8),
        len => {
            let rest = len - 127;
            block.extend([127, rest as u8 | 0x80, (rest >> 7) as u8]);
        }
    }
    block.extend(value.as_bytes());
}

/// A long cookie, and pieces of it that never follow what has come of it so far.
fn scattered_cookie() -> Vec<u8> {
    let mut block = Vec::new();
    let usual = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "h"),
        (":path", "/big.bin"),
    ];
    for (name, value) in usual {
        literal(name, value, &mut block);
    }
    literal("cookie", &"c".repeat(12_000), &mut block);
    for _ in 0..90 {
        literal("x", "", &mut block);
        literal("cookie", "a", &mut block);
    }
    block
}

#[test]
fn cookies_in_pieces_are_held_as_counted_and_no_head_beyond_the_budget_of_its_connection() {
    const STREAMS: u32 = 100;
    let place = Place::new();
    let hob = place.serve_config("");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    let before = memory_of(&hob);
    let mut connection = TcpStream::connect(("127.0.0.1", hob.port())).unwrap();
    let mut input = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // No window: what is asked for is never over.
    input.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    let block = scattered_cookie();
    for number in 0..STREAMS {
        input.extend(frame(1, 5, 2 * number + 1, &block));
    }
    connection.write_all(&input).unwrap();
    // Each is answered, or reset as one that may come again.
    let (mut answered, mut refused) = (0, 0);
    while answered + refused < STREAMS {
        let mut header = [0; 9];
        connection.read_exact(&mut header).unwrap();
        let len = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; len as usize];
        connection.read_exact(&mut payload).unwrap();
        match header[3] {
            1 => answered += 1,
            3 if payload == [0, 0, 0, 7] => refused += 1,
            4 | 8 => {}
            kind => panic!("a frame of kind {kind}"),
        }
    }
    let grown = memory_of(&hob).saturating_sub(before);
    assert!(grown < 6 << 20, "{grown} for {} received", input.len());
    // Those that a connection has room for are answered, side by side.
    assert!(answered >= 30, "{answered}");
    assert_eq!(place.counter("limit_connection_heads"), u64::from(refused));
    drop(connection);
    hob.stop();
}

/// A connection whose requests hold as many bytes of heads as one may.
fn connection_full_of_heads(hob: &Hob) -> TcpStream {
    let mut connection = TcpStream::connect(("127.0.0.1", hob.port())).unwrap();
    let mut input = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    input.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    let block = scattered_cookie();
    for number in 0..30 {
        input.extend(frame(1, 5, 2 * number + 1, &block));
    }
    connection.write_all(&input).unwrap();
    let mut answered = 0;
    while answered < 30 {
        let mut header = [0; 9];
        connection.read_exact(&mut header).unwrap();
        let len = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        connection.read_exact(&mut vec![0; len as usize]).unwrap();
        answered += u32::from(header[3] == 1);
    }
    connection
}

/// Bytes of heads that do not end, of clients that stay.
#[test]
fn heads_that_do_not_end_are_held_once() {
    const CLIENTS: usize = 200;
    let place = Place::new();
    let hob = place.serve_config("");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    let before = memory_of(&hob);
    let mut head = "GET / HTTP/1.1\r\n".to_owned();
    head.extend((0..80).map(|_| format!("x: {}\r\n", "y".repeat(700))));
    let came = (CLIENTS * head.len()) as u64;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = TcpStream::connect(("127.0.0.1", hob.port())).unwrap();
            client.write_all(head.as_bytes()).unwrap();
            client
        })
        .collect();
    // Threads read one after the other what has come: in the end all of it is held.
    let until = Instant::now() + DEADLINE;
    let grown = || memory_of(&hob).saturating_sub(before);
    while grown() < came {
        assert!(Instant::now() < until, "{} for {came} received", grown());
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    }
    let grown = grown();
    assert!(grown < 2 * came, "{grown} for {came} received");
    drop(clients);
    hob.stop();
}

/// Heads of programs without an end, interim ones among them: the program is ended.
#[test]
fn heads_of_programs_that_do_not_end_are_refused_and_not_kept() {
    let place = Place::new();
    for (name, head) in [
        ("fields", "X-A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"),
        ("one", ""),
        ("interim", "Status: 103 Early Hints\\nLink: </a.css>\\n"),
    ] {
        let text = match name {
            // A field without an end.
            "one" => "#!/bin/sh\nprintf 'X-A: '\nexec cat /dev/zero | tr '\\0' a\n".to_owned(),
            _ => format!("#!/bin/sh\nwhile printf '{head}\\n'; do :; done\n"),
        };
        place.script(&format!("cgi/{name}"), &text);
    }
    let hob = place.serve_config_with(
        "",
        "[[site.route]]\npath = \"/cgi/*\"\ncgi = { dir = \"cgi\" }\n",
    );
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    let before = memory_of(&hob);
    for name in ["fields", "one", "interim"] {
        for _ in 0..8 {
            let status = get(hob.port(), &format!("/cgi/{name}")).unwrap().status;
            assert_eq!(status, 502, "{name}");
        }
        let grown = memory_of(&hob).saturating_sub(before);
        assert!(grown < 8 << 20, "{name}: {grown}");
    }
    hob.stop();
}

/// What is told of requests with the longest heads: to a watcher that takes nothing, and to the
/// history.
#[test]
fn long_heads_are_held_by_watchers_and_history_within_their_bounds() {
    const REQUESTS: usize = 800;
    const HISTORY_BYTES: u64 = 2 << 20;
    let place = Place::new();
    let hob = place.serve_config("[history]\nbytes = \"2MiB\"\n");
    let socket = place.path("run/hob/control.sock");
    let mut watcher = Connection::open_unix(&socket).unwrap();
    watcher
        .send(b"GET /v1/watch?head=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    assert_eq!(watcher.read_head().unwrap().0, 200);
    let fields: String = (0..80)
        .map(|number| format!("X-{number}: {}\r\n", "y".repeat(600)))
        .collect();
    let target = format!("/{}", "t".repeat(7000));
    let ask = |count: usize| {
        for _ in 0..count {
            let mut client = Connection::open(hob.port()).unwrap();
            client.send_ask("GET", &target, &fields);
            assert_eq!(client.read_head().unwrap().0, 404);
        }
    };
    ask(1);
    let before = memory_of(&hob);
    ask(REQUESTS);
    let grown = memory_of(&hob).saturating_sub(before);
    let came = (REQUESTS * (target.len() + fields.len())) as u64;
    assert!(
        grown < HISTORY_BYTES + (16 << 20),
        "{grown} for {came} received"
    );
    // The watcher's room was full, and more was told.
    assert!(place.counter("limit_watch_events") > 0);
    drop(watcher);
    hob.stop();
}

/// What it took to read them has gone back to the kernel, and what they have in common is there
/// once.
#[test]
fn routes_hold_little_memory_in_the_server_and_next_to_none_in_the_keeper() {
    const COUNT: u64 = 5_000;
    const SERVER_BYTES_MAX: u64 = 2 << 10;
    const KEEPER_BYTES_MAX: u64 = 512;
    let serve = |place: &Place, count: u64| {
        let one = |n| format!("[[site.route]]\npath = \"/old/{n}\"\nredirect = \"/new/{n}\"\n");
        let routes: String = (0..count).map(one).collect();
        place.serve_config_with("", &format!("\n{routes}"))
    };
    let places = [Place::new(), Place::new()];
    let (few, many) = (serve(&places[0], 1), serve(&places[1], COUNT));
    let last = format!("/old/{}", COUNT - 1);
    assert_eq!(get(many.port(), &last).unwrap().status, 302);
    let until = Instant::now() + DEADLINE;
    loop {
        let [server, keeper] = [few.server(), few.pid()].map(memory_of_process);
        let [server_of_many, keeper_of_many] = [many.server(), many.pid()].map(memory_of_process);
        let for_server = server_of_many.saturating_sub(server) / COUNT;
        let for_keeper = keeper_of_many.saturating_sub(keeper) / COUNT;
        if for_server <= SERVER_BYTES_MAX && for_keeper <= KEEPER_BYTES_MAX {
            break;
        }
        let held = format!("{for_server} and {for_keeper} bytes a route");
        assert!(Instant::now() < until, "{held}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    few.stop();
    many.stop();
}

#[test]
fn memory_of_a_burst_goes_back_to_the_kernel_when_it_is_over() {
    const CONNECTIONS: usize = 100;
    let place = Place::new();
    let hob = place.serve_config("");
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    let before = memory_of(&hob);
    let full: Vec<_> = (0..CONNECTIONS)
        .map(|_| connection_full_of_heads(&hob))
        .collect();
    let grown = memory_of(&hob).saturating_sub(before);
    assert!(grown > 40 << 20, "{grown}");
    // One that stays is at the end of what the heap has.
    let mut stays = TcpStream::connect(("127.0.0.1", hob.port())).unwrap();
    stays.write_all(b"GET /").unwrap();
    drop(full);
    // At most a minute after it was given back before.
    let until = Instant::now() + 2 * DEADLINE;
    while memory_of(&hob) > before + BURST_LEFT_BYTES_MAX {
        let held = memory_of(&hob).saturating_sub(before);
        assert!(Instant::now() < until, "{held} of {grown} are held still");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    drop(stays);
    hob.stop();
}

#[test]
fn long_downloads_need_no_more_memory_than_short_ones() {
    let place = Place::new();
    let hob = serve(&place);
    for protocol in ["h1", "tls", "h2"] {
        peak_while(&hob, curl(&hob, protocol, "/hello.txt"), 6);
        let before = memory_of(&hob);
        let peak = peak_while(&hob, curl(&hob, protocol, "/long.bin"), DOWNLOAD_BYTES);
        let grown = peak.saturating_sub(before);
        assert!(grown < DOWNLOAD_GROWTH_BYTES_MAX, "{protocol}: {grown}");
    }
    if has_aioquic() {
        let take = |path: &str| {
            let mut command = aioquic("h3/client.py");
            command.args([&hob.tls_port().to_string(), "whole", path]);
            command
        };
        peak_while(&hob, take("/hello.txt"), 6);
        let before = memory_of(&hob);
        let peak = peak_while(&hob, take("/h3.bin"), DOWNLOAD_H3_BYTES);
        let grown = peak.saturating_sub(before);
        assert!(grown < DOWNLOAD_GROWTH_BYTES_MAX, "h3: {grown}");
    }
    hob.stop();
}

#[test]
fn connections_over_http3_leave_nothing_when_they_have_ended() {
    let place = Place::new();
    let hob = serve(&place);
    let url = format!("https://127.0.0.1:{}/hello.txt", hob.tls_port());
    let grown_after = |count: &str| {
        let before = memory_of(&hob);
        let arguments = ["--http", "3", "--close", "-c", "1", "-n", count];
        let mut bench = Command::new(env!("CARGO_BIN_EXE_hob"));
        bench
            .args(["bench", &url])
            .args(arguments)
            .stdout(Stdio::null());
        assert!(bench.status().unwrap().success());
        memory_of(&hob).saturating_sub(before)
    };
    // What is kept for later ones comes with the first.
    grown_after("100");
    let grown = grown_after("900");
    assert!(grown < ENDED_GROWTH_BYTES_MAX, "{grown}");
    hob.stop();
}

/// Clients that have asked and take no more.
struct Readers(Child);

impl Readers {
    fn begin(hob: &Hob, protocol: &str) -> Readers {
        let port = match protocol {
            "h1" => hob.port(),
            _ => hob.tls_port(),
        };
        let mut command = aioquic("memory/readers.py");
        if protocol != "h3" {
            command = Command::new("python3");
            command.arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/memory/readers.py"
            ));
        }
        command.args([
            protocol,
            &port.to_string(),
            &READER_COUNT.to_string(),
            "/long.bin",
        ]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut readers = Readers(child.unwrap());
        let mut line = String::new();
        let output = readers.0.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n", "{protocol}");
        readers
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        // They say goodbye, or the server would wait for them when it stops.
        drop(self.0.stdin.take());
        if !std::thread::panicking() && self.0.wait().is_ok() {
            return;
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn readers_that_take_nothing_hold_little_and_no_one_else_up() {
    let place = Place::new();
    let hob = serve(&place);
    let protocols = match has_aioquic() {
        true => &["h1", "tls", "h2", "h3"][..],
        false => &["h1", "tls", "h2"],
    };
    for protocol in protocols {
        let before = memory_of(&hob);
        let readers = Readers::begin(&hob, protocol);
        for _ in 0..200 {
            assert_eq!(get(hob.port(), "/hello.txt").unwrap().text(), "hello\n");
        }
        let each = memory_of(&hob).saturating_sub(before) / READER_COUNT as u64;
        assert!(each < READER_BYTES_MAX, "{protocol}: {each} bytes each");
        drop(readers);
    }
    hob.stop();
}
