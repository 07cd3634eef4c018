//! The thread: takes commands, drains the rings, writes batches, rests.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::destination::{Due, LogDestination, Losses};
use super::pace::{POLL, Pause, WriterPacer, WriterTurn};
use super::{AskForRotation, LogId, WriterCommand, WriterMailbox};
use crate::format::LineCache;
use crate::metric::ThreadCounters;
use crate::record::{Record, Texts};
use crate::ring::Consumer;

/// How long a retired log that cannot be written is kept.
const RETIRED_PATIENCE: Duration = Duration::from_secs(5);
/// The least time between two complaints about full rings.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// The thread's state.
pub(super) struct AccessLogWriter {
    rings: Vec<ThreadRing>,
    logs: Logs,
    pace: WriterPacer,
    counters: Arc<ThreadCounters>,
    /// Who waits until all is written.
    flushing: Vec<Sender<bool>>,
    /// Told to end, by when, and whom to answer.
    closing: Option<(Instant, Sender<bool>)>,
    complaint: Complaint,
}

/// One serving thread's ring.
struct ThreadRing {
    consumer: Consumer,
    /// Its losses that are counted already.
    dropped_seen: u64,
}

/// Losses in full rings that have not been told.
#[derive(Default)]
struct Complaint {
    told_at: Option<Instant>,
    records: u64,
}

impl AccessLogWriter {
    pub(super) fn new(
        mailbox: Arc<WriterMailbox>,
        counters: Arc<ThreadCounters>,
        ask_for_rotation: AskForRotation,
    ) -> AccessLogWriter {
        AccessLogWriter {
            rings: Vec::new(),
            logs: Logs {
                destinations: Vec::new(),
                last_found: 0,
                cache: LineCache::new(),
                mailbox,
                letters: Vec::new(),
                ask_for_rotation,
                unknown: 0,
            },
            pace: WriterPacer::default(),
            counters,
            flushing: Vec::new(),
            closing: None,
            complaint: Complaint::default(),
        }
    }

    /// Runs until told to close.
    pub(super) fn run(mut self) {
        let me = thread::current();
        loop {
            let looked_at = Instant::now();
            self.take_commands(&me, looked_at);
            let drained = self.drain(looked_at);
            self.write(looked_at);
            self.count_losses(looked_at, Complain::InTurn);
            let is_clear = !self.logs.have_lines();
            if is_clear {
                self.flushing.drain(..).for_each(|done| answer(&done, true));
            }
            if self.is_done(is_clear) {
                return;
            }
            match self.pause(drained, is_clear, looked_at) {
                Pause::For(time) => thread::park_timeout(time),
                Pause::UntilWoken => thread::park(),
            }
        }
    }

    fn take_commands(&mut self, me: &Thread, now: Instant) {
        self.logs.open_mailbox();
        for command in std::mem::take(&mut self.logs.letters) {
            match command {
                WriterCommand::AddRing(consumer) => {
                    consumer.attach(me.clone());
                    self.rings.push(ThreadRing {
                        consumer,
                        dropped_seen: 0,
                    });
                }
                WriterCommand::Flush(done) => self.flushing.push(done),
                WriterCommand::Close { deadline, done } => self.closing = Some((deadline, done)),
                WriterCommand::Register(log, settings, target) => {
                    self.logs
                        .destinations
                        .push(LogDestination::new(log, *settings, target));
                }
                WriterCommand::Replace(log, file) => {
                    if let Some(destination) = self.logs.find(log.number()) {
                        destination.replace(file, now);
                    }
                }
                WriterCommand::Retire(log) => {
                    if let Some(destination) = self.logs.find(log.number()) {
                        destination.retired_at = Some(now);
                    }
                }
            }
        }
    }

    /// Empties the rings; says whether anything was in them.
    fn drain(&mut self, now: Instant) -> bool {
        let logs = &mut self.logs;
        logs.destinations
            .iter_mut()
            .for_each(LogDestination::begin_turn);
        let mut count = 0;
        for ring in &mut self.rings {
            count += ring
                .consumer
                .drain(|record, texts| logs.append(record, &texts, now));
        }
        count > 0
    }

