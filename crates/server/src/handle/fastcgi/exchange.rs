//! A request on its connection: what is sent, what comes back, and how long that may take.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hob_http::reactor::Timer;
use hob_http::{Bytes, Request, Watched};
use hob_trace::metric::ThreadCounters;
use hob_trace::watch::RequestStage;
use rustix::net::{Shutdown, shutdown};

use crate::cache::disk_threads::DiskThreads;
use crate::handle::fastcgi::FastCgi;
use crate::handle::fastcgi::fail::FastCgiFailure;
use crate::handle::fastcgi::limits::{READ_BYTES, SPOOLED_BYTES, STDERR_KEPT_BYTES};
use crate::handle::fastcgi::wire::{Piece, RecordReader, push_body, push_body_end};
use crate::handle::script::body::ProgramRequestBody;
use crate::handle::script::gate::Permit;
use crate::handle::script::stderr::{self, Lines};
use crate::handle::script::variables::push_unique_id;
use crate::handle::upstream::connect::{self, ConnectError};
use crate::handle::upstream::kept::WaitingConnection;

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
    pub(super) fastcgi: Arc<FastCgi>,
    pub(super) request: Request,
    pub(super) counters: Arc<ThreadCounters>,
    /// The script, for people.
    pub(super) program: Rc<[u8]>,
    /// Output that nobody has taken.
    pub(super) output: Vec<u8>,
    link: Option<Link>,
    /// The last of what it printed on standard error.
    pub(super) printed: Vec<u8>,
    lines: Lines,
    /// Nothing may come for so long (`first_byte`, `progress`, `events`), and which it is.
    silence: Timer,
    limit: SilenceLimit,
    total: Timer,
    /// The connection had rested, and nothing has come over it for this request.
    is_unheard: bool,
    /// The connection is new, and nothing has come over it.
    waiting: Option<WaitingConnection>,
}

/// The connection, and where reading it has come.
struct Link {
    socket: Rc<Watched>,
    reader: RecordReader,
    room: Vec<u8>,
    /// Held for as long as the request is.
    permit: Permit,
}

/// Which limit of silence holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SilenceLimit {
    FirstByte,
    Progress,
    Events,
}

/// Which connection a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// One that rests, if there is one.
    Any,
    /// A new one.
    New,
}

/// What is sent.
pub(super) struct Outgoing {
    /// The records before the body.
    pub(super) head: Vec<u8>,
    pub(super) body: ProgramRequestBody,
    /// Reads a body that is in a file.
    pub(super) pool: DiskThreads,
}

impl Exchange {
    /// Takes a connection, one that rests if it may, and sends as much as goes at once; the rest
    /// follows by itself.
    pub(super) async fn begin(
        fastcgi: &Arc<FastCgi>,
        request: &Request,
        (counters, program): (&Arc<ThreadCounters>, &[u8]),
        (permit, outgoing): (Permit, Outgoing),
        connection: Connection,
    ) -> Result<Exchange, FastCgiFailure> {
        let (settings, reactor) = (&fastcgi.settings, request.reactor());
        // Before it is looked for one that rests: what begins to rest now is closed for this one.
        let waiting = fastcgi.kept.begin_to_wait();
        let resting = match connection {
            Connection::Any => fastcgi.kept.take(),
            Connection::New => None,
        };
        let is_kept = resting.is_some();
        let socket = match resting {
            Some(socket) => reactor.watch(socket).map_err(ConnectError::Refused),
            None => connect::to(&settings.to, reactor, settings.timeout.connect).await,
        };
        let socket = socket.map_err(|error| match error {
            ConnectError::Timeout => {
                counters.limit_upstream_connect.add(1);
                FastCgiFailure::ConnectTime
            }
            ConnectError::Refused(error) => FastCgiFailure::Unreachable(error.to_string()),
        })?;
        let (count, how) = match is_kept {
            true => (&counters.upstream_reuses, "goes on"),
            false => (&counters.upstream_connects, "is new"),
        };
        count.add(1);
        request.tell(
            RequestStage::Program,
            format_args!("the connection to {} {how}", fastcgi.address),
        );
        let socket = Rc::new(socket);
        let mut sending = Sending::new(outgoing);
        let sent = poll_fn(|cx| Poll::Ready(sending.poll_held(cx, &socket))).await;
        // Nobody has answered yet: the first look would be in vain.
        socket.clear_readable();
        if sent.is_pending() {
            let (socket, request) = (Rc::clone(&socket), request.clone());
            reactor.spawn(async move { sending.finish(&socket, &request).await });
        }
        let (silence, total) = (reactor.timer(), reactor.timer());
        set(&silence, settings.timeout.first_byte);
        set(&total, settings.timeout.total);
        Ok(Exchange {
            fastcgi: Arc::clone(fastcgi),
            request: request.clone(),
            counters: Arc::clone(counters),
            program: program.into(),
            output: Vec::new(),
            link: Some(Link {
                socket,
                reader: RecordReader::default(),
                room: vec![0; READ_BYTES],
                permit,
            }),
            printed: Vec::new(),
            lines: Lines::default(),
            silence,
            limit: SilenceLimit::FirstByte,
            total,
            is_unheard: is_kept,
            waiting: (!is_kept).then_some(waiting),
        })
    }

