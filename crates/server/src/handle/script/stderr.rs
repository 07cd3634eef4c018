//! What programs print on standard error: line by line to the log, not faster than someone could
//! read, and the last of it kept to explain a failure.
//!
//! Most programs print nothing there and are soon over. Until [`Stderr::look`] nobody is woken for
//! it, which saves a wake-up of the thread for each program that ends.

use std::task::{Context, Poll};

use hob_http::Watched;
use hob_trace::Mutex;
use hob_trace::metric::ThreadCounters;

use crate::handle::script::limits::{
    ASIDE_BYTES_PER_TURN, STDERR_KEPT_BYTES, STDERR_LINE_BYTES_MAX, STDERR_LINES_AT_ONCE,
    STDERR_LINES_PER_SECOND, STDERR_READ_BYTES,
};

/// Standard error of one process.
pub(crate) struct Stderr {
    /// `None` once it has ended.
    source: Option<Watched>,
    is_looked_at: bool,
    lines: Lines,
}

impl Stderr {
    /// `source` is not watched yet.
    pub(crate) fn new(source: Watched) -> Stderr {
        source.clear_readable();
        Stderr {
            source: Some(source),
            is_looked_at: false,
            lines: Lines::default(),
        }
    }

    /// From now on it is read, and watched when that finds no end.
    pub(crate) fn look(&mut self) {
        if !self.is_looked_at
            && let Some(source) = &self.source
        {
            self.is_looked_at = true;
            source.mark_readable();
        }
    }

    /// A stream that is over.
    pub(crate) fn ended() -> Stderr {
        Stderr {
            source: None,
            is_looked_at: true,
            lines: Lines::default(),
        }
    }

