//! What one thread counts. Only what was due after the warm-up is measured.

use super::answer::AnswerSummary;
use super::failure::{FailureKind, Failures};
use super::latency::Latency;
use super::pages::PageCount;
use super::series::IntervalSeries;
use crate::expect::{Expected, hex};
use crate::limits::CELL_COUNT_MAX;

/// How a request ended.
pub(crate) struct MeasuredAnswer<'a> {
    pub(crate) answer: &'a AnswerSummary,
    pub(crate) class: usize,
    pub(crate) step: usize,
    /// Which of the thread's connections it was asked on.
    pub(crate) connection: usize,
    /// The status that a log has of the request; 0 for none.
    pub(crate) logged_status: u16,
    /// Nanoseconds from when the request was due.
    pub(crate) response_ns: u64,
    /// Nanoseconds from when it was sent.
    pub(crate) service_ns: u64,
}

/// Response times and failures of a part of the requests.
#[derive(Debug)]
pub(crate) struct PartTally {
    pub(crate) response: Latency,
    /// From the actual start; empty in a closed loop.
    pub(crate) service: Latency,
    pub(crate) answered: u64,
    pub(crate) failures: Failures,
    /// Answers of each connection; empty of a step, and where there are too many.
    by_connection: Vec<u32>,
}

/// What one thread has counted, or several together.
#[derive(Debug)]
pub struct RequestTally {
    /// From the intended start; requests without an answer are in it with what they waited.
    pub response: Latency,
    /// From the actual start, of answered requests; empty in a closed loop, where it is the same.
    pub(crate) service: Latency,
    pub(crate) connect: Latency,
    /// Why requests got no good answer.
    pub failures: Failures,
    /// Measured requests that were due, and answered, well or not.
    pub due: u64,
    pub(crate) answered: u64,
    /// Answered as expected.
    pub good: u64,
    /// Broken off by the client within their answers, as they were to be.
    pub(crate) broken_off: u64,
    /// Sent late although a connection was free: the load generator's fault.
    pub(crate) late: u64,
    /// Sent late because all connections were in use.
    pub(crate) waited: u64,
    /// Sent again because the server had not begun them.
    pub(crate) again: u64,
    /// Bytes of bodies of answers.
    pub body_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    /// Connections opened for measured requests.
    pub(crate) opened: u64,
    /// Measured handshakes, and what they agreed on.
    pub(crate) handshakes_full: u64,
    pub(crate) handshakes_resumed: u64,
    pub(crate) tls: Option<String>,
    /// Answers by status, from 100.
    pub statuses: Vec<u64>,
    /// By URL and by step of the rate, where there are several.
    pub(crate) classes: Vec<PartTally>,
    pub(crate) steps: Vec<PartTally>,
    /// Measured answers of each connection.
    pub(crate) by_connection: Vec<u64>,
    /// What pages have come to, where pages were loaded.
    pub(crate) page: Option<Box<PageCount>>,
    /// Nanoseconds at which the last measured request ended; set before it is counted.
    pub(crate) last_ns: u64,
    /// The time, in nanoseconds of the run, before what is counted next.
    pub(crate) now_ns: u64,
    /// What happened when.
    pub(crate) series: IntervalSeries,
    /// From the moment the warm-up was over until the thread ended, for all requests.
    pub(crate) answers_since_warm_up: u64,
    pub(crate) cpu_ns: u64,
    /// In which threads were ready to run and waited for a CPU.
    pub(crate) waited_cpu_ns: u64,
    pub(crate) wall_ns: u64,
    /// The largest share of its time that one thread was busy.
    pub(crate) busy_share: f64,
}

impl RequestTally {
    /// Counts of nothing yet, told apart by classes, steps and connections where there are several.
    pub fn new(class_count: usize, step_count: usize, connection_count: usize) -> RequestTally {
        let parts = |count: usize, connections: usize| {
            let count = if count > 1 { count } else { 0 };
            (0..count).map(|_| PartTally::new(connections)).collect()
        };
        let is_told = class_count.saturating_mul(connection_count) <= CELL_COUNT_MAX;
        let connections_told = if is_told { connection_count } else { 0 };
        RequestTally {
            response: Latency::new(),
            service: Latency::new(),
            connect: Latency::new(),
            failures: Failures::default(),
            due: 0,
            answered: 0,
            good: 0,
            broken_off: 0,
            late: 0,
            waited: 0,
            again: 0,
            body_bytes: 0,
            received_bytes: 0,
            sent_bytes: 0,
            opened: 0,
            handshakes_full: 0,
            handshakes_resumed: 0,
            tls: None,
            statuses: vec![0; 500],
            classes: parts(class_count, connections_told),
            steps: parts(step_count, 0),
            by_connection: vec![0; connection_count],
            page: None,
            last_ns: 0,
            now_ns: 0,
            series: IntervalSeries::new(0),
            answers_since_warm_up: 0,
            cpu_ns: 0,
            waited_cpu_ns: 0,
            wall_ns: 0,
            busy_share: 0.0,
        }
    }

