//! `GET /v1/statistics` and `POST /v1/statistics/zero`: requests told apart by what they were,
//! since the server started, since the day began (UTC), and since somebody set the counts to zero.
//!
//! Counts themselves only grow; a span is what they are now less what they were at its begin.

use std::collections::BTreeMap;

use hob_http::{Answered, unix_ms};
use hob_trace::Mutex;
use hob_trace::record::{CacheOutcome, Fault, HandlerKind, Outcome, Protocol};
use hob_trace::statistics::METHODS;
use hob_trace::{ServerCounts, Snapshot, Statistics};
use serde_json::{Value, json};

use super::ask::AdminRequest;
use super::{Admin, reply};
use crate::api::{self, ByteCounts, ConnectionCounts, HandshakeCounts, SpanCounts, WorkerCounts};

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// From when on it is told what all threads have counted.
pub struct Ledger {
    marks: Mutex<StatisticsMarks>,
}

struct StatisticsMarks {
    start: Mark,
    day: Mark,
    zero: Mark,
}

/// The counts of a moment.
#[derive(Clone)]
struct Mark {
    unix_ms: u64,
    requests: Box<Statistics>,
    counters: Snapshot,
}

impl Ledger {
    /// Nothing counted; the server starts now, in Unix milliseconds.
    pub fn new(unix_ms: u64) -> Ledger {
        let start = Mark {
            unix_ms,
            requests: Box::default(),
            counters: Snapshot::default(),
        };
        let marks = StatisticsMarks {
            day: start.clone(),
            zero: start.clone(),
            start,
        };
        Ledger {
            marks: Mutex::new(marks),
        }
    }

    /// Begins the day's counts anew when there is a new day. To be called every second or so.
    pub fn tick(&self, counts: &ServerCounts, unix_ms: u64) {
        let is_new_day = self.marks.lock().day.unix_ms / DAY_MS != unix_ms / DAY_MS;
        if is_new_day {
            let mark = Mark::now(counts, unix_ms);
            self.marks.lock().day = mark;
        }
    }

    /// Counts from now on.
    pub fn zero(&self, counts: &ServerCounts, unix_ms: u64) {
        let mark = Mark::now(counts, unix_ms);
        self.marks.lock().zero = mark;
    }

    /// All spans.
    pub fn told(&self, counts: &ServerCounts, unix_ms: u64) -> api::Statistics {
        let now = Mark::now(counts, unix_ms);
        let marks = self.marks.lock();
        api::Statistics {
            now_unix_ms: unix_ms,
            start: now.since(&marks.start),
            today: now.since(&marks.day),
            zero: now.since(&marks.zero),
        }
    }
}

impl Mark {
    fn now(counts: &ServerCounts, unix_ms: u64) -> Mark {
        Mark {
            unix_ms,
            counters: counts.merged(),
            requests: counts.statistics.merged(),
        }
    }

    fn since(&self, before: &Mark) -> SpanCounts {
        let requests = self.requests.since(&before.requests);
        let counted = self.counters.since(&before.counters);
        let statuses = requests.statuses_sent();
        let classes = [
            ("1xx", counted.responses_1xx),
            ("2xx", counted.responses_2xx),
            ("3xx", counted.responses_3xx),
            ("4xx", counted.responses_4xx),
            ("5xx", counted.responses_5xx),
        ];
        SpanCounts {
            since_unix_ms: before.unix_ms,
            requests: counted.requests,
            methods: by_word(METHODS, &requests.methods),
            protocols: by_word(words(Protocol::ALL, Protocol::word), &requests.protocols()),
            handlers: by_word(
                words(HandlerKind::ALL, HandlerKind::word),
                &requests.handlers(),
            ),
            status_classes: classes
                .map(|(class, count)| (class.to_owned(), count))
                .into(),
            statuses: statuses
                .map(|(status, count)| (status.to_string(), count))
                .collect(),
            cache: by_word(
                words(CacheOutcome::ALL, CacheOutcome::word),
                &requests.caches(),
            ),
            outcomes: by_word(words(Outcome::ALL, Outcome::word), &requests.outcomes()),
            faults: by_word(words(Fault::ALL, Fault::word), &requests.faults()),
            workers: WorkerCounts {
                started: counted.worker_starts,
                reused: counted.worker_reuses,
                crashed: counted.worker_crashes,
                forked_warm: counted.warm_forks,
                programs_ended: counted.programs_ended,
            },
            bytes: ByteCounts {
                received: counted.bytes_in,
                sent: counted.bytes_out,
            },
            tls: HandshakeCounts {
                full: counted.tls_handshakes.saturating_sub(counted.tls_resumed),
                resumed: counted.tls_resumed,
                failed: counted.tls_handshakes_failed,
            },
            connections: ConnectionCounts {
                accepted: counted.connections_accepted,
                h2: counted.h2_connections,
                h3: counted.h3_connections,
            },
        }
    }
}

