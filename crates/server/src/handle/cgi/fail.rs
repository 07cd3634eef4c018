//! What went wrong with a program, whose fault it is, and how its client and the record are told.

use std::io;
use std::sync::Arc;

use hob_http::{Body, Bytes, Request, Response};
use hob_trace::Fault;
use rustix::fs::{Mode, OFlags};

use crate::handle::cgi::Cgi;
use crate::handle::cgi::limits::STDERR_TOLD_BYTES;
use crate::handle::cgi::run::ProgramRun;
use crate::handle::plain;
use crate::handle::script::call;
use crate::handle::script::fail::explain_page;
use crate::handle::script::head::BadHead;
use hob_keeper::process::message::{ACCOUNT_CHECKS, Step};
use hob_keeper::process::{Exit, is_lack};
use hob_keeper::shebang::{LINE_BYTES_MAX, line_fault};

/// Why there is no answer, or no whole one.
#[derive(Debug)]
pub(super) enum CgiFailure {
    /// As many wait as may.
    QueueFull,
    /// It waited for too long.
    QueueTime,
    /// No head in time.
    FirstByte,
    /// It ran for too long.
    Total,
    /// Its stream of events was silent for too long.
    Silent,
    /// It printed more than the page takes that has called it.
    TooLong,
    /// What it printed is no answer; and how it ended, in words.
    Head(Box<BadHead>, String),
    /// A body where the status allows none.
    Bodiless(u16),
    /// The body ended before the length that was announced.
    Short {
        /// Announced.
        announced: u64,
        /// What came.
        came: u64,
    },
    /// The body is not in chunks as its head says.
    Chunks,
    /// A signal ended it.
    Killed(i32),
    /// A command ended with this exit code.
    Code(i32),
    /// A program ended with this exit code after its head, and said why.
    Failed(i32),
    /// It could not be started.
    NotStarted {
        /// What could not be done.
        step: &'static str,
        /// Why.
        errno: i32,
    },
    /// More starts wait than may.
    Busy,
    /// The spawner died.
    SpawnerGone,
    /// A pipe broke.
    Unreadable,
    /// No descriptors for its pipes.
    NoPipes(io::Error),
    /// The request cannot be passed on.
    Unpassable,
    /// What the path names is not run.
    Refused(&'static str),
    /// There is no interpreter to fork from, and why.
    NoHost(Arc<str>),
    /// There was none in time.
    HostTime,
    /// The interpreter that was forked from died.
    HostGone,
}

impl CgiFailure {
    /// Of a start that came to nothing.
    pub(super) fn of_exit(exit: Exit) -> CgiFailure {
        match exit {
            Exit::NotStarted { step, errno } => CgiFailure::NotStarted { step, errno },
            Exit::Busy => CgiFailure::Busy,
            Exit::SpawnerGone => CgiFailure::SpawnerGone,
            Exit::HostGone => CgiFailure::HostGone,
            Exit::Ended { signal, code, .. } => match signal {
                Some(signal) => CgiFailure::Killed(signal),
                None => CgiFailure::Code(code.unwrap_or_default()),
            },
        }
    }

    /// Of an end that leaves no answer, whatever was printed.
    pub(super) fn of_end(exit: Exit) -> Option<CgiFailure> {
        match exit {
            Exit::Ended { signal: None, .. } => None,
            exit => Some(CgiFailure::of_exit(exit)),
        }
    }

    /// The program itself has just shown it, and may be about to say why.
    pub(super) fn is_by_output(&self) -> bool {
        matches!(
            self,
            CgiFailure::Head(..)
                | CgiFailure::Bodiless(_)
                | CgiFailure::Short { .. }
                | CgiFailure::Chunks
                | CgiFailure::Killed(_)
                | CgiFailure::Code(_)
                | CgiFailure::Failed(_)
                | CgiFailure::NotStarted { .. }
        )
    }

    /// It was not to run as the account whose folder it is in.
    pub(super) fn is_by_account(&self) -> bool {
        let CgiFailure::NotStarted { step, .. } = self else {
            return false;
        };
        let mut checks = ACCOUNT_CHECKS.iter();
        checks.any(|check| *step == check.text() || *step == check.text_unpermitted())
    }

