//! The body of an answer, as it comes from its worker: never more of it is held than the worker's
//! window.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hob_http::{BodyError, BodyStream, Bytes, Chunk, DrainWatch, Fields};

use crate::handle::resident::answer::PlacedRequest;
use crate::handle::resident::exchange::{AnswerBodyPoll, AnswerPiece};
use crate::handle::resident::fail::ResidentFailure;
use crate::handle::resident::file::KnownFile;
use crate::handle::resident::limits::{STREAM_WINDOW_BYTES, TRAILER_BYTES_MAX};
use crate::handle::script::head::read_fields;
use crate::handle::script::reply::note_cut;

/// A body on its way.
pub(super) struct AnswerBody {
    place: PlacedRequest,
    len: Option<u64>,
    /// Bytes that were made of it.
    came: u64,
    /// What of a piece was too much for one chunk.
    rest: Bytes,
    file: Option<FileOnItsWay>,
    trailers: Option<Fields>,
    /// Of a stream of events: it ends when the server stops.
    drain: Option<DrainWatch>,
}

/// A file that is the body's next piece.
enum FileOnItsWay {
    Examined(Examination),
    Known(KnownFile),
}

type Examination = Pin<Box<dyn Future<Output = Result<KnownFile, ResidentFailure>>>>;

impl AnswerBody {
    /// `first`: a file that the body begins with.
    pub(super) fn new(
        place: PlacedRequest,
        len: Option<u64>,
        first: Option<KnownFile>,
    ) -> AnswerBody {
        AnswerBody {
            place,
            len,
            came: 0,
            rest: Bytes::new(),
            file: first.map(FileOnItsWay::Known),
            trailers: None,
            drain: None,
        }
    }

    /// It ends when the thread drains, whole as far as it came.
    pub(super) fn until_drain(mut self, drain: Option<DrainWatch>) -> AnswerBody {
        self.drain = drain;
        self
    }

    /// The file that is next, once it is known.
    fn poll_file(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, ResidentFailure>>> {
        let known = match self.file.take() {
            None => return Poll::Ready(None),
            Some(FileOnItsWay::Known(known)) => Ok(known),
            Some(FileOnItsWay::Examined(mut examination)) => match examination.as_mut().poll(cx) {
                Poll::Ready(examined) => examined,
                Poll::Pending => {
                    self.file = Some(FileOnItsWay::Examined(examination));
                    return Poll::Pending;
                }
            },
        };
        let place = &self.place;
        Poll::Ready(Some(known.map(|known| {
            Chunk::File(known.into_body(place.disk(), &place.request))
        })))
    }

    fn broken(&mut self, failure: &ResidentFailure) -> BodyError {
        self.place.note(failure);
        BodyError::Source(failure.fault(), failure.reason())
    }

    fn cut(&mut self, max: usize) -> Chunk {
        let count = self.rest.len().min(max);
        Chunk::Bytes(self.rest.split_to(count))
    }
}

impl AnswerBody {
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.cut(max))));
        }
        // A request body that breaks off does not end an answer that has begun; the program, which
        // waits for the rest of it, is given up with the answer.
        let fed = match self.place.feed(cx) {
            Ok(fed) => fed,
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        match ready!(self.poll_file(cx)) {
            Some(Ok(chunk)) => return Poll::Ready(Some(Ok(chunk))),
            Some(Err(failure)) => return Poll::Ready(Some(Err(self.broken(&failure)))),
            None => {}
        }
        let window_bytes = STREAM_WINDOW_BYTES as usize;
        match self.place.exchange.take(cx, window_bytes) {
            AnswerBodyPoll::Piece(AnswerPiece::File(file)) => {
                let pool = self.place.disk().clone();
                let examination = async move { file.examine(&pool).await };
                self.file = Some(FileOnItsWay::Examined(Box::pin(examination)));
                self.poll_next(cx, max)
            }
            AnswerBodyPoll::Piece(AnswerPiece::Chunk(chunk)) if chunk.len() <= max => {
                Poll::Ready(Some(Ok(Chunk::Region(Box::new(chunk)))))
            }
            AnswerBodyPoll::Piece(AnswerPiece::HalfClose) => {
                Poll::Ready(Some(Ok(Chunk::HalfClose)))
            }
            AnswerBodyPoll::Piece(piece) => {
                self.rest = bytes_of(vec![piece]);
                Poll::Ready(Some(Ok(self.cut(max))))
            }
            AnswerBodyPoll::End(trailers) => {
                self.place.is_over = true;
                if let Some(announced) = self.len.filter(|len| *len > self.came) {
                    let came = self.came;
                    let failure = ResidentFailure::Short { announced, came };
                    return Poll::Ready(Some(Err(self.broken(&failure))));
                }
                if !trailers.is_empty() && trailers.len() <= TRAILER_BYTES_MAX {
                    self.trailers = read_fields(200, &trailers).ok().map(|head| head.fields);
                }
                Poll::Ready(None)
            }
            AnswerBodyPoll::Failed(failure) => {
                self.place.is_over = true;
                Poll::Ready(Some(Err(self.broken(&failure))))
            }
            AnswerBodyPoll::Nothing if self.place.may_feed_more(fed) => self.poll_next(cx, max),
            AnswerBodyPoll::Nothing => self.poll_drain(cx).map(|()| None),
        }
    }

    /// Nothing has come: whether nothing more is waited for, because the server stops and the
    /// client is to ask again elsewhere.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(drain) = &self.drain else {
            return Poll::Pending;
        };
        ready!(drain.poll_begun(cx));
        self.place.exchange.leave();
        self.place.is_over = true;
        Poll::Ready(())
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        let Some(announced) = self.len.filter(|len| self.came >= *len) else {
            return;
        };
        if self.came > announced || !self.rest.is_empty() || self.place.exchange.has_data() {
            note_cut(&self.place.request);
        }
    }
}

impl BodyStream for AnswerBody {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let polled = self.poll_next(cx, max);
        if let Poll::Ready(Some(Ok(chunk))) = &polled {
            self.came += chunk.len();
        }
        polled
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.trailers.take()
    }
}

/// Pieces as one.
pub(super) fn bytes_of(mut pieces: Vec<AnswerPiece>) -> Bytes {
    if pieces.len() == 1
        && let Some(AnswerPiece::Bytes(bytes)) =
            pieces.pop_if(|piece| matches!(piece, AnswerPiece::Bytes(_)))
    {
        return bytes;
    }
    // A copy of at most a window.
    let mut all = Vec::with_capacity(pieces.iter().map(AnswerPiece::len).sum());
    for piece in &pieces {
        match piece {
            AnswerPiece::Bytes(bytes) => all.extend_from_slice(bytes),
            AnswerPiece::Chunk(chunk) => chunk.copy_to(&mut all),
            // These are no pieces in memory, and never among them.
            AnswerPiece::File(_) | AnswerPiece::HalfClose => {}
        }
    }
    all.into()
}
