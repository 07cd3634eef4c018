//! One log: lines in a buffer, written in batches; what to do when they cannot be written; when to
//! ask for rotation.
//!
//! The buffer holds whole lines, except that its first may be the rest of a line whose beginning is
//! already in the file: then a write stopped in the middle of it, and it is finished before
//! anything else.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};

use super::piped::PipedProgram;
use super::syslog::{SendReport, SyslogLink, cut_message};
use super::{DestinationSettings, LogId, Target};
use crate::calendar::DAY_MS;
use crate::format::{LineCache, RecordNames};
use crate::record::{Record, Texts};

/// Lines are written when there are this many bytes of them.
pub(super) const BATCH_BYTES: usize = 64 * 1024;
/// Lines are dropped while this many bytes wait for a reader that does not read.
pub(super) const WAITING_BYTES_MAX: usize = 256 * 1024;
/// The most that is written at once to what is not a file: a pipe that has any room has this much.
const PIPE_WRITE_BYTES_MAX: usize = 4096;
/// The least time between two complaints about one log.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// The first lines of a new day wait this long for the new day's file.
const NEW_DAY_PATIENCE: Duration = Duration::from_secs(1);
/// Rotation is asked for again when nothing has come of it for so long.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// What has been lost, for the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// Lines that will not be written.
    pub(super) lines: u64,
    /// Writes that failed.
    pub(super) write_errors: u64,
    /// Messages of syslog that were cut.
    pub(super) cut: u64,
}

/// One log and the lines on their way to it.
#[derive(Debug)]
pub(super) struct LogDestination {
    /// Its number, which records bear.
    pub(super) log: LogId,
    /// Name, format, rotation.
    settings: DestinationSettings,
    /// Where lines go.
    output: LogOutput,
    /// A pipe, socket or terminal: asked whether it has room before each write, because a write
    /// could wait for its reader.
    may_block: bool,
    /// Lines on their way.
    buffer: Vec<u8>,
    /// The buffer starts inside a line.
    torn: bool,
    /// It had no room when last asked; not asked again in this turn.
    stuck: bool,
    /// The last write ended there and not with an error.
    awaits_reader: bool,
    /// When the next file is due, and whether it was asked for.
    rotation: Rotation,
    /// What was said of writes that fail, so that it is not said each time.
    trouble: WriteFailureState,
    /// What has been lost since the counters were told.
    pub(super) losses: Losses,
    /// When it was retired.
    pub(super) retired_at: Option<Instant>,
}

/// Where the lines of a log go.
#[derive(Debug)]
enum LogOutput {
    File(File),
    Stdout,
    Syslog(Box<SyslogLink>),
    Program(Box<PipedProgram>),
}

/// What is known about the file's age and size, and what has been asked.
#[derive(Debug, Default)]
struct Rotation {
    /// The day the file is for, in days since 1970; unknown until a line comes.
    day: Option<u64>,
    /// The newest day a record was of. Records come a little out of order.
    day_newest: Option<u64>,
    /// When the owner of the path was last asked.
    asked_at: Option<Instant>,
    /// Lines are not written before this: they are the first of a day whose file is to come.
    hold_until: Option<Instant>,
}

/// Writing fails.
#[derive(Debug, Default)]
struct WriteFailureState {
    /// When it was last said.
    told_at: Option<Instant>,
    /// It was said, and not yet that it is over.
    is_told: bool,
    /// Lines lost since it was last said.
    lines: u64,
}

/// What became of a file when its lines were to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// Nothing is due.
    Nothing,
    /// The owner of its path is to be asked to rotate it.
    Rotation,
}

