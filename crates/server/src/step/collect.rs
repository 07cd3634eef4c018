//! Reading a body before its head is sent: all of it, or just enough to know that it is there.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_http::{Body, BodyError, BodyStream, Chunk, Fields};

/// What collecting a body gave.
pub enum Collected {
    /// All of it.
    Whole(Bytes),
    /// It is larger than the limit: what was read, and the rest as it comes.
    TooLarge(Body),
}

/// Reads a body to its end, at most `bytes_max` of it.
pub async fn collect(body: Body, bytes_max: u64) -> Result<Collected, BodyError> {
    match body {
        Body::Empty => return Ok(Collected::Whole(Bytes::new())),
        Body::Bytes(bytes) => return Ok(Collected::Whole(bytes)),
        _ => {}
    }
    if body.len().is_some_and(|len| len > bytes_max) {
        return Ok(Collected::TooLarge(body));
    }
    let mut rest = body.into_stream();
    let announced = rest.len();
    let mut read = VecDeque::new();
    let mut bytes: u64 = 0;
    while let Some(piece) = next(&mut *rest).await? {
        bytes += piece.len() as u64;
        read.push_back(piece);
        if bytes > bytes_max {
            let rejoined = Rejoined { read, rest };
            return Ok(Collected::TooLarge(Body::Stream(Box::new(rejoined))));
        }
    }
    if announced.is_some_and(|announced| announced != bytes) {
        return Err(OTHER_LENGTH);
    }
    if read.len() == 1 {
        return Ok(Collected::Whole(
            read.swap_remove_back(0).unwrap_or_default(),
        ));
    }
    let mut whole = Vec::with_capacity(bytes as usize);
    read.iter().for_each(|piece| whole.extend_from_slice(piece));
    Ok(Collected::Whole(whole.into()))
}

/// Waits for the first bytes of a body: [`Body::Empty`] when there are none.
pub async fn look_ahead(body: Body) -> Result<Body, BodyError> {
    match body {
        Body::Empty | Body::Tunnel(_) => return Ok(body),
        Body::Bytes(bytes) if bytes.is_empty() => return Ok(Body::Empty),
        Body::Bytes(_) | Body::File(_) | Body::Region(_) => return Ok(body),
        Body::Pipe { ref first, .. } if !first.is_empty() => return Ok(body),
        _ => {}
    }
    let mut rest = body.into_stream();
    Ok(match next(&mut *rest).await? {
        None => Body::Empty,
        Some(piece) => Body::Stream(Box::new(Rejoined {
            read: VecDeque::from([piece]),
            rest,
        })),
    })
}

/// The next piece that has any bytes.
async fn next(stream: &mut dyn BodyStream) -> Result<Option<Bytes>, BodyError> {
    loop {
        match poll_fn(|cx| stream.poll_chunk(cx, PIECE_BYTES)).await {
            None => return Ok(None),
            Some(Ok(Chunk::Bytes(bytes))) if bytes.is_empty() => {}
            Some(Ok(Chunk::Bytes(bytes))) => return Ok(Some(bytes)),
            Some(Ok(_)) => return Err(OTHER_LENGTH),
            Some(Err(error)) => return Err(error),
        }
    }
}

/// Bytes read at a time.
const PIECE_BYTES: usize = 64 * 1024;

const OTHER_LENGTH: BodyError = BodyError::Source(
    hob_trace::Fault::Script,
    "the body has not the announced size",
);

/// What was read of a body, and the rest of it.
struct Rejoined {
    read: VecDeque<Bytes>,
    rest: Box<dyn BodyStream>,
}

impl BodyStream for Rejoined {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let Some(piece) = self.read.front_mut() else {
            return self.rest.poll_chunk(cx, max);
        };
        let bytes = piece.split_to(piece.len().min(max));
        if piece.is_empty() {
            self.read.pop_front();
        }
        Poll::Ready(Some(Ok(Chunk::Bytes(bytes))))
    }

    fn len(&self) -> Option<u64> {
        self.rest.len()
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.rest.trailers()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    /// Three bytes at a time, each after a pause.
    struct Slow {
        bytes: &'static [u8],
        announced: Option<u64>,
        pauses: bool,
        breaks: bool,
    }

    impl BodyStream for Slow {
        fn poll_chunk(
            &mut self,
            _: &mut Context<'_>,
            _: usize,
        ) -> Poll<Option<Result<Chunk, BodyError>>> {
            self.pauses = !self.pauses;
            if self.pauses {
                return Poll::Pending;
            }
            let (piece, rest) = self.bytes.split_at(self.bytes.len().min(3));
            self.bytes = rest;
            Poll::Ready(match piece {
                b"" if self.breaks => Some(Err(BodyError::ClientLeft)),
                b"" => None,
                piece => Some(Ok(Chunk::Bytes(Bytes::from_static(piece)))),
            })
        }

        fn len(&self) -> Option<u64> {
            self.announced
        }
    }

    fn slow(bytes: &'static [u8]) -> Slow {
        Slow {
            bytes,
            announced: None,
            pauses: false,
            breaks: false,
        }
    }

    fn body(slow: Slow) -> Body {
        Body::Stream(Box::new(slow))
    }

    fn wait<T>(future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
                return value;
            }
        }
    }

    fn whole(body: Body) -> Bytes {
        match wait(collect(body, u64::MAX)) {
            Ok(Collected::Whole(bytes)) => bytes,
            _ => panic!("it is not whole"),
        }
    }

    #[test]
    fn whole_body_up_to_the_limit() {
        for (bytes, max) in [(&b"0123456789"[..], 10), (b"012", 3), (b"", 0)] {
            match wait(collect(body(slow(bytes)), max)) {
                Ok(Collected::Whole(all)) => assert_eq!(all, bytes),
                _ => panic!("{bytes:?} is not whole"),
            }
        }
    }

    #[test]
    fn larger_body_goes_on_from_its_beginning() {
        let Ok(Collected::TooLarge(rest)) = wait(collect(body(slow(b"0123456789")), 9)) else {
            panic!("it is larger than 9 bytes")
        };
        assert_eq!(whole(rest), &b"0123456789"[..]);
        let announced = Slow {
            announced: Some(10),
            ..slow(b"0123456789")
        };
        let Ok(Collected::TooLarge(rest)) = wait(collect(body(announced), 9)) else {
            panic!("it is announced larger than 9 bytes")
        };
        assert_eq!(rest.len(), Some(10));
        assert_eq!(whole(rest), &b"0123456789"[..]);
    }

    #[test]
    fn body_that_breaks_or_is_shorter_than_announced_is_told() {
        let breaks = Slow {
            breaks: true,
            ..slow(b"0123")
        };
        assert_eq!(
            wait(collect(body(breaks), 99)).err(),
            Some(BodyError::ClientLeft)
        );
        let short = Slow {
            announced: Some(5),
            ..slow(b"0123")
        };
        assert_eq!(wait(collect(body(short), 99)).err(), Some(OTHER_LENGTH));
    }

    #[test]
    fn looking_ahead_tells_an_empty_body_and_loses_nothing() {
        assert!(matches!(wait(look_ahead(body(slow(b"")))), Ok(Body::Empty)));
        let empty = Body::Bytes(Bytes::new());
        assert!(matches!(wait(look_ahead(empty)), Ok(Body::Empty)));
        let Ok(seen) = wait(look_ahead(body(slow(b"01234")))) else {
            panic!("it does not break")
        };
        assert_eq!(whole(seen), &b"01234"[..]);
    }
}
