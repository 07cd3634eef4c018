//! Programs that would take the machine: each is contained, answered for and explained in the
//! record and the log, and everybody else is served meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::Hob;
use crate::harness::client::Connection;
use crate::pool::until;
use crate::site::Programs;
use crate::watch::{OnDrop, Rest, family, long, memory_kib, take_turn};

const HELLO: &str = "printf 'Content-Type: text/plain\\n\\nhello\\n'\n";
/// Every process starts another that leaves its session, and tries again where it may not.
const BOMB: &str = "#include <unistd.h>\n#include <stdio.h>\n\
    int main(void) {\n  fputs(\"boom\\n\", stderr);\n\
    for (;;) { pid_t pid = fork(); if (pid == 0) setsid(); if (pid < 0) usleep(1000); }\n}\n";
const HOG: &str =
    "#!/usr/bin/python3\nheld = []\nwhile True:\n    held.append(b'x' * 10_000_000)\n";
const SLEEPER: &str = "echo 'about to sleep' >&2\nexec sleep 100000\n";
const HEADLESS: &str = "echo 'not a head' >&2\nexec cat /dev/zero\n";
const WRITER_BYTES: u64 = 10_000_000_000;
/// What is read of it in CI: many times what pipe and sockets hold.
const WRITER_BYTES_READ: u64 = 200_000_000;
/// What the server's memory may grow by, in KiB, while it passes that on.
const GROWTH_KIB_MAX: u64 = 8 * 1024;

#[test]
fn runaways_are_contained_answered_and_explained() {
    let _turn = take_turn();
    let programs = Programs::new()
        .with_sh("hello.cgi", HELLO)
        .with_c("bomb.cgi", BOMB)
        .with("hog.cgi", HOG)
        .with_sh("sleeper.cgi", SLEEPER)
        .with_sh("headless.cgi", HEADLESS)
        .serve_route(&routes());
    assert_eq!(programs.text("/cgi/hello.cgi"), "hello\n");
    let rest = Rest::of(&programs);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| ask_until(&is_over, &programs));
        let over = OnDrop(&is_over);
        let asked = RUNAWAYS.map(|runaway| {
            let mut connection = Connection::open(programs.port()).unwrap();
            connection.send_get(&runaway.target()).unwrap();
            (connection, runaway)
        });
        for (mut connection, runaway) in asked {
            let reply = connection.read_reply();
            let name = runaway.name;
            assert_eq!(
                (reply.answer.status, reply.is_whole),
                (runaway.status, true),
                "{name}"
            );
            runaway.is_explained(&programs);
        }
        // What the bomb started is ended while the others are still asking.
        until("the runaways are gone", || {
            let names = ["bomb.cgi", "hog.cgi", "sleep", "cat"];
            !family(programs.hob())
                .iter()
                .any(|one| names.contains(&&*one.name))
        });
        drop(over);
        assert!(others.join().unwrap() > 0);
    });
    rest.wait_for(programs.hob());
    programs.stop();
}

/// Those that say nothing are given up soon; the others end by themselves, on a busy machine too.
fn routes() -> String {
    let route = |path: &str, keys: &str| {
        format!(
            "path = \"/cgi/{path}\"\ncgi = {{ dir = \"cgi\", grace = \"100ms\", \
             rlimits = {{ as = \"256MiB\", nproc = 40 }}{keys} }}\n[[site.route]]\n"
        )
    };
    let soon = ", first_byte = \"2s\"";
    let (bomb, sleeper) = (route("bomb.cgi", soon), route("sleeper.cgi", soon));
    let hello = "path = \"/cgi/hello.cgi\"\ncgi = \"cgi\"\n";
    let others = route("*", "");
    let others = others.trim_end_matches("[[site.route]]\n");
    format!("{bomb}{sleeper}{hello}[[site.route]]\n{others}")
}

/// What is answered and written about one of them.
#[derive(Clone, Copy)]
struct Runaway {
    name: &'static str,
    status: u16,
    reason: &'static str,
    /// Its standard error, in the record and in the log.
    says: &'static str,
}

