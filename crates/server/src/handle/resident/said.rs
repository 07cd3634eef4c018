//! What a worker prints on standard output and standard error: to the log line by line, and its
//! last words kept to explain its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use hob_http::{Reactor, Watched};
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::{Hidden, Pen, RequestStage};

use crate::handle::resident::exchange::RequestName;
use crate::handle::resident::limits::{HELD_LINES_MAX, LAST_WORDS_BYTES, LATELY_MAX};
use crate::handle::resident::pool::Pool;
use crate::handle::script::stderr::{Stderr, one_line};

/// Both streams of one worker.
pub(super) struct WorkerOutput {
    pool: Arc<Pool>,
    streams: [WorkerOutputStream; 2],
    last_words: VecDeque<u8>,
    /// Lines of a worker that is not ready yet: of one that never is, the cause alone is logged.
    held: Option<VecDeque<(&'static str, Vec<u8>)>>,
    /// What is there by now is of requests before the one it has.
    must_forget: bool,
    has_begun_requests: bool,
    /// The last requests of a worker that may have several: a line may say which it is of.
    lately: VecDeque<RequestName>,
}

struct WorkerOutputStream {
    source: Stderr,
    name: &'static str,
    is_over: bool,
}

/// Whom a line is from.
pub(super) struct Speaker<'a> {
    pub(super) pid: Option<u32>,
    /// The request it has, when it has one.
    pub(super) request: Option<RequestName>,
    pub(super) now_ms: u64,
    pub(super) counters: &'a ThreadCounters,
    pub(super) reactor: &'a Reactor,
}

impl WorkerOutput {
    pub(super) fn new(pool: &Arc<Pool>, stdout: Option<Watched>, stderr: Watched) -> WorkerOutput {
        let stream = |source, name| {
            let mut source = Stderr::new(source);
            source.look();
            WorkerOutputStream {
                source,
                name,
                is_over: false,
            }
        };
        let is_over = stdout.is_none();
        let mut stdout = match stdout {
            Some(stdout) => stream(stdout, "stdout"),
            None => WorkerOutputStream {
                source: Stderr::ended(),
                name: "stdout",
                is_over,
            },
        };
        stdout.is_over = is_over;
        WorkerOutput {
            pool: Arc::clone(pool),
            streams: [stdout, stream(stderr, "stderr")],
            last_words: VecDeque::new(),
            held: Some(VecDeque::new()),
            must_forget: false,
            has_begun_requests: false,
            lately: VecDeque::new(),
        }
    }

    /// Reads what there is; ready when nothing more comes.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, speaker: &Speaker<'_>) -> Poll<()> {
        let (pool, last_words, held) = (&self.pool, &mut self.last_words, &mut self.held);
        let lately = &self.lately;
        for stream in self.streams.iter_mut().filter(|stream| !stream.is_over) {
            let name = stream.name;
            let mut unkept = Vec::new();
            let polled = stream.source.poll(cx, &mut unkept, |line| {
                let (of, line) = without_mark(line, lately);
                last_words.extend(line.iter().chain(b"\n"));
                let surplus = last_words.len().saturating_sub(LAST_WORDS_BYTES);
                last_words.drain(..surplus);
                let Some(held) = held else {
                    return log(pool, speaker, of.or(speaker.request), name, line);
                };
                if held.len() == HELD_LINES_MAX {
                    held.pop_front();
                    speaker.counters.program_stderr_dropped.add(1);
                }
                held.push_back((name, line.to_vec()));
            });
            stream.is_over = polled.is_ready();
        }
        if std::mem::take(&mut self.must_forget) {
            self.last_words.clear();
        }
        match self.streams.iter().all(|stream| stream.is_over) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// It is ready: what it has printed until now is logged, as all that follows is.
    pub(super) fn be_ready(&mut self, speaker: &Speaker<'_>) {
        for (name, line) in self.held.take().into_iter().flatten() {
            // Of native parts: so says every worker of the program.
            let is_of_all = line.ends_with(b"; going on without it");
            if is_of_all && !self.pool.is_new_remark(&line) {
                continue;
            }
            log(&self.pool, speaker, speaker.request, name, &line);
        }
    }

    /// A request begins beside others, or may have some beside it.
    pub(super) fn begin_one_of_many(&mut self, name: RequestName) {
        if self.lately.len() == LATELY_MAX {
            self.lately.pop_front();
        }
        self.lately.push_back(name);
    }

    /// A request begins and is the only one: what was printed for those before it does not explain
    /// its end. What is still in the pipes is to be read before it is sent. Before the first one
    /// there is only what it printed at its start, and that may.
    pub(super) fn begin_request(&mut self) {
        self.must_forget |= std::mem::replace(&mut self.has_begun_requests, true);
    }

    /// It has been ready.
    pub(super) fn was_ready(&self) -> bool {
        self.held.is_none()
    }

    /// A request has begun since the last look.
    pub(super) fn must_forget(&self) -> bool {
        self.must_forget
    }

    /// What it printed last.
    pub(super) fn last_words(&self) -> String {
        let bytes: Vec<u8> = self.last_words.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

/// A line without its mark, and the request that the mark names: hosts of ours put one before
/// each line of a traceback, `RS request US`, where their worker has several requests at a time.
fn without_mark<'l>(
    line: &'l [u8],
    lately: &VecDeque<RequestName>,
) -> (Option<RequestName>, &'l [u8]) {
    const BEGIN: u8 = 0x1e;
    const END: u8 = 0x1f;
    let Some(rest) = line.strip_prefix(&[BEGIN]) else {
        return (None, line);
    };
    let Some(end) = memchr::memchr(END, rest) else {
        return (None, line);
    };
    let is_it = |name: &&RequestName| name.to_string().as_bytes() == &rest[..end];
    (lately.iter().rev().find(is_it).copied(), &rest[end + 1..])
}

fn log(
    pool: &Pool,
    speaker: &Speaker<'_>,
    request: Option<RequestName>,
    stream: &str,
    line: &[u8],
) {
    if let Some(name) = request
        && name.trail.is_traced()
    {
        let now_us = speaker.reactor.now_us();
        let tell = |pen: &mut Pen<'_>, _: Option<&Hidden>| {
            pen.text("text", line);
            pen.text("stream", stream.as_bytes());
        };
        speaker
            .reactor
            .station()
            .tell(&name.trail, RequestStage::Stderr, now_us, tell);
    }
    let Some(dropped) = pool.pace.allows(speaker.now_ms) else {
        speaker.counters.program_stderr_dropped.add(1);
        return;
    };
    let program = pool.settings.runs.name();
    let pid = speaker.pid.unwrap_or_default();
    if dropped > 0 {
        tracing::warn!(program, pid, lines = dropped, "more output than is logged");
    }
    let text = String::from_utf8_lossy(line);
    let text = one_line(&text);
    match request {
        Some(request) => tracing::warn!(%request, program, pid, "{stream}: {text}"),
        None => tracing::warn!(program, pid, "{stream}: {text}"),
    }
}
