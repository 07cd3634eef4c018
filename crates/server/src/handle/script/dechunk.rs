//! Output of programs that frame it in chunks themselves: the framing is taken off, because the
//! server frames its answers as the client's protocol asks.

use std::task::{Context, Poll};

use hob_http::h1::chunked::{ChunkedDecoder, Decoded};
use hob_http::limits::HttpLimits;
use hob_http::{BodyError, BodyStream, Bytes, Chunk, DrainWatch, Fields};
use hob_trace::Fault;

/// The bytes of a whole body in chunks; `None` when it is none.
pub(crate) fn dechunk(body: &[u8]) -> Option<Vec<u8>> {
    let mut unframed = Unframed::default();
    let mut out = Vec::with_capacity(body.len());
    unframed.take(body, &mut out).ok()?;
    unframed.is_over.then_some(out)
}

/// A body in chunks, without them.
pub(crate) struct Dechunked {
    source: Box<dyn BodyStream>,
    unframed: Unframed,
    /// Of a stream of events, which may end anywhere once the thread drains.
    drain: Option<DrainWatch>,
}

#[derive(Default)]
struct Unframed {
    decoder: ChunkedDecoder,
    /// Bytes of a line that has not ended.
    carry: Vec<u8>,
    is_over: bool,
}

struct Misframed;

impl Dechunked {
    /// `source` gives its chunks as bytes.
    pub(crate) fn new(source: Box<dyn BodyStream>, drain: Option<DrainWatch>) -> Dechunked {
        Dechunked {
            source,
            unframed: Unframed::default(),
            drain,
        }
    }

    fn may_end(&self, cx: &mut Context<'_>) -> bool {
        let drain = self.drain.as_ref();
        self.unframed.is_over || drain.is_some_and(|drain| drain.poll_begun(cx).is_ready())
    }
}

impl BodyStream for Dechunked {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let broken = BodyError::Source(
            Fault::Script,
            "the program's output is not in chunks, as its head says",
        );
        loop {
            let piece = match self.source.poll_chunk(cx, max) {
                Poll::Ready(Some(Ok(Chunk::Bytes(piece)))) => piece,
                Poll::Ready(None) if self.may_end(cx) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(_) => return Poll::Ready(Some(Err(broken))),
                Poll::Pending => return Poll::Pending,
            };
            let mut out = Vec::with_capacity(piece.len());
            if self.unframed.take(&piece, &mut out).is_err() {
                return Poll::Ready(Some(Err(broken)));
            }
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Chunk::Bytes(Bytes::from(out)))));
            }
        }
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.source.trailers()
    }
}

impl Unframed {
    /// Takes a piece apart. What follows the end is dropped.
    fn take(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Misframed> {
        let limits = HttpLimits::default();
        let joined;
        let mut input = piece;
        if !self.carry.is_empty() {
            self.carry.extend_from_slice(piece);
            joined = std::mem::take(&mut self.carry);
            input = &joined;
        }
        while !self.is_over {
            let (used, decoded) = self.decoder.read(input, &limits);
            match decoded {
                Decoded::Data(count) => out.extend_from_slice(&input[used - count..used]),
                Decoded::End => self.is_over = true,
                Decoded::Refused(_) => return Err(Misframed),
                Decoded::NeedMore => {
                    self.carry = input[used..].to_vec();
                    return Ok(());
                }
            }
            input = &input[used..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_body_loses_its_framing() {
        assert_eq!(
            dechunk(b"3\r\nabc\r\nA;x\r\n0123456789\r\n0\r\n\r\nmore").unwrap(),
            b"abc0123456789"
        );
        assert_eq!(dechunk(b"0\r\n\r\n").unwrap(), b"");
        for wrong in [&b"3\r\nab"[..], b"3\r\nabcd\r\n", b"x\r\n", b"abc", b""] {
            assert!(dechunk(wrong).is_none(), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn body_in_pieces_is_the_same() {
        let body = b"3\r\nabc\r\n5\r\nde\r\nf\r\n0\r\nX: y\r\n\r\n";
        for step in 1..body.len() {
            let mut unframed = Unframed::default();
            let mut out = Vec::new();
            for piece in body.chunks(step) {
                assert!(unframed.take(piece, &mut out).is_ok());
            }
            assert!(unframed.is_over && out == b"abcde\r\nf", "{step}");
        }
    }
}