    /// Writes what can be written, and ends the logs that are retired.
    fn write(&mut self, now: Instant) {
        let is_urgent = self.closing.is_some() || !self.flushing.is_empty();
        let logs = &mut self.logs;
        for destination in &mut logs.destinations {
            let is_last = destination.retired_at.is_some();
            let due = match is_urgent || is_last {
                true => destination.flush_held(now),
                false => destination.flush(now),
            };
            if due == Due::Rotation && !is_last {
                (logs.ask_for_rotation)(destination.log);
            }
        }
        let lost = logs.end_retired(now);
        self.count(lost);
    }

    fn count_losses(&mut self, now: Instant, complain: Complain) {
        let mut in_rings = 0;
        self.rings.retain_mut(|ring| {
            // Asked first: whoever is finished has counted its last loss.
            let is_finished = ring.consumer.is_finished();
            let dropped = ring.consumer.dropped();
            in_rings += dropped - std::mem::replace(&mut ring.dropped_seen, dropped);
            !is_finished
        });
        let unknown = std::mem::take(&mut self.logs.unknown);
        self.count(Losses {
            lines: in_rings + unknown,
            ..Losses::default()
        });
        for destination in &mut self.logs.destinations {
            let losses = std::mem::take(&mut destination.losses);
            count_in(&self.counters, losses);
        }
        if let Some(records) = self.complaint.take(in_rings, now, complain) {
            tracing::error!(
                records,
                "access log is written too slowly; records were dropped"
            );
        }
    }

    fn count(&self, losses: Losses) {
        count_in(&self.counters, losses);
    }

    /// Told to end, and all is written or the time is up.
    fn is_done(&mut self, is_clear: bool) -> bool {
        let deadline = match &self.closing {
            Some((deadline, _)) if is_clear || Instant::now() >= *deadline => *deadline,
            _ => return false,
        };
        for destination in &mut self.logs.destinations {
            destination.give_up(Some(deadline));
        }
        self.count_losses(Instant::now(), Complain::Now);
        if let Some((_, done)) = self.closing.take() {
            answer(&done, is_clear);
        }
        true
    }

    fn pause(&mut self, drained: bool, is_clear: bool, looked_at: Instant) -> Pause {
        if let Some((deadline, _)) = &self.closing {
            return Pause::For(deadline.saturating_duration_since(Instant::now()).min(POLL));
        }
        let turn = if drained || !is_clear {
            self.rings.iter().for_each(|ring| ring.consumer.disarm());
            WriterTurn::Busy
        } else {
            // Every one is armed, so no short cut.
            let unarmed = self
                .rings
                .iter()
                .filter(|ring| !ring.consumer.arm())
                .count();
            WriterTurn::Idle {
                armed_before: unarmed == 0,
            }
        };
        let pause = self.pace.pause(turn, looked_at, Instant::now());
        if pause == Pause::UntilWoken {
            self.logs
                .destinations
                .iter_mut()
                .for_each(LogDestination::rest);
        }
        match (pause, self.complaint.due_in(Instant::now())) {
            // The rest of a burst is told, too, when nothing comes after it.
            (Pause::UntilWoken, Some(time)) => Pause::For(time),
            (pause, _) => pause,
        }
    }
}

fn count_in(counters: &ThreadCounters, losses: Losses) {
    counters.log_dropped.add(losses.lines);
    counters.log_write_errors.add(losses.write_errors);
    counters.limit_syslog_message.add(losses.cut);
}

/// When losses are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Complain {
    /// As often as they may be.
    InTurn,
    /// At once: there will be no other time.
    Now,
}

impl Complaint {
    /// Adds losses; says how many are to be told now.
    fn take(&mut self, records: u64, now: Instant, complain: Complain) -> Option<u64> {
        self.records += records;
        let is_due = complain == Complain::Now || self.due_in(now) == Some(Duration::ZERO);
        if self.records == 0 || !is_due {
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.records))
    }

    /// When what has not been told may be.
    fn due_in(&self, now: Instant) -> Option<Duration> {
        let waited = self.told_at.map(|at| now.saturating_duration_since(at));
        let left = waited.map_or(Duration::ZERO, |waited| {
            COMPLAIN_EVERY.saturating_sub(waited)
        });
        (self.records > 0).then_some(left)
    }
}

/// Who asked may have stopped waiting.
fn answer(done: &Sender<bool>, is_clear: bool) {
    let _ = done.send(is_clear);
}

