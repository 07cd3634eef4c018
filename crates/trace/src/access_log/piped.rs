//! The way of a log's lines to a program that reads them from its standard input, such as
//! `rotatelogs`.
//!
//! Both ends of the pipe stay open here: what a program has not read when it ends is read by the
//! next one, which is started after a pause. A program that reads slowly, or none, makes lines wait
//! in the log's buffer, which has its limit. At the end the pipe is closed, which tells the program
//! to end, too.

use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread, write};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::syslog::{ROOM_PATIENCE, SendReport, wait_for_room};

/// The pauses between the end of a program and the start of the next: each is twice the one before.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Bytes that a pipe is asked to hold.
const PIPE_BYTES: usize = 1 << 20;
/// A program that has run for so long was well: the next pause is the shortest.
const WELL_AFTER: Duration = Duration::from_secs(10);

/// Starts a program with these arguments, the first of which names it, and with this as its
/// standard input.
pub type StartProgram = fn(&[String], OwnedFd) -> io::Result<Child>;

/// The way to one program.
pub(super) struct PipedProgram {
    arguments: Vec<String>,
    start: StartProgram,
    /// Made when the first line is sent.
    pipe: Option<(PipeReader, PipeWriter)>,
    /// The program that runs, and since when.
    child: Option<(Child, Instant)>,
    /// None is started before.
    start_at: Option<Instant>,
    pause: Duration,
    /// Bytes of the first line that are in the pipe.
    sent: usize,
}

impl fmt::Debug for PipedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.arguments.fmt(f)
    }
}

impl PipedProgram {
    pub(super) fn new(arguments: Vec<String>, start: StartProgram) -> PipedProgram {
        PipedProgram {
            arguments,
            start,
            pipe: None,
            child: None,
            start_at: None,
            pause: PAUSE_MIN,
            sent: 0,
        }
    }

    /// Puts these lines into the pipe, from the first on, as far as there is room.
    pub(super) fn send(&mut self, lines: &[u8], now: Instant) -> SendReport {
        let mut report = SendReport {
            is_well: true,
            ..SendReport::default()
        };
        if let Err(error) = self.tend(now) {
            report.error = Some(error);
            report.is_well = false;
        }
        if let Err(error) = self.fill(lines, &mut report) {
            report.error = Some(error);
        }
        report.is_well &= self.child.is_some();
        report
    }

    /// Nobody has read yet all that is in the pipe.
    pub(super) fn has_unread(&self) -> bool {
        let pipe = self.pipe.as_ref();
        pipe.is_some_and(|(reader, _)| ioctl_fionread(reader).is_ok_and(|bytes| bytes > 0))
    }

    /// Looks whether the program still runs, and starts one when it is time.
    fn tend(&mut self, now: Instant) -> io::Result<()> {
        let ended = match &mut self.child {
            Some((child, since)) => child.try_wait()?.map(|status| (status, *since)),
            None => None,
        };
        if let Some((status, since)) = ended {
            self.child = None;
            if now.saturating_duration_since(since) >= WELL_AFTER {
                self.pause = PAUSE_MIN;
            }
            self.wait(now);
            return Err(io::Error::other(format!("the program has ended: {status}")));
        }
        if self.child.is_some() || self.start_at.is_some_and(|at| now < at) {
            return Ok(());
        }
        let started = self
            .open_pipe()
            .and_then(|stdin| (self.start)(&self.arguments, stdin));
        match started {
            Ok(child) => {
                self.child = Some((child, now));
                Ok(())
            }
            Err(error) => {
                self.wait(now);
                Err(error)
            }
        }
    }

    fn wait(&mut self, now: Instant) {
        self.start_at = Some(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// The end of the pipe that a program reads.
    fn open_pipe(&mut self) -> io::Result<OwnedFd> {
        if self.pipe.is_none() {
            let (reader, writer) = io::pipe()?;
            // As large as it usually may be; else it is as large as it is.
            let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
            fcntl_setfl(&writer, fcntl_getfl(&writer)? | OFlags::NONBLOCK)?;
            self.pipe = Some((reader, writer));
        }
        match &self.pipe {
            Some((reader, _)) => Ok(reader.try_clone()?.into()),
            None => Err(io::Error::other("there is no pipe")),
        }
    }

    fn fill(&mut self, lines: &[u8], report: &mut SendReport) -> io::Result<()> {
        let Some((_, writer)) = &self.pipe else {
            report.is_stuck = true;
            return Ok(());
        };
        // A line is done with when all of it is in the pipe.
        let mut written = self.sent;
        let mut patience = ROOM_PATIENCE;
        let result = loop {
            if written >= lines.len() {
                break Ok(());
            }
            match write(writer, &lines[written..]) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.child.is_some() && !patience.is_zero() => {
                    if let Err(error) = wait_for_room(writer.as_fd(), &mut patience) {
                        break Err(error);
                    }
                }
                Err(Errno::AGAIN) => {
                    report.is_stuck = true;
                    break Ok(());
                }
                Err(error) => break Err(error.into()),
            }
        };
        let written = written.min(lines.len());
        let whole = lines[..written].iter().rposition(|byte| *byte == b'\n');
        report.bytes = whole.map_or(0, |at| at + 1);
        self.sent = written - report.bytes;
        result
    }

    /// Closes the pipe, so that the program ends. Waits for that until then, if anybody waits; one
    /// that still runs after that is asked to end. Returns how many lines nobody has read.
    pub(super) fn end(&mut self, until: Option<Instant>) -> u64 {
        let Some((reader, writer)) = self.pipe.take() else {
            return 0;
        };
        drop(writer);
        let Some((mut child, _)) = self.child.take() else {
            return lines_in(reader);
        };
        let pid = Pid::from_child(&child);
        let has_ended = until.is_some_and(|until| wait_for_end(pid, until));
        if until.is_some() && !has_ended {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::TERM);
        }
        if !matches!(child.try_wait(), Ok(Some(_))) {
            // Somebody has to take note of its end, whenever that comes; nobody waits for it.
            let _ = thread::Builder::new()
                .name("hob-log-reap".into())
                .spawn(move || child.wait());
        }
        match has_ended {
            true => lines_in(reader),
            false => 0,
        }
    }
}

/// Lines that are left in a pipe which nobody writes to any more.
fn lines_in(mut reader: PipeReader) -> u64 {
    let mut rest = Vec::new();
    // What cannot be read is lost all the same.
    let _ = reader.read_to_end(&mut rest);
    rest.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Waits until a process has ended, at most until then; says whether it has.
fn wait_for_end(pid: Pid, until: Instant) -> bool {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    loop {
        let rest = until.saturating_duration_since(Instant::now());
        let time = Timespec::try_from(rest).unwrap_or_default();
        let mut polled = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(&time)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests;
