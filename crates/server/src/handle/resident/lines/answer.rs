//! What comes out of a program between a request and the end string: a head as CGI has it, a body.

use std::mem;

use hob_ipc::message::{self, MessageHead, MessageKind};
use hob_ipc::shm::WorkerPayload;

use crate::handle::resident::driver::DrivenWorker;
use crate::handle::resident::exchange::{Ending, HeadSaid};
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::limits::LINES_HEAD_BYTES_MAX;
use crate::handle::resident::termination::{Termination, after};
use crate::handle::script::head::{BadHead, CgiHeadProgress, HeadReader};

/// How far an answer is.
pub(super) enum LinesAnswer {
    /// No request is under way.
    None,
    /// Its head has not ended; what is there of it.
    Head(HeadReader, Vec<u8>),
    Body,
    /// Nobody wants it.
    Unwanted,
}

impl LinesAnswer {
    pub(super) fn begin() -> LinesAnswer {
        LinesAnswer::Head(HeadReader::new(LINES_HEAD_BYTES_MAX), Vec::new())
    }

    /// Nobody waits for it any more.
    pub(super) fn give_up(&mut self) {
        if !matches!(self, LinesAnswer::None) {
            *self = LinesAnswer::Unwanted;
        }
    }

    /// The program has said something of it.
    pub(super) fn has_begun(&self) -> bool {
        match self {
            LinesAnswer::Head(_, held) => !held.is_empty(),
            LinesAnswer::Body => true,
            LinesAnswer::None | LinesAnswer::Unwanted => false,
        }
    }

    /// How many bytes may be read now, when so many were and are not told.
    pub(super) fn room(&self, held_bytes: usize, is_last: bool, core: &mut DrivenWorker) -> usize {
        let LinesAnswer::Body = self else {
            return usize::MAX;
        };
        let one = core.requests.at(0);
        if is_last {
            // A pipe holds little.
            one.data_credit = usize::MAX;
        }
        let room = one.data_credit.saturating_sub(held_bytes);
        if room == 0 {
            one.step_due_ms = u64::MAX;
        }
        room
    }

    /// Takes output. True when it turns out to be no answer.
    pub(super) fn take(&mut self, bytes: &[u8], core: &mut DrivenWorker) -> bool {
        match self {
            LinesAnswer::None if bytes.trim_ascii().is_empty() => {}
            LinesAnswer::None => {
                let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
                let shown = shown.escape_ascii();
                core.blame = Some(format!(
                    "it wrote to standard output when it had no request: {shown}"
                ));
            }
            LinesAnswer::Head(reader, held) => {
                let is_first = held.is_empty();
                let all = match is_first {
                    true => bytes,
                    false => {
                        held.extend_from_slice(bytes);
                        &held[..]
                    }
                };
                match reader.read(all) {
                    CgiHeadProgress::Head(head, used) => {
                        core.put_head(0, HeadSaid::Read(head));
                        take_body(&all[used..], core);
                        *self = LinesAnswer::Body;
                    }
                    CgiHeadProgress::Refused(bad) => {
                        core.refuse_answer(ResidentFailure::Head(named(bad)));
                        return true;
                    }
                    CgiHeadProgress::NeedMore if is_first => *held = bytes.to_vec(),
                    CgiHeadProgress::NeedMore => {}
                }
            }
            LinesAnswer::Body => take_body(bytes, core),
            LinesAnswer::Unwanted => {}
        }
        false
    }

    /// It is over: how it ended, if there was one.
    pub(super) fn end(&mut self) -> Option<Ending> {
        match mem::replace(self, LinesAnswer::None) {
            LinesAnswer::None => None,
            LinesAnswer::Head(_, held) if held.is_empty() => {
                Some(Ending::Failed(ResidentFailure::NoHead))
            }
            LinesAnswer::Head(reader, held) => {
                Some(Ending::Failed(ResidentFailure::Head(reader.at_end(&held))))
            }
            LinesAnswer::Body | LinesAnswer::Unwanted => Some(Ending::Whole(Vec::new())),
        }
    }
}

fn take_body(bytes: &[u8], core: &mut DrivenWorker) {
    if !bytes.is_empty() {
        let number = core.requests.at(0).number;
        core.take_data(
            0,
            MessageHead::new(MessageKind::Data, number),
            WorkerPayload::Bytes(bytes),
        );
    }
}

/// The limit has no name in the config.
fn named(bad: BadHead) -> BadHead {
    match bad.is_too_long() {
        true => BadHead {
            reason: "the head of the answer is longer than 64 KiB",
            ..bad
        },
        false => bad,
    }
}

/// What of a program is done otherwise in lines than in messages.
impl DrivenWorker {
    /// A callout without a number: there is only one at a time.
    pub(super) fn call_out_in_lines(&mut self, text: &[u8], wants_reply: bool) {
        let request = self.requests.iter().next().map(|one| one.number);
        let flags = match wants_reply {
            true => 0,
            false => message::QUIET,
        };
        let head = MessageHead::new(MessageKind::Callout, request.unwrap_or_default()).flags(flags);
        self.call_out(head, text, request.map(|_| 0));
    }

    /// What was sent is no answer: the client is told so, and the rest of it is thrown away.
    fn refuse_answer(&mut self, failure: ResidentFailure) {
        let until_ms = after(self.home.reactor.now_ms(), self.pool.settings.grace);
        let one = self.requests.at(0);
        one.is_started = true;
        one.given_up_until_ms.get_or_insert(until_ms);
        self.wakers
            .extend(one.exchange.end(Ending::Failed(failure)));
    }

    /// It answered as it should, and cannot be given another request all the same.
    pub(super) fn retire(&mut self, why: &str) {
        if self.termination != Termination::Serves {
            return;
        }
        let now_ms = self.home.reactor.now_ms();
        if self.pool.pace.allows(now_ms).is_some() {
            let program = self.pool.settings.runs.name();
            let pid = self.mailbox.pid();
            tracing::warn!(program, pid, "a worker is replaced: {why}");
        }
        self.drain();
    }
}

/// Bytes of stray output that are shown.
const SHOWN_BYTES_MAX: usize = 200;
