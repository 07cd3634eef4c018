//! What went wrong with a program, whose fault it is, and how its client and the record are told.

use std::io;
use std::sync::Arc;

use hob_http::{Body, Bytes, Request, Response};
use hob_trace::Fault;

use crate::handle::cgi::Cgi;
use crate::handle::cgi::head::BadHead;
use crate::handle::cgi::run::Run;
use crate::handle::{html, plain};
use crate::process::Exit;
use crate::process::message::Step;

/// Why there is no answer, or no whole one.
#[derive(Debug)]
pub(super) enum Failure {
    /// As many wait as may.
    QueueFull,
    /// It waited for too long.
    QueueTime,
    /// No head in time.
    FirstByte,
    /// It ran for too long.
    Total,
    /// What it printed is no answer.
    Head(BadHead, Option<Exit>),
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

impl Failure {
    /// Of a start that came to nothing.
    pub(super) fn of_exit(exit: Exit) -> Failure {
        match exit {
            Exit::NotStarted { step, errno } => Failure::NotStarted { step, errno },
            Exit::Busy => Failure::Busy,
            Exit::SpawnerGone => Failure::SpawnerGone,
            Exit::HostGone => Failure::HostGone,
            Exit::Ended { signal, code, .. } => match signal {
                Some(signal) => Failure::Killed(signal),
                None => Failure::Code(code.unwrap_or_default()),
            },
        }
    }

    /// Of an end that makes its output worthless.
    pub(super) fn of_end(exit: Exit, is_code_checked: bool) -> Option<Failure> {
        match exit {
            Exit::Ended {
                signal: None, code, ..
            } => {
                let failed = is_code_checked && code != Some(0);
                failed.then(|| Failure::of_exit(exit))
            }
            exit => Some(Failure::of_exit(exit)),
        }
    }

    /// The program itself has just shown it, and may be about to say why.
    pub(super) fn is_by_output(&self) -> bool {
        matches!(
            self,
            Failure::Head(..)
                | Failure::Bodiless(_)
                | Failure::Short { .. }
                | Failure::Chunks
                | Failure::Killed(_)
                | Failure::Code(_)
                | Failure::NotStarted { .. }
        )
    }

    /// The status that tells the client.
    pub(super) fn status(&self) -> u16 {
        match self {
            Failure::QueueFull
            | Failure::QueueTime
            | Failure::HostTime
            | Failure::Busy
            | Failure::SpawnerGone => 503,
            Failure::FirstByte | Failure::Total => 504,
            Failure::Code(_) | Failure::Unreadable | Failure::NoPipes(_) => 500,
            Failure::NotStarted { .. } if self.fault() == Fault::Server => 500,
            Failure::Unpassable => 400,
            Failure::Refused(_) => 403,
            _ => 502,
        }
    }

    /// Whose fault it is.
    pub(super) fn fault(&self) -> Fault {
        match self {
            Failure::QueueFull
            | Failure::QueueTime
            | Failure::HostTime
            | Failure::Busy
            | Failure::SpawnerGone
            | Failure::Unreadable
            | Failure::NoPipes(_)
            | Failure::Refused(_) => Fault::Server,
            Failure::NotStarted { step, .. } if *step != Step::Exec.text() => Fault::Server,
            Failure::Unpassable => Fault::Client,
            _ => Fault::Script,
        }
    }

