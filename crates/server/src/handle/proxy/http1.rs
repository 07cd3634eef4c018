//! A request on a connection of its own.

use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hob_http::Bytes;

use crate::handle::proxy::exchange::{AnswerPart, AwaitedAnswer};
use crate::handle::proxy::fail::ProxyFailure;
use crate::handle::proxy::limits::{BODY_READ_BYTES, HEAD_READ_BYTES};
use crate::handle::proxy::link::ProxyLink;
use crate::handle::proxy::wire::{AnswerReader, Asked, Piece};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::link::Link;
use crate::handle::upstream::members::MemberUse;
use crate::handle::upstream::stream::MemberStream;

/// A request that was sent over HTTP/1.1.
pub(super) struct Http1Exchange {
    reader: AnswerReader,
    link: Option<Link>,
    /// Bytes that were read and are not taken apart.
    unread: Bytes,
    has_head: bool,
}

impl Http1Exchange {
    pub(super) fn new(asked: Asked, head_bytes_max: usize, link: Link) -> Http1Exchange {
        Http1Exchange {
            reader: AnswerReader::new(asked, head_bytes_max),
            link: Some(link),
            unread: Bytes::new(),
            has_head: false,
        }
    }

    pub(super) fn used(&self) -> Option<&MemberUse> {
        self.link.as_ref().map(|link| &link.used)
    }

    pub(super) fn take_head(&mut self, awaited: &AwaitedAnswer) {
        if self.reader.is_over() {
            let has_more = !self.unread.is_empty();
            self.rest(awaited, has_more);
        }
    }

    pub(super) fn give_up(&mut self) -> Option<ProxyLink> {
        self.link.take().map(ProxyLink::Http1)
    }

    pub(super) fn is_over(&self) -> bool {
        self.link.is_none() && self.unread.is_empty()
    }

    pub(super) fn stream(&self) -> Option<Rc<MemberStream>> {
        self.link.as_ref().map(|link| Rc::clone(&link.stream))
    }

    pub(super) fn poll_more(
        &mut self,
        awaited: &mut AwaitedAnswer,
        cx: &mut Context<'_>,
    ) -> Poll<Result<AnswerPart, ProxyFailure>> {
        loop {
            if let Some(more) = self.take(awaited)? {
                return Poll::Ready(Ok(more));
            }
            let room_bytes = match self.has_head {
                true => BODY_READ_BYTES,
                false => HEAD_READ_BYTES,
            };
            let mut room = Vec::new();
            match ready!(self.poll_read(awaited, cx, &mut room, room_bytes))? {
                true => self.unread = room.into(),
                false => return Poll::Ready(Ok(AnswerPart::End)),
            }
        }
    }

    /// Reads a body whose length was announced to where it is to be. `None` where what comes next
    /// is something else.
    pub(super) fn poll_collect(
        &mut self,
        awaited: &mut AwaitedAnswer,
        cx: &mut Context<'_>,
        body: &mut Vec<u8>,
    ) -> Option<Poll<Result<bool, ProxyFailure>>> {
        let left = self.reader.left().filter(|_| self.unread.is_empty())?;
        let begin = body.len();
        let read = self.poll_read(awaited, cx, body, left.min(BODY_READ_BYTES));
        let Poll::Ready(Ok(is_more)) = read else {
            return Some(read);
        };
        let came = (body.len() - begin) as u64;
        // What follows is nobody's.
        body.truncate(begin + self.reader.take_body(came));
        if self.reader.is_over() {
            self.rest(awaited, came > left as u64);
        }
        Some(Poll::Ready(Ok(is_more)))
    }

    /// Whether what is left of the body can be moved into pipes.
    pub(super) fn may_fill(&self) -> bool {
        let has_pipes = |link: &Link| link.stream.has_pipes();
        self.unread.is_empty()
            && self.reader.left().is_some()
            && self.link.as_ref().is_some_and(has_pipes)
    }

    /// Whether what comes next of a tunnel can be.
    pub(super) fn fills_next(&self) -> bool {
        let has_pipes = |link: &Link| link.stream.has_pipes();
        self.unread.is_empty()
            && self.reader.is_tunnel()
            && self.link.as_ref().is_some_and(has_pipes)
    }

