//! A request on its way to a member: what is written, as fast as it comes and as the other side
//! reads.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hob_http::limits::SPLICED_BYTES_MIN;
use hob_http::{BodyPiece, Bytes, Request, SplicePipe};

use crate::cache::disk_threads::DiskThreads;
use crate::handle::script::body::ProgramRequestBody;
use crate::handle::upstream::patience::{Patience, SendingNotice};
use crate::handle::upstream::stream::MemberStream;

/// Bytes of a collected body read from its file at a time.
const SPOOLED_BYTES: usize = 64 * 1024;

/// What is sent.
pub(crate) struct Outgoing {
    /// What stands before the body.
    pub(crate) head: Vec<u8>,
    pub(crate) body: ProgramRequestBody,
    /// Reads a body that is in a file.
    pub(crate) pool: DiskThreads,
    /// How pieces of the body are written, and its end.
    pub(crate) framing: BodyFraming,
}

/// How a body is written in a protocol.
#[derive(Clone, Copy)]
pub(crate) struct BodyFraming {
    /// Pieces are written as they are, and nothing is at the end.
    pub(crate) is_plain: bool,
    /// Appends a piece, which is not empty.
    pub(crate) piece: fn(&mut Vec<u8>, &[u8]),
    /// Appends what ends it.
    pub(crate) end: fn(&mut Vec<u8>),
}

impl BodyFraming {
    /// The bytes as they are; the head has told how many there are.
    pub(crate) const PLAIN: BodyFraming = BodyFraming {
        is_plain: true,
        piece: |out, piece| out.extend_from_slice(piece),
        end: |_| {},
    };
}

struct Sending {
    /// What is framed, and how much of that is sent.
    bytes: Vec<u8>,
    sent: usize,
    /// What goes behind that, from one socket to the other.
    piped: Option<SplicePipe>,
    body: OutgoingBody,
    framing: BodyFraming,
}

/// What of the body is not framed yet.
pub(crate) enum OutgoingBody {
    Nothing,
    /// What is here of it, and how many bytes are left to send.
    Coming(VecDeque<Bytes>, u64),
    /// From an offset on.
    Spooled(Arc<OwnedFd>, u64, u64, DiskThreads),
    /// The same, and behind it what is to come.
    Begun(Arc<OwnedFd>, u64, u64, DiskThreads),
}

impl OutgoingBody {
    /// A body none of which is sent yet.
    pub(crate) fn new(body: ProgramRequestBody, pool: &DiskThreads) -> OutgoingBody {
        match body {
            ProgramRequestBody::None => OutgoingBody::Nothing,
            ProgramRequestBody::Held(piece) => {
                let len = piece.len() as u64;
                OutgoingBody::Coming(VecDeque::from([piece]), len)
            }
            ProgramRequestBody::Coming(pieces, len) => OutgoingBody::Coming(pieces, len),
            ProgramRequestBody::Spooled(file, len) => {
                OutgoingBody::Spooled(Arc::new(file), 0, len, pool.clone())
            }
            ProgramRequestBody::Begun(file, len) => {
                OutgoingBody::Begun(Arc::new(file), 0, len, pool.clone())
            }
        }
    }

    /// The next piece, as it comes; an error where it breaks off.
    pub(crate) async fn next(&mut self, request: &Request) -> Option<Result<Bytes, ()>> {
        let piece = self.next_piece(request).await;
        piece.map(|piece| piece?.into_bytes().map_err(drop))
    }

    /// The same for who takes pipes.
    async fn next_piece(&mut self, request: &Request) -> Option<Result<BodyPiece, ()>> {
        if let OutgoingBody::Begun(_, offset, len, _) = self
            && offset >= len
        {
            *self = OutgoingBody::Coming(VecDeque::new(), u64::MAX);
        }
        match self {
            OutgoingBody::Nothing => None,
            OutgoingBody::Coming(pieces, left) => {
                let piece = match pieces.pop_front() {
                    Some(piece) => Some(Ok(BodyPiece::Bytes(piece))),
                    None => {
                        let piece = request.next_body_piece().await;
                        piece.map(|piece| piece.map_err(drop))
                    }
                };
                let bytes = piece.iter().flatten().map(|piece| piece.len() as u64);
                *left = left.saturating_sub(bytes.sum());
                piece
            }
            OutgoingBody::Spooled(_, offset, len, _) if *offset >= *len => None,
            OutgoingBody::Spooled(file, offset, _, pool)
            | OutgoingBody::Begun(file, offset, _, pool) => {
                let piece = read_spooled(file, *offset, pool).await;
                *offset += piece.as_ref().map_or(0, |piece| piece.len() as u64);
                let piece = piece.filter(|piece| !piece.is_empty());
                Some(piece.map(BodyPiece::Bytes).ok_or(()))
            }
        }
    }

