//! One log without the thread: time is an argument.

use std::io::Read;
use std::num::NonZeroU16;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;
use crate::format::AccessLogFormat;

/// A log of lines `<request number> <target>`.
struct Log {
    destination: LogDestination,
    cache: LineCache,
    now: Instant,
    unix_ms: u64,
}

impl Log {
    fn new(file: File, change: impl FnOnce(&mut DestinationSettings)) -> Log {
        let mut settings = DestinationSettings {
            name: "access.log".into(),
            format: AccessLogFormat::parse("{request} {target}").unwrap(),
            names: Arc::default(),
            rotate_bytes: 0,
            rotate_daily: false,
        };
        change(&mut settings);
        let log = LogId(NonZeroU16::MIN);
        Log {
            destination: LogDestination::new(log, settings, Target::File(file)),
            cache: LineCache::new(),
            now: Instant::now(),
            unix_ms: 20_000 * DAY_MS,
        }
    }

    fn append(&mut self, request: u32, target: &[u8]) -> Due {
        let record = Record {
            request,
            started_unix_ms: self.unix_ms,
            ..Record::empty()
        };
        let texts = Texts {
            target,
            ..Texts::default()
        };
        self.destination
            .append(&mut self.cache, &record, &texts, self.now)
    }

    fn flush(&mut self) -> Due {
        self.destination.begin_turn();
        self.destination.flush(self.now)
    }
}

fn appended(folder: &TempDir, name: &str) -> File {
    File::options()
        .create(true)
        .append(true)
        .open(folder.path().join(name))
        .unwrap()
}

fn content(folder: &TempDir, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).unwrap()
}

#[test]
fn lines_are_written_in_batches() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::new(appended(&folder, "log"), |_| ());
    let target = vec![b'x'; 1000];
    let batch = (0..).take_while(|n| {
        log.append(*n, &target);
        content(&folder, "log").is_empty()
    });
    assert_eq!(batch.count(), BATCH_BYTES / 1003);
    log.append(0, b"/last");
    assert!(!content(&folder, "log").contains("/last"));
    log.flush();
    assert!(content(&folder, "log").ends_with("\n0 /last\n"));
}

#[test]
fn device_without_room_drops_and_counts_and_tells_once_a_minute() {
    let full = File::options().append(true).open("/dev/full").unwrap();
    let mut log = Log::new(full, |_| ());
    let errors = Errors::default();
    tracing::subscriber::with_default(errors.clone(), || {
        for round in 1..=3 {
            (0..10).for_each(|n| assert_eq!(log.append(n, b"/"), Due::Nothing));
            log.flush();
            assert_eq!(
                log.destination.losses,
                Losses {
                    lines: 10 * round,
                    write_errors: round,
                    cut: 0,
                },
                "round {round}"
            );
            assert!(!log.destination.has_lines());
        }
        assert_eq!(errors.0.load(Ordering::Relaxed), 1);
        log.now += COMPLAIN_EVERY;
        log.append(0, b"/");
        log.flush();
        assert_eq!(errors.0.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn full_disk_tears_no_line_and_writing_goes_on_when_there_is_room() {
    let folder = TempDir::new().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        return;
    };
    std::fs::write(folder.path().join("ballast"), vec![0; 128 * 1024]).unwrap();
    let mut log = Log::new(appended(&folder, "log"), |_| ());
    let target = vec![b'x'; 700];
    (0..400).for_each(|n| assert_eq!(log.append(n, &target), Due::Nothing));
    log.flush();
    let losses = log.destination.losses;
    assert!(
        losses.write_errors > 0 && (1..400).contains(&losses.lines),
        "{losses:?}"
    );
    assert!(
        !content(&folder, "log").ends_with('\n'),
        "the disk was full inside a line"
    );

    std::fs::remove_file(folder.path().join("ballast")).unwrap();
    log.append(1000, b"/again");
    log.flush();
    let content = content(&folder, "log");
    let lines: Vec<&str> = content.lines().collect();
    let whole = format!(" {}", "x".repeat(700));
    let (last, before) = lines.split_last().unwrap();
    assert_eq!(*last, "1000 /again");
    for (n, line) in before.iter().enumerate() {
        assert_eq!(**line, format!("{n}{whole}"), "line {n}");
    }
    assert_eq!(before.len() as u64 + log.destination.losses.lines, 400);
    drop(disk);
}

#[test]
fn line_torn_in_a_file_that_is_replaced_counts_as_lost() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::new(
        File::options().append(true).open("/dev/full").unwrap(),
        |_| (),
    );
    log.append(0, b"/torn");
    log.append(1, b"/whole");
    log.destination.torn = true;
    log.flush();
    assert_eq!(log.destination.losses.lines, 1, "the torn line is kept");
    log.destination.replace(appended(&folder, "log"), log.now);
    assert_eq!(log.destination.losses.lines, 2);
    log.append(2, b"/new");
    log.flush();
    assert_eq!(content(&folder, "log"), "2 /new\n");
}

#[test]
fn reader_that_does_not_read_costs_lines_but_no_time() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut log = Log::new(File::from(std::os::fd::OwnedFd::from(writer)), |_| ());
    let target = vec![b'y'; 1000];
    let mut pushed = 0;
    while log.destination.losses.lines < 10 {
        log.append(pushed, &target);
        log.flush();
        pushed += 1;
    }
    assert!(log.destination.has_lines());
    let reading = std::thread::spawn(move || {
        let mut all = String::new();
        reader.read_to_string(&mut all).unwrap();
        all
    });
    while log.destination.has_lines() {
        log.flush();
        std::thread::yield_now();
    }
    drop(log.destination);
    let all = reading.join().unwrap();
    assert_eq!(all.lines().count() as u32, pushed - 10);
    for (n, line) in all.lines().enumerate() {
        assert_eq!(line, format!("{n} {}", "y".repeat(1000)));
    }
}

/// What the reader has room for ends inside the last line: its rest is no less awaited.
#[test]
fn line_torn_by_a_slow_reader_is_waited_for() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    let mut log = Log::new(File::from(std::os::fd::OwnedFd::from(writer)), |_| ());
    log.append(0, &[b'z'; 6000]);
    log.flush();
    assert!(log.destination.has_lines());
    let mut first = [0; 4096];
    reader.read_exact(&mut first).unwrap();
    log.flush();
    assert!(!log.destination.has_lines());
    drop(log.destination);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, format!("{}\n", "z".repeat(6000 + 2 - 4096)));
}