const RUNAWAYS: [Runaway; 4] = [
    Runaway {
        name: "bomb",
        status: 504,
        reason: "limits: first_byte: no head of an answer in time",
        says: "boom",
    },
    Runaway {
        name: "hog",
        status: 502,
        reason: "the program ended without output",
        says: "MemoryError",
    },
    Runaway {
        name: "sleeper",
        status: 504,
        reason: "limits: first_byte: no head of an answer in time",
        says: "about to sleep",
    },
    Runaway {
        name: "headless",
        status: 502,
        reason: "limits: the head of the program's output is longer than `head`",
        says: "not a head",
    },
];

impl Runaway {
    fn target(&self) -> String {
        format!("/cgi/{}.cgi", self.name)
    }

    fn is_explained(&self, programs: &Programs) {
        let record = programs.record(&self.target());
        assert_eq!(record["status"], self.status, "{record}");
        assert_eq!(record["fault"], "script", "{record}");
        assert_eq!(record["reason"], self.reason, "{record}");
        let detail = record["detail"].as_str().unwrap();
        let file = format!("{}.cgi", self.name);
        assert!(
            detail.contains(&file) && detail.contains(self.says),
            "{record}"
        );
        let line = programs.hob().wait_for(&format!("stderr: {}", self.says));
        assert!(line.contains("WARN") && line.contains(&file), "{line}");
    }
}

/// Asks for what must always be answered. How often it was.
fn ask_until(is_over: &AtomicBool, programs: &Programs) -> usize {
    let mut count = 0;
    while !is_over.load(Ordering::SeqCst) {
        assert_eq!(programs.text("/cgi/hello.cgi"), "hello\n");
        count += 1;
    }
    count
}

#[test]
fn endless_writer_is_passed_on_in_flat_memory_and_ended_when_its_reader_leaves() {
    let _turn = take_turn();
    let programs = Programs::new()
        .with_sh("hello.cgi", HELLO)
        .with_sh(
            "writer.cgi",
            &format!(
                "printf 'Content-Type: application/octet-stream\\nContent-Length: {WRITER_BYTES}\\n\\n'\n\
                 exec head -c {WRITER_BYTES} /dev/zero\n"
            ),
        )
        .serve("");
    assert_eq!(programs.text("/cgi/hello.cgi"), "hello\n");
    let rest = Rest::of(&programs);
    let server = programs.hob().server();
    let (mut connection, headers) = begin_writer(&programs);
    let length = headers.iter().find(|(name, _)| name == "content-length");
    assert_eq!(length.unwrap().1, WRITER_BYTES.to_string());
    let bytes = long().map_or(WRITER_BYTES_READ, |_| WRITER_BYTES);
    let before = memory_kib(server);
    let mut read = 0;
    while read < bytes {
        let step = (bytes / 20).min(bytes - read);
        let count = connection.skip(step).unwrap();
        assert!(count >= step, "{read} bytes and {count} more");
        read += count;
        let now = memory_kib(server);
        assert!(now <= before + GROWTH_KIB_MAX, "{before} KiB, then {now}");
        assert_eq!(programs.text("/cgi/hello.cgi"), "hello\n");
    }
    let record = match long() {
        Some(_) => {
            assert_eq!((read, connection.skip(1).unwrap()), (bytes, 0));
            programs.record("/cgi/writer.cgi")
        }
        None => left_early(&programs, connection),
    };
    assert_eq!(record["status"], 200);
    rest.wait_for(programs.hob());
    programs.stop();
}

fn begin_writer(programs: &Programs) -> (Connection, Vec<(String, String)>) {
    crate::harness::client::begin_download(programs.port(), "/cgi/writer.cgi")
}

/// The reader leaves in the middle: the program is ended. The record.
fn left_early(programs: &Programs, connection: Connection) -> serde_json::Value {
    assert!(writers(programs.hob()) == 1);
    drop(connection);
    until("the writer was ended", || writers(programs.hob()) == 0);
    let record = programs.record("/cgi/writer.cgi");
    assert_eq!(record["outcome"], "client-left");
    record
}

fn writers(hob: &Hob) -> usize {
    family(hob).iter().filter(|one| one.name == "head").count()
}