    /// The status that tells the client.
    pub(super) fn status(&self) -> u16 {
        match self {
            CgiFailure::QueueFull
            | CgiFailure::QueueTime
            | CgiFailure::HostTime
            | CgiFailure::Busy
            | CgiFailure::SpawnerGone
            | CgiFailure::NoPipes(_) => 503,
            CgiFailure::NotStarted { errno, .. } if is_lack(*errno) => 503,
            _ if self.is_by_account() => 403,
            CgiFailure::FirstByte | CgiFailure::Total | CgiFailure::Silent => 504,
            CgiFailure::Code(_) | CgiFailure::Unreadable => 500,
            CgiFailure::NotStarted { .. } if self.fault() == Fault::Server => 500,
            CgiFailure::Unpassable => 400,
            CgiFailure::Refused(_) => 403,
            _ => 502,
        }
    }

    /// Whose fault it is.
    pub(super) fn fault(&self) -> Fault {
        match self {
            CgiFailure::QueueFull
            | CgiFailure::QueueTime
            | CgiFailure::HostTime
            | CgiFailure::Busy
            | CgiFailure::SpawnerGone
            | CgiFailure::Unreadable
            | CgiFailure::NoPipes(_)
            | CgiFailure::Refused(_) => Fault::Server,
            CgiFailure::NotStarted { step, errno }
                if *step != Step::Exec.text() || is_lack(*errno) =>
            {
                Fault::Server
            }
            CgiFailure::Unpassable => Fault::Client,
            _ => Fault::Script,
        }
    }

    /// The reason in words, for the record.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            CgiFailure::QueueFull => "limits: queue: too many requests wait for the program",
            CgiFailure::QueueTime => "limits: queue_time: no process became free in time",
            CgiFailure::FirstByte => "limits: first_byte: no head of an answer in time",
            CgiFailure::Total => "limits: total: the program ran for too long",
            CgiFailure::Silent => "limits: events: the stream of events fell silent",
            CgiFailure::TooLong => call::TOO_LONG,
            CgiFailure::Head(bad, _) => bad.reason,
            CgiFailure::Bodiless(_) => "the program sent a body with a status that has none",
            CgiFailure::Short { .. } => "the program's output is shorter than its Content-Length",
            CgiFailure::Chunks => "the program's output is not in chunks, as its head says",
            CgiFailure::Killed(_) => "a signal ended the program",
            CgiFailure::Code(_) => "the command failed",
            CgiFailure::Failed(_) => "the program failed after its head",
            failure if failure.is_by_account() => "the program may not run as its account",
            CgiFailure::NotStarted { .. } => "the program could not be started",
            CgiFailure::Busy => "limits: too many programs wait to be started",
            CgiFailure::SpawnerGone => {
                "the process that starts programs died, and the program with it"
            }
            CgiFailure::Unreadable => "the program's output could not be read",
            CgiFailure::NoPipes(_) => "there are no pipes for the program",
            CgiFailure::Refused(reason) => reason,
            CgiFailure::NoHost(_) => "the warm interpreter does not start",
            CgiFailure::HostTime => "limits: queue_time: the interpreter was not ready in time",
            CgiFailure::HostGone => "the warm interpreter died, and the script with it",
            CgiFailure::Unpassable => {
                "the request holds a NUL byte, which no program can be passed"
            }
        }
    }

    /// What the reason leaves open.
    fn details(&self) -> String {
        match self {
            CgiFailure::Head(bad, ending) => {
                let line = match bad.line.is_empty() {
                    true => String::new(),
                    false => format!("{:?}", String::from_utf8_lossy(&bad.line)),
                };
                [line, ending.clone()]
                    .into_iter()
                    .filter(|text| !text.is_empty())
                    .collect::<Vec<_>>()
                    .join(", ")
            }
            CgiFailure::Bodiless(status) => format!("status {status}"),
            CgiFailure::Short { announced, came } => format!("{came} bytes of {announced}"),
            CgiFailure::Killed(signal) => format!("signal {signal}"),
            CgiFailure::Code(code) | CgiFailure::Failed(code) => format!("exit code {code}"),
            CgiFailure::NotStarted { step, errno: _ } if self.is_by_account() => {
                format!("cannot {step}")
            }
            CgiFailure::NotStarted { step, errno } => {
                format!("cannot {step}: {}", io::Error::from_raw_os_error(*errno))
            }
            CgiFailure::NoPipes(error) => error.to_string(),
            CgiFailure::NoHost(reason) => reason.to_string(),
            _ => String::new(),
        }
    }
}