#[test]
fn rotation_by_size_is_asked_for_once_until_replaced_or_ten_minutes_pass() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::new(appended(&folder, "log"), |settings| {
        settings.rotate_bytes = 20
    });
    let write = |log: &mut Log| {
        log.append(0, b"/123456");
        log.flush()
    };
    assert_eq!(write(&mut log), Due::Nothing, "10 bytes");
    assert_eq!(write(&mut log), Due::Rotation, "20 bytes");
    assert_eq!(write(&mut log), Due::Nothing, "asked already");
    log.destination
        .replace(appended(&folder, "log.new"), log.now);
    assert_eq!(write(&mut log), Due::Nothing);
    assert_eq!(write(&mut log), Due::Rotation);
    log.now += ASK_AGAIN_AFTER;
    assert_eq!(write(&mut log), Due::Rotation);
    assert_eq!(content(&folder, "log").len(), 30);
}

#[test]
fn first_lines_of_a_new_day_wait_for_the_new_file() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::new(appended(&folder, "day1"), |settings| {
        settings.rotate_daily = true
    });
    assert_eq!(log.append(1, b"/"), Due::Nothing);
    log.unix_ms += DAY_MS;
    assert_eq!(log.append(2, b"/"), Due::Rotation);
    assert_eq!(log.append(3, b"/"), Due::Nothing);
    assert_eq!(
        (log.flush(), content(&folder, "day1").as_str()),
        (Due::Nothing, "1 /\n")
    );
    log.destination.replace(appended(&folder, "day2"), log.now);
    log.unix_ms -= DAY_MS;
    assert_eq!(
        log.append(4, b"/late"),
        Due::Nothing,
        "it ended yesterday, on another thread"
    );
    log.unix_ms += DAY_MS;
    assert_eq!(log.append(5, b"/"), Due::Nothing, "the file is of today");
    log.flush();
    assert_eq!(content(&folder, "day1"), "1 /\n");
    assert_eq!(content(&folder, "day2"), "2 /\n3 /\n4 /late\n5 /\n");
}

#[test]
fn clock_set_back_from_the_future_does_not_stop_daily_rotation() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::new(appended(&folder, "log"), |settings| {
        settings.rotate_daily = true
    });
    let today = log.unix_ms;
    log.unix_ms = today + 5000 * DAY_MS;
    assert_eq!(log.append(1, b"/"), Due::Nothing);
    log.unix_ms = today;
    assert_eq!(log.append(2, b"/"), Due::Nothing);
    log.unix_ms = today + DAY_MS;
    assert_eq!(log.append(3, b"/"), Due::Rotation);
}

#[test]
fn new_day_is_written_to_the_old_file_when_no_new_one_comes() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::new(appended(&folder, "log"), |settings| {
        settings.rotate_daily = true
    });
    log.append(1, b"/");
    log.unix_ms += DAY_MS;
    assert_eq!(log.append(2, b"/"), Due::Rotation);
    log.now += NEW_DAY_PATIENCE;
    log.flush();
    assert_eq!(content(&folder, "log"), "1 /\n2 /\n");
}

#[test]
fn file_of_an_earlier_day_is_rotated_at_the_first_line() {
    let folder = TempDir::new().unwrap();
    let file = appended(&folder, "log");
    std::fs::write(folder.path().join("log"), "old\n").unwrap();
    let yesterday = UNIX_EPOCH + Duration::from_millis(20_000 * DAY_MS - 1);
    file.set_modified(yesterday).unwrap();
    let mut log = Log::new(file, |settings| settings.rotate_daily = true);
    assert_eq!(log.append(1, b"/"), Due::Rotation);
}

/// Counts errors that are told.
#[derive(Clone, Default)]
struct Errors(Arc<AtomicUsize>);

impl Subscriber for Errors {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &SpanRecord<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() == Level::ERROR {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A file system of 256 KiB.
struct SmallDisk<'a>(&'a std::path::Path);

impl<'a> SmallDisk<'a> {
    /// None, and a line that says so, where mounting is not allowed.
    fn mount(at: &'a std::path::Path) -> Option<SmallDisk<'a>> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(at);
        if mount.output().is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(at));
        }
        eprintln!("skipped: mounting a small tmpfs needs root");
        None
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}
