//! What comes out of a program between a request and the end string: a head as CGI has it, a body.

use std::mem;

use hob_ipc::message::{self, Head, Kind};
use hob_ipc::shm::Payload;

use crate::handle::resident::driver::Core;
use crate::handle::resident::exchange::{Ending, HeadSaid};
use crate::handle::resident::fail::Failure;
use crate::handle::resident::limits::LINES_HEAD_BYTES_MAX;
use crate::handle::resident::termination::{Termination, after};
use crate::handle::script::head::{BadHead, HeadReader, Progress};

/// How far an answer is.
pub(super) enum Answer {
    /// No request is under way.
    None,
    /// Its head has not ended; what is there of it.
    Head(HeadReader, Vec<u8>),
    Body,
    /// Nobody wants it.
    Unwanted,
}

impl Answer {
    pub(super) fn begin() -> Answer {
        Answer::Head(HeadReader::new(LINES_HEAD_BYTES_MAX), Vec::new())
    }

    /// Nobody waits for it any more.
    pub(super) fn give_up(&mut self) {
        if !matches!(self, Answer::None) {
            *self = Answer::Unwanted;
        }
    }

    /// The program has said something of it.
    pub(super) fn has_begun(&self) -> bool {
        match self {
            Answer::Head(_, held) => !held.is_empty(),
            Answer::Body => true,
            Answer::None | Answer::Unwanted => false,
        }
    }

    /// How many bytes may be read now, when so many were and are not told.
    pub(super) fn room(&self, held_bytes: usize, is_last: bool, core: &mut Core) -> usize {
        let Answer::Body = self else {
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
    pub(super) fn take(&mut self, bytes: &[u8], core: &mut Core) -> bool {
        match self {
            Answer::None if bytes.trim_ascii().is_empty() => {}
            Answer::None => {
                let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
                let shown = shown.escape_ascii();
                core.blame = Some(format!(
                    "it wrote to standard output when it had no request: {shown}"
                ));
            }
            Answer::Head(reader, held) => {
                let is_first = held.is_empty();
                let all = match is_first {
                    true => bytes,
                    false => {
                        held.extend_from_slice(bytes);
                        &held[..]
                    }
                };
                match reader.read(all) {
                    Progress::Head(head, used) => {
                        core.put_head(0, HeadSaid::Read(head));
                        take_body(&all[used..], core);
                        *self = Answer::Body;
                    }
                    Progress::Refused(bad) => {
                        core.refuse_answer(Failure::Head(named(bad)));
                        return true;
                    }
                    Progress::NeedMore if is_first => *held = bytes.to_vec(),
                    Progress::NeedMore => {}
                }
            }
            Answer::Body => take_body(bytes, core),
            Answer::Unwanted => {}
        }
        false
    }

    /// It is over: how it ended, if there was one.
    pub(super) fn end(&mut self) -> Option<Ending> {
        match mem::replace(self, Answer::None) {
            Answer::None => None,
            Answer::Head(_, held) if held.is_empty() => Some(Ending::Failed(Failure::NoHead)),
            Answer::Head(reader, held) => Some(Ending::Failed(Failure::Head(reader.at_end(&held)))),
            Answer::Body | Answer::Unwanted => Some(Ending::Whole(Vec::new())),
        }
    }
}

fn take_body(bytes: &[u8], core: &mut Core) {
    if !bytes.is_empty() {
        let number = core.requests.at(0).number;
        core.take_data(0, Head::new(Kind::Data, number), Payload::Bytes(bytes));
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
impl Core {
    /// A callout without a number: there is only one at a time.
    pub(super) fn call_out_in_lines(&mut self, text: &[u8], wants_reply: bool) {
        let request = self.requests.iter().next().map(|one| one.number);
        let flags = match wants_reply {
            true => 0,
            false => message::QUIET,
        };
        let head = Head::new(Kind::Callout, request.unwrap_or_default()).flags(flags);
        self.call_out(head, text, request.map(|_| 0));
    }

    /// What was sent is no answer: the client is told so, and the rest of it is thrown away.
    fn refuse_answer(&mut self, failure: Failure) {
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