    /// Reads what there is; `each` gets whole lines, `kept` the last of everything. Ready at
    /// the end.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        kept: &mut Vec<u8>,
        mut each: impl FnMut(&[u8]),
    ) -> Poll<()> {
        let mut bytes_read = 0;
        while let Some(source) = &self.source {
            if source.poll_readable(cx).is_pending() {
                return Poll::Pending;
            }
            let mut buffer = [0; STDERR_READ_BYTES];
            match source.poll_read(cx, &mut buffer) {
                Poll::Pending => match source.begin() {
                    Ok(()) => return Poll::Pending,
                    Err(error) => {
                        hob_trace::warn_seldom!(%error, "standard error of a program cannot be watched");
                        self.source = None;
                    }
                },
                Poll::Ready(Ok(count)) if count > 0 => {
                    let text = &buffer[..count];
                    kept.extend_from_slice(text);
                    kept.drain(..kept.len().saturating_sub(STDERR_KEPT_BYTES));
                    self.lines.push(text, &mut each);
                    bytes_read += count;
                }
                Poll::Ready(_) => {
                    self.lines.end(&mut each);
                    self.source = None;
                }
            }
            if bytes_read >= ASIDE_BYTES_PER_TURN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

/// Lines of a text that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// A line that has begun, cut to its longest.
    begun: Vec<u8>,
    has_begun: bool,
}

impl Lines {
    /// Takes a piece; `each` gets the lines that end in it.
    pub(crate) fn push(&mut self, mut text: &[u8], each: &mut (impl FnMut(&[u8]) + ?Sized)) {
        while let Some(end) = memchr::memchr(b'\n', text) {
            self.add(&text[..end]);
            self.end(each);
            text = &text[end + 1..];
        }
        self.add(text);
    }

    fn add(&mut self, text: &[u8]) {
        let room = STDERR_LINE_BYTES_MAX - self.begun.len();
        self.begun.extend_from_slice(&text[..text.len().min(room)]);
        self.has_begun |= !text.is_empty();
    }

    /// What has begun is a line.
    pub(crate) fn end(&mut self, each: &mut (impl FnMut(&[u8]) + ?Sized)) {
        if std::mem::take(&mut self.has_begun) {
            each(self.begun.strip_suffix(b"\r").unwrap_or(&self.begun));
        }
        self.begun.clear();
    }
}

/// Logs a line that a program printed for a request, unless its route has logged as many as may.
pub(crate) fn log(
    (pace, counters): (&StderrRateLimit, &ThreadCounters),
    now_ms: u64,
    (request, program): (&str, &[u8]),
    line: &[u8],
) {
    let Some(dropped) = pace.allows(now_ms) else {
        counters.program_stderr_dropped.add(1);
        return;
    };
    let program = String::from_utf8_lossy(program);
    if dropped > 0 {
        tracing::warn!(%program, lines = dropped, "more standard error than is logged");
    }
    let text = one_line(&String::from_utf8_lossy(line));
    tracing::warn!(%request, %program, "stderr: {text}");
}

/// A line as it was printed, but what cannot be seen is made visible: it cannot move a terminal's
/// cursor, or look like a line of ours. Quotes and backslashes stay, messages are full of them.
pub(crate) fn one_line(text: &str) -> String {
    const STAY: [char; 3] = ['\'', '"', '\\'];
    let text = text.trim_end();
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(STAY) {
        let before = piece.strip_suffix(STAY).unwrap_or(piece);
        shown.extend(before.escape_debug());
        shown.push_str(&piece[before.len()..]);
    }
    shown
}

/// How many lines a route may log: so many at once, and then some each second.
#[derive(Debug)]
pub struct StderrRateLimit(Mutex<Tokens>);

#[derive(Debug)]
struct Tokens {
    at_once: u64,
    per_second: u64,
    /// In thousandths of a line.
    left: u64,
    as_of_ms: u64,
    /// Lines left out since the last one that was logged.
    dropped: u64,
}

impl Default for StderrRateLimit {
    fn default() -> StderrRateLimit {
        StderrRateLimit::new(STDERR_LINES_AT_ONCE, STDERR_LINES_PER_SECOND)
    }
}

impl StderrRateLimit {
    /// So many lines at once, and then so many each second.
    pub(crate) fn new(at_once: u64, per_second: u64) -> StderrRateLimit {
        StderrRateLimit(Mutex::new(Tokens {
            at_once,
            per_second,
            left: at_once * 1000,
            as_of_ms: 0,
            dropped: 0,
        }))
    }

    /// Whether a line may be logged now, and how many were not before it.
    pub(crate) fn allows(&self, now_ms: u64) -> Option<u64> {
        let mut tokens = self.0.lock();
        let passed_ms = now_ms.saturating_sub(tokens.as_of_ms);
        let gained = passed_ms.saturating_mul(tokens.per_second);
        tokens.as_of_ms = tokens.as_of_ms.max(now_ms);
        tokens.left = tokens
            .left
            .saturating_add(gained)
            .min(tokens.at_once * 1000);
        if tokens.left < 1000 {
            tokens.dropped += 1;
            return None;
        }
        tokens.left -= 1000;
        Some(std::mem::take(&mut tokens.dropped))
    }
}

/// The line of all that a program printed before it ended that says why: the last one. Perl then
/// also says, in lines of its own, what could not go on for that.
pub fn cause(printed: &str) -> &str {
    const FOLLOWS: [&str; 2] = ["BEGIN failed--", "Compilation failed in require"];
    let lines = || printed.lines().map(str::trim);
    let lines = || lines().filter(|line| !line.is_empty());
    let is_cause = |line: &&str| !FOLLOWS.iter().any(|begin| line.starts_with(begin));
    let told = lines().rfind(is_cause).or_else(|| lines().next_back());
    told.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str]) -> Vec<String> {
        let mut all = Vec::new();
        let mut each = |line: &[u8]| all.push(String::from_utf8_lossy(line).into_owned());
        let mut lines = Lines::default();
        for piece in pieces {
            lines.push(piece.as_bytes(), &mut each);
        }
        lines.end(&mut each);
        all
    }

    #[test]
    fn line_of_standard_error_is_shown_as_it_was_printed() {
        assert_eq!(
            one_line("env: 'x': \"no\" C:\\a é\r\n"),
            "env: 'x': \"no\" C:\\a é"
        );
        assert_eq!(
            one_line("a\tb\x1b[2Jc\0\u{85}d"),
            "a\\tb\\u{1b}[2Jc\\0\\u{85}d"
        );
    }
    #[test]
    fn lines_are_whole_however_they_come() {
        assert_eq!(lines(&["a\nb", "c\r\n", "\nd"]), ["a", "bc", "d"]);
        assert!(lines(&[]).is_empty() && lines(&["", "\n"]).is_empty());
    }

    #[test]
    fn long_line_is_cut_and_the_next_one_is_not() {
        let long = "x".repeat(STDERR_LINE_BYTES_MAX);
        let cut = lines(&[&long, "yyy", "z\nnext\n"]);
        assert_eq!(cut, [long.as_str(), "next"]);
    }

    #[test]
    fn lines_beyond_the_pace_are_counted() {
        let pace = StderrRateLimit::default();
        let burst = (0..STDERR_LINES_AT_ONCE + 5).filter(|_| pace.allows(1_000).is_some());
        assert_eq!(burst.count() as u64, STDERR_LINES_AT_ONCE);
        assert_eq!(pace.allows(1_000 + 1000 / STDERR_LINES_PER_SECOND), Some(5));
        assert_eq!(pace.allows(1_000 + 1000 / STDERR_LINES_PER_SECOND), None);
    }
}