/// The destinations, and the way to learn of new ones.
struct Logs {
    /// In the order of their numbers.
    destinations: Vec<LogDestination>,
    /// Where the last record's log was found: the next one's is probably there too.
    last_found: usize,
    cache: LineCache,
    mailbox: Arc<WriterMailbox>,
    /// Commands that have been fetched and not yet obeyed, in order.
    letters: Vec<WriterCommand>,
    ask_for_rotation: AskForRotation,
    /// Records of logs that are gone.
    unknown: u64,
}

impl Logs {
    fn append(&mut self, record: &Record, texts: &Texts<'_>, now: Instant) {
        if record.log == 0 {
            return;
        }
        let Some(at) = self
            .position(record.log)
            .or_else(|| self.position_if_new(record.log))
        else {
            self.unknown += 1;
            return;
        };
        let due = self.destinations[at].append(&mut self.cache, record, texts, now);
        if due == Due::Rotation {
            (self.ask_for_rotation)(self.destinations[at].log);
        }
    }

    fn find(&mut self, log: u16) -> Option<&mut LogDestination> {
        self.position(log).map(|at| &mut self.destinations[at])
    }

    #[inline]
    fn position(&mut self, log: u16) -> Option<usize> {
        let number = |destination: &LogDestination| destination.log.number();
        if self
            .destinations
            .get(self.last_found)
            .is_some_and(|found| number(found) == log)
        {
            return Some(self.last_found);
        }
        self.last_found = self.destinations.binary_search_by_key(&log, number).ok()?;
        Some(self.last_found)
    }

    /// A record can overtake the command that registered its log.
    #[cold]
    fn position_if_new(&mut self, log: u16) -> Option<usize> {
        self.open_mailbox();
        let is_register =
            |command: &mut WriterCommand| matches!(command, WriterCommand::Register(..));
        for command in self.letters.extract_if(.., is_register) {
            if let WriterCommand::Register(log, settings, target) = command {
                self.destinations
                    .push(LogDestination::new(log, *settings, target));
            }
        }
        self.position(log)
    }

    /// Fetches commands. An idle writer comes here for nothing but to find it empty.
    fn open_mailbox(&mut self) {
        self.letters
            .append(&mut self.mailbox.letters.lock().commands);
    }

    fn have_lines(&self) -> bool {
        self.destinations.iter().any(LogDestination::has_lines)
    }

    /// Removes the logs that are retired and written, or cannot be; says what was lost with them.
    fn end_retired(&mut self, now: Instant) -> Losses {
        let mut lost = Losses::default();
        self.destinations.retain_mut(|destination| {
            let Some(retired_at) = destination.retired_at else {
                return true;
            };
            if destination.has_lines() && now.duration_since(retired_at) < RETIRED_PATIENCE {
                return true;
            }
            destination.give_up(None);
            lost.lines += destination.losses.lines;
            lost.write_errors += destination.losses.write_errors;
            lost.cut += destination.losses.cut;
            false
        });
        lost
    }
}

const _: () = assert!(size_of::<LogId>() == size_of::<u16>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_losses_are_told_and_not_more_often_than_they_may_be() {
        let mut complaint = Complaint::default();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        assert_eq!(complaint.take(0, at(0), Complain::InTurn), None);
        assert_eq!(complaint.due_in(at(0)), None);
        assert_eq!(complaint.take(3, at(0), Complain::InTurn), Some(3));
        assert_eq!(complaint.take(1000, at(1), Complain::InTurn), None);
        assert_eq!(complaint.take(769, at(2000), Complain::InTurn), None);
        // Nothing more comes, and the writer looks again when it may tell of the rest.
        assert_eq!(
            complaint.due_in(at(2000)),
            Some(COMPLAIN_EVERY - Duration::from_secs(2))
        );
        assert_eq!(
            complaint.take(0, begin + COMPLAIN_EVERY, Complain::InTurn),
            Some(1769)
        );
        assert_eq!(complaint.due_in(begin + COMPLAIN_EVERY), None);
        assert_eq!(
            complaint.take(5, begin + COMPLAIN_EVERY, Complain::InTurn),
            None
        );
        assert_eq!(
            complaint.take(0, begin + COMPLAIN_EVERY, Complain::Now),
            Some(5)
        );
    }
}
