//! The body of an answer, as it comes: never more of it is held than one read gives.

use std::os::fd::BorrowedFd;
use std::task::{Context, Poll};

use hob_http::{BodyError, BodyStream, Bytes, Chunk, DrainWatch, Fields};
use hob_trace::Fault;

use crate::handle::proxy::exchange::{AnswerPart, ProxyExchange};
use crate::handle::proxy::fail;

/// A body on its way.
pub(super) struct ProxiedBody {
    /// `None` once nothing more is taken from it.
    exchange: Option<ProxyExchange>,
    /// What has come and was not given on.
    rest: Bytes,
    len: Option<u64>,
    /// Of a stream of events: it ends when the server stops.
    drain: Option<DrainWatch>,
    trailers: Option<Fields>,
}

impl ProxiedBody {
    /// `first` has come already.
    pub(super) fn new(
        exchange: ProxyExchange,
        first: Bytes,
        len: Option<u64>,
        drain: Option<DrainWatch>,
    ) -> ProxiedBody {
        ProxiedBody {
            exchange: Some(exchange),
            rest: first,
            len,
            drain,
            trailers: None,
        }
    }
}

impl BodyStream for ProxiedBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        loop {
            if !self.rest.is_empty() {
                let chunk = self.rest.split_to(self.rest.len().min(max));
                return Poll::Ready(Some(Ok(Chunk::Bytes(chunk))));
            }
            let Some(exchange) = &mut self.exchange else {
                return Poll::Ready(None);
            };
            match exchange.poll_more(cx) {
                Poll::Ready(Ok(AnswerPart::Body(bytes))) => self.rest = bytes,
                Poll::Ready(Ok(AnswerPart::End | AnswerPart::Head(_))) => {
                    self.trailers = exchange.awaited.trailers.take();
                    self.exchange = None;
                    return Poll::Ready(None);
                }
                Poll::Ready(Err(failure)) => {
                    let error = fail::broken(exchange, &failure);
                    self.exchange = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending => {
                    let drain = self.drain.as_ref();
                    if drain.is_some_and(|drain| drain.poll_begun(cx).is_ready()) {
                        self.exchange = None;
                        return Poll::Ready(None);
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn may_fill(&self) -> bool {
        let exchange = self.exchange.as_ref();
        self.drain.is_none() && exchange.is_some_and(ProxyExchange::may_fill)
    }

    fn begin_filling(&mut self) -> Bytes {
        std::mem::take(&mut self.rest)
    }

    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        max: usize,
    ) -> Poll<Result<usize, BodyError>> {
        let Some(exchange) = &mut self.exchange else {
            let reason = "more of the answer was asked for than there is";
            return Poll::Ready(Err(BodyError::Source(Fault::Server, reason)));
        };
        let failure = match exchange.poll_fill(cx, (pipe, max)) {
            Poll::Ready(Err(failure)) => failure,
            Poll::Ready(Ok(count)) => return Poll::Ready(Ok(count)),
            Poll::Pending => return Poll::Pending,
        };
        let error = fail::broken(exchange, &failure);
        self.exchange = None;
        Poll::Ready(Err(error))
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.trailers.take()
    }
}
