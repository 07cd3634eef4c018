//! The body of an answer, as it comes from its worker: never more of it is held than the worker's
//! window.

use std::task::{Context, Poll};

use hob_http::{BodyError, BodyStream, Bytes, Chunk, Fields};

use crate::handle::cgi::head::read_fields;
use crate::handle::resident::answer::Place;
use crate::handle::resident::exchange::{Piece, Taken};
use crate::handle::resident::limits::TRAILER_BYTES_MAX;

/// A body on its way.
pub(super) struct AnswerBody {
    place: Place,
    len: Option<u64>,
    /// What of a piece was too much for one chunk.
    rest: Bytes,
    trailers: Option<Fields>,
}

impl AnswerBody {
    pub(super) fn new(place: Place, len: Option<u64>) -> AnswerBody {
        AnswerBody {
            place,
            len,
            rest: Bytes::new(),
            trailers: None,
        }
    }

    fn cut(&mut self, max: usize) -> Chunk {
        let count = self.rest.len().min(max);
        Chunk::Bytes(self.rest.split_to(count))
    }
}

impl BodyStream for AnswerBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.cut(max))));
        }
        // A request body that breaks off does not end an answer that has begun; the program, which
        // waits for the rest of it, is given up with the answer.
        if let Err(error) = self.place.feed(cx) {
            return Poll::Ready(Some(Err(error)));
        }
        let window_bytes = self.place.window_bytes();
        match self.place.exchange.take(cx, window_bytes) {
            Taken::Piece(Piece::Chunk(chunk)) if chunk.len() <= max => {
                Poll::Ready(Some(Ok(Chunk::Region(Box::new(chunk)))))
            }
            Taken::Piece(piece) => {
                self.rest = bytes_of(vec![piece]);
                Poll::Ready(Some(Ok(self.cut(max))))
            }
            Taken::End(trailers) => {
                self.place.is_over = true;
                if !trailers.is_empty() && trailers.len() <= TRAILER_BYTES_MAX {
                    self.trailers = read_fields(200, &trailers).ok().map(|head| head.fields);
                }
                Poll::Ready(None)
            }
            Taken::Failed(failure) => {
                self.place.is_over = true;
                self.place.note(&failure);
                let error = BodyError::Source(failure.fault(), failure.reason());
                Poll::Ready(Some(Err(error)))
            }
            Taken::Nothing => Poll::Pending,
        }
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.trailers.take()
    }
}

/// Pieces as one.
pub(super) fn bytes_of(mut pieces: Vec<Piece>) -> Bytes {
    if pieces.len() == 1
        && let Some(Piece::Bytes(bytes)) = pieces.pop_if(|piece| matches!(piece, Piece::Bytes(_)))
    {
        return bytes;
    }
    // A copy of at most a window.
    let mut all = Vec::with_capacity(pieces.iter().map(Piece::len).sum());
    for piece in &pieces {
        match piece {
            Piece::Bytes(bytes) => all.extend_from_slice(bytes),
            Piece::Chunk(chunk) => chunk.copy_to(&mut all),
        }
    }
    all.into()
}