    /// The head has come: from now on pieces may not be too far apart.
    pub(super) fn has_head(&mut self) {
        self.limit = SilenceLimit::Progress;
        self.hear();
    }

    /// It has so long from now on, instead of `total`.
    pub(super) fn set_total(&self, total: Duration) {
        set(&self.total, total);
    }

    /// The answer is a stream of events, which has no end that could be waited for.
    pub(super) fn begin_events(&mut self, has_total: bool) {
        if !has_total {
            self.total.clear();
        }
        self.limit = SilenceLimit::Events;
        self.hear();
    }

    /// A connection that had rested ended as it was used again: the other side had closed it, and
    /// may not even have seen the request.
    pub(super) fn is_unheard(&self) -> bool {
        self.is_unheard
    }

    /// Gives it up, and its place among the connections to another try.
    pub(super) fn into_permit(mut self) -> Option<Permit> {
        let link = self.link.take()?;
        hang_up(&link.socket);
        Some(link.permit)
    }

    /// All of it has come.
    pub(super) fn is_over(&self) -> bool {
        self.link.is_none()
    }

    /// Reads what there is, and adds what it prints to `output`.
    pub(super) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, FastCgiFailure>> {
        loop {
            let Some(link) = &mut self.link else {
                return Poll::Ready(Ok(More::End));
            };
            let Poll::Ready(read) = link.socket.poll_read(cx, &mut link.room) else {
                return self.poll_limits(cx);
            };
            match read {
                Ok(0) => return Poll::Ready(Err(FastCgiFailure::Closed)),
                // It has closed, and not read all of the request.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Poll::Ready(Err(FastCgiFailure::Closed));
                }
                Err(error) => return Poll::Ready(Err(FastCgiFailure::Broken(error.to_string()))),
                Ok(count) => match self.take(count) {
                    Ok(Some(more)) => return Poll::Ready(Ok(more)),
                    Ok(None) => {}
                    Err(failure) => return Poll::Ready(Err(failure)),
                },
            }
        }
    }

    /// Takes apart what was read.
    fn take(&mut self, count: usize) -> Result<Option<More>, FastCgiFailure> {
        self.is_unheard = false;
        self.waiting = None;
        self.hear();
        let Some(mut link) = self.link.take() else {
            return Ok(None);
        };
        let before = self.output.len();
        let mut bytes = &link.room[..count];
        loop {
            match link.reader.next(&mut bytes) {
                Ok(None) => break,
                Ok(Some(Piece::Output(output))) => self.output.extend_from_slice(output),
                Ok(Some(Piece::Error(text))) => self.hear_error(text),
                // What a script leaves as its exit code says nothing of its answer: scripts of PHP
                // that end with an error have one, and a page that says so.
                Ok(Some(Piece::End(_))) => {}
                Err(fault) => {
                    self.link = Some(link);
                    return Err(FastCgiFailure::Wire(fault));
                }
            }
        }
        let is_over = link.reader.is_over();
        if is_over {
            self.log(|lines, each| lines.end(each));
            self.rest(link);
        } else {
            self.link = Some(link);
        }
        let is_more = self.output.len() > before;
        Ok(match (is_more, is_over) {
            (true, _) => Some(More::Bytes),
            (false, true) => Some(More::End),
            (false, false) => None,
        })
    }

    /// The connection may serve another request.
    fn rest(&self, link: Link) {
        let Link { socket, permit, .. } = link;
        match Rc::try_unwrap(socket) {
            Ok(socket) if self.fastcgi.kept.is_any() => {
                let reactor = self.request.reactor();
                self.fastcgi.kept.put(socket.into_fd(), reactor);
            }
            Ok(_) => {}
            // A body is still sent, of which the program has read enough.
            Err(socket) => hang_up(&socket),
        }
        // Who waits for it finds the connection.
        drop(permit);
    }

    fn hear_error(&mut self, text: &[u8]) {
        self.printed.extend_from_slice(text);
        let surplus = self.printed.len().saturating_sub(STDERR_KEPT_BYTES);
        self.printed.drain(..surplus);
        self.log(|lines, each| lines.push(text, each));
    }

    /// Has lines logged.
    fn log(&mut self, feed: impl FnOnce(&mut Lines, &mut dyn FnMut(&[u8]))) {
        let paced = (&self.fastcgi.pace, &*self.counters);
        let now_ms = self.request.reactor().now_ms();
        let (request, program) = (&self.request, &self.program);
        feed(&mut self.lines, &mut |line| {
            let mut id = Vec::new();
            push_unique_id(request, &mut id);
            let id = String::from_utf8_lossy(&id);
            stderr::log(paced, now_ms, (&id, program), line);
        });
    }

    /// Something has come, or has been asked for.
    fn hear(&self) {
        let timeout = &self.fastcgi.settings.timeout;
        match self.limit {
            SilenceLimit::FirstByte => {}
            SilenceLimit::Progress => set(&self.silence, timeout.progress),
            SilenceLimit::Events => set(&self.silence, timeout.events),
        }
    }

    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<Result<More, FastCgiFailure>> {
        if self.total.poll_elapsed(cx).is_ready() {
            self.counters.limit_upstream_total.add(1);
            return Poll::Ready(Err(FastCgiFailure::Total));
        }
        ready!(self.silence.poll_elapsed(cx));
        Poll::Ready(Err(match self.limit {
            SilenceLimit::FirstByte => {
                self.counters.limit_upstream_first_byte.add(1);
                FastCgiFailure::FirstByte
            }
            SilenceLimit::Progress => {
                self.counters.limit_upstream_progress.add(1);
                FastCgiFailure::Progress
            }
            SilenceLimit::Events => {
                self.counters.limit_upstream_events.add(1);
                FastCgiFailure::Silent
            }
        }))
    }

    /// Waits for more.
    pub(super) async fn more(&mut self) -> Result<More, FastCgiFailure> {
        poll_fn(|cx| self.poll_more(cx)).await
    }

    /// Takes what is there, and what comes until the timer has run out; `None` then.
    pub(super) async fn more_until(
        &mut self,
        timer: &Timer,
    ) -> Option<Result<More, FastCgiFailure>> {
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
        if let Some(link) = &self.link {
            hang_up(&link.socket);
        }
    }
}

