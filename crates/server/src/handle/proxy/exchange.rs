//! A request that a member has: what comes back, over which version of HTTP, and how long that may
//! take.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hob_http::{Bytes, Fields, Request};
use hob_trace::metric::ThreadCounters;

use crate::handle::proxy::Proxy;
use crate::handle::proxy::fail::ProxyFailure;
use crate::handle::proxy::http1::Http1Exchange;
use crate::handle::proxy::http2::Http2Exchange;
use crate::handle::proxy::link::ProxyLink;
use crate::handle::proxy::tunnel::TunnelEnd;
use crate::handle::proxy::wire::AnswerHead;
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::members::MemberUse;
use crate::handle::upstream::patience::Patience;

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
    pub(super) awaited: AwaitedAnswer,
    /// The member's address, for people.
    pub(super) member: Arc<str>,
    over: ExchangeOver,
    /// The key of a WebSocket that was asked for in the place of its client, who has none.
    key: Option<Vec<u8>>,
    tunnel_idle: Duration,
    sent: Instant,
}

/// Who waits for an answer, and what came besides its head and body.
pub(super) struct AwaitedAnswer {
    pub(super) request: Request,
    pub(super) counters: Arc<ThreadCounters>,
    pub(super) patience: Patience,
    pub(super) trailers: Option<Fields>,
    /// Nothing has come for this request.
    pub(super) is_unheard: bool,
    /// The member has said that it did nothing.
    pub(super) is_undone: bool,
}

/// What is spoken.
pub(super) enum ExchangeOver {
    Http1(Http1Exchange),
    Http2(Http2Exchange),
}

impl AwaitedAnswer {
    pub(super) fn new(
        proxy: &Proxy,
        request: &Request,
        counters: &Arc<ThreadCounters>,
    ) -> AwaitedAnswer {
        AwaitedAnswer {
            request: request.clone(),
            counters: Arc::clone(counters),
            patience: Patience::new(request.reactor(), proxy.settings.timeout),
            trailers: None,
            is_unheard: true,
            is_undone: false,
        }
    }

    /// Something has come.
    pub(super) fn hear(&mut self) {
        self.is_unheard = false;
        self.patience.hear();
    }

    pub(super) fn poll_limits<T>(&self, cx: &mut Context<'_>) -> Poll<Result<T, ProxyFailure>> {
        self.patience.poll(cx).map(|limit| {
            limit.count(&self.counters);
            Err(UpstreamFailure::Time(limit).into())
        })
    }

    /// An interim answer is passed on; whether the body may come was decided here.
    pub(super) fn pass_interim(&self, status: u16, fields: Fields) {
        if status != 100 {
            self.request.interim(status, fields);
        }
    }
}

impl ProxyExchange {
    /// A request that was sent.
    pub(super) fn new(
        proxy: &Proxy,
        awaited: AwaitedAnswer,
        member: Arc<str>,
        over: ExchangeOver,
    ) -> ProxyExchange {
        ProxyExchange {
            awaited,
            member,
            over,
            key: None,
            tunnel_idle: proxy.settings.tunnel_idle,
            sent: Instant::now(),
        }
    }

