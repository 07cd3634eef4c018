//! The way to a process with a driver in it, and its end: asked, waited for, and killed when it
//! hangs.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};

use crate::message::{DriverReply, DriverRequest, MESSAGE_BYTES_MAX};

/// Asked while a statement runs; yes has it ended.
pub type IsOver = Box<dyn FnMut() -> bool + Send>;
/// Starts a process that runs [`crate::process::run`] with the other end of the socket, with so
/// many bytes of memory.
pub type StartProcess = fn(u64) -> io::Result<(Child, UnixStream)>;

/// How often whoever waits looks up.
const TICK: Duration = Duration::from_millis(50);
/// How long a driver may take to connect.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to undo a transaction: the end of its process undoes it too.
const ROLLBACK_PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to end a statement.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is told to: a driver that is told before it has begun forgets it.
const CANCEL_AGAIN: Duration = Duration::from_millis(500);
/// How long a process may take to leave its database.
const LEAVE_PATIENCE: Duration = Duration::from_secs(1);
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// A process, and the socket to it.
pub(crate) struct OdbcLink {
    child: Child,
    stream: UnixStream,
    input: Vec<u8>,
    /// What the process may have.
    memory_bytes: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// The process has ended by itself, or says what cannot be understood.
    Crashed(String),
    /// It was ended, because the run had to.
    Ended(&'static str),
}

impl OdbcLink {
    pub(crate) fn start(start: StartProcess, memory_bytes: u64) -> io::Result<OdbcLink> {
        let (child, stream) = start(memory_bytes)?;
        let link = OdbcLink {
            child,
            stream,
            input: Vec::new(),
            memory_bytes,
        };
        link.stream.set_read_timeout(Some(TICK))?;
        link.stream.set_write_timeout(Some(CONNECT_PATIENCE))?;
        Ok(link)
    }

    /// Asks, and waits for the answer. After an error the link is of no use any more.
    pub(crate) fn ask(
        &mut self,
        request: &DriverRequest,
        is_over: &mut Option<IsOver>,
    ) -> Result<DriverReply, NoReply> {
        let patience = match request {
            DriverRequest::Open { .. } => Some(CONNECT_PATIENCE),
            DriverRequest::Rollback => Some(ROLLBACK_PATIENCE),
            _ => None,
        };
        if let Err(error) = self.stream.write_all(&request.encode()) {
            return Err(self.crashed(&error));
        }
        let mut wait = Wait {
            began: Instant::now(),
            patience,
            cancelled: None,
        };
        loop {
            match self.reply() {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                Err(error) => return Err(self.crashed(&error)),
            }
            match self.read() {
                Ok(true) => {}
                Ok(false) => self.look_up(&mut wait, is_over)?,
                Err(error) => return Err(self.crashed(&error)),
            }
        }
    }

    /// Nothing is asked, and yet there is something to be read: the process has ended.
    pub(crate) fn is_stale(&self) -> bool {
        let mut byte = [0; 1];
        let looked = recv(
            &self.stream,
            &mut byte,
            RecvFlags::PEEK | RecvFlags::DONTWAIT,
        );
        !matches!(looked, Err(rustix::io::Errno::AGAIN))
    }

    /// The answer, if it is here.
    fn reply(&mut self) -> io::Result<Option<DriverReply>> {
        let Some((head, rest)) = self.input.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let bytes = u32::from_le_bytes(*head) as usize;
        let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text);
        if bytes > MESSAGE_BYTES_MAX {
            return Err(wrong("it says more than can be taken"));
        }
        let Some(message) = rest.get(..bytes) else {
            return Ok(None);
        };
        let reply =
            DriverReply::decode(message).map_err(|_| wrong("what it says makes no sense"))?;
        if rest.len() > bytes {
            return Err(wrong("it says more than it was asked"));
        }
        self.input.clear();
        Ok(Some(reply))
    }

    /// Reads what there is; false after a tick without anything.
    fn read(&mut self) -> io::Result<bool> {
        let start = self.input.len();
        self.input.resize(start + READ_BYTES, 0);
        let read = self.stream.read(&mut self.input[start..]);
        self.input
            .truncate(start + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => Ok(true),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// With each tick of a wait: a run that is over has its statement cancelled, and then its
    /// process killed.
    fn look_up(&mut self, wait: &mut Wait, is_over: &mut Option<IsOver>) -> Result<(), NoReply> {
        let is_late = wait
            .patience
            .is_some_and(|patience| wait.began.elapsed() >= patience);
        if is_late {
            self.kill();
            return Err(NoReply::Ended(
                "the driver does not answer, and its process was ended",
            ));
        }
        if wait.cancelled.is_none() && !is_over.as_mut().is_some_and(|is_over| is_over()) {
            return Ok(());
        }
        let (first, last) = *wait.cancelled.get_or_insert_with(|| {
            let now = Instant::now();
            (now, now - CANCEL_AGAIN)
        });
        if first.elapsed() >= CANCEL_PATIENCE {
            self.kill();
            return Err(NoReply::Ended(
                "the statement was to end, the driver did not end it, and its process was ended",
            ));
        }
        if last.elapsed() >= CANCEL_AGAIN {
            wait.cancelled = Some((first, Instant::now()));
            let cancelled = self.stream.write_all(&DriverRequest::Cancel.encode());
            return cancelled.map_err(|error| self.crashed(&error));
        }
        Ok(())
    }

    /// The process has ended, or is ended now: it is of no use any more.
    fn crashed(&mut self, error: &io::Error) -> NoReply {
        let is_gone = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset
        );
        if !is_gone {
            self.kill();
            return NoReply::Crashed(format!("the process of the driver was ended: {error}"));
        }
        // It closes its socket by ending, and that it is killed then changes nothing; a driver that
        // closes what is not its own would be waited for without end.
        let _ = self.child.kill();
        let why = match self
            .child
            .wait()
            .map(|status| (status.signal(), status.code()))
        {
            Ok((Some(signal), _)) => {
                let mib = self.memory_bytes >> 20;
                format!("by signal {signal}; it may have {mib} MiB of memory (`memory`)")
            }
            Ok((None, code)) => format!("with exit code {}", code.unwrap_or_default()),
            Err(error) => format!("and its end was not seen: {error}"),
        };
        NoReply::Crashed(format!("the driver's process ended {why}"))
    }

    fn kill(&mut self) {
        // One that has ended already needs none.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for OdbcLink {
    /// The process hears the end of the socket, leaves its database and ends.
    fn drop(&mut self) {
        let patience = self.stream.set_read_timeout(Some(LEAVE_PATIENCE));
        if patience.is_ok() && self.stream.shutdown(Shutdown::Write).is_ok() {
            let mut rest = [0; 64];
            // It says nothing more; it has ended when there is nothing more to be read.
            while matches!(self.stream.read(&mut rest), Ok(1..)) {}
        }
        self.kill();
    }
}

/// How long an answer is waited for.
struct Wait {
    began: Instant,
    patience: Option<Duration>,
    /// When it was cancelled, and when that was said last.
    cancelled: Option<(Instant, Instant)>,
}
