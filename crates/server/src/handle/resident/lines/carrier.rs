//! One worker's pipes: requests go out as lines, what comes back is taken apart.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use hob_http::{Reactor, Watched};
use hob_ipc::lines::{
    self, OutputEvent, SentinelScanner, Sentinels, UnfitVariable, VariableFormat,
};
use hob_ipc::message::MessageKind;
use hob_ipc::request::RequestBlock;
use rustix::pipe::PipeFlags;

use crate::handle::resident::driver::DrivenWorker;
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::READ_BYTES_PER_TURN;
use crate::handle::resident::lines::answer::LinesAnswer;
use crate::handle::resident::lines::pipe::{BodyPipe, Left, OutPipe};
use crate::handle::resident::start::pipe_from_program;

/// The pipes of one worker, and how far both sides are.
pub(in crate::handle::resident) struct Lines {
    input: OutPipe,
    body: BodyPipe,
    output: Watched,
    scanner: SentinelScanner,
    /// How variables are written, from the next request on.
    format: VariableFormat,
    answer: LinesAnswer,
    /// Its input ends with the request it has.
    is_draining: bool,
    /// It closed its input.
    is_broken: bool,
    /// Its process has ended: all of what it wrote is taken.
    is_last_look: bool,
}

/// What a program is started with.
pub(in crate::handle::resident) struct Theirs {
    pub(in crate::handle::resident) sentinels: Sentinels,
    pub(in crate::handle::resident) stdin: OwnedFd,
    pub(in crate::handle::resident) stdout: OwnedFd,
    pub(in crate::handle::resident) input: OwnedFd,
}

/// How much was heard of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::handle::resident) enum Heard {
    /// All there is for now.
    All,
    /// As much as one turn takes.
    Part,
    /// Nothing more comes.
    Closed {
        /// The last request was not read.
        is_unread: bool,
    },
}

impl Lines {
    /// # Errors
    /// No descriptors, or no random numbers.
    pub(in crate::handle::resident) fn new(reactor: &Reactor) -> io::Result<(Lines, Theirs)> {
        let sentinels = Sentinels::random()?;
        let (input, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (output, stdout) = pipe_from_program(reactor)?;
        let (body, stdin) = BodyPipe::new(reactor)?;
        let lines = Lines {
            input: OutPipe::new(reactor.watch_later(ours)?),
            body,
            output,
            scanner: SentinelScanner::new(sentinels.clone()),
            format: VariableFormat::default(),
            answer: LinesAnswer::None,
            is_draining: false,
            is_broken: false,
            is_last_look: false,
        };
        let theirs = Theirs {
            sentinels,
            stdin,
            stdout,
            input,
        };
        Ok((lines, theirs))
    }
}

/// To the program.
impl Lines {
    /// Puts a request on its way.
    ///
    /// # Errors
    /// It cannot be told in lines.
    pub(in crate::handle::resident) fn hand(
        &mut self,
        block: &[u8],
    ) -> Result<(), ResidentFailure> {
        let Ok(block) = RequestBlock::check(block) else {
            // It is one that this server built.
            return Err(ResidentFailure::TooLong);
        };
        let told = lines::append(self.input.bytes(), self.format, block.variables());
        told.map_err(|unfit| {
            ResidentFailure::Unpassable(match unfit {
                UnfitVariable::Broken => "a variable holds a line break, which a line cannot carry",
                UnfitVariable::TooLong => {
                    "a variable is longer than 64 KiB, the most a line can carry"
                }
            })
        })?;
        self.body.begin(block.content_length().unwrap_or_default());
        self.answer = LinesAnswer::begin();
        Ok(())
    }

    /// Puts on its way what there is of a message in lines.
    pub(in crate::handle::resident) fn push(&mut self, kind: MessageKind, payload: &[u8]) {
        match kind {
            MessageKind::Body => self.body.push(payload),
            MessageKind::Reply => lines::append_reply(self.input.bytes(), payload),
            MessageKind::Drain => self.is_draining = true,
            MessageKind::Cancel => self.cancel(),
            // Nobody is greeted, and pipes are windows of their own.
            _ => {}
        }
    }

    /// Nobody waits for the answer. What it still writes is thrown away; it does not wait for a
    /// body that will not come.
    fn cancel(&mut self) {
        let has_head = matches!(self.answer, LinesAnswer::Body);
        self.answer.give_up();
        if self.body.is_owed() && (!has_head || self.body.is_drunk_up()) {
            self.body.close();
        }
    }

