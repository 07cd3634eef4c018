//! A request on its connection: what comes back, and how long that may take.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hob_http::Request;
use hob_http::reactor::Timer;
use hob_trace::metric::ThreadCounters;

use crate::handle::script::stderr::{self, Lines};
use crate::handle::script::variables::push_unique_id;
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::link::Link;
use crate::handle::upstream::patience::Patience;
use crate::handle::upstream::program::UpstreamProgram;
use crate::handle::upstream::program::fail::ProgramFailure;
use crate::handle::upstream::program::limits::{READ_BYTES, STDERR_KEPT_BYTES};
use crate::handle::upstream::program::protocol::ReadsAnswer;
use crate::handle::upstream::sending::{self, Outgoing};

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    /// Output.
    Bytes,
    /// The request is over.
    End,
}

/// A request that its program has.
pub(super) struct Exchange {
    pub(super) program: Arc<UpstreamProgram>,
    pub(super) request: Request,
    pub(super) counters: Arc<ThreadCounters>,
    /// The script, for people.
    pub(super) script: Rc<[u8]>,
    /// The member's address, for people.
    pub(super) member: Arc<str>,
    /// Output that nobody has taken.
    pub(super) output: Vec<u8>,
    incoming: Option<IncomingAnswer>,
    /// The last of what it printed on standard error.
    pub(super) printed: Vec<u8>,
    lines: Lines,
    patience: Patience,
    sent: Instant,
    /// Nothing has come over the connection for this request.
    is_unheard: bool,
    /// The connection has ended, and the answer with it.
    is_closed: bool,
    has_head: bool,
}

/// The connection, and where reading it has come.
struct IncomingAnswer {
    link: Link,
    reader: Box<dyn ReadsAnswer>,
    room: Vec<u8>,
}

impl Exchange {
    /// Sends as much as goes at once; the rest follows by itself.
    pub(super) async fn begin(
        program: &Arc<UpstreamProgram>,
        request: &Request,
        (counters, script): (&Arc<ThreadCounters>, &[u8]),
        (link, outgoing): (Link, Outgoing),
    ) -> Exchange {
        let patience = Patience::new(request.reactor(), program.settings.timeout);
        sending::begin(outgoing, &link.stream, request, &patience).await;
        Exchange {
            program: Arc::clone(program),
            request: request.clone(),
            counters: Arc::clone(counters),
            script: script.into(),
            member: Arc::clone(&link.used.member().text),
            output: Vec::new(),
            incoming: Some(IncomingAnswer {
                link,
                reader: program.protocol.reader(),
                room: Vec::with_capacity(READ_BYTES),
            }),
            printed: Vec::new(),
            lines: Lines::default(),
            patience,
            sent: Instant::now(),
            is_unheard: true,
            is_closed: false,
            has_head: false,
        }
    }

    /// The head has come: from now on pieces may not be too far apart.
    pub(super) fn take_head(&mut self) {
        self.has_head = true;
        self.patience.has_head();
        if let Some(incoming) = &self.incoming {
            self.credit(&incoming.link);
        }
    }

    /// Its member has answered.
    fn credit(&self, link: &Link) {
        let now_ms = self.request.reactor().now_ms();
        let after_us = self.sent.elapsed().as_micros() as u64;
        link.used.answered(after_us, now_ms);
    }

    /// It has so long from now on, instead of `total`.
    pub(super) fn set_total(&self, total: Duration) {
        self.patience.set_total(total);
    }

    /// The answer is a stream of events, which has no end that could be waited for.
    pub(super) fn begin_events(&mut self, has_total: bool) {
        self.patience.begin_events(has_total);
    }

    /// Gives it up: its connection, if it was still on one, whether nothing came over that, and
    /// what was printed.
    pub(super) fn give_up(mut self) -> (Option<Link>, bool, Vec<u8>) {
        let link = self.incoming.take().map(|incoming| incoming.link);
        (link, self.is_unheard, std::mem::take(&mut self.printed))
    }

    /// All of it has come.
    pub(super) fn is_over(&self) -> bool {
        self.incoming.is_none() || self.is_closed
    }

