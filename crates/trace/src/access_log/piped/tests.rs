//! Lines of a running writer as a program reads them: one that ends, one that reads nothing, and
//! none at all.

use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::access_log::{AccessLog, DestinationSettings, LogId, Target};
use crate::format::AccessLogFormat;
use crate::metric::{Counters, Snapshot};
use crate::record::{Record, Texts};
use crate::ring::{Producer, ring};

/// Long enough to never pass in a test that goes well.
const LONG: Duration = Duration::from_secs(30);

fn start(arguments: &[String], stdin: OwnedFd) -> io::Result<Child> {
    let (program, arguments) = arguments.split_first().unwrap();
    Command::new(program)
        .args(arguments)
        .stdin(stdin)
        .stdout(Stdio::null())
        .spawn()
}

/// A log that a program reads, and the ring of the one thread that it is of.
struct Reader {
    folder: TempDir,
    counters: Counters,
    log: AccessLog,
    id: LogId,
    ring: Producer,
}

impl Reader {
    /// The script is run by a shell; its `$1` is a folder of its own.
    fn new(script: &str) -> Reader {
        let folder = TempDir::new().unwrap();
        let path = folder.path().display().to_string();
        let arguments = ["/bin/sh", "-c", script, "reader", &path];
        let arguments = arguments.map(str::to_owned).to_vec();
        let counters = Counters::new();
        let log = AccessLog::start(counters.new_thread(), Box::new(|_| {})).unwrap();
        let (ring, consumer) = ring(1 << 24);
        log.add_ring(consumer);
        let settings = DestinationSettings {
            name: "program".into(),
            format: AccessLogFormat::parse("{request} {target}").unwrap(),
            names: Arc::default(),
            rotate_bytes: 0,
            rotate_daily: false,
        };
        let id = log
            .register(settings, Target::Program(arguments, start))
            .unwrap();
        Reader {
            folder,
            counters,
            log,
            id,
            ring,
        }
    }

    fn push(&mut self, request: u32, target: &[u8]) {
        let record = Record {
            log: self.id.number(),
            request,
            ..Record::empty()
        };
        let texts = Texts {
            target,
            ..Texts::default()
        };
        assert!(self.ring.push(&record, &texts), "the ring has room");
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Snapshot) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.counters.merged()) {
            assert!(begun.elapsed() < LONG, "{what}");
            thread::yield_now();
        }
    }
}

fn read(folder: &TempDir, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).unwrap_or_default()
}

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|number| format!("{number} -\n")).collect()
}

#[test]
fn program_has_read_and_written_all_when_the_log_is_closed() {
    let mut reader = Reader::new("cat > $1/got; echo end >> $1/got");
    (0..5000).for_each(|request| reader.push(request, b""));
    assert!(reader.log.close(LONG));
    assert_eq!(read(&reader.folder, "got"), lines(0..5000) + "end\n");
    assert_eq!(reader.counters.merged().log_dropped, 0);
}

#[test]
fn program_that_ends_is_followed_by_another_which_reads_on() {
    let mut reader = Reader::new("read line; echo \"$line\" >> $1/got");
    (0..2).for_each(|request| reader.push(request, b""));
    // Both have been in the pipe; each program takes one, and the shell reads no further.
    reader.wait_for("two have ended", |counted| counted.log_write_errors >= 2);
    assert_eq!(read(&reader.folder, "got"), lines(0..2));
    assert!(reader.log.close(LONG));
    assert_eq!(reader.counters.merged().log_dropped, 0);
}

#[test]
fn lines_that_no_program_reads_wait_up_to_a_limit_and_are_counted() {
    const COUNT: u32 = 4000;
    let mut reader = Reader::new("exit 3");
    (0..COUNT).for_each(|request| reader.push(request, &[b'x'; 1000]));
    reader.wait_for("lines are dropped", |counted| counted.log_dropped > 0);
    assert!(!reader.log.close(Duration::ZERO));
    assert_eq!(reader.counters.merged().log_dropped, u64::from(COUNT));
}

#[test]
fn program_that_does_not_end_is_asked_to() {
    let script = "trap 'echo asked > $1/asked; exit' TERM; echo > $1/up; \
                  while :; do read line; done";
    let reader = Reader::new(script);
    let begun = Instant::now();
    while read(&reader.folder, "up").is_empty() {
        assert!(
            begun.elapsed() < LONG,
            "it is started before there is a line"
        );
        thread::yield_now();
    }
    assert!(reader.log.close(Duration::from_millis(10)));
    while read(&reader.folder, "asked").is_empty() {
        assert!(begun.elapsed() < LONG, "it is told to end");
        thread::yield_now();
    }
}

#[test]
fn program_that_is_not_there_is_told_and_tried_again() {
    let mut reader = Reader::new("exit 3");
    reader.push(0, b"");
    reader.wait_for("it is tried again", |counted| counted.log_write_errors >= 2);
    assert!(!reader.log.close(Duration::ZERO));
    assert_eq!(reader.counters.merged().log_dropped, 1);
}
