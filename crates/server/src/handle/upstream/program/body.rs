//! The body of an answer, as it comes: never more of it is held than one read gives.

use std::task::{Context, Poll};

use hob_http::{BodyError, BodyStream, Bytes, Chunk, DrainWatch};

use crate::handle::script::reply::note_cut;
use crate::handle::upstream::program::exchange::{Exchange, More};
use crate::handle::upstream::program::fail::{self, ProgramFailure};

/// A body on its way.
pub(super) struct AnswerBody {
    /// `None` once nothing more is taken from it.
    exchange: Option<Exchange>,
    /// What has come and was not given on.
    rest: Bytes,
    len: Option<u64>,
    given: u64,
    /// Of a stream of events: it ends when the server stops.
    drain: Option<DrainWatch>,
}

impl AnswerBody {
    pub(super) fn new(
        mut exchange: Exchange,
        len: Option<u64>,
        drain: Option<DrainWatch>,
    ) -> AnswerBody {
        AnswerBody {
            rest: std::mem::take(&mut exchange.output).into(),
            exchange: Some(exchange),
            len,
            given: 0,
            drain,
        }
    }

    fn left(&self) -> u64 {
        self.len.map_or(u64::MAX, |len| len - self.given)
    }

    fn give(&mut self, max: usize) -> Chunk {
        let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
        let chunk = self.rest.split_to(self.rest.len().min(max).min(left));
        self.given += chunk.len() as u64;
        Chunk::Bytes(chunk)
    }

    fn end(&mut self) -> Option<Result<Chunk, BodyError>> {
        let exchange = self.exchange.take()?;
        let announced = self.len.filter(|len| *len > self.given)?;
        let came = self.given;
        let failure = ProgramFailure::Short { announced, came };
        Some(Err(fail::broken(&exchange, &failure)))
    }
}

impl BodyStream for AnswerBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        loop {
            if !self.rest.is_empty() && self.left() > 0 {
                return Poll::Ready(Some(Ok(self.give(max))));
            }
            let Some(exchange) = &mut self.exchange else {
                return Poll::Ready(None);
            };
            match exchange.poll_more(cx) {
                Poll::Ready(Ok(More::Bytes)) => {
                    self.rest = std::mem::take(&mut exchange.output).into();
                }
                Poll::Ready(Ok(More::End)) => return Poll::Ready(self.end()),
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
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else {
            return;
        };
        // A body of an announced length is complete without anyone asking.
        if self.len.is_some_and(|len| self.given >= len) {
            if !self.rest.is_empty() {
                note_cut(&exchange.request);
            }
            exchange.release();
        }
    }
}