    /// The measured time begins there, in nanoseconds of the run.
    pub(crate) fn beginning(mut self, warm_ns: u64) -> RequestTally {
        self.series = IntervalSeries::new(warm_ns);
        self
    }

    /// A measured request got its answer.
    pub(crate) fn answered(
        &mut self,
        outcome: &MeasuredAnswer<'_>,
        expected: &Expected,
        is_open: bool,
    ) {
        let bad = check(outcome.answer, expected, outcome.logged_status);
        let bad = bad.map(|wrong| (wrong.kind(), wrong.text()));
        self.count(outcome, bad, is_open);
    }

    /// A measured page is there, with the first thing that went wrong with it.
    pub(crate) fn page(
        &mut self,
        outcome: &MeasuredAnswer<'_>,
        fault: Option<(FailureKind, String)>,
        is_open: bool,
    ) {
        self.count(outcome, fault, is_open);
    }

    fn count(
        &mut self,
        outcome: &MeasuredAnswer<'_>,
        bad: Option<(FailureKind, String)>,
        is_open: bool,
    ) {
        let answer = outcome.answer;
        self.answered += 1;
        self.last_ns = self.now_ns;
        self.response.record(outcome.response_ns);
        if is_open {
            self.service.record(outcome.service_ns);
        }
        self.body_bytes += answer.body_bytes;
        if let Some(count) = self.statuses.get_mut(usize::from(answer.status) - 100) {
            *count += 1;
        }
        let is_good = bad.is_none();
        self.good += u64::from(is_good);
        if let Some((kind, text)) = &bad {
            self.failures.add(*kind, || text.clone());
        }
        self.series
            .answered(self.now_ns, outcome.response_ns, is_good);
        if let Some(row) = self.classes.get_mut(outcome.class)
            && let Some(count) = row.by_connection.get_mut(outcome.connection)
        {
            *count += 1;
        }
        for part in self
            .parts(outcome.class, outcome.step)
            .into_iter()
            .flatten()
        {
            part.response.record(outcome.response_ns);
            if is_open {
                part.service.record(outcome.service_ns);
            }
            part.answered += 1;
            if let Some((kind, text)) = &bad {
                part.failures.add(*kind, || text.clone());
            }
        }
    }

    /// A measured request failed after it had waited so long.
    pub(crate) fn failed(
        &mut self,
        kind: FailureKind,
        (class, step): (usize, usize),
        waited_ns: u64,
        example: impl FnOnce() -> String,
    ) {
        // What never got an answer took at least as long as it was waited for; what was refused at
        // once did not take any time that could be compared with an answer's.
        let is_wait = matches!(kind, FailureKind::Timeout | FailureKind::Unsent);
        if is_wait {
            self.response.record(waited_ns);
        }
        let parts = self.parts(class, step);
        let is_new = parts
            .iter()
            .flatten()
            .any(|part| part.failures.is_new(kind));
        let example = match is_new || self.failures.is_new(kind) {
            true => example(),
            false => String::new(),
        };
        self.failures.add(kind, || example.clone());
        self.series
            .failed(self.now_ns, is_wait.then_some(waited_ns));
        for part in self.parts(class, step).into_iter().flatten() {
            if is_wait {
                part.response.record(waited_ns);
            }
            part.failures.add(kind, || example.clone());
        }
    }

    /// The server has not said anything to any request.
    pub(crate) fn is_unheard(&self) -> bool {
        self.answered + self.broken_off == 0
    }