/// What is wrong with the line that names a script's interpreter, where the kernel says no more
/// than that there is no such file. It has just read that line, so reading it waits for no disk.
fn interpreter_line(file: &[u8]) -> Option<String> {
    let mut bytes = [0; LINE_BYTES_MAX];
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(file, flags, Mode::empty()).ok()?;
    let len = rustix::io::read(&file, &mut bytes).ok()?;
    line_fault(&bytes[..len], |_| false)
}

/// Says in hob's own log that a program did not start: no standard error tells it.
fn log_not_started(cgi: &Cgi, request: &Request, file: &[u8], details: &str) {
    let Some(left_out) = cgi.pace.allows(request.reactor().now_ms()) else {
        return;
    };
    if left_out > 0 {
        tracing::warn!(lines = left_out, "more lines of programs than are logged");
    }
    let program = String::from_utf8_lossy(file);
    tracing::warn!(%program, "the program could not be started: {details}");
}

/// How a process ended, for people; nothing for a usual end.
pub(super) fn ending(exit: Exit) -> String {
    match exit {
        Exit::Ended {
            signal: Some(signal),
            ..
        } => format!("signal {signal}"),
        Exit::Ended {
            code: Some(code), ..
        } if code != 0 => format!("exit code {code}"),
        _ => String::new(),
    }
}

/// Tells the record why, and which program it was.
pub(super) fn note_detail(request: &Request, run: &ProgramRun, failure: &CgiFailure) {
    request.set_detail(&detail(&run.file, failure, &run.printed()));
}

/// The same of a run that ended after its answer, or well.
pub(super) fn note_end_detail(request: &Request, run: &ProgramRun, exit: Exit) {
    request.set_detail(&told(&run.file, &ending(exit), &run.printed()));
}

fn detail(file: &[u8], failure: &CgiFailure, printed: &[u8]) -> Vec<u8> {
    told(file, &failure.details(), printed)
}

fn told(file: &[u8], details: &str, printed: &[u8]) -> Vec<u8> {
    let mut text = file.to_vec();
    if !details.is_empty() {
        text.extend_from_slice(b": ");
        text.extend_from_slice(details.as_bytes());
    }
    let printed = last_lines(printed.trim_ascii());
    if !printed.is_empty() {
        text.extend_from_slice(b"; stderr: ");
        text.extend_from_slice(printed);
    }
    text
}

/// As many of the last lines as a record takes; of one that is too long its end.
fn last_lines(printed: &[u8]) -> &[u8] {
    let Some(over) = printed.len().checked_sub(STDERR_TOLD_BYTES) else {
        return printed;
    };
    // A line that begins right there is whole.
    match memchr::memchr(b'\n', &printed[over.saturating_sub(1)..]) {
        Some(end) => &printed[over.saturating_sub(1) + end + 1..],
        None => &printed[over..],
    }
}

/// The answer to a request that failed.
pub(super) fn respond(
    cgi: &Cgi,
    request: &Request,
    file: &[u8],
    failure: &CgiFailure,
    printed: &[u8],
) -> Response {
    {
        let mut record = request.record_mut();
        record.fault = failure.fault();
        record.reason = Some(failure.reason());
    }
    let mut told = detail(file, failure, printed);
    if let CgiFailure::NotStarted { step, errno } = failure {
        let mut details = failure.details();
        if *step == Step::Exec.text()
            && *errno == libc::ENOENT
            && let Some(line) = interpreter_line(file)
        {
            details = format!("{details}: {line}");
            told.extend_from_slice(format!(": {line}").as_bytes());
        }
        log_not_started(cgi, request, file, &details);
    }
    request.set_detail(&told);
    let status = failure.status();
    let mut response = match status {
        503 => plain::busy(),
        _ => plain::error(status),
    };
    if cgi.settings.dev {
        let details = failure.details();
        let page = explain_page(
            (status, failure.reason()),
            file,
            &details,
            Some(printed),
            "cgi.dev",
        );
        response.body = Body::Bytes(Bytes::from(page));
        response.is_stand_in = false;
    }
    response
}
