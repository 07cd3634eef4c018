//! A request on its connection: what comes back, and how long that may take.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hob_http::{Bytes, Fields, Request};
use hob_trace::metric::ThreadCounters;

use crate::handle::proxy::Proxy;
use crate::handle::proxy::fail::ProxyFailure;
use crate::handle::proxy::limits::{BODY_READ_BYTES, HEAD_READ_BYTES};
use crate::handle::proxy::wire::{AnswerHead, AnswerReader, Asked, Piece};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::link::Link;
use crate::handle::upstream::patience::Patience;
use crate::handle::upstream::sending::{self, Outgoing};
use crate::handle::upstream::stream::MemberStream;

/// What there is.
#[derive(Debug)]
pub(super) enum AnswerPart {
    /// The head.
    Head(AnswerHead),
    /// A piece of the body.
    Body(Bytes),
    /// The answer is over.
    End,
}

/// A request that a member has.
pub(super) struct ProxyExchange {
    pub(super) request: Request,
    counters: Arc<ThreadCounters>,
    /// The member's address, for people.
    pub(super) member: Arc<str>,
    reader: AnswerReader,
    link: Option<Link>,
    pub(super) patience: Patience,
    tunnel_idle: Duration,
    sent: Instant,
    /// Bytes that were read and are not taken apart.
    unread: Bytes,
    pub(super) trailers: Option<Fields>,
    has_head: bool,
    /// Nothing has come over the connection for this request.
    is_unheard: bool,
}

impl ProxyExchange {
    /// Sends as much as goes at once; the rest follows by itself.
    pub(super) async fn begin(
        proxy: &Proxy,
        request: &Request,
        counters: &Arc<ThreadCounters>,
        asked: Asked,
        (link, outgoing): (Link, Outgoing),
    ) -> ProxyExchange {
        let patience = Patience::new(request.reactor(), proxy.settings.timeout);
        sending::begin(outgoing, &link.stream, request, &patience).await;
        ProxyExchange {
            request: request.clone(),
            counters: Arc::clone(counters),
            member: Arc::clone(&link.used.member().text),
            reader: AnswerReader::new(asked, proxy.settings.head),
            link: Some(link),
            patience,
            tunnel_idle: proxy.settings.tunnel_idle,
            sent: Instant::now(),
            unread: Bytes::new(),
            trailers: None,
            has_head: false,
            is_unheard: true,
        }
    }

    /// The head has come, and is taken: from now on pieces may not be too far apart.
    pub(super) fn take_head(&mut self) {
        self.patience.has_head();
        if let Some(link) = &self.link {
            let after_us = self.sent.elapsed().as_micros() as u64;
            let now_ms = self.request.reactor().now_ms();
            link.used.answered(after_us, now_ms);
        }
        if self.reader.is_over() {
            let has_more = !self.unread.is_empty();
            self.rest(has_more);
        }
    }

    /// Gives it up: its connection, if it was still on one, and whether nothing came over that.
    pub(super) fn give_up(mut self) -> (Option<Link>, bool) {
        (self.link.take(), self.is_unheard)
    }

    /// All of it has come.
    pub(super) fn is_over(&self) -> bool {
        self.link.is_none() && self.unread.is_empty()
    }

    /// Raw bytes come from now on. Returns for how long nothing may.
    pub(super) fn begin_tunnel(&mut self) -> Duration {
        self.patience.begin_tunnel();
        self.tunnel_idle
    }

    /// Nothing went through its tunnel for too long.
    pub(super) fn count_idle(&self) {
        self.counters.limit_upstream_tunnel.add(1);
    }

    /// The connection of a tunnel, for what goes the other way.
    pub(super) fn stream(&self) -> Option<Rc<MemberStream>> {
        self.link.as_ref().map(|link| Rc::clone(&link.stream))
    }

