//! What an operator should look at, in words.

use hob_trace::activity::Row;
use serde_json::{Value, json};

use crate::activity::workers::Workers;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Something fails.
    Bad,
    /// Something will, if it goes on.
    Warning,
}

/// One thing to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alert {
    /// How bad it is.
    pub(crate) level: Level,
    /// What it is, one sentence without a full stop.
    pub(crate) text: String,
    /// Since when, as Unix time in milliseconds.
    pub(crate) since_unix_ms: u64,
    /// The page that tells more.
    pub(crate) page: &'static str,
    /// What it is about: one that goes on keeps its time.
    what: &'static str,
}

impl Alert {
    /// As the API tells it.
    pub(crate) fn json(&self) -> Value {
        let level = match self.level {
            Level::Bad => "bad",
            Level::Warning => "warning",
        };
        json!({
            "level": level,
            "text": self.text,
            "since_unix_ms": self.since_unix_ms,
            "page": self.page,
        })
    }
}

/// What alerts are drawn from.
pub(crate) struct Facts<'a> {
    /// The last ten seconds, one row.
    pub(crate) last: &'a Row,
    /// Who is at work.
    pub(crate) workers: &'a Workers,
    /// Access log lines that were lost in them.
    pub(crate) log_lost: u64,
    /// Writes to the files of history and activity that failed, and why the last one did.
    pub(crate) failed_write: Option<&'a str>,
}

/// From this share of requests on, errors are told of: one in so many.
const ERRORS_ONE_IN: u32 = 20;
/// And from so many errors on.
const ERRORS_MIN: u32 = 5;

/// What there is to look at now; what goes on since `before` keeps its time.
pub(crate) fn alerts(facts: &Facts<'_>, before: &[Alert], now_unix_ms: u64) -> Vec<Alert> {
    let mut found = Vec::new();
    let mut tell = |level, what, page, text: String| {
        let same = before.iter().find(|alert| alert.what == what);
        found.push(Alert {
            level,
            text,
            since_unix_ms: same.map_or(now_unix_ms, |same| same.since_unix_ms),
            page,
            what,
        });
    };
    let (errors, requests) = (facts.last.errors, facts.last.requests);
    if errors >= ERRORS_MIN && errors.saturating_mul(ERRORS_ONE_IN) >= requests {
        let text = format!("{errors} of the last {requests} requests failed");
        tell(Level::Bad, "errors", "history", text);
    }
    let workers = facts.workers;
    if workers.queued > 0 && workers.idle == 0 {
        let (queued, busy) = (workers.queued, workers.busy);
        let text = format!("{queued} requests wait for a worker; {busy} are busy");
        tell(Level::Warning, "queue", "programs", text);
    }
    if facts.log_lost > 0 {
        let text = format!("{} lines of access logs were lost", facts.log_lost);
        tell(Level::Bad, "log", "logs", text);
    }
    if let Some(why) = facts.failed_write {
        let text = format!("history or activity could not be written to its file: {why}");
        tell(Level::Warning, "file", "history", text);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_keeps_its_time_and_what_is_over_is_not_told() {
        let bad = Row {
            requests: 100,
            errors: 5,
            ..Row::default()
        };
        let busy = Workers {
            queued: 3,
            busy: 2,
            ..Workers::default()
        };
        let facts = |last, workers| Facts {
            last,
            workers,
            log_lost: 0,
            failed_write: None,
        };
        let (fine, idle) = (Row::default(), Workers::default());
        assert_eq!(alerts(&facts(&fine, &idle), &[], 1), []);
        let first = alerts(&facts(&bad, &idle), &[], 1);
        assert_eq!(first[0].text, "5 of the last 100 requests failed");
        let second = alerts(&facts(&bad, &busy), &first, 9);
        let times: Vec<u64> = second.iter().map(|alert| alert.since_unix_ms).collect();
        assert_eq!(times, [1, 9]);
        assert_eq!(alerts(&facts(&fine, &idle), &second, 10), []);
    }
}
