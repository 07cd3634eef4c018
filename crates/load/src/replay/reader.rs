//! Reads a log, line by line, and hands its requests to the threads that send them, in turn.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flate2::bufread::MultiGzDecoder;

use super::Replay;
use super::clock::{Clock, Timed};
use super::feed::{Due, Feed, Logged};
use super::line::{LineFault, LogLine};
use crate::conduct::Shard;
use crate::limits::{LOG_BATCH_BYTES, LOG_BATCH_LINES, LOG_LINE_BYTES_MAX, LOG_WAIT};
use crate::page::count;

const GZIP: &[u8] = &[0x1f, 0x8b];
/// What is read of a file at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// What there was in a log.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    /// Lines that were read.
    pub(crate) lines: u64,
    /// Those of them that are requests to be sent, here or on another machine.
    pub(crate) requests: u64,
    /// Those with a method that is not sent.
    pub(crate) other_methods: u64,
    /// Those that are no line of an access log, and those that no request can say.
    pub(crate) unreadable: u64,
    pub(crate) unsendable: u64,
    /// The first of these, and why.
    pub(crate) first: Option<String>,
    /// Those whose time is before that of a line before them, a little or a lot.
    pub(crate) back: u64,
    pub(crate) jumps: u64,
    /// Seconds from the first to the last, by the clock of the log.
    pub(crate) span_s: f64,
    /// The moment of the run at which the last one was due.
    pub(crate) last_ns: u64,
    /// Why it was not read to its end.
    pub(crate) error: Option<String>,
    /// There was nothing more to be had of it, be it because of that.
    pub(crate) is_ended: bool,
}

/// A log that is being read.
pub(crate) struct AccessLogReading {
    /// Told at the end.
    counts: Receiver<Counts>,
    so_far: SoFar,
    is_over: Arc<AtomicBool>,
}

/// What was counted when the log was last waited for.
type SoFar = Arc<Mutex<Counts>>;

impl AccessLogReading {
    /// Reads a log on a thread of its own. It ends with the log, or when those have ended that it
    /// reads for; nobody joins it, because a read of a pipe may last for ever.
    pub(crate) fn begin(reader: AccessLogReader) -> io::Result<AccessLogReading> {
        let (sender, counts) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let of_thread = is_over.clone();
        let so_far = reader.so_far.clone();
        std::thread::Builder::new()
            .name("hob-bench-log".to_owned())
            // Nobody listens any more when the run has failed.
            .spawn(move || drop(sender.send(reader.run(&of_thread))))?;
        Ok(AccessLogReading {
            counts,
            so_far,
            is_over,
        })
    }

    /// What there was, once all who send have ended.
    pub(crate) fn end(self) -> Counts {
        self.is_over.store(true, Ordering::Relaxed);
        let counts = self.counts.recv_timeout(LOG_WAIT);
        counts.unwrap_or_else(|_| Counts {
            error: Some("it was still waited for more of it".to_owned()),
            ..locked(&self.so_far).clone()
        })
    }
}

impl Counts {
    /// What there was, in a line.
    pub(crate) fn told(&self) -> String {
        let mut text = format!(
            "{} lines, {} requests within {:.0} s",
            count(self.lines),
            count(self.requests),
            self.span_s
        );
        for (number, what) in [
            (self.other_methods, "of other methods"),
            (self.unreadable, "unreadable"),
            (self.unsendable, "unsendable"),
            (self.back, "out of order"),
        ] {
            if number > 0 {
                text.push_str(&format!(", {} {what}", count(number)));
            }
        }
        text
    }

    /// What else is to be known of it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(first) = &self.first {
            let number = count(self.unreadable + self.unsendable);
            notes.push(format!(
                "{number} lines of the log were left out; the first is {first}"
            ));
        }
        if self.jumps > 0 {
            notes.push(format!(
                "{} times the log went back by more than a minute or on by more than a day: what \
                 followed was taken for another log and sent at once behind the one before",
                count(self.jumps)
            ));
        }
        notes
    }
}

/// Requests for one thread that it has not been handed.
struct ThreadBatch {
    /// None once the thread wants no more.
    sender: Option<SyncSender<Vec<Due>>>,
    batch: Vec<Due>,
    bytes: usize,
}

/// Reads a log.
pub(crate) struct AccessLogReader {
    input: Input,
    methods: Vec<String>,
    clock: Clock,
    shard: Option<Shard>,
    parts: Vec<ThreadBatch>,
    /// Requests that were timed so far.
    timed_count: u64,
    counts: Counts,
    so_far: SoFar,
}

