//! What programs print on standard error: line by line to the log, not faster than someone could
//! read, and the beginning kept to explain a failure.
//!
//! Most programs print nothing there and are soon over. Until [`Stderr::look`] nobody is woken for
//! it, which saves a wake-up of the thread for each program that ends.

use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use hob_http::Watched;

use crate::handle::cgi::limits::{
    ASIDE_BYTES_PER_TURN, STDERR_KEPT_BYTES, STDERR_LINE_BYTES_MAX, STDERR_LINES_AT_ONCE,
    STDERR_LINES_PER_SECOND, STDERR_READ_BYTES,
};

/// Standard error of one process.
pub(in crate::handle) struct Stderr {
    /// `None` once it has ended.
    source: Option<Watched>,
    is_looked_at: bool,
    lines: Lines,
}

impl Stderr {
    /// `source` is not watched yet.
    pub(in crate::handle) fn new(source: Watched) -> Stderr {
        source.clear_readable();
        Stderr {
            source: Some(source),
            is_looked_at: false,
            lines: Lines::default(),
        }
    }

    /// From now on it is read, and watched when that finds no end.
    pub(in crate::handle) fn look(&mut self) {
        if !self.is_looked_at
            && let Some(source) = &self.source
        {
            self.is_looked_at = true;
            source.mark_readable();
        }
    }

    /// Reads what there is; `each` gets whole lines, `kept` the beginning of everything. Ready at
    /// the end.
    pub(in crate::handle) fn poll(
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
                        tracing::warn!(%error, "standard error of a program cannot be watched");
                        self.source = None;
                    }
                },
                Poll::Ready(Ok(count)) if count > 0 => {
                    let text = &buffer[..count];
                    let room = STDERR_KEPT_BYTES.saturating_sub(kept.len());
                    kept.extend_from_slice(&text[..count.min(room)]);
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
#[derive(Default)]
struct Lines {
    /// A line that has begun, cut to its longest.
    begun: Vec<u8>,
    has_begun: bool,
}

impl Lines {
    fn push(&mut self, mut text: &[u8], each: &mut impl FnMut(&[u8])) {
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

    fn end(&mut self, each: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.has_begun) {
            each(self.begun.strip_suffix(b"\r").unwrap_or(&self.begun));
        }
        self.begun.clear();
    }
}

/// How many lines a route may log: so many at once, and then some each second.
#[derive(Debug)]
pub struct Pace(Mutex<Tokens>);

#[derive(Debug)]
struct Tokens {
    /// In thousandths of a line.
    left: u64,
    as_of_ms: u64,
    /// Lines left out since the last one that was logged.
    dropped: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace(Mutex::new(Tokens {
            left: STDERR_LINES_AT_ONCE * 1000,
            as_of_ms: 0,
            dropped: 0,
        }))
    }
}

impl Pace {
    /// Whether a line may be logged now, and how many were not before it.
    pub(super) fn allows(&self, now_ms: u64) -> Option<u64> {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let passed_ms = now_ms.saturating_sub(tokens.as_of_ms);
        let gained = passed_ms.saturating_mul(STDERR_LINES_PER_SECOND);
        tokens.as_of_ms = tokens.as_of_ms.max(now_ms);
        tokens.left = tokens
            .left
            .saturating_add(gained)
            .min(STDERR_LINES_AT_ONCE * 1000);
        if tokens.left < 1000 {
            tokens.dropped += 1;
            return None;
        }
        tokens.left -= 1000;
        Some(std::mem::take(&mut tokens.dropped))
    }
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
        let pace = Pace::default();
        let burst = (0..STDERR_LINES_AT_ONCE + 5).filter(|_| pace.allows(1_000).is_some());
        assert_eq!(burst.count() as u64, STDERR_LINES_AT_ONCE);
        assert_eq!(pace.allows(1_000 + 1000 / STDERR_LINES_PER_SECOND), Some(5));
        assert_eq!(pace.allows(1_000 + 1000 / STDERR_LINES_PER_SECOND), None);
    }
}