    /// Bytes of a body whose length is known that have not come; 0 where that is not how it comes.
    fn coming_bytes(&self) -> u64 {
        match self {
            OutgoingBody::Coming(pieces, left) if *left != u64::MAX => {
                let here = pieces.iter().map(|piece| piece.len() as u64);
                left.saturating_sub(here.sum())
            }
            _ => 0,
        }
    }

    /// Of a body whose length is known, all has come.
    pub(crate) fn is_at_end(&self) -> bool {
        match self {
            OutgoingBody::Nothing => true,
            OutgoingBody::Coming(_, left) => *left == 0,
            OutgoingBody::Spooled(_, offset, len, _) => offset == len,
            OutgoingBody::Begun(..) => false,
        }
    }
}

/// Sends as much as goes at once; the rest follows by itself.
pub(crate) async fn begin(
    outgoing: Outgoing,
    stream: &Rc<MemberStream>,
    request: &Request,
    patience: &Patience,
) {
    let mut sending = Sending::new(outgoing);
    let sent = poll_fn(|cx| Poll::Ready(sending.poll_held(cx, stream))).await;
    match &sent {
        // The other side takes nothing more, and may have said so with the last that was read.
        Poll::Ready(Err(_)) => stream.mark_readable(),
        // Nobody has answered yet: the first look would be in vain.
        _ => stream.clear_readable(),
    }
    if sent.is_pending() {
        let (stream, request) = (Rc::clone(stream), request.clone());
        let (reactor, notice) = (request.reactor().clone(), patience.notice());
        reactor.spawn(async move { sending.finish(&stream, &request, &notice).await });
    }
}

impl Sending {
    fn new(outgoing: Outgoing) -> Sending {
        let Outgoing {
            head: mut bytes,
            body,
            pool,
            framing,
        } = outgoing;
        let body = match body {
            ProgramRequestBody::Held(piece) => {
                (framing.piece)(&mut bytes, &piece);
                OutgoingBody::Nothing
            }
            body => OutgoingBody::new(body, &pool),
        };
        if matches!(body, OutgoingBody::Nothing) {
            (framing.end)(&mut bytes);
        }
        Sending {
            bytes,
            sent: 0,
            piped: None,
            body,
            framing,
        }
    }

    /// Sends what is framed; ready when nothing is left to send, and where the other side takes no
    /// more.
    fn poll_held(&mut self, cx: &mut Context<'_>, stream: &MemberStream) -> Poll<io::Result<()>> {
        match ready!(self.poll_write(cx, stream)) {
            Ok(()) if !matches!(self.body, OutgoingBody::Nothing) => Poll::Pending,
            sent => Poll::Ready(sent),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, stream: &MemberStream) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            self.sent += ready!(stream.poll_write(cx, &self.bytes[self.sent..]))?;
        }
        self.bytes.clear();
        self.sent = 0;
        if let Some(piped) = &mut self.piped {
            ready!(stream.poll_drain(cx, piped))?;
            self.piped = None;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the rest, as fast as it comes and the other side reads. Who takes no more has read
    /// enough. A body that breaks off ends the connection: it must not be taken for whole.
    async fn finish(mut self, stream: &MemberStream, request: &Request, notice: &SendingNotice) {
        let is_long = self.body.coming_bytes() > SPLICED_BYTES_MIN;
        if is_long && self.framing.is_plain && stream.has_pipes() {
            request.take_body_in_pipes(true);
        }
        loop {
            if poll_fn(|cx| self.poll_write(cx, stream)).await.is_err() {
                return;
            }
            notice.tell();
            if matches!(self.body, OutgoingBody::Nothing) {
                return;
            }
            match self.body.next_piece(request).await {
                Some(Ok(piece)) => {
                    match piece {
                        BodyPiece::Bytes(bytes) => (self.framing.piece)(&mut self.bytes, &bytes),
                        BodyPiece::Piped(pipe) => self.piped = Some(pipe),
                    }
                    // The end leaves with the last of it: the answer may come right after that.
                    if self.body.is_at_end() {
                        self.end_body();
                    }
                }
                Some(Err(())) => {
                    stream.hang_up();
                    return;
                }
                None => self.end_body(),
            }
        }
    }

    fn end_body(&mut self) {
        (self.framing.end)(&mut self.bytes);
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
