//! The access log as its owner sees it: started, given rings and files, flushed, closed.

use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::format::{AccessLogFormat, RecordNames};
use crate::metric::ThreadCounters;
use crate::mutex::Mutex;
use crate::ring::Consumer;

use super::piped::StartProgram;
use super::syslog::{AcknowledgedBytes, SyslogSettings};
use super::writer::AccessLogWriter;

/// Which log a record goes to; the number in [`crate::Record::log`]. Never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub(super) NonZeroU16);

impl LogId {
    /// The number for [`crate::Record::log`].
    pub fn number(self) -> u16 {
        self.0.get()
    }
}

/// How one log is written.
#[derive(Clone, Debug)]
pub struct DestinationSettings {
    /// What it is called in messages: its path.
    pub name: String,
    /// What a line looks like.
    pub format: AccessLogFormat,
    /// Names of the sites and routes in the config that this log was registered with.
    pub names: Arc<RecordNames>,
    /// Rotation is asked for when the file has this many bytes; 0 is never.
    pub rotate_bytes: u64,
    /// Rotation is asked for when a new day begins (UTC).
    pub rotate_daily: bool,
}

/// Where the lines of a log go.
#[derive(Debug)]
pub enum Target {
    /// A file, opened for appending.
    File(File),
    /// Standard output.
    Stdout,
    /// A collector of syslog; the function says what it has acknowledged over TCP.
    Syslog(Box<SyslogSettings>, AcknowledgedBytes),
    /// A program with its arguments, which is started by this.
    Program(Vec<String>, StartProgram),
}

/// There are no more log numbers: 65,535 logs have been registered in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogIdsUsedUp;

impl fmt::Display for LogIdsUsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("65535 access logs have been opened since the server started; restart it")
    }
}

impl std::error::Error for LogIdsUsedUp {}

/// Asked on the writer's thread when a log is due for rotation; must return soon.
pub type AskForRotation = Box<dyn Fn(LogId) + Send>;

/// A running writer thread. Everything here returns at once, except where it says that it waits.
#[derive(Debug)]
pub struct AccessLog {
    pub(super) mailbox: Arc<WriterMailbox>,
    /// Gone once closed.
    thread: Option<JoinHandle<()>>,
}

impl AccessLog {
    /// How long dropping waits for the lines that are on their way.
    const DROP_PATIENCE: Duration = Duration::from_secs(1);

    /// Starts the thread. It inherits CPU affinity and signal mask of the thread that calls.
    ///
    /// `ask_for_rotation` is called once when a log is due, and again only after
    /// [`AccessLog::replace`], or if that does not come for ten minutes. Losses are counted in
    /// `counters`, a block of its own.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(
        counters: Arc<ThreadCounters>,
        ask_for_rotation: AskForRotation,
    ) -> io::Result<AccessLog> {
        let mailbox = Arc::new(WriterMailbox::default());
        let writer = AccessLogWriter::new(Arc::clone(&mailbox), counters, ask_for_rotation);
        let thread = thread::Builder::new()
            .name("hob-log".into())
            .spawn(move || writer.run())?;
        Ok(AccessLog {
            mailbox,
            thread: Some(thread),
        })
    }

    /// Reads one more serving thread's ring, until its producer is dropped and it is empty.
    pub fn add_ring(&self, ring: Consumer) {
        self.send(WriterCommand::AddRing(ring));
    }

    /// Adds a log. Records may bear its number from now on.
    ///
    /// # Errors
    /// The process has used up its log numbers.
    pub fn register(
        &self,
        settings: DestinationSettings,
        target: Target,
    ) -> Result<LogId, LogIdsUsedUp> {
        let log = {
            let mut letters = self.mailbox.letters.lock();
            let last = letters.last_log.checked_add(1).ok_or(LogIdsUsedUp)?;
            letters.last_log = last;
            LogId(NonZeroU16::new(last).ok_or(LogIdsUsedUp)?)
        };
        self.send(WriterCommand::Register(log, Box::new(settings), target));
        Ok(log)
    }

    /// Lines of this log go to another file from now on: it was rotated, or is reopened. The old
    /// file is closed; after the next [`AccessLog::flush`] nothing more comes to it.
    pub fn replace(&self, log: LogId, file: File) {
        self.send(WriterCommand::Replace(log, file));
    }

    /// Ends a log. Everything pushed before is still written; a record pushed later with its number
    /// is dropped and counted.
    pub fn retire(&self, log: LogId) {
        self.send(WriterCommand::Retire(log));
    }

    /// Waits until everything pushed before is written or dropped; at most so long. Says whether it
    /// is.
    pub fn flush(&self, patience: Duration) -> bool {
        let (done, wait) = channel();
        self.send(WriterCommand::Flush(done));
        wait_for(&wait, patience)
    }

    /// Writes what was pushed before, ends the thread and waits for that; at most so long. Says
    /// whether it ended in time. A thread stuck in a write is left behind.
    pub fn close(mut self, patience: Duration) -> bool {
        self.end(patience)
    }

    fn end(&mut self, patience: Duration) -> bool {
        let Some(thread) = self.thread.take() else {
            return true;
        };
        let (done, wait) = channel();
        self.mailbox
            .letters
            .lock()
            .commands
            .push(WriterCommand::Close {
                deadline: Instant::now() + patience,
                done,
            });
        thread.thread().unpark();
        // The writer gives up at the deadline by itself; the grace is for its last step.
        const GRACE: Duration = Duration::from_millis(200);
        let ended = wait_for(&wait, patience + GRACE);
        // A thread that is stuck in a write cannot be joined; one that answered ends now.
        if ended || thread.is_finished() {
            drop(thread.join());
        }
        ended
    }

    pub(super) fn send(&self, command: WriterCommand) {
        self.mailbox.letters.lock().commands.push(command);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.end(Self::DROP_PATIENCE);
    }
}

/// True if the other side answered that all went well, in time.
fn wait_for(answer: &Receiver<bool>, patience: Duration) -> bool {
    answer.recv_timeout(patience).unwrap_or(false)
}

/// What the writer is told.
#[derive(Debug)]
pub(super) enum WriterCommand {
    AddRing(Consumer),
    Register(LogId, Box<DestinationSettings>, Target),
    Replace(LogId, File),
    Retire(LogId),
    /// Answered once nothing is left to write.
    Flush(Sender<bool>),
    /// Answered when the thread is about to end: whether nothing was left to write.
    Close {
        deadline: Instant,
        done: Sender<bool>,
    },
}

/// Commands on their way to the writer.
#[derive(Debug, Default)]
pub(super) struct WriterMailbox {
    pub(super) letters: Mutex<Letters>,
}

#[derive(Debug, Default)]
pub(super) struct Letters {
    pub(super) commands: Vec<WriterCommand>,
    /// The last log number given out.
    pub(super) last_log: u16,
}

impl WriterMailbox {}