/// Ends a connection for whoever still sends the request's body, too.
fn hang_up(socket: &Watched) {
    let _ = shutdown(socket.fd(), Shutdown::Both);
}

/// Sets a limit; zero is none.
fn set(timer: &Timer, limit: Duration) {
    match limit.is_zero() || limit == Duration::MAX {
        true => timer.clear(),
        false => timer.set(limit),
    }
}

/// A request on its way to the program.
struct Sending {
    /// Records, and how much of them is sent.
    bytes: Vec<u8>,
    sent: usize,
    body: OutgoingBody,
}

/// What of the body is not in a record yet.
enum OutgoingBody {
    Nothing,
    /// What is here of it, and how many bytes are left to send.
    Coming(VecDeque<Bytes>, u64),
    Spooled(Arc<OwnedFd>, u64, DiskThreads),
}

impl Sending {
    fn new(outgoing: Outgoing) -> Sending {
        let Outgoing { head, body, pool } = outgoing;
        let mut bytes = head;
        let body = match body {
            ProgramRequestBody::None => OutgoingBody::Nothing,
            ProgramRequestBody::Held(piece) => {
                push_body(&mut bytes, &piece);
                OutgoingBody::Nothing
            }
            ProgramRequestBody::Coming(pieces, len) => OutgoingBody::Coming(pieces, len),
            ProgramRequestBody::Spooled(file, len) => {
                OutgoingBody::Spooled(Arc::new(file), len, pool)
            }
        };
        if matches!(body, OutgoingBody::Nothing) {
            push_body_end(&mut bytes);
        }
        let sent = 0;
        Sending { bytes, sent, body }
    }