    /// Moves bytes of the body into an empty pipe, at least one; of a tunnel, none at its end.
    pub(super) fn poll_fill(
        &mut self,
        awaited: &mut AwaitedAnswer,
        cx: &mut Context<'_>,
        (pipe, max): (BorrowedFd<'_>, usize),
    ) -> Poll<Result<usize, ProxyFailure>> {
        let is_tunnel = self.reader.is_tunnel();
        let left = self.reader.left().or(is_tunnel.then_some(usize::MAX));
        let (Some(link), Some(left)) = (&mut self.link, left) else {
            return Poll::Ready(Err(UpstreamFailure::Closed.into()));
        };
        // What follows the body stays where it is.
        let Poll::Ready(moved) = link.stream.poll_fill(cx, pipe, left.min(max)) else {
            return awaited.poll_limits(cx);
        };
        let count = match moved {
            // The end is read once more.
            Ok(0) if is_tunnel => return Poll::Ready(Ok(0)),
            Ok(0) => return Poll::Ready(Err(UpstreamFailure::Closed.into())),
            Ok(count) => count,
            Err(error) => {
                let failure = UpstreamFailure::of_read(error, &awaited.counters);
                return Poll::Ready(Err(failure.into()));
            }
        };
        awaited.hear();
        link.hear();
        self.reader.take_body(count as u64);
        if self.reader.is_over() {
            let has_more = !link.stream.is_quiet();
            self.rest(awaited, has_more);
        }
        Poll::Ready(Ok(count))
    }

    /// Reads behind what a buffer has; false where nothing will come any more.
    fn poll_read(
        &mut self,
        awaited: &mut AwaitedAnswer,
        cx: &mut Context<'_>,
        room: &mut Vec<u8>,
        room_bytes: usize,
    ) -> Poll<Result<bool, ProxyFailure>> {
        let Some(link) = &mut self.link else {
            return Poll::Ready(Ok(false));
        };
        // Nothing is allocated in vain.
        if link.stream.poll_readable(cx).is_pending() {
            return awaited.poll_limits(cx);
        }
        room.reserve(room_bytes);
        let Poll::Ready(read) = link.stream.poll_read_behind(cx, room) else {
            return awaited.poll_limits(cx);
        };
        let failure = match read {
            Ok(0) if self.reader.end().is_ok() => {
                self.link = None;
                return Poll::Ready(Ok(false));
            }
            Ok(0) => UpstreamFailure::Closed,
            Err(error) => UpstreamFailure::of_read(error, &awaited.counters),
            Ok(_) => {
                awaited.hear();
                link.hear();
                return Poll::Ready(Ok(true));
            }
        };
        Poll::Ready(Err(failure.into()))
    }

    /// Takes a piece of what was read apart.
    fn take(&mut self, awaited: &mut AwaitedAnswer) -> Result<Option<AnswerPart>, ProxyFailure> {
        loop {
            let mut input = &self.unread[..];
            let piece = self.reader.next(&mut input).map_err(ProxyFailure::Wire)?;
            let left = self.unread.len() - input.len();
            let more = match piece {
                None => None,
                Some(Piece::Body(bytes)) => Some(AnswerPart::Body(self.unread.slice_ref(bytes))),
                Some(Piece::Head(head)) => {
                    self.has_head = true;
                    Some(AnswerPart::Head(head))
                }
                Some(Piece::Interim(status, fields)) => {
                    awaited.pass_interim(status, fields);
                    drop(self.unread.split_to(left));
                    continue;
                }
                Some(Piece::Trailers(fields)) => {
                    awaited.trailers = Some(fields).filter(|fields| !fields.is_empty());
                    None
                }
            };
            drop(self.unread.split_to(left));
            // With the head alone it is not known yet whether it is taken.
            if self.reader.is_over() && !matches!(more, Some(AnswerPart::Head(_))) {
                let has_more = !self.unread.is_empty();
                self.rest(awaited, has_more);
                return Ok(more.or(Some(AnswerPart::End)));
            }
            return Ok(more);
        }
    }

    /// The answer has ended: the connection may serve another request, unless there is more on it.
    fn rest(&mut self, awaited: &AwaitedAnswer, has_more: bool) {
        let Some(link) = self.link.take() else { return };
        match self.reader.may_rest() && !has_more {
            true => link.rest(awaited.request.reactor(), &awaited.counters),
            false => link.close(),
        }
        self.unread = Bytes::new();
    }
}

impl Drop for Http1Exchange {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            link.hang_up();
        }
    }
}
