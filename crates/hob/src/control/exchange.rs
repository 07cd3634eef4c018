//! HTTP over the control socket: one answer after the other over one connection, or a stream of
//! events. Answers are read by the load generator's reader, which takes them in any piece.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_load::{AnswerProgress, AnswerReadOptions, AnswerReader};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use serde_json::Value;

use super::event_stream::{EventStream, ServerSentEvent};
use crate::CommandFailure;
use crate::escape;

/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
const ASKED: AnswerReadOptions<'_> = AnswerReadOptions {
    is_head: false,
    fields: &[],
    is_hashed: false,
};

/// The running hob, at its control socket.
pub(crate) struct Hob {
    path: PathBuf,
    /// Who must have started it; anybody, for root with a socket that was named.
    user_id: Option<u32>,
    /// Longest wait for bytes of an answer.
    patience: Duration,
    /// The connection that the last answer came over.
    kept: Option<UnixStream>,
    /// Where the same hob is reached now.
    is_now_at: Option<Box<dyn Fn() -> Option<PathBuf> + Send>>,
}

/// What it answered.
pub(crate) struct ControlAnswer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl ControlAnswer {
    /// What the running hob says to people.
    pub(crate) fn text(&self) -> String {
        match self.body.get("text").and_then(Value::as_str) {
            Some(text) => escape::lines(text).into_owned(),
            None => format!("status {}", self.status),
        }
    }

    /// What it told; refused when it told nothing but that it will not.
    pub(crate) fn told(self) -> Result<Value, CommandFailure> {
        match self.status {
            200 => Ok(self.body),
            _ => Err(CommandFailure {
                code: 1,
                text: self.text(),
            }),
        }
    }
}

/// The exit code of a command whose hob does not run.
pub(crate) const NOBODY: u8 = 3;

impl Hob {
    pub(crate) fn new(path: PathBuf, user_id: Option<u32>, patience: Duration) -> Hob {
        Hob {
            path,
            user_id,
            patience,
            kept: None,
            is_now_at: None,
        }
    }

    /// The same, found again where an upgrade has moved its control socket.
    pub(crate) fn that_may_move(
        self,
        is_now_at: impl Fn() -> Option<PathBuf> + Send + 'static,
    ) -> Hob {
        let is_now_at: Box<dyn Fn() -> Option<PathBuf> + Send> = Box::new(is_now_at);
        Hob {
            is_now_at: Some(is_now_at),
            ..self
        }
    }

    /// The same with another longest wait for bytes of an answer.
    pub(crate) fn with_patience(self, patience: Duration) -> Hob {
        Hob { patience, ..self }
    }

    /// What stands at a path of the API.
    pub(crate) fn get(&mut self, target: &str) -> Result<Value, CommandFailure> {
        self.ask("GET", target)?.told()
    }

    /// Sends a request without a body and reads its answer.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        target: &str,
    ) -> Result<ControlAnswer, CommandFailure> {
        let head = head(method, target);
        if let Some(mut stream) = self.kept.take() {
            // The server may have closed it meanwhile; what only looks can be asked again.
            if let Ok((answer, is_kept)) = exchange(&mut stream, &head) {
                self.kept = is_kept.then_some(stream);
                return Ok(answer);
            }
        }
        let mut stream = self.connect()?;
        let (answer, is_kept) =
            exchange(&mut stream, &head).map_err(|error| broken(&self.path, &error))?;
        self.kept = (is_kept && method == "GET").then_some(stream);
        Ok(answer)
    }

    /// Begins a stream of events.
    pub(crate) fn listen(&self, target: &str) -> Result<Listening, CommandFailure> {
        let broken = |error: io::Error| broken(&self.path, &error);
        let mut stream = self.connect()?;
        stream
            .write_all(head("GET", target).as_bytes())
            .map_err(broken)?;
        let mut reader = AnswerReader::default();
        reader.want_body();
        let mut buffer = vec![0; READ_BYTES];
        let is_over = loop {
            let count = stream.read(&mut buffer).map_err(broken)?;
            let progress = step(&mut reader, &buffer[..count]).map_err(broken)?;
            if reader.answer().status != 0 {
                break progress;
            }
        };
        let status = reader.answer().status;
        if status != 200 {
            let (answer, _) = finish(&mut stream, reader, is_over).map_err(broken)?;
            return Err(CommandFailure {
                code: 1,
                text: answer.text(),
            });
        }
        Ok(Listening {
            path: self.path.clone(),
            first: reader.take_body(),
            stream,
            reader,
            events: EventStream::default(),
            is_over,
        })
    }

    fn connect(&self) -> Result<UnixStream, CommandFailure> {
        let connected = UnixStream::connect(&self.path).or_else(|error| {
            let moved = self.is_now_at.as_ref().and_then(|find| find());
            moved.map_or(Err(error), UnixStream::connect)
        });
        let stream = connected.map_err(|error| CommandFailure {
            code: NOBODY,
            text: format!(
                "no hob answers at {}: {error} (`hob servers` lists those that run)",
                self.path.display()
            ),
        })?;
        self.refuse_others(&stream)?;
        stream
            .set_read_timeout(Some(self.patience))
            .and_then(|()| stream.set_write_timeout(Some(self.patience)))
            .map_err(|error| broken(&self.path, &error))?;
        Ok(stream)
    }
}

