//! The thread `hob-activity`: looks at the server once a second, and writes the files.
//!
//! It waits for the end of each second of the wall clock. Serving threads are not stopped and,
//! while nothing happens, not woken; only this thread ever waits for the disk of the two files.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hob_http::thread::{Crew, Handle, Thread};
use hob_trace::Mutex;
use hob_trace::activity::{ActivityFile, ActivityRow};
use hob_trace::histogram::HistogramSnapshot;
use hob_trace::history::HistoryFile;
use hob_trace::metric::Snapshot;
use hob_trace::series::SeriesSum;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::SamplerSnapshot;
use super::processes::{self, Processes};
use super::recent::Looks;
use crate::activity::Inside;
use hob_server::answer::Answers;
use hob_server::serve::ServerState;
use hob_server::serve::workers::Workers;

/// Seconds between two looks at programs' processes while nothing is asked of the server.
const IDLE_LOOK_S: u64 = 10;
/// How long threads may take to hand over what they have; what comes later is written later.
const HAND_OVER_PATIENCE: Duration = Duration::from_millis(200);
/// Places of the two files among failures.
const ACTIVITY: usize = 0;
const HISTORY: usize = 1;
/// Seconds of the rates that the overview tells.
pub(crate) const RATE_S: u64 = 10;

/// Something else that is done each second: told the Unix time in seconds.
pub type Hook = Box<dyn FnMut(u64) + Send>;

/// Open files in which history and activity outlive the server.
#[derive(Default)]
pub struct SamplerFiles {
    /// Of the history.
    pub history: Option<OwnedFd>,
    /// Its size at most, in bytes.
    pub history_bytes_max: u64,
    /// Of activity.
    pub activity: Option<OwnedFd>,
}

/// What is looked at.
pub struct SampledServer {
    /// Its threads.
    pub crew: Arc<Crew>,
    /// What they share.
    pub shared: Arc<ServerState>,
    /// History and activity.
    pub inside: Arc<Inside>,
}

/// The running thread; ends when it is dropped.
pub struct Sampler {
    stop: Arc<SamplerStop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct SamplerStop {
    is_due: Mutex<bool>,
    changed: Condvar,
}

impl Sampler {
    /// Starts the thread.
    pub fn start(of: SampledServer, files: SamplerFiles, hooks: Vec<Hook>) -> io::Result<Sampler> {
        let stop = Arc::new(SamplerStop::default());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("hob-activity".to_owned())
            .spawn(move || SamplerState::new(of, hooks).run(files, &stopped))?;
        Ok(Sampler {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        *self.stop.is_due.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has said so itself if it panicked.
            let _ = thread.join();
        }
    }
}

impl SamplerStop {
    /// Waits; true when it is time to end.
    fn wait(&self, time: Duration) -> bool {
        let is_due = self.is_due.lock();
        let waited = self.changed.wait_timeout_while(is_due, time, |due| !*due);
        waited.is_ok_and(|(due, _)| *due)
    }
}

/// What the thread remembers from one second to the next.
struct SamplerState {
    server: SampledServer,
    hooks: Vec<Hook>,
    started: Instant,
    before: CountedSecond,
    looks: Looks,
    processes: Processes,
    /// The last second that has a row, in Unix seconds.
    last_s: u64,
    /// The minute under way, in Unix minutes, and response times when it began.
    minute: (u64, Option<HistogramSnapshot>),
    history: Option<HistoryFile>,
    activity: Option<ActivityFile>,
    /// The file of activity while another server has it.
    wanted: Option<File>,
    /// Why the last write to the file of activity, and of the history, failed.
    failures: [Option<String>; 2],
}

/// What had been counted at the end of a second.
struct CountedSecond {
    all: SeriesSum,
    counters: Snapshot,
    own_cpu_us: u64,
    /// Requests of all series.
    requests: u64,
    /// There were none in that second.
    is_settled: bool,
}

impl SamplerState {
    fn new(server: SampledServer, hooks: Vec<Hook>) -> SamplerState {
        SamplerState {
            before: CountedSecond::nothing(),
            server,
            hooks,
            started: Instant::now(),
            looks: Looks::default(),
            processes: Processes::default(),
            last_s: 0,
            minute: (0, None),
            history: None,
            activity: None,
            wanted: None,
            failures: [None, None],
        }
    }

