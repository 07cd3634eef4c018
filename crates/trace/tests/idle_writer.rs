//! An idle log writer sleeps without a timeout, and a push wakes it. Alone in its process, because
//! it looks at the process's threads from outside.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hob_trace::metric::Counters;
use hob_trace::{AccessLog, AccessLogFormat, DestinationSettings, Record, Target, Texts, ring};

#[test]
fn idle_writer_sleeps_without_timeout_until_a_push_wakes_it() {
    let counters = Counters::new();
    let log = AccessLog::start(counters.new_thread(), Box::new(|_| ())).unwrap();
    let settings = DestinationSettings {
        name: "a pipe".into(),
        format: AccessLogFormat::parse("{request}").unwrap(),
        names: Default::default(),
        rotate_bytes: 0,
        rotate_daily: false,
    };
    let (reader, writer) = std::io::pipe().unwrap();
    let target = Target::File(File::from(OwnedFd::from(writer)));
    let id = log.register(settings, target).unwrap();
    let (mut producer, consumer) = ring(0);
    log.add_ring(consumer);
    let mut lines = BufReader::new(reader).lines();
    for request in 0..3 {
        if !wait_until_asleep() {
            eprintln!("skipped: /proc does not tell what a thread waits in");
            return;
        }
        let record = Record {
            log: id.number(),
            request,
            ..Record::empty()
        };
        assert!(producer.push(&record, &Texts::default()));
        assert_eq!(lines.next().unwrap().unwrap(), request.to_string());
    }
}

/// Waits until the writer is in a futex wait whose timeout is null. False if that cannot be seen.
fn wait_until_asleep() -> bool {
    const PATIENCE: Duration = Duration::from_secs(20);
    let started = Instant::now();
    loop {
        for task in std::fs::read_dir("/proc/self/task")
            .into_iter()
            .flatten()
            .flatten()
        {
            let read = |name| std::fs::read_to_string(task.path().join(name));
            if !read("comm").is_ok_and(|name| name.trim() == "hob-log") {
                continue;
            }
            // Its number, then its arguments: address, operation, value, timeout ...
            let Ok(call) = read("syscall") else {
                return false;
            };
            if call.split(' ').nth(4) == Some("0x0") {
                return true;
            }
        }
        assert!(
            started.elapsed() < PATIENCE,
            "the writer does not come to rest"
        );
        std::thread::yield_now();
    }
}