fn words<T: Copy>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl Iterator<Item = &'static str> {
    all.iter().map(move |one| word(*one))
}

/// Words with their counts.
fn by_word(words: impl IntoIterator<Item = &'static str>, counts: &[u64]) -> BTreeMap<String, u64> {
    let pairs = words.into_iter().zip(counts);
    pairs
        .map(|(word, count)| (word.to_owned(), *count))
        .collect()
}

/// `GET /v1/statistics`
pub(super) fn answer(ask: &AdminRequest) -> Answered {
    Answered::Ready(reply::object(200, &told(&ask.admin)))
}

/// The counts of all stretches of time.
pub(super) fn told(admin: &Admin) -> Value {
    json!(admin.statistics.told(&admin.shared.counts, unix_ms()))
}

/// `POST /v1/statistics/zero`
pub(super) fn zero(ask: &AdminRequest) -> Answered {
    ask.admin
        .statistics
        .zero(&ask.admin.shared.counts, unix_ms());
    Answered::Ready(reply::text(200, "counted from zero from now on"))
}

#[cfg(test)]
mod tests {
    use hob_trace::{Record, ThreadCounts};

    use super::*;

    fn count(thread: &ThreadCounts, status: u16) {
        let record = Record {
            status,
            ..Record::empty()
        };
        thread.count(&record, b"GET");
        thread.counters.requests.add(1);
    }

    #[test]
    fn spans_count_from_their_own_begin() {
        let (ledger, counts) = (Ledger::new(1_000), ServerCounts::default());
        let thread = counts.new_thread(counts.counters.new_thread());
        count(&thread, 200);
        ledger.tick(&counts, 2_000);
        ledger.tick(&counts, DAY_MS + 1);
        count(&thread, 404);
        ledger.zero(&counts, DAY_MS + 2);
        count(&thread, 503);
        let told = json!(ledger.told(&counts, DAY_MS + 3));
        for (span, since, requests, classes) in [
            ("start", 1_000, 3, [1, 1, 1]),
            ("today", DAY_MS + 1, 2, [0, 1, 1]),
            ("zero", DAY_MS + 2, 1, [0, 0, 1]),
        ] {
            let span = &told[span];
            assert_eq!(span["since_unix_ms"], since);
            assert_eq!(span["requests"], requests);
            assert_eq!(span["methods"]["GET"], requests);
            let counted = ["2xx", "4xx", "5xx"].map(|class| &span["status_classes"][class]);
            assert_eq!(counted, classes);
        }
        assert_eq!(told["zero"]["statuses"], json!({ "503": 1 }));
    }

    #[test]
    fn every_word_is_there_though_nothing_was_counted() {
        let told = json!(Ledger::new(1_000).told(&ServerCounts::default(), 1_000));
        for (part, word) in [
            ("methods", "other"),
            ("protocols", "HTTP/3.0"),
            ("handlers", "files"),
            ("cache", "hit"),
            ("outcomes", "client-left"),
            ("faults", "script"),
        ] {
            assert_eq!(told["today"][part][word], 0, "{part} {word}");
        }
    }
}
