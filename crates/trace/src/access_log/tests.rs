//! The running thread, from rings to files.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::sync::mpsc;

use tempfile::TempDir;

use super::*;
use crate::format::AccessLogFormat;
use crate::metric::Counters;
use crate::record::{Record, Texts};
use crate::ring::{Producer, RING_BYTES_MIN, ring};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// Long enough to never pass in a test that goes well.
const LONG: Duration = Duration::from_secs(20);

/// A running log and what it counts.
struct Bench {
    folder: TempDir,
    counters: Counters,
    log: AccessLog,
    asked: mpsc::Receiver<LogId>,
}

impl Bench {
    fn start() -> Bench {
        let counters = Counters::new();
        let (ask, asked) = mpsc::channel();
        let ask = Box::new(move |log| ask.send(log).unwrap());
        let log = AccessLog::start(counters.new_thread(), ask).unwrap();
        Bench {
            folder: TempDir::new().unwrap(),
            counters,
            log,
            asked,
        }
    }

    fn file(&self, name: &str) -> File {
        File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join(name))
            .unwrap()
    }

    fn register(&self, target: File) -> LogId {
        self.log.register(settings(), Target::File(target)).unwrap()
    }

    fn ring(&self, bytes: usize) -> Producer {
        let (producer, consumer) = ring(bytes);
        self.log.add_ring(consumer);
        producer
    }

    fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

fn settings() -> DestinationSettings {
    DestinationSettings {
        name: "access.log".into(),
        format: AccessLogFormat::parse("{request}").unwrap(),
        names: Arc::default(),
        rotate_bytes: 0,
        rotate_daily: false,
    }
}

fn push(producer: &mut Producer, log: u16, request: u32) -> bool {
    producer.push(
        &Record {
            log,
            request,
            ..Record::empty()
        },
        &Texts::default(),
    )
}

#[test]
fn push_to_a_resting_writer_is_written_without_being_asked_for() {
    let bench = Bench::start();
    let (reader, writer) = std::io::pipe().unwrap();
    let log = bench.register(File::from(OwnedFd::from(writer)));
    let mut producer = bench.ring(0);
    let mut lines = BufReader::new(reader).lines();
    for request in 0..5 {
        assert!(push(&mut producer, log.number(), request));
        assert_eq!(lines.next().unwrap().unwrap(), request.to_string());
    }
}

#[test]
fn records_of_several_threads_go_to_the_logs_they_name() {
    let bench = Bench::start();
    let logs = ["a", "b"].map(|name| bench.register(bench.file(name)).number());
    let threads = [0, 1, 2].map(|thread| {
        let mut producer = bench.ring(1 << 20);
        std::thread::spawn(move || {
            for n in 0..1000 {
                let log = if n % 4 == 3 { 0 } else { logs[n as usize % 2] };
                assert!(push(&mut producer, log, thread * 1000 + n));
            }
        })
    });
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert!(bench.log.flush(LONG));
    let sorted = |name| {
        let mut numbers: Vec<u32> = bench
            .content(name)
            .lines()
            .map(|line| line.parse().unwrap())
            .collect();
        numbers.sort_unstable();
        numbers
    };
    let expected = |keep: fn(&u32) -> bool| (0..3000).filter(keep).collect::<Vec<_>>();
    assert_eq!(sorted("a"), expected(|n| n % 2 == 0));
    assert_eq!(sorted("b"), expected(|n| n % 4 == 1));
    assert_eq!(bench.counters.merged().log_dropped, 0);
}

#[test]
fn record_that_overtakes_its_logs_registration_is_written() {
    let bench = Bench::start();
    let mut producer = bench.ring(1 << 20);
    for round in 0..200 {
        let log = bench.register(bench.file("log"));
        assert!(push(&mut producer, log.number(), round));
        bench.log.retire(log);
    }
    assert!(bench.log.flush(LONG));
    let expected: String = (0..200).map(|n| format!("{n}\n")).collect();
    assert_eq!(bench.content("log"), expected);
}

#[test]
fn log_numbers_are_never_used_twice() {
    let bench = Bench::start();
    let first = bench.log.register(settings(), Target::Stdout).unwrap();
    bench.log.retire(first);
    let second = bench.log.register(settings(), Target::Stdout).unwrap();
    assert_eq!((first.number(), second.number()), (1, 2));
    bench.log.mailbox.letters.lock().last_log = u16::MAX;
    assert_eq!(
        bench.log.register(settings(), Target::Stdout),
        Err(LogIdsUsedUp)
    );
}

