//! A request on a connection with others (RFC 9113).

use std::rc::Rc;
use std::task::{Context, Poll};

use hob_http::h2::client::Http2AnswerHead;

use crate::handle::proxy::exchange::{AnswerPart, AwaitedAnswer};
use crate::handle::proxy::fail::ProxyFailure;
use crate::handle::proxy::link::{Http2Link, ProxyLink};
use crate::handle::proxy::wire::{AnswerHead, WireFault, is_passed};
use crate::handle::upstream::fail::UpstreamFailure;
use crate::handle::upstream::http2::{Http2Broken, Http2Stream, StreamPart};
use crate::handle::upstream::members::MemberUse;

/// A request that was sent over HTTP/2.
pub(super) struct Http2Exchange {
    link: Option<Http2Link>,
    /// The protocol of the tunnel that was asked for.
    tunnel: Option<Box<[u8]>>,
    /// There is nothing behind the head.
    is_all: bool,
}

impl Http2Exchange {
    pub(super) fn new(link: Http2Link, tunnel: Option<&[u8]>) -> Http2Exchange {
        Http2Exchange {
            link: Some(link),
            tunnel: tunnel.map(Box::from),
            is_all: false,
        }
    }

    pub(super) fn used(&self) -> Option<&MemberUse> {
        self.link.as_ref().map(|link| &link.used)
    }

    pub(super) fn take_head(&mut self) {
        if self.is_all {
            self.end();
        }
    }

    pub(super) fn give_up(&mut self) -> Option<ProxyLink> {
        self.link.take().map(ProxyLink::Http2)
    }

    pub(super) fn is_over(&self) -> bool {
        self.link.is_none()
    }

    pub(super) fn stream(&self) -> Option<Rc<Http2Stream>> {
        self.link.as_ref()?.stream.clone()
    }

    pub(super) fn poll_more(
        &mut self,
        awaited: &mut AwaitedAnswer,
        cx: &mut Context<'_>,
    ) -> Poll<Result<AnswerPart, ProxyFailure>> {
        loop {
            let Some(link) = &self.link else {
                return Poll::Ready(Ok(AnswerPart::End));
            };
            let Some(stream) = &link.stream else {
                // The connection ended before it was sent.
                awaited.is_undone = true;
                return Poll::Ready(Err(UpstreamFailure::Closed.into()));
            };
            let Poll::Ready(part) = stream.poll_part(cx) else {
                return awaited.poll_limits(cx).map(|late| {
                    stream.time_out();
                    late
                });
            };
            let part = match part {
                Ok(part) => part,
                Err(broken) => return Poll::Ready(Err(failure_of(broken, awaited))),
            };
            awaited.hear();
            return Poll::Ready(Ok(match part {
                StreamPart::Interim(status, fields) => {
                    awaited.pass_interim(status, fields);
                    continue;
                }
                StreamPart::Head(head) => {
                    self.is_all = head.is_all;
                    AnswerPart::Head(self.head_of(head))
                }
                StreamPart::Body(bytes) => {
                    stream.taken(bytes.len());
                    AnswerPart::Body(bytes)
                }
                StreamPart::End(mut trailers) => {
                    trailers.retain(|name, _| is_passed(name));
                    awaited.trailers = Some(trailers).filter(|fields| !fields.is_empty());
                    self.end();
                    AnswerPart::End
                }
            }));
        }
    }

    /// A tunnel is opened by success; whoever asked over HTTP/1.1 hears of another protocol.
    //= rfc8441#5
    fn head_of(&mut self, head: Http2AnswerHead) -> AnswerHead {
        let Http2AnswerHead {
            status,
            mut fields,
            body_bytes,
            ..
        } = head;
        fields.retain(|name, _| is_passed(name));
        let upgrade = self.tunnel.take().filter(|_| (200..300).contains(&status));
        AnswerHead {
            status: if upgrade.is_some() { 101 } else { status },
            fields,
            body_bytes: body_bytes.filter(|_| upgrade.is_none()),
            upgrade,
        }
    }

    /// The answer has ended. A request that has not is told so: the rest is not wanted.
    fn end(&mut self) {
        if let Some(link) = self.link.take() {
            link.let_go();
        }
    }
}

impl Drop for Http2Exchange {
    fn drop(&mut self) {
        self.end();
    }
}

fn failure_of(broken: Http2Broken, awaited: &mut AwaitedAnswer) -> ProxyFailure {
    match broken {
        Http2Broken::Refused => {
            awaited.is_undone = true;
            UpstreamFailure::Closed.into()
        }
        Http2Broken::Closed => UpstreamFailure::Closed.into(),
        Http2Broken::Reset(code) => ProxyFailure::Reset(code),
        Http2Broken::Wire(reason) => ProxyFailure::Wire(WireFault(reason)),
        Http2Broken::Broken(error) => UpstreamFailure::Broken(error.to_string()).into(),
        Http2Broken::Tls(fault) => UpstreamFailure::of_tls(fault, &awaited.counters).into(),
    }
}
