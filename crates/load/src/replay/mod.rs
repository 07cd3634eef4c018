//! Requests of an access log, sent again at their own times.
//!
//! `line` reads one line of a log, `clock` turns its times into moments of the run, `reader` reads
//! a whole log on a thread of its own and hands its requests to the threads that send them, each
//! through a `Feed`. Little of a log is in memory at a time: a second of it, and what threads have
//! been handed ahead.

mod clock;
mod feed;
mod line;
mod reader;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use crate::entry::RequestSpec;
use crate::limits::LOG_METHOD_COUNT_MAX;
use crate::page::count;
use crate::url::Url;

pub(crate) use feed::{Due, Fed, Feed, Logged};
pub use line::{LineFault, LogLine};
pub(crate) use reader::{AccessLogReader, AccessLogReading, Counts};

/// What gaps can be divided by.
const SPEED_UPS: RangeInclusive<f64> = 0.001..=1e6;

/// A log that is replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The log: common or combined format, or hob's JSON; perhaps compressed by gzip.
    pub file: PathBuf,
    /// What gaps between requests are divided by.
    pub speed_up: f64,
    /// Methods that are sent; requests with others are counted and left out.
    pub methods: Vec<String>,
}

impl Replay {
    /// What it is, in a few words.
    pub(crate) fn title(&self) -> String {
        let speed = match self.speed_up {
            1.0 => "as they were".to_owned(),
            speed_up => format!("{speed_up} times as fast"),
        };
        let file: String = self.file.display().to_string();
        let file: String = file.chars().filter(|one| !one.is_control()).collect();
        format!("requests of {file} {speed}")
    }

    /// What about it, in a plan of so many entries, makes no sense.
    pub(crate) fn check(&self, entry_count: usize) -> Result<(), String> {
        let count = self.methods.len();
        if !(1..=LOG_METHOD_COUNT_MAX).contains(&count) || entry_count != count {
            return Err(format!(
                "a log is replayed with 1 to {LOG_METHOD_COUNT_MAX} methods"
            ));
        }
        if !SPEED_UPS.contains(&self.speed_up) {
            return Err(format!(
                "a log is sped up {} to {} times",
                SPEED_UPS.start(),
                SPEED_UPS.end()
            ));
        }
        Ok(())
    }

    /// Says that there was nothing to send, and why.
    pub(crate) fn nothing(&self, counts: &Counts) -> String {
        if counts.requests > 0 {
            return format!(
                "--replay {}: none of its {} requests was due in the measured time; the warm-up \
                 (--warm-up) must be shorter than the log, and the time (--for) long enough",
                self.file.display(),
                count(counts.requests)
            );
        }
        let mut text = format!(
            "--replay {}: none of its {} lines is a request to send",
            self.file.display(),
            count(counts.lines)
        );
        if let Some(first) = &counts.first {
            text.push_str(&format!("; {first}"));
        }
        if counts.other_methods > 0 {
            text.push_str(&format!(
                "; {} have other methods than {} (--replay-methods)",
                count(counts.other_methods),
                self.methods.join(", ")
            ));
        }
        if let Some(error) = &counts.error {
            text.push_str(&format!("; {error}"));
        }
        text
    }

    /// What is asked for: an entry for each method, of the server of a URL. Requests get their
    /// targets from the log. Methods other than GET and HEAD have a body, which no log tells.
    pub fn entries(&self, server: &Url, body: &[u8]) -> Vec<RequestSpec> {
        let body: Arc<[u8]> = body.into();
        let entry = |method: &String| {
            let mut url = server.clone();
            url.target.clear();
            let has_body = method != "GET" && method != "HEAD";
            RequestSpec {
                name: Some(method.clone()),
                method: Some(method.clone()),
                body: has_body.then(|| body.clone()),
                ..RequestSpec::from(url)
            }
        };
        self.methods.iter().map(entry).collect()
    }
}