impl AccessLogReader {
    /// Opens a log for so many threads, and makes a feed for each.
    pub(crate) fn open(
        replay: &Replay,
        threads: usize,
        shard: Option<Shard>,
    ) -> Result<(AccessLogReader, Vec<Feed>), String> {
        let input = open(&replay.file).map_err(|error| {
            format!(
                "--replay {}: cannot read it: {error}",
                replay.file.display()
            )
        })?;
        let (senders, feeds): (Vec<_>, Vec<_>) = (0..threads).map(|_| Feed::new()).unzip();
        let part = |sender| ThreadBatch {
            sender: Some(sender),
            batch: Vec::new(),
            bytes: 0,
        };
        let reader = AccessLogReader {
            input,
            methods: replay.methods.clone(),
            clock: Clock::new(replay.speed_up),
            shard,
            parts: senders.into_iter().map(part).collect(),
            timed_count: 0,
            counts: Counts::default(),
            so_far: SoFar::default(),
        };
        Ok((reader, feeds))
    }

    /// Reads until the end of the log, or until nobody wants more.
    fn run(mut self, is_over: &AtomicBool) -> Counts {
        let (mut line, mut timed) = (Vec::new(), Vec::new());
        let mut has_taker = true;
        while has_taker && !is_over.load(Ordering::Relaxed) {
            if memchr::memchr(b'\n', self.input.buffer()).is_none() {
                // More may be long in coming: nobody waits for it with what is known.
                self.parts.iter_mut().for_each(ThreadBatch::send);
                self.count();
                *locked(&self.so_far) = self.counts.clone();
            }
            match next_line(&mut self.input, &mut line) {
                Ok(LineRead::End) => self.counts.is_ended = true,
                Ok(found) => self.take(found, &line, &mut timed),
                Err(error) => {
                    let lines = self.counts.lines;
                    self.counts.error = Some(format!("after {lines} lines: {error}"));
                    self.counts.is_ended = true;
                }
            }
            if self.counts.is_ended {
                break;
            }
            has_taker = self.hand_over(&mut timed);
        }
        if has_taker {
            self.clock.finish(&mut timed);
            self.hand_over(&mut timed);
            self.parts.iter_mut().for_each(ThreadBatch::send);
        }
        self.count();
        self.counts
    }

    /// Notes what the clock has counted.
    fn count(&mut self) {
        self.counts.back = self.clock.back_count;
        self.counts.jumps = self.clock.jump_count;
        self.counts.last_ns = self.clock.given_ns();
        self.counts.span_s = self.clock.span_us() as f64 / 1e6;
    }

    /// Looks at a line.
    fn take(&mut self, found: LineRead, line: &[u8], timed: &mut Vec<Timed>) {
        self.counts.lines += 1;
        let parsed = match found {
            LineRead::TooLong => Err(LineFault::Unreadable("it is too long")),
            _ => LogLine::parse(line),
        };
        let line = match parsed {
            Ok(line) => line,
            Err(fault) => {
                match fault {
                    LineFault::Unreadable(_) => self.counts.unreadable += 1,
                    LineFault::Unsendable(_) => self.counts.unsendable += 1,
                }
                let number = self.counts.lines;
                let told = || format!("line {number}: {}", fault.text());
                self.counts.first.get_or_insert_with(told);
                return;
            }
        };
        let Some(kind) = self
            .methods
            .iter()
            .position(|method| *method == line.method)
        else {
            self.counts.other_methods += 1;
            return;
        };
        self.counts.requests += 1;
        let logged = Logged {
            kind: kind as u32,
            status: line.status,
            target: line.target.into_bytes().into(),
        };
        self.clock.add((line.at_us, line.is_exact), logged, timed);
    }

    /// Hands on what has its moment; false when nobody wants it.
    fn hand_over(&mut self, timed: &mut Vec<Timed>) -> bool {
        for (at_ns, logged) in timed.drain(..) {
            let number = self.timed_count;
            self.timed_count += 1;
            let (own, count) = self.shard.map_or((0, 1), |shard| {
                (u64::from(shard.number - 1), u64::from(shard.count))
            });
            if number % count != own {
                continue;
            }
            let thread = (number / count) as usize % self.parts.len();
            let due = Due {
                at_ns,
                logged: Some(Box::new(logged)),
            };
            self.parts[thread].add(due);
        }
        self.parts.iter().any(|part| part.sender.is_some())
    }
}

impl ThreadBatch {
    fn add(&mut self, due: Due) {
        self.bytes += due.bytes();
        self.batch.push(due);
        if self.batch.len() >= LOG_BATCH_LINES || self.bytes >= LOG_BATCH_BYTES {
            self.send();
        }
    }

    /// Waits until the thread has room.
    fn send(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        let Some(sender) = &self.sender else { return };
        if !batch.is_empty() && sender.send(batch).is_err() {
            self.sender = None;
        }
    }
}

/// What was read.
enum LineRead {
    Whole,
    /// More than is kept of a line; its rest was left out.
    TooLong,
    End,
}

/// Reads up to the end of a line.
fn next_line(input: &mut Input, line: &mut Vec<u8>) -> io::Result<LineRead> {
    line.clear();
    let mut limited = input.take(LOG_LINE_BYTES_MAX as u64);
    if limited.read_until(b'\n', line)? == 0 {
        return Ok(LineRead::End);
    }
    if line.len() < LOG_LINE_BYTES_MAX || line.ends_with(b"\n") {
        return Ok(LineRead::Whole);
    }
    loop {
        let bytes = input.fill_buf()?;
        let end = memchr::memchr(b'\n', bytes);
        let used = end.map_or(bytes.len(), |end| end + 1);
        let is_over = end.is_some() || bytes.is_empty();
        input.consume(used);
        if is_over {
            return Ok(LineRead::TooLong);
        }
    }
}