    /// It was asked with this key of a WebSocket; over HTTP/2 there is none.
    pub(super) fn with_key(mut self, key: Option<&[u8]>) -> ProxyExchange {
        self.key = key.filter(|_| !self.is_http2()).map(<[u8]>::to_vec);
        self
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    pub(super) fn is_http2(&self) -> bool {
        matches!(self.over, ExchangeOver::Http2(_))
    }

    pub(super) fn request(&self) -> &Request {
        &self.awaited.request
    }

    fn used(&self) -> Option<&MemberUse> {
        match &self.over {
            ExchangeOver::Http1(http1) => http1.used(),
            ExchangeOver::Http2(http2) => http2.used(),
        }
    }

    /// The head has come, and is taken: from now on pieces may not be too far apart.
    pub(super) fn take_head(&mut self) {
        self.awaited.patience.has_head();
        if let Some(used) = self.used() {
            let after_us = self.sent.elapsed().as_micros() as u64;
            used.answered(after_us, self.request().reactor().now_ms());
        }
        match &mut self.over {
            ExchangeOver::Http1(http1) => http1.take_head(&self.awaited),
            ExchangeOver::Http2(http2) => http2.take_head(),
        }
    }

    /// Gives it up: what it still had of the member, whether nothing came from that, and whether
    /// that did nothing.
    pub(super) fn give_up(mut self) -> (Option<ProxyLink>, bool, bool) {
        let link = match &mut self.over {
            ExchangeOver::Http1(http1) => http1.give_up(),
            ExchangeOver::Http2(http2) => http2.give_up(),
        };
        (link, self.awaited.is_unheard, self.awaited.is_undone)
    }

    /// All of it has come.
    pub(super) fn is_over(&self) -> bool {
        match &self.over {
            ExchangeOver::Http1(http1) => http1.is_over(),
            ExchangeOver::Http2(http2) => http2.is_over(),
        }
    }

    /// Raw bytes come from now on. Returns for how long nothing may.
    pub(super) fn begin_tunnel(&mut self) -> Duration {
        self.awaited.patience.begin_tunnel();
        self.tunnel_idle
    }

    /// Nothing went through its tunnel for too long.
    pub(super) fn count_idle(&self) {
        self.awaited.counters.limit_upstream_tunnel.add(1);
    }

    /// Where what goes the other way through a tunnel is written.
    pub(super) fn tunnel_end(&self) -> Option<TunnelEnd> {
        match &self.over {
            ExchangeOver::Http1(http1) => http1.stream().map(TunnelEnd::Http1),
            ExchangeOver::Http2(http2) => http2.stream().map(TunnelEnd::Http2),
        }
    }

    /// What there is next. Interim answers are passed on by the way.
    pub(super) fn poll_more(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<AnswerPart, ProxyFailure>> {
        match &mut self.over {
            ExchangeOver::Http1(http1) => http1.poll_more(&mut self.awaited, cx),
            ExchangeOver::Http2(http2) => http2.poll_more(&mut self.awaited, cx),
        }
    }

    /// Whether what is left of the body can be moved into pipes.
    pub(super) fn may_fill(&self) -> bool {
        match &self.over {
            ExchangeOver::Http1(http1) => self.awaited.trailers.is_none() && http1.may_fill(),
            ExchangeOver::Http2(_) => false,
        }
    }

    /// Whether what comes next of a tunnel can be.
    pub(super) fn fills_next(&self) -> bool {
        matches!(&self.over, ExchangeOver::Http1(http1) if http1.fills_next())
    }

    /// Moves bytes of the body into an empty pipe, at least one; of a tunnel, none at its end.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        (pipe, max): (BorrowedFd<'_>, usize),
    ) -> Poll<Result<usize, ProxyFailure>> {
        match &mut self.over {
            ExchangeOver::Http1(http1) => http1.poll_fill(&mut self.awaited, cx, (pipe, max)),
            ExchangeOver::Http2(_) => Poll::Ready(Err(UpstreamFailure::Closed.into())),
        }
    }

    /// Adds what there is of the body to what was collected, which has room for all of one whose
    /// length was announced. Ready with false at the end.
    pub(super) fn poll_collect(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Vec<u8>,
    ) -> Poll<Result<bool, ProxyFailure>> {
        if let ExchangeOver::Http1(http1) = &mut self.over
            && let Some(collected) = http1.poll_collect(&mut self.awaited, cx, body)
        {
            return collected;
        }
        self.poll_more(cx).map(|more| match more? {
            AnswerPart::Body(bytes) => {
                body.extend_from_slice(&bytes);
                Ok(true)
            }
            AnswerPart::End | AnswerPart::Head(_) => Ok(false),
        })
    }
}