    /// What there is next. Interim answers are passed on by the way.
    pub(super) fn poll_more(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<AnswerPart, ProxyFailure>> {
        loop {
            if let Some(more) = self.take()? {
                return Poll::Ready(Ok(more));
            }
            let room_bytes = match self.has_head {
                true => BODY_READ_BYTES,
                false => HEAD_READ_BYTES,
            };
            let mut room = Vec::new();
            match ready!(self.poll_read(cx, &mut room, room_bytes))? {
                true => self.unread = room.into(),
                false => return Poll::Ready(Ok(AnswerPart::End)),
            }
        }
    }

    /// Adds what there is of the body to what was collected, which has room for all of one whose
    /// length was announced. Ready with false at the end.
    pub(super) fn poll_collect(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Vec<u8>,
    ) -> Poll<Result<bool, ProxyFailure>> {
        if let (true, Some(left)) = (self.unread.is_empty(), self.reader.left()) {
            let begin = body.len();
            let is_more = ready!(self.poll_read(cx, body, left.min(BODY_READ_BYTES)))?;
            let came = (body.len() - begin) as u64;
            // What follows is nobody's.
            body.truncate(begin + self.reader.take_body(came));
            if self.reader.is_over() {
                self.rest(came > left as u64);
            }
            return Poll::Ready(Ok(is_more));
        }
        Poll::Ready(match ready!(self.poll_more(cx))? {
            AnswerPart::Body(bytes) => {
                body.extend_from_slice(&bytes);
                Ok(true)
            }
            AnswerPart::End | AnswerPart::Head(_) => Ok(false),
        })
    }

    /// Reads behind what a buffer has; false where nothing will come any more.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut Vec<u8>,
        room_bytes: usize,
    ) -> Poll<Result<bool, ProxyFailure>> {
        let Some(link) = &mut self.link else {
            return Poll::Ready(Ok(false));
        };
        // Nothing is allocated in vain.
        if link.stream.poll_readable(cx).is_pending() {
            return self.poll_limits(cx);
        }
        room.reserve(room_bytes);
        let Poll::Ready(read) = link.stream.poll_read_behind(cx, room) else {
            return self.poll_limits(cx);
        };
        let failure = match read {
            Ok(0) if self.reader.end().is_ok() => {
                self.link = None;
                return Poll::Ready(Ok(false));
            }
            Ok(0) => UpstreamFailure::Closed,
            Err(error) => UpstreamFailure::of_read(error, &self.counters),
            Ok(_) => {
                self.is_unheard = false;
                self.patience.hear();
                link.hear();
                return Poll::Ready(Ok(true));
            }
        };
        Poll::Ready(Err(failure.into()))
    }

    fn poll_limits<T>(&self, cx: &mut Context<'_>) -> Poll<Result<T, ProxyFailure>> {
        self.patience.poll(cx).map(|limit| {
            limit.count(&self.counters);
            Err(UpstreamFailure::Time(limit).into())
        })
    }

    /// Takes a piece of what was read apart.
    fn take(&mut self) -> Result<Option<AnswerPart>, ProxyFailure> {
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
                    // Whether the body may come was decided here.
                    if status != 100 {
                        self.request.interim(status, fields);
                    }
                    drop(self.unread.split_to(left));
                    continue;
                }
                Some(Piece::Trailers(fields)) => {
                    self.trailers = Some(fields).filter(|fields| !fields.is_empty());
                    None
                }
            };
            drop(self.unread.split_to(left));
            // With the head alone it is not known yet whether it is taken.
            if self.reader.is_over() && !matches!(more, Some(AnswerPart::Head(_))) {
                let has_more = !self.unread.is_empty();
                self.rest(has_more);
                return Ok(more.or(Some(AnswerPart::End)));
            }
            return Ok(more);
        }
    }

    /// The answer has ended: the connection may serve another request, unless there is more on it.
    fn rest(&mut self, has_more: bool) {
        let Some(link) = self.link.take() else { return };
        match self.reader.may_rest() && !has_more {
            true => link.rest(self.request.reactor(), &self.counters),
            false => link.close(),
        }
        self.unread = Bytes::new();
    }
}

impl Drop for ProxyExchange {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            link.hang_up();
        }
    }
}
