//! What a worker prints on standard output and standard error: to the log line by line, and its
//! last words kept to explain its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use hob_http::{Reactor, Watched};
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::{Hidden, Pen, Stage};

use crate::handle::cgi::stderr::Stderr;
use crate::handle::resident::exchange::Name;
use crate::handle::resident::limits::LAST_WORDS_BYTES;
use crate::handle::resident::pool::Pool;

/// Both streams of one worker.
pub(super) struct Said {
    pool: Arc<Pool>,
    streams: [Stream; 2],
    last_words: VecDeque<u8>,
}

struct Stream {
    source: Stderr,
    name: &'static str,
    is_over: bool,
}

/// Whom a line is from.
pub(super) struct Speaker<'a> {
    pub(super) pid: Option<u32>,
    /// The request it has, when it has one.
    pub(super) request: Option<Name>,
    pub(super) now_ms: u64,
    pub(super) counters: &'a ThreadCounters,
    pub(super) reactor: &'a Reactor,
}

impl Said {
    pub(super) fn new(pool: &Arc<Pool>, stdout: Option<Watched>, stderr: Watched) -> Said {
        let stream = |source, name| {
            let mut source = Stderr::new(source);
            source.look();
            Stream {
                source,
                name,
                is_over: false,
            }
        };
        let is_over = stdout.is_none();
        let mut stdout = match stdout {
            Some(stdout) => stream(stdout, "stdout"),
            None => Stream {
                source: Stderr::ended(),
                name: "stdout",
                is_over,
            },
        };
        stdout.is_over = is_over;
        Said {
            pool: Arc::clone(pool),
            streams: [stdout, stream(stderr, "stderr")],
            last_words: VecDeque::new(),
        }
    }

    /// Reads what there is; ready when nothing more comes.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, speaker: &Speaker<'_>) -> Poll<()> {
        let (pool, last_words) = (&self.pool, &mut self.last_words);
        for stream in self.streams.iter_mut().filter(|stream| !stream.is_over) {
            let name = stream.name;
            let mut unkept = Vec::new();
            let polled = stream.source.poll(cx, &mut unkept, |line| {
                last_words.extend(line.iter().chain(b"\n"));
                let surplus = last_words.len().saturating_sub(LAST_WORDS_BYTES);
                last_words.drain(..surplus);
                log(pool, speaker, name, line);
            });
            stream.is_over = polled.is_ready();
        }
        match self.streams.iter().all(|stream| stream.is_over) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// What it printed last.
    pub(super) fn last_words(&self) -> String {
        let bytes: Vec<u8> = self.last_words.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

fn log(pool: &Pool, speaker: &Speaker<'_>, stream: &str, line: &[u8]) {
    if let Some(name) = speaker.request
        && name.trail.is_watched()
    {
        let now_us = speaker.reactor.now_us();
        let tell = |pen: &mut Pen<'_>, _: Option<&Hidden>| {
            pen.text("text", line);
            pen.text("stream", stream.as_bytes());
        };
        speaker
            .reactor
            .station()
            .tell(&name.trail, Stage::Stderr, now_us, tell);
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
    let text = text.trim_end().escape_debug();
    match speaker.request {
        Some(request) => tracing::warn!(%request, program, pid, "{stream}: {text}"),
        None => tracing::warn!(program, pid, "{stream}: {text}"),
    }
}