    /// Bytes the pipes had no room for.
    pub(in crate::handle::resident) fn waiting_bytes(&self) -> usize {
        self.input.waiting_bytes() + self.body.waiting_bytes()
    }

    /// Writes what there is room for: the body first, so that it is there when the program begins.
    pub(in crate::handle::resident) fn flush(&mut self, cx: &mut Context<'_>) {
        self.body.flush(cx);
        self.is_broken |= self.input.flush(cx).is_err();
        if self.is_draining && matches!(self.answer, LinesAnswer::None) && self.waiting_bytes() == 0
        {
            self.hang_up();
        }
    }

    /// It sees the end of its input.
    pub(in crate::handle::resident) fn hang_up(&mut self) {
        self.input.close();
        self.body.close();
    }

    /// Whether it has not read all of what was written last.
    pub(in crate::handle::resident) fn is_unread(&self) -> bool {
        self.input.waiting_bytes() > 0 || self.input.unread_bytes() > 0
    }
}

/// From the program.
impl Lines {
    /// Takes what it says, as far as its client keeps up.
    pub(in crate::handle::resident) fn hear(
        &mut self,
        cx: &mut Context<'_>,
        core: &mut DrivenWorker,
    ) -> Heard {
        let mut read_bytes = 0;
        while core.blame.is_none() {
            if read_bytes >= READ_BYTES_PER_TURN {
                return Heard::Part;
            }
            let held_bytes = self.scanner.held_bytes();
            let room = self.answer.room(held_bytes, self.is_last_look, core);
            if room == 0 {
                // It waits for the client.
                return Heard::All;
            }
            match self.fill(cx, room) {
                Poll::Ready(0) => {
                    let is_unread = self.is_unread();
                    return Heard::Closed { is_unread };
                }
                Poll::Ready(count) => read_bytes += count,
                // It goes on without an input, and will read no request.
                Poll::Pending if self.is_broken && !self.answer.has_begun() => {
                    return Heard::Closed { is_unread: true };
                }
                Poll::Pending => return Heard::All,
            }
            self.tell(core);
        }
        Heard::All
    }

    /// Reads once; zero bytes are the end.
    fn fill(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<usize> {
        if self.output.poll_readable(cx).is_pending() {
            return Poll::Pending;
        }
        let space = self.scanner.space();
        let room = space.len().min(room);
        match self.output.poll_read(cx, &mut space[..room]) {
            Poll::Ready(Ok(count)) => {
                self.scanner.filled(count);
                // Fewer bytes than there was room for: what comes later gives a new event.
                if count < room && !self.output.is_hung_up() {
                    self.output.clear_readable();
                }
                Poll::Ready(count)
            }
            Poll::Ready(Err(_)) => Poll::Ready(0),
            Poll::Pending => Poll::Pending,
        }
    }

    /// What it wrote is there, whether or not that was told.
    pub(in crate::handle::resident) fn look_again(&mut self) {
        self.is_last_look = true;
        self.output.mark_readable();
    }

    fn tell(&mut self, core: &mut DrivenWorker) {
        while core.blame.is_none() {
            match self.scanner.next_event() {
                Ok(Some(OutputEvent::Output(bytes))) => {
                    if self.answer.take(bytes, core) {
                        self.cancel();
                    }
                }
                Ok(Some(OutputEvent::Callout { text, wants_reply })) => {
                    match VariableFormat::asked_by(text) {
                        Some(format) => self.format = format,
                        None => core.call_out_in_lines(text, wants_reply),
                    }
                }
                Ok(Some(OutputEvent::End)) => self.end(core),
                Ok(None) => return,
                Err(malformed) => core.blame = Some(malformed.to_string()),
            }
        }
    }

    /// An answer is whole.
    fn end(&mut self, core: &mut DrivenWorker) {
        let Some(ending) = self.answer.end() else {
            core.blame = Some("it ended an answer that nobody had asked for".to_owned());
            return;
        };
        if self.scanner.skip_blank() {
            core.pool.close(&core.mailbox);
            core.blame = Some("it wrote on after the end of an answer".to_owned());
        } else if let Some(why) = self.why_not_again() {
            core.retire(why);
        }
        core.finish(0, ending);
    }

    /// Why it cannot be given another request.
    fn why_not_again(&mut self) -> Option<&'static str> {
        match self.body.end() {
            _ if self.is_broken => Some("it closed its input"),
            Left::Nothing => None,
            Left::Part => Some("it left a part of a request's body unread"),
            Left::NoWay => Some("its standard input has ended with a body that broke off"),
        }
    }
}