impl LogDestination {
    pub(super) fn new(log: LogId, settings: DestinationSettings, target: Target) -> LogDestination {
        let mut destination = LogDestination {
            log,
            settings,
            output: match target {
                Target::File(file) => LogOutput::File(file),
                Target::Stdout => LogOutput::Stdout,
                Target::Syslog(settings, acknowledged) => {
                    LogOutput::Syslog(Box::new(SyslogLink::new(*settings, acknowledged)))
                }
                Target::Program(arguments, start) => {
                    LogOutput::Program(Box::new(PipedProgram::new(arguments, start)))
                }
            },
            may_block: false,
            buffer: Vec::new(),
            torn: false,
            stuck: false,
            awaits_reader: false,
            rotation: Rotation::default(),
            trouble: WriteFailureState::default(),
            losses: Losses::default(),
            retired_at: None,
        };
        destination.look_at_output();
        destination
    }

    /// A new turn of the writer: what was stuck may have room again.
    pub(super) fn begin_turn(&mut self) {
        self.stuck = false;
    }

    /// Adds a record's line; writes the batch when it is large enough.
    pub(super) fn append(
        &mut self,
        cache: &mut LineCache,
        record: &Record,
        texts: &Texts<'_>,
        now: Instant,
    ) -> Due {
        let mut due = Due::Nothing;
        if self.settings.rotate_daily {
            let ended_unix_ms = record
                .started_unix_ms
                .saturating_add(record.total_us / 1000);
            due = self.see_day(ended_unix_ms / DAY_MS, now);
        }
        if self.buffer.len() >= WAITING_BYTES_MAX {
            self.lose(1);
            self.trouble.lines += 1;
            return due;
        }
        let names: &RecordNames = &self.settings.names;
        let begin = self.buffer.len();
        if let LogOutput::Syslog(link) = &mut self.output {
            link.push_header(record, &mut self.buffer);
        }
        self.settings
            .format
            .push_line(cache, names, record, texts, &mut self.buffer);
        if let LogOutput::Syslog(_) = &self.output {
            self.losses.cut += u64::from(cut_message(begin, &mut self.buffer));
        }
        if self.buffer.len() >= BATCH_BYTES && !self.is_held(now) {
            due = due.max(self.write_all(now));
        }
        due
    }

    /// Writes what can be written.
    pub(super) fn flush(&mut self, now: Instant) -> Due {
        match self.is_held(now) {
            true => Due::Nothing,
            false => self.write_all(now),
        }
    }

    /// Writes what can be written, also the lines that wait for a new day's file.
    pub(super) fn flush_held(&mut self, now: Instant) -> Due {
        self.rotation.hold_until = None;
        self.write_all(now)
    }

    /// Lines wait to be written. The rest of a line that an error tore waits for company instead;
    /// one that was torn because a reader was slow is like a whole one.
    pub(super) fn has_lines(&self) -> bool {
        let is_unread = matches!(&self.output, LogOutput::Program(program) if program.has_unread());
        self.lines() > 0 || is_unread || (self.awaits_reader && !self.buffer.is_empty())
    }

    /// Writes to another file from now on.
    pub(super) fn replace(&mut self, file: File, now: Instant) {
        if self.rotation.hold_until.take().is_none() {
            self.write_all(now);
        }
        self.forget_torn();
        self.output = LogOutput::File(file);
        let day_newest = self.rotation.day_newest;
        self.rotation = Rotation {
            day: day_newest,
            day_newest,
            ..Rotation::default()
        };
        self.stuck = false;
        self.look_at_output();
    }

    /// Drops what could not be written; nothing more will come. A program that reads the log is
    /// waited for until then, if it is.
    pub(super) fn give_up(&mut self, until: Option<Instant>) {
        self.forget_torn();
        let lines = self.lines();
        self.buffer.clear();
        self.lose(lines);
        if let LogOutput::Program(program) = &mut self.output {
            let unread = program.end(until);
            self.lose(unread);
        }
    }

