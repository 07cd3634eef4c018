//! A part of a body whose size is known: the bytes of one range.

use std::task::{Context, Poll, ready};

use hob_http::{Body, BodyError, BodyStream, Chunk, FileBody};

use super::range::ByteRange;

/// The bytes of `range`, which lies within the body. What comes before them is read and dropped;
/// when the last of them has come, the source is let go.
pub fn cut(body: Body, range: ByteRange) -> Body {
    match body {
        Body::Bytes(bytes) => Body::Bytes(bytes.slice(range.start as usize..range.end as usize)),
        Body::File(file) => Body::File(FileBody {
            offset: file.offset + range.start,
            len: range.len(),
            source: file.source,
        }),
        other => Body::Stream(Box::new(Cut {
            source: Some(other.into_stream()),
            skip: range.start,
            left: range.len(),
        })),
    }
}

struct Cut {
    /// None once everything has come.
    source: Option<Box<dyn BodyStream>>,
    skip: u64,
    left: u64,
}

impl BodyStream for Cut {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        while let Some(source) = &mut self.source {
            let mut bytes = match ready!(source.poll_chunk(cx, max)) {
                Some(Ok(Chunk::Bytes(bytes))) => bytes,
                // Too early, so the answer breaks: it is shorter than was announced.
                end => return Poll::Ready(end),
            };
            let skipped = self.skip.min(bytes.len() as u64);
            self.skip -= skipped;
            let kept = self.left.min(bytes.len() as u64 - skipped);
            self.left -= kept;
            if self.left == 0 {
                self.source = None;
            }
            if kept > 0 {
                bytes = bytes.slice(skipped as usize..(skipped + kept) as usize);
                return Poll::Ready(Some(Ok(Chunk::Bytes(bytes))));
            }
        }
        Poll::Ready(None)
    }

    fn len(&self) -> Option<u64> {
        Some(self.left)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::task::Waker;

    use bytes::Bytes;

    use super::*;

    /// Gives the digits one by one and says, by its last owner, when it was let go.
    struct Digits {
        next: u8,
        _alive: Rc<()>,
    }

    impl BodyStream for Digits {
        fn poll_chunk(
            &mut self,
            _: &mut Context<'_>,
            _: usize,
        ) -> Poll<Option<Result<Chunk, BodyError>>> {
            let digit = b'0' + self.next;
            self.next += 1;
            let is_there = digit <= b'9';
            let chunk = Chunk::Bytes(Bytes::from(vec![digit]));
            Poll::Ready(is_there.then_some(Ok(chunk)))
        }

        fn len(&self) -> Option<u64> {
            Some(10)
        }
    }

    fn read(body: Body) -> Vec<u8> {
        let mut stream = body.into_stream();
        let mut out = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(Chunk::Bytes(bytes)))) = stream.poll_chunk(&mut cx, 4) {
            out.extend_from_slice(&bytes);
        }
        out
    }

    #[test]
    fn only_the_bytes_of_the_range_are_left() {
        let alive = Rc::new(());
        for (start, end, expected) in [
            (0, 10, "0123456789"),
            (0, 1, "0"),
            (3, 7, "3456"),
            (9, 10, "9"),
        ] {
            let range = ByteRange { start, end };
            let bytes = Body::Bytes(Bytes::from_static(b"0123456789"));
            let digits = Digits {
                next: 0,
                _alive: Rc::clone(&alive),
            };
            let stream = Body::Stream(Box::new(digits));
            for body in [bytes, stream] {
                let part = cut(body, range);
                assert_eq!(part.len(), Some(end - start));
                assert_eq!(read(part), expected.as_bytes());
            }
        }
        assert_eq!(Rc::strong_count(&alive), 1);
    }

    #[test]
    fn source_is_let_go_with_its_last_byte_wanted() {
        let alive = Rc::new(());
        let digits = Digits {
            next: 0,
            _alive: Rc::clone(&alive),
        };
        let range = ByteRange { start: 1, end: 2 };
        let Body::Stream(mut part) = cut(Body::Stream(Box::new(digits)), range) else {
            panic!("a stream stays one")
        };
        let mut cx = Context::from_waker(Waker::noop());
        assert!(
            matches!(part.poll_chunk(&mut cx, 1), Poll::Ready(Some(Ok(chunk))) if chunk.len() == 1)
        );
        assert_eq!(Rc::strong_count(&alive), 1);
        assert!(matches!(part.poll_chunk(&mut cx, 1), Poll::Ready(None)));
    }
}