    /// Sends the records that there are; ready when nothing is left to send, and where the program
    /// takes no more.
    fn poll_held(&mut self, cx: &mut Context<'_>, socket: &Watched) -> Poll<()> {
        match ready!(self.poll_write(cx, socket)) {
            Ok(()) if !matches!(self.body, OutgoingBody::Nothing) => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, socket: &Watched) -> Poll<std::io::Result<()>> {
        while self.sent < self.bytes.len() {
            self.sent += ready!(socket.poll_write(cx, &self.bytes[self.sent..]))?;
        }
        self.bytes.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Sends the rest, as fast as it comes and the program reads. A program that takes no more has
    /// read enough. A body that breaks off ends the connection: the program must not take it for
    /// whole.
    async fn finish(mut self, socket: &Watched, request: &Request) {
        let mut offset = 0;
        loop {
            if poll_fn(|cx| self.poll_write(cx, socket)).await.is_err() {
                return;
            }
            let piece = match &mut self.body {
                OutgoingBody::Nothing => return,
                OutgoingBody::Coming(pieces, left) => {
                    let piece = match pieces.pop_front() {
                        Some(piece) => Some(Ok(piece)),
                        None => request.next_body().await.map(|piece| piece.map_err(drop)),
                    };
                    let bytes = piece.iter().flatten().map(|piece| piece.len() as u64);
                    *left = left.saturating_sub(bytes.sum());
                    piece
                }
                OutgoingBody::Spooled(_, len, _) if offset >= *len => None,
                OutgoingBody::Spooled(file, _, pool) => {
                    let piece = read_spooled(file, offset, pool).await;
                    offset += piece.as_ref().map_or(0, |piece| piece.len() as u64);
                    Some(piece.filter(|piece| !piece.is_empty()).ok_or(()))
                }
            };
            match piece {
                Some(Ok(piece)) => {
                    push_body(&mut self.bytes, &piece);
                    // The end leaves with the last of it: the program may answer right after that.
                    if let OutgoingBody::Coming(_, 0) = self.body {
                        self.end_body();
                    }
                }
                Some(Err(())) => {
                    hang_up(socket);
                    return;
                }
                None => self.end_body(),
            }
        }
    }

    fn end_body(&mut self) {
        push_body_end(&mut self.bytes);
        self.body = OutgoingBody::Nothing;
    }
}

async fn read_spooled(file: &Arc<OwnedFd>, offset: u64, pool: &DiskThreads) -> Option<Bytes> {
    let file = Arc::clone(file);
    let job = pool.run(move || {
        let mut bytes = vec![0; SPOOLED_BYTES];
        let count = rustix::io::pread(&*file, &mut bytes, offset).ok()?;
        bytes.truncate(count);
        Some(Bytes::from(bytes))
    });
    job.ok()?.await.flatten()
}