    /// Gives the buffer's memory back while nothing is in it.
    pub(super) fn rest(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = Vec::new();
        }
    }

    /// Finds out what kind of file it is, and the day of its lines.
    fn look_at_output(&mut self) {
        let Some(fd) = self.output.fd() else {
            self.may_block = true;
            return;
        };
        let Ok(stat) = rustix::fs::fstat(fd) else {
            return;
        };
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        self.may_block = kind != rustix::fs::FileType::RegularFile;
        if let (LogOutput::File(file), false) = (&self.output, self.may_block)
            && let Ok(metadata) = file.metadata()
            && metadata.len() > 0
        {
            let changed = metadata
                .modified()
                .ok()
                .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            self.rotation.day = changed.map(|at| at.as_millis() as u64 / DAY_MS);
        }
    }

    /// A record of a request that ended on that day is about to be added.
    fn see_day(&mut self, day: u64, now: Instant) -> Due {
        let rotation = &mut self.rotation;
        if rotation.day_newest.is_some_and(|newest| day + 1 < newest) {
            // The clock was in the future and has been set back.
            rotation.day = Some(day);
            rotation.day_newest = None;
        }
        rotation.day_newest = rotation.day_newest.max(Some(day));
        let day_of_file = *rotation.day.get_or_insert(day);
        if day <= day_of_file || self.may_block || rotation.was_asked(now) {
            return Due::Nothing;
        }
        // What is in the buffer belongs to the day before.
        self.write_all(now);
        if self.output.size() == 0 {
            self.rotation.day = Some(day);
            return Due::Nothing;
        }
        self.rotation.asked_at = Some(now);
        self.rotation.hold_until = Some(now + NEW_DAY_PATIENCE);
        Due::Rotation
    }

    fn is_held(&self, now: Instant) -> bool {
        self.buffer.len() < WAITING_BYTES_MAX
            && self.rotation.hold_until.is_some_and(|until| now < until)
    }

    fn write_all(&mut self, now: Instant) -> Due {
        // A program is looked after also while there are no lines.
        let has_program = matches!(self.output, LogOutput::Program(_));
        if (self.buffer.is_empty() && !has_program) || self.stuck {
            return Due::Nothing;
        }
        let fd = match &mut self.output {
            LogOutput::Syslog(link) => {
                let report = link.send(&self.buffer, now);
                self.take_report(report, now);
                return Due::Nothing;
            }
            LogOutput::Program(program) => {
                let report = program.send(&self.buffer, now);
                self.take_report(report, now);
                return Due::Nothing;
            }
            LogOutput::File(file) => File::as_fd(file),
            LogOutput::Stdout => rustix::stdio::stdout(),
        };
        let (written, result) = write_some(fd, &self.buffer, self.may_block);
        let ends_inside = self.buffer[..written]
            .last()
            .map_or(self.torn, |byte| *byte != b'\n');
        self.buffer.drain(..written);
        self.torn = ends_inside;
        self.awaits_reader = result == Ok(WriteProgress::Stuck);
        self.stuck |= self.awaits_reader;
        match result {
            Ok(WriteProgress::Complete) => self.tell_recovery("access log can be written again"),
            Ok(WriteProgress::Stuck) => {}
            Err(error) => self.drop_lines(error, now),
        }
        self.see_size(now)
    }

    /// What came of sending lines to a collector or program. Those that are left wait.
    fn take_report(&mut self, report: SendReport, now: Instant) {
        self.buffer.drain(..report.bytes);
        self.stuck |= report.is_stuck;
        self.lose(report.lost);
        self.trouble.lines += report.lost;
        match report.error {
            None if report.is_well => self.tell_recovery("access log can be sent again"),
            None => {}
            Some(error) => {
                self.losses.write_errors += 1;
                let text = "access log cannot be sent; lines wait, and are dropped beyond 256 KiB";
                self.complain(error, text, now);
            }
        }
    }

    /// A write failed: drops all lines of which nothing is in the file yet.
    fn drop_lines(&mut self, error: Errno, now: Instant) {
        let torn_bytes = if self.torn {
            self.end_of_first_line()
        } else {
            0
        };
        let lines = count_lines(&self.buffer[torn_bytes..]);
        self.buffer.truncate(torn_bytes);
        self.losses.write_errors += 1;
        self.lose(lines);
        self.trouble.lines += lines;
        let text = "access log cannot be written; lines are dropped until it can";
        self.complain(error.into(), text, now);
    }

    fn complain(&mut self, error: io::Error, text: &'static str, now: Instant) {
        if self
            .trouble
            .told_at
            .is_some_and(|at| now.duration_since(at) < COMPLAIN_EVERY)
        {
            return;
        }
        let (name, lines) = (&self.settings.name, self.trouble.lines);
        tracing::error!(log = %name, %error, lines_dropped = lines, "{text}");
        self.trouble = WriteFailureState {
            told_at: Some(now),
            is_told: true,
            lines: 0,
        };
    }

    fn tell_recovery(&mut self, text: &'static str) {
        if std::mem::take(&mut self.trouble.is_told) {
            let lines = std::mem::take(&mut self.trouble.lines);
            let name = &self.settings.name;
            tracing::info!(log = %name, lines_dropped = lines, "{text}");
        }
    }

    /// The beginning of this line is in a file that is written no more.
    fn forget_torn(&mut self) {
        if std::mem::take(&mut self.torn) {
            self.buffer.drain(..self.end_of_first_line());
            self.lose(1);
        }
    }

    fn lose(&mut self, lines: u64) {
        self.losses.lines += lines;
    }

    /// Whole lines in the buffer.
    fn lines(&self) -> u64 {
        count_lines(&self.buffer) - u64::from(self.torn && !self.buffer.is_empty())
    }

    fn end_of_first_line(&self) -> usize {
        self.buffer
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(self.buffer.len(), |at| at + 1)
    }

    /// Looks at the file's size: others may write to it as well.
    fn see_size(&mut self, now: Instant) -> Due {
        let limit = self.settings.rotate_bytes;
        if limit == 0 || self.may_block || self.rotation.was_asked(now) {
            return Due::Nothing;
        }
        if self.output.size() < limit {
            return Due::Nothing;
        }
        self.rotation.asked_at = Some(now);
        Due::Rotation
    }
}