    /// The connection has ended, and the answer with it.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Reads what there is, and adds what it prints to `output`.
    pub(super) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, ProgramFailure>> {
        loop {
            let Some(IncomingAnswer { link, reader, room }) =
                self.incoming.as_mut().filter(|_| !self.is_closed)
            else {
                return Poll::Ready(Ok(More::End));
            };
            room.clear();
            let Poll::Ready(read) = link.stream.poll_read_behind(cx, room) else {
                return self.patience.poll(cx).map(|limit| {
                    limit.count(&self.counters);
                    Err(UpstreamFailure::Time(limit).into())
                });
            };
            let failure = match read {
                read if reader.ends_with_connection() && self.is_end(&read) => {
                    self.is_closed = true;
                    continue;
                }
                Ok(0) => UpstreamFailure::Closed,
                Err(error) => UpstreamFailure::of_read(error, &self.counters),
                Ok(_) => match self.take() {
                    Ok(Some(more)) => return Poll::Ready(Ok(more)),
                    Ok(None) => continue,
                    Err(failure) => return Poll::Ready(Err(failure)),
                },
            };
            return Poll::Ready(Err(failure.into()));
        }
    }

    /// Whether this ends an answer that has no other end.
    fn is_end(&self, read: &std::io::Result<usize>) -> bool {
        match read {
            // Where nothing has come there is no answer.
            Ok(count) => *count == 0 && !self.is_unheard,
            // It has closed as it does after every answer, and not read all of the body. Over TLS
            // who stands in between could say so, too.
            Err(error) => {
                let incoming = self.incoming.as_ref();
                error.kind() == ErrorKind::ConnectionReset
                    && incoming.is_some_and(|incoming| !incoming.link.stream.is_secure())
                    && self.has_head
                    && self.request.body_len() != Some(0)
            }
        }
    }

    /// Takes apart what was read.
    fn take(&mut self) -> Result<Option<More>, ProgramFailure> {
        self.is_unheard = false;
        self.patience.hear();
        let Some(mut incoming) = self.incoming.take() else {
            return Ok(None);
        };
        incoming.link.hear();
        let (before, mut printed) = (self.output.len(), Vec::new());
        let bytes = &incoming.room[..];
        let taken = incoming.reader.take(bytes, &mut self.output, &mut printed);
        if !printed.is_empty() {
            self.hear_error(&printed);
        }
        let is_over = taken.is_ok() && incoming.reader.is_over();
        if is_over {
            self.log(|lines, each| lines.end(each));
            // It came all at once, and nobody has looked at its head.
            if !self.has_head {
                self.credit(&incoming.link);
            }
            incoming.link.rest(self.request.reactor(), &self.counters);
        } else {
            self.incoming = Some(incoming);
        }
        taken?;
        let is_more = self.output.len() > before;
        Ok(match (is_more, is_over) {
            (true, _) => Some(More::Bytes),
            (false, true) => Some(More::End),
            (false, false) => None,
        })
    }

    fn hear_error(&mut self, text: &[u8]) {
        self.printed.extend_from_slice(text);
        let surplus = self.printed.len().saturating_sub(STDERR_KEPT_BYTES);
        self.printed.drain(..surplus);
        self.log(|lines, each| lines.push(text, each));
    }

    /// Has lines logged.
    fn log(&mut self, feed: impl FnOnce(&mut Lines, &mut dyn FnMut(&[u8]))) {
        let paced = (&self.program.pace, &*self.counters);
        let now_ms = self.request.reactor().now_ms();
        let (request, script) = (&self.request, &self.script);
        feed(&mut self.lines, &mut |line| {
            let mut id = Vec::new();
            push_unique_id(request, &mut id);
            let id = String::from_utf8_lossy(&id);
            stderr::log(paced, now_ms, (&id, script), line);
        });
    }

    /// Waits for more.
    pub(super) async fn more(&mut self) -> Result<More, ProgramFailure> {
        poll_fn(|cx| self.poll_more(cx)).await
    }

    /// Takes what is there, and what comes until the timer has run out; `None` then.
    pub(super) async fn more_until(
        &mut self,
        timer: &Timer,
    ) -> Option<Result<More, ProgramFailure>> {
        poll_fn(|cx| match self.poll_more(cx) {
            Poll::Ready(more) => Poll::Ready(Some(more)),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        })
        .await
    }

    /// The answer is complete: the program may go on by itself, within its limits. What it still
    /// prints is read and dropped.
    pub(super) fn release(mut self) {
        if self.is_over() {
            return;
        }
        let reactor = self.request.reactor().clone();
        reactor.spawn(async move {
            while let Ok(More::Bytes) = self.more().await {
                self.output.clear();
            }
        });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(incoming) = &self.incoming {
            incoming.link.hang_up();
        }
    }
}