    fn run(mut self, files: SamplerFiles, stop: &SamplerStop) {
        self.open(files);
        loop {
            let (_, ms) = now();
            let is_over = stop.wait(Duration::from_millis(1000 - ms));
            let (now_s, _) = now();
            // The second that has just ended; the one that is cut short, at the end.
            let second = if is_over {
                now_s
            } else {
                now_s.saturating_sub(1)
            };
            self.take_activity_file();
            if is_over || second != self.last_s {
                self.look(second);
                self.keep_history();
            }
            if is_over {
                return;
            }
            self.hooks.iter_mut().for_each(|hook| hook(now_s));
        }
    }

    /// Takes over what the files have.
    fn open(&mut self, files: SamplerFiles) {
        let inside = Arc::clone(&self.server.inside);
        self.wanted = files.activity.map(File::from);
        self.take_activity_file();
        if self.wanted.is_some() {
            tracing::info!("the activity file is another server's; it is used when that is gone");
        }
        if let Some(file) = files.history {
            let file = HistoryFile::new(File::from(file), files.history_bytes_max);
            let (now_s, _) = now();
            let series = &self.server.shared.series;
            match file.load(&inside.history, series, now_s * 1000) {
                Ok(loaded) if loaded.damaged > 0 => {
                    let (requests, damaged) = (loaded.requests, loaded.damaged);
                    tracing::warn!(requests, damaged, "parts of the history file were damaged");
                }
                Ok(loaded) => {
                    tracing::debug!(requests = loaded.requests, "history taken over");
                }
                Err(error) => tracing::warn!(%error, "the history file could not be read"),
            }
            self.history = Some(file);
        }
    }

    /// Takes over the file of activity, unless another server still has it: the one before, which
    /// drains, or one of another hob.
    fn take_activity_file(&mut self) {
        let Some(file) = self.wanted.take() else {
            return;
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                self.wanted = Some(file);
                return;
            }
            Err(error) => return tracing::warn!(%error, "the activity file is not used"),
            Ok(()) => {}
        }
        let activity = &self.server.inside.activity;
        let opened = ActivityFile::open(file);
        match opened.and_then(|file| Ok((file.load(activity)?, file))) {
            Ok((damaged, file)) => {
                if damaged > 0 {
                    tracing::warn!(damaged, "rows of the activity file were damaged");
                }
                self.activity = Some(file);
            }
            Err(error) => tracing::warn!(%error, "the activity file is not used"),
        }
    }

    /// Makes the row of a second.
    fn look(&mut self, second: u64) {
        self.last_s = second;
        if !self.server.inside.has_activity {
            return self.look_without_activity();
        }
        let counted = self.before.next(&self.server);
        let before = std::mem::replace(&mut self.before, counted);
        let counted = &self.before;
        let running = counted.counters.running();
        let requests = counted.all.requests.wrapping_sub(before.all.requests);
        let is_idle = requests == 0 && running == 0;
        let mut seen = self.server.inside.seen();
        let mut programs_us = counted.all.run_cpu_us.wrapping_sub(before.all.run_cpu_us);
        if !is_idle || second.is_multiple_of(IDLE_LOOK_S) {
            seen.workers = Workers::of(&self.server.shared);
            let (used_us, memory_bytes) = self.processes.look(&seen.workers.pids);
            programs_us += used_us;
            seen.programs_bytes = memory_bytes;
            seen.server_bytes = processes::own_memory_bytes();
        }
        let total = counted.all.total.since(&before.all.total);
        let queue = counted.all.queue.since(&before.all.queue);
        let [p50_us, p90_us, p99_us] = total.percentiles_us([500, 900, 990]).map(small);
        let row = ActivityRow {
            requests: small(requests),
            errors: small(counted.all.errors.wrapping_sub(before.all.errors)),
            bytes_in: counted.all.bytes_in.wrapping_sub(before.all.bytes_in),
            bytes_out: counted.all.bytes_out.wrapping_sub(before.all.bytes_out),
            p50_us,
            p90_us,
            p99_us,
            max_us: small(total.max_us()),
            busy_workers: small(seen.workers.busy as u64),
            queue_wait_us: small(queue.percentile_us(990)),
            running: small(running),
            connections: small(self.server.crew.open_connections() as u64),
            server_cpu_us: counted.own_cpu_us.saturating_sub(before.own_cpu_us),
            programs_cpu_us: programs_us,
            server_memory_bytes: seen.server_bytes,
            programs_memory_bytes: seen.programs_bytes,
        };
        let minute = self.minute_percentiles(second, &before.all.total);
        let activity = &self.server.inside.activity;
        let changed = activity.with(second, &row, minute);
        // What a reader has seen is there after a crash.
        let written = self.activity.as_ref().map(|file| file.write(&changed));
        activity.record(&changed);
        self.note(ACTIVITY, written, &mut seen);
        self.refresh(&mut seen, second);
        *self.server.inside.seen.lock() = seen;
    }