    /// The reason in words, for the record.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Failure::QueueFull => "limits: queue: too many requests wait for the program",
            Failure::QueueTime => "limits: queue_time: no process became free in time",
            Failure::FirstByte => "limits: first_byte: no head of an answer in time",
            Failure::Total => "limits: total: the program ran for too long",
            Failure::Head(bad, _) => bad.reason,
            Failure::Bodiless(_) => "the program sent a body with a status that has none",
            Failure::Short { .. } => "the program's output is shorter than its Content-Length",
            Failure::Chunks => "the program's output is not in chunks, as its head says",
            Failure::Killed(_) => "a signal ended the program",
            Failure::Code(_) => "the command failed",
            Failure::NotStarted { .. } => "the program could not be started",
            Failure::Busy => "limits: too many programs wait to be started",
            Failure::SpawnerGone => {
                "the process that starts programs died, and the program with it"
            }
            Failure::Unreadable => "the program's output could not be read",
            Failure::NoPipes(_) => "there are no pipes for the program",
            Failure::Refused(reason) => reason,
            Failure::NoHost(_) => "the warm interpreter does not start",
            Failure::HostTime => "limits: queue_time: the interpreter was not ready in time",
            Failure::HostGone => "the warm interpreter died, and the script with it",
            Failure::Unpassable => "the request holds a NUL byte, which no program can be passed",
        }
    }

    /// What the reason leaves open.
    fn details(&self) -> String {
        match self {
            Failure::Head(bad, exit) => {
                let line = match bad.line.is_empty() {
                    true => String::new(),
                    false => format!("{:?}", String::from_utf8_lossy(&bad.line)),
                };
                [line, exit.map(ending).unwrap_or_default()]
                    .into_iter()
                    .filter(|text| !text.is_empty())
                    .collect::<Vec<_>>()
                    .join(", ")
            }
            Failure::Bodiless(status) => format!("status {status}"),
            Failure::Short { announced, came } => format!("{came} bytes of {announced}"),
            Failure::Killed(signal) => format!("signal {signal}"),
            Failure::Code(code) => format!("exit code {code}"),
            Failure::NotStarted { step, errno } => {
                format!("cannot {step}: {}", io::Error::from_raw_os_error(*errno))
            }
            Failure::NoPipes(error) => error.to_string(),
            Failure::NoHost(reason) => reason.to_string(),
            _ => String::new(),
        }
    }
}

/// How a process ended, for people; nothing for a usual end.
fn ending(exit: Exit) -> String {
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
pub(super) fn note_detail(request: &Request, run: &Run, failure: &Failure) {
    request.set_detail(&detail(&run.file, failure, &run.printed()));
}

fn detail(file: &[u8], failure: &Failure, printed: &[u8]) -> Vec<u8> {
    let mut text = file.to_vec();
    let details = failure.details();
    if !details.is_empty() {
        text.extend_from_slice(b": ");
        text.extend_from_slice(details.as_bytes());
    }
    let printed = printed.trim_ascii();
    if !printed.is_empty() {
        text.extend_from_slice(b"; stderr: ");
        text.extend_from_slice(printed);
    }
    text
}

/// The answer to a request that failed.
pub(super) fn respond(
    cgi: &Cgi,
    request: &Request,
    file: &[u8],
    failure: &Failure,
    printed: &[u8],
) -> Response {
    {
        let mut record = request.record_mut();
        record.fault = failure.fault();
        record.reason = Some(failure.reason());
    }
    request.set_detail(&detail(file, failure, printed));
    let status = failure.status();
    let mut response = match status {
        503 => plain::busy(),
        _ => plain::error(status),
    };
    if cgi.settings.dev {
        let page = page(status, file, failure, printed);
        response.body = Body::Bytes(Bytes::from(page));
        response.is_stand_in = false;
    }
    response
}

/// The failure as a page for whoever writes the program.
fn page(status: u16, file: &[u8], failure: &Failure, printed: &[u8]) -> Vec<u8> {
    let mut page = Vec::with_capacity(1024 + printed.len());
    let mut put = |text: &str| page.extend_from_slice(text.as_bytes());
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>");
    put(&format!("{status}: {}", failure.reason()));
    put("</title>\n<style>\n");
    put(html::STYLE);
    put("</style>\n<h1>");
    put(&status.to_string());
    put("</h1>\n<p>");
    html::escape(failure.reason().as_bytes(), &mut page);
    page.extend_from_slice(b".\n<p><code>");
    html::escape(file, &mut page);
    page.extend_from_slice(b"</code>");
    let details = failure.details();
    if !details.is_empty() {
        page.extend_from_slice(b": ");
        html::escape(details.as_bytes(), &mut page);
    }
    page.extend_from_slice(b"\n");
    if printed.trim_ascii().is_empty() {
        page.extend_from_slice(b"<p>It printed nothing on standard error.\n");
    } else {
        page.extend_from_slice(b"<p>On standard error it printed\n<pre>");
        for line in printed.split_inclusive(|&byte| byte == b'\n') {
            html::escape(line.strip_suffix(b"\n").unwrap_or(line), &mut page);
            page.extend_from_slice(b"\n");
        }
        page.extend_from_slice(b"</pre>\n");
    }
    page.extend_from_slice(b"<p>This page is shown because <code>dev</code> is set.\n");
    page
}