impl Rotation {
    fn was_asked(&self, now: Instant) -> bool {
        self.asked_at
            .is_some_and(|at| now.duration_since(at) < ASK_AGAIN_AFTER)
    }
}

impl LogOutput {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            LogOutput::File(file) => Some(file.as_fd()),
            LogOutput::Stdout => Some(rustix::stdio::stdout()),
            LogOutput::Syslog(_) | LogOutput::Program(_) => None,
        }
    }

    /// Bytes in the file; 0 if that cannot be found out.
    fn size(&self) -> u64 {
        let stat = self.fd().and_then(|fd| rustix::fs::fstat(fd).ok());
        stat.map_or(0, |stat| stat.st_size as u64)
    }
}

/// Writes from the start of the buffer until it is empty, there is no room, or a write fails. Says
/// how many bytes went out.
fn write_some(
    fd: BorrowedFd<'_>,
    buffer: &[u8],
    may_block: bool,
) -> (usize, Result<WriteProgress, Errno>) {
    let mut written = 0;
    while written < buffer.len() {
        let mut rest = &buffer[written..];
        if may_block {
            if !has_room(fd) {
                return (written, Ok(WriteProgress::Stuck));
            }
            rest = &rest[..rest.len().min(PIPE_WRITE_BYTES_MAX)];
        }
        match write(fd, rest) {
            Ok(0) => return (written, Err(Errno::IO)),
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return (written, Ok(WriteProgress::Stuck)),
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(WriteProgress::Complete))
}

/// How far a write came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteProgress {
    Complete,
    Stuck,
}

/// A write would not wait for a reader. Errors count as room: the write will tell them.
fn has_room(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::new(&fd, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec::default())) != Ok(0)
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests;