impl Hob {
    /// Whoever has put a socket of his own there is told nothing.
    fn refuse_others(&self, stream: &UnixStream) -> Result<(), CommandFailure> {
        let peer = socket_peercred(stream).map_err(|errno| broken(&self.path, &errno.into()))?;
        let user_id = peer.uid.as_raw();
        if self.user_id.is_none_or(|wanted| wanted == user_id) {
            return Ok(());
        }
        Err(CommandFailure {
            code: 3,
            text: format!(
                "what answers at {} belongs to user {user_id}: nothing was asked",
                self.path.display()
            ),
        })
    }
}

/// What came of waiting for events.
pub(crate) enum Came {
    /// Some, or none yet.
    Events(Vec<ServerSentEvent>),
    /// The server has ended the stream.
    End,
}

/// A stream of events.
pub(crate) struct Listening {
    path: PathBuf,
    stream: UnixStream,
    reader: AnswerReader,
    events: EventStream,
    /// Of the body, what came with the head.
    first: Vec<u8>,
    is_over: bool,
}

impl Listening {
    /// Waits at most this long, less where a signal comes.
    pub(crate) fn wait(&mut self, patience: Duration) -> Result<Came, CommandFailure> {
        let first = std::mem::take(&mut self.first);
        if !first.is_empty() {
            return self.taken(&first);
        }
        if self.is_over {
            return Ok(Came::End);
        }
        let mut polled = [PollFd::new(&self.stream, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        if !matches!(poll(&mut polled, Some(&limit)), Ok(1..)) {
            return Ok(Came::Events(Vec::new()));
        }
        let mut buffer = vec![0; READ_BYTES];
        let came = self.stream.read(&mut buffer);
        let came = came.and_then(|count| step(&mut self.reader, &buffer[..count]));
        // A server that goes leaves a stream without an end.
        self.is_over = came.unwrap_or(true);
        let body = self.reader.take_body();
        self.taken(&body)
    }

    fn taken(&mut self, body: &[u8]) -> Result<Came, CommandFailure> {
        let mut events = Vec::new();
        self.events.read(body, &mut events).map_err(|_| {
            broken(
                &self.path,
                &io::Error::other("an event is longer than 4 MiB"),
            )
        })?;
        Ok(Came::Events(events))
    }
}

fn broken(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure {
        code: 1,
        text: format!("no answer from the hob at {}: {error}", path.display()),
    }
}

fn head(method: &str, target: &str) -> String {
    let length = match method {
        "GET" => "",
        _ => "Content-Length: 0\r\nConnection: close\r\n",
    };
    format!("{method} {target} HTTP/1.1\r\nHost: hob\r\n{length}\r\n")
}

/// One answer, and whether another may come over the connection.
fn exchange(stream: &mut UnixStream, head: &str) -> io::Result<(ControlAnswer, bool)> {
    stream.write_all(head.as_bytes())?;
    let mut reader = AnswerReader::default();
    reader.want_body();
    finish(stream, reader, false)
}

/// Reads an answer that may have begun to its end.
fn finish(
    stream: &mut UnixStream,
    mut reader: AnswerReader,
    mut is_complete: bool,
) -> io::Result<(ControlAnswer, bool)> {
    let mut body = reader.take_body();
    let mut buffer = vec![0; READ_BYTES];
    while !is_complete {
        let count = stream.read(&mut buffer)?;
        is_complete = step(&mut reader, &buffer[..count])?;
        body.append(&mut reader.take_body());
        if body.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::other("it is longer than 16 MiB"));
        }
    }
    let found = reader.answer();
    let body = serde_json::from_slice(&body)
        .map_err(|_| io::Error::other("it is cut off or not what a hob says"))?;
    let status = found.status;
    Ok((ControlAnswer { status, body }, found.is_reusable))
}

/// Takes what came, or that nothing will, and says whether the answer is complete.
fn step(reader: &mut AnswerReader, bytes: &[u8]) -> io::Result<bool> {
    let wrong = |why: hob_load::BadAnswer| io::Error::other(why.to_string());
    if bytes.is_empty() {
        reader.end().map_err(wrong)?;
        return Ok(true);
    }
    match reader.read(bytes, ASKED).map_err(wrong)? {
        AnswerProgress::More => Ok(false),
        AnswerProgress::Complete(used) if used == bytes.len() => Ok(true),
        AnswerProgress::Complete(_) => Err(io::Error::other("more came than was asked for")),
    }
}