#[test]
fn replaced_file_gets_what_was_pushed_before() {
    let bench = Bench::start();
    let log = bench.register(bench.file("old"));
    let mut producer = bench.ring(0);
    assert!(push(&mut producer, log.number(), 1));
    assert!(bench.log.flush(LONG));
    bench.log.replace(log, bench.file("new"));
    assert!(push(&mut producer, log.number(), 2));
    assert!(bench.log.flush(LONG));
    assert_eq!(
        (bench.content("old").as_str(), bench.content("new").as_str()),
        ("1\n", "2\n")
    );
}

#[test]
fn retired_log_is_written_to_its_end_and_later_records_are_counted() {
    let bench = Bench::start();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let log = bench.register(File::from(OwnedFd::from(writer)));
    let mut producer = bench.ring(0);
    assert!(push(&mut producer, log.number(), 1));
    bench.log.retire(log);
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    assert_eq!(all, "1\n", "and the file is closed");
    assert!(push(&mut producer, log.number(), 2));
    assert!(bench.log.flush(LONG));
    assert_eq!(bench.counters.merged().log_dropped, 1);
}

#[test]
fn full_ring_is_counted_and_the_rest_is_written() {
    let bench = Bench::start();
    let log = bench.register(bench.file("log"));
    let (mut producer, consumer) = ring(RING_BYTES_MIN);
    let pushed = (0..1000)
        .filter(|n| push(&mut producer, log.number(), *n))
        .count();
    bench.log.add_ring(consumer);
    drop(producer);
    assert!(bench.log.flush(LONG));
    assert_eq!(bench.content("log").lines().count(), pushed);
    assert_eq!(bench.counters.merged().log_dropped, 1000 - pushed as u64);
}

#[test]
fn full_disk_of_one_log_does_not_harm_another() {
    let bench = Bench::start();
    let full = bench.register(File::options().append(true).open("/dev/full").unwrap());
    let good = bench.register(bench.file("good"));
    let mut producer = bench.ring(1 << 20);
    for n in 0..100 {
        assert!(push(&mut producer, full.number(), n) && push(&mut producer, good.number(), n));
    }
    assert!(bench.log.flush(LONG));
    let counted = bench.counters.merged();
    assert_eq!(
        (bench.content("good").lines().count(), counted.log_dropped),
        (100, 100)
    );
    assert!(counted.log_write_errors >= 1);
}

#[test]
fn owner_is_asked_to_rotate_a_large_file() {
    let bench = Bench::start();
    let large = DestinationSettings {
        rotate_bytes: 10,
        ..settings()
    };
    let log = bench
        .log
        .register(large, Target::File(bench.file("log")))
        .unwrap();
    let mut producer = bench.ring(1 << 20);
    (0..100).for_each(|n| assert!(push(&mut producer, log.number(), n)));
    assert_eq!(bench.asked.recv_timeout(LONG), Ok(log));
    assert!(bench.log.flush(LONG));
    assert!(bench.asked.try_recv().is_err(), "asked once");
}

#[test]
fn close_writes_what_is_on_its_way() {
    let bench = Bench::start();
    let log = bench.register(bench.file("log"));
    let mut producer = bench.ring(1 << 20);
    (0..1000).for_each(|n| assert!(push(&mut producer, log.number(), n)));
    assert!(bench.log.close(LONG));
    let content = std::fs::read_to_string(bench.folder.path().join("log")).unwrap();
    assert_eq!(content.lines().count(), 1000);
}

#[test]
fn close_does_not_wait_for_a_reader_longer_than_told() {
    let bench = Bench::start();
    let (_reader, writer) = std::io::pipe().unwrap();
    let log = bench.register(File::from(OwnedFd::from(writer)));
    // All of it has room, also where the writer has not begun.
    let mut producer = bench.ring(1 << 24);
    (0..20_000).for_each(|n| assert!(push(&mut producer, log.number(), n)));
    assert!(
        !bench.log.close(Duration::from_millis(20)),
        "the pipe holds 64 KiB"
    );
    assert!(bench.counters.merged().log_dropped > 0);
}