    fn parts(&mut self, class: usize, step: usize) -> [Option<&mut PartTally>; 2] {
        [self.classes.get_mut(class), self.steps.get_mut(step)]
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: RequestTally) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.connect.merge(&other.connect);
        self.failures.merge(other.failures);
        self.due += other.due;
        self.answered += other.answered;
        self.good += other.good;
        self.broken_off += other.broken_off;
        self.late += other.late;
        self.waited += other.waited;
        self.again += other.again;
        self.body_bytes += other.body_bytes;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.opened += other.opened;
        self.handshakes_full += other.handshakes_full;
        self.handshakes_resumed += other.handshakes_resumed;
        self.tls = self.tls.take().or(other.tls);
        for (own, others) in self.statuses.iter_mut().zip(other.statuses) {
            *own += others;
        }
        let parts = self.classes.iter_mut().chain(&mut self.steps);
        for (own, others) in parts.zip(other.classes.into_iter().chain(other.steps)) {
            own.response.merge(&others.response);
            own.service.merge(&others.service);
            own.answered += others.answered;
            own.failures.merge(others.failures);
            own.by_connection.extend(others.by_connection);
        }
        self.by_connection.extend(other.by_connection);
        match (&mut self.page, other.page) {
            (Some(own), Some(others)) => own.merge(*others),
            (own, others) => *own = own.take().or(others),
        }
        self.last_ns = self.last_ns.max(other.last_ns);
        self.series.merge(other.series);
        self.answers_since_warm_up += other.answers_since_warm_up;
        self.cpu_ns += other.cpu_ns;
        self.waited_cpu_ns += other.waited_cpu_ns;
        self.wall_ns = self.wall_ns.max(other.wall_ns);
        self.busy_share = self.busy_share.max(other.busy_share);
    }

    /// Jain's index over connections: 1 when all got equally many answers, 1/n when one got all.
    pub(crate) fn fairness(&self) -> Option<f64> {
        jain(self.by_connection.iter().map(|count| *count as f64))
    }

    /// Jain's index over rows of the results, of their answers beside their weights.
    pub(crate) fn fairness_by_weight(&self, weights: &[f64]) -> Option<f64> {
        let rows = self.classes.iter().zip(weights);
        jain(rows.map(|(row, weight)| row.answered as f64 / weight))
    }
}

/// Jain's index of shares; none where there are none, or all are nothing.
pub fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// What is wrong with an answer.
enum Wrong<'a> {
    Status(u16),
    Size { is: u64, wanted: u64 },
    Hash(Option<[u8; 32]>),
    Header(&'a str),
}

impl Wrong<'_> {
    fn kind(&self) -> FailureKind {
        match self {
            Wrong::Status(_) => FailureKind::Status,
            Wrong::Size { .. } => FailureKind::Size,
            Wrong::Hash(_) => FailureKind::Hash,
            Wrong::Header(_) => FailureKind::Header,
        }
    }

    fn text(&self) -> String {
        match self {
            Wrong::Status(status) => status.to_string(),
            Wrong::Size { is, wanted } => format!("{is} bytes instead of {wanted}"),
            Wrong::Hash(Some(hash)) => format!("sha256={}", hex(hash)),
            Wrong::Hash(None) => "the body was not looked at".to_owned(),
            Wrong::Header(name) => format!("{name} is missing or has another value"),
        }
    }
}

/// The first thing that is wrong with an answer, if anything is.
fn check<'a>(
    answer: &AnswerSummary,
    expected: &'a Expected,
    logged_status: u16,
) -> Option<Wrong<'a>> {
    // What was not found then need not be found now, unless somebody says so.
    let is_as_logged = answer.status == logged_status && !expected.has_own_status;
    if !expected.has_status(answer.status) && !is_as_logged {
        return Some(Wrong::Status(answer.status));
    }
    if let Some(wanted) = expected.wanted_size(answer.body_bytes) {
        let is = answer.body_bytes;
        return Some(Wrong::Size { is, wanted });
    }
    if expected.hash.is_some() && answer.body_hash != expected.hash {
        return Some(Wrong::Hash(answer.body_hash));
    }
    expected
        .missing_field(answer.fields_seen)
        .map(Wrong::Header)
}

impl PartTally {
    /// Jain's index over connections; none where they were not told apart.
    pub(crate) fn fairness(&self) -> Option<f64> {
        jain(self.by_connection.iter().map(|count| f64::from(*count)))
    }

    fn new(connection_count: usize) -> PartTally {
        PartTally {
            response: Latency::new(),
            service: Latency::new(),
            answered: 0,
            failures: Failures::default(),
            by_connection: vec![0; connection_count],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_when_all_are_alike() {
        let mut tally = RequestTally::new(1, 1, 4);
        assert_eq!(tally.fairness(), None);
        tally.by_connection = vec![5; 4];
        assert_eq!(tally.fairness(), Some(1.0));
        tally.by_connection = vec![8, 0, 0, 0];
        assert_eq!(tally.fairness(), Some(0.25));
        let mut tally = RequestTally::new(2, 1, 1);
        assert_eq!(tally.fairness_by_weight(&[3.0, 1.0]), None);
        tally.classes[0].answered = 30;
        tally.classes[1].answered = 10;
        assert_eq!(tally.fairness_by_weight(&[3.0, 1.0]), Some(1.0));
        tally.classes[1].answered = 0;
        assert_eq!(tally.fairness_by_weight(&[3.0, 1.0]), Some(0.5));
        let mut tally = RequestTally::new(2, 1, 2);
        assert_eq!(tally.classes[0].fairness(), None);
        tally.classes[0].by_connection = vec![4, 0];
        assert_eq!(tally.classes[0].fairness(), Some(0.5));
        let tally = RequestTally::new(1000, 1, 1_000_000);
        assert_eq!(tally.classes[0].fairness(), None);
    }
}