/// Counts are whole between any two statements.
fn locked(so_far: &SoFar) -> MutexGuard<'_, Counts> {
    so_far.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A log's text, and what of it was read ahead.
type Input = BufReader<Box<dyn Read + Send>>;

/// A file, and what is in it where it is compressed.
fn open(path: &Path) -> io::Result<Input> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    let mut plain = BufReader::with_capacity(BUFFER_BYTES, file);
    let is_gzip = plain.fill_buf()?.starts_with(GZIP);
    let text: Box<dyn Read + Send> = match is_gzip {
        true => Box::new(MultiGzDecoder::new(plain)),
        false => Box::new(plain),
    };
    Ok(BufReader::with_capacity(BUFFER_BYTES, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Fed;

    fn due(feed: &mut Feed) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        loop {
            match feed.next() {
                Fed::Due(due) => {
                    let target = due.logged.unwrap().target;
                    all.push((due.at_ns, String::from_utf8_lossy(&target).into_owned()));
                }
                Fed::NotYet => std::thread::yield_now(),
                Fed::End => return all,
            }
        }
    }

    fn reader(text: &[u8], threads: usize, shard: Option<Shard>) -> (AccessLogReader, Vec<Feed>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        std::fs::write(&file, text).unwrap();
        let replay = Replay {
            file,
            speed_up: 1.0,
            methods: vec!["GET".to_owned()],
        };
        AccessLogReader::open(&replay, threads, shard).unwrap()
    }

    fn line(second: u32, request: &str) -> String {
        format!("- - - [10/Oct/2000:13:55:{second:02} -0700] \"{request}\" 200 1\n")
    }

    #[test]
    fn requests_go_to_threads_and_machines_in_turn() {
        let text: String = (0..40)
            .map(|index| line(index, &format!("GET /{index} HTTP/1.1")))
            .collect();
        let mut found = Vec::new();
        for number in [1, 2] {
            let shard = Shard { number, count: 2 };
            let (reader, mut feeds) = reader(text.as_bytes(), 2, Some(shard));
            let reading = std::thread::spawn(|| reader.run(&AtomicBool::new(false)));
            for feed in &mut feeds {
                let own = due(feed);
                assert_eq!(own.len(), 10);
                found.extend(own);
            }
            assert_eq!(reading.join().unwrap().requests, 40);
        }
        found.sort();
        let wanted =
            (0..40u64).map(|index| (index * 1_000_000_000 + 500_000_000, format!("/{index}")));
        assert_eq!(found, wanted.collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_sent_is_counted() {
        let text = [
            line(0, "GET /a HTTP/1.1"),
            line(0, "POST /b HTTP/1.1"),
            "rubbish\n".to_owned(),
            line(1, "GET /b c HTTP/1.1"),
            "x".repeat(LOG_LINE_BYTES_MAX + 5) + "\n",
            line(2, "GET /d HTTP/1.1").trim_end().to_owned(),
        ]
        .concat();
        let mut compressed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        io::Write::write_all(&mut compressed, text.as_bytes()).unwrap();
        for bytes in [text.into_bytes(), compressed.finish().unwrap()] {
            let (reader, mut feeds) = reader(&bytes, 1, None);
            let counts = reader.run(&AtomicBool::new(false));
            let targets: Vec<String> = due(&mut feeds[0]).into_iter().map(|one| one.1).collect();
            assert_eq!(targets, ["/a", "/d"]);
            let found = [counts.lines, counts.requests, counts.other_methods];
            assert_eq!(found, [6, 2, 1]);
            assert_eq!((counts.unreadable, counts.unsendable), (2, 1));
            assert!(counts.first.unwrap().starts_with("line 3: it has no ["));
            assert_eq!(counts.span_s, 2.0);
        }
    }

    #[test]
    fn log_that_breaks_off_says_where() {
        let mut compressed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        io::Write::write_all(&mut compressed, line(0, "GET /a HTTP/1.1").as_bytes()).unwrap();
        let bytes = compressed.finish().unwrap();
        let (reader, _feeds) = reader(&bytes[..bytes.len() - 4], 1, None);
        let error = reader.run(&AtomicBool::new(false)).error.unwrap();
        assert!(error.starts_with("after 1 lines: "), "{error}");
    }

    #[test]
    fn reader_stops_when_nobody_wants_more() {
        const LINE: &str =
            "{\"time\":\"1970-01-01T00:00:00.5Z\",\"method\":\"GET\",\"target\":\"/\"}\n";
        let (reader, feeds) = reader(LINE.repeat(20_000).as_bytes(), 2, None);
        drop(feeds);
        assert!(reader.run(&AtomicBool::new(false)).lines < 20_000);
    }
}