    /// What the overview has where no activity is kept.
    fn look_without_activity(&mut self) {
        let workers = Workers::of(&self.server.shared);
        let (_, programs_bytes) = self.processes.look(&workers.pids);
        let mut seen = self.server.inside.seen.lock();
        seen.workers = workers;
        seen.programs_bytes = programs_bytes;
        seen.server_bytes = processes::own_memory_bytes();
    }

    /// The percentiles of the minute under way, if it was seen from its begin on.
    fn minute_percentiles(&mut self, second: u64, before: &HistogramSnapshot) -> Option<[u32; 3]> {
        let minute = second / 60;
        if self.minute.0 != minute {
            let is_begin = second.is_multiple_of(60);
            self.minute = (minute, is_begin.then(|| before.clone()));
        }
        let begin = self.minute.1.as_ref()?;
        let times = self.before.all.total.since(begin);
        Some(times.percentiles_us([500, 900, 990]).map(small))
    }

    /// The numbers and words of the overview.
    fn refresh(&mut self, seen: &mut SamplerSnapshot, second: u64) {
        let now_s = self.started.elapsed().as_secs();
        let all = &self.before.all;
        let series = &self.server.shared.series;
        let recent = self.looks.take_in(now_s, &all.total, &all.queue, series);
        seen.recent = Arc::new(recent);
        let last = self.server.inside.activity.last_seconds(RATE_S, second + 1);
        let rows = last.rows.into_iter().flatten();
        let last = rows.reduce(|mut all, row| {
            all.absorb(&row);
            all
        });
        seen.last = last.unwrap_or_default();
        seen.failed_write = self.failures.iter().flatten().next().cloned();
    }

    /// Lets go of what is old, has threads hand over what they have, and writes what is new.
    fn keep_history(&mut self) {
        let inside = Arc::clone(&self.server.inside);
        inside.history.expire(now().0 * 1000);
        let (done, all_done) = mpsc::channel();
        for thread in inside.waiting_threads() {
            let done = done.clone();
            Handle::new(&self.server.crew, thread).run(move |thread: &mut Thread<Answers>| {
                thread.answer().hand_over();
                // Nobody waits for it where there is no file.
                let _ = done.send(());
            });
        }
        drop(done);
        if let Some(file) = &self.history {
            let until = Instant::now() + HAND_OVER_PATIENCE;
            // Ends when every thread has done it, or is gone.
            while let Ok(()) = all_done.recv_timeout(until.duration_since(Instant::now())) {}
            let written = file.append(&inside.history, &self.server.shared.series);
            self.note(HISTORY, Some(written), &mut inside.seen.lock());
        }
    }

    /// Counts a failed write, and tells of the first of several.
    fn note(&mut self, file: usize, written: Option<io::Result<()>>, seen: &mut SamplerSnapshot) {
        let failure = &mut self.failures[file];
        match written {
            Some(Err(error)) => {
                seen.failed_writes += 1;
                if failure.is_none() {
                    let what = ["activity", "history"][file];
                    tracing::error!(%error, "the file of {what} cannot be written");
                }
                *failure = Some(error.to_string());
            }
            Some(Ok(())) => *failure = None,
            None => {}
        }
    }
}

impl CountedSecond {
    /// The server begins with nothing counted: what came before this thread did is in its first
    /// row.
    fn nothing() -> CountedSecond {
        CountedSecond {
            all: SeriesSum::default(),
            counters: Snapshot::default(),
            own_cpu_us: processes::own_cpu_us(),
            requests: 0,
            is_settled: false,
        }
    }

    /// The same a second later. Series are added up when one has changed, and once more after that:
    /// a thread may have been at it.
    fn next(&self, server: &SampledServer) -> CountedSecond {
        let requests = server.shared.series.requests();
        let requests = requests.values().fold(0_u64, |sum, n| sum.wrapping_add(*n));
        let is_same = requests == self.requests;
        CountedSecond {
            all: match is_same && self.is_settled {
                true => self.all.clone(),
                false => server.shared.series.all(),
            },
            counters: server.shared.counts.merged(),
            own_cpu_us: processes::own_cpu_us(),
            requests,
            is_settled: is_same,
        }
    }
}

/// The wall clock: Unix seconds, and the milliseconds beyond.
fn now() -> (u64, u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    (now.as_secs(), now.subsec_millis().into())
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
