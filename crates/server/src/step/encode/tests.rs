//! Encoders with real decoders at the other end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::Read;
use std::rc::Rc;
use std::task::Waker;

use super::*;

/// What a source does when it is asked.
enum Event {
    Bytes(&'static [u8]),
    Pause,
    Break,
}

struct Script(VecDeque<Event>);

impl BodyStream for Script {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(Event::Pause) => Poll::Pending,
            Some(Event::Bytes(bytes)) => {
                Poll::Ready(Some(Ok(Chunk::Bytes(Bytes::from_static(bytes)))))
            }
            Some(Event::Break) => Poll::Ready(Some(Err(BodyError::ClientLeft))),
        }
    }

    fn trailers(&mut self) -> Option<Fields> {
        let mut fields = Fields::new();
        fields.add(b"X-Sum", b"1");
        Some(fields)
    }
}

fn encoded(coding: Coding, flush: Flush, events: impl IntoIterator<Item = Event>) -> Encoded {
    let source = Script(events.into_iter().collect());
    Encoded::new(Body::Stream(Box::new(source)), coding, flush).unwrap()
}

fn poll(body: &mut Encoded, max: usize) -> Poll<Option<Result<Chunk, BodyError>>> {
    body.poll_chunk(&mut Context::from_waker(Waker::noop()), max)
}

/// Everything until the source pauses, breaks or ends, and how it ended.
fn until_idle(body: &mut Encoded, out: &mut Vec<u8>) -> Poll<Option<BodyError>> {
    loop {
        match poll(body, 100) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(error)),
            Poll::Ready(Some(Ok(chunk))) => {
                assert!((1..=100).contains(&chunk.len()));
                let Chunk::Bytes(bytes) = chunk else {
                    unreachable!("an encoder gives bytes")
                };
                out.extend_from_slice(&bytes);
            }
        }
    }
}

/// What a client can read of the bytes it has so far.
fn readable(data: &[u8], coding: Coding) -> Vec<u8> {
    let mut out = Vec::new();
    let mut read = |reader: &mut dyn Read| {
        let mut byte = [0];
        while let Ok(1) = reader.read(&mut byte) {
            out.push(byte[0]);
        }
    };
    match coding {
        Coding::Brotli => read(&mut brotli::Decompressor::new(data, 4096)),
        Coding::Zstd => read(&mut zstd::stream::read::Decoder::new(data).unwrap()),
        Coding::Gzip => read(&mut flate2::read::GzDecoder::new(data)),
    }
    out
}

fn whole(data: &[u8], coding: Coding) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        Coding::Brotli => drop(
            brotli::Decompressor::new(data, 4096)
                .read_to_end(&mut out)
                .unwrap(),
        ),
        Coding::Zstd => zstd::stream::copy_decode(data, &mut out).unwrap(),
        Coding::Gzip => drop(
            flate2::read::GzDecoder::new(data)
                .read_to_end(&mut out)
                .unwrap(),
        ),
    }
    out
}

#[test]
fn what_is_written_can_be_read_before_more_is_written() {
    for coding in Coding::ALL {
        let events = [
            Event::Bytes(b"data: one\n\n"),
            // Asked again after what there was has gone out, it has nothing yet.
            Event::Pause,
            Event::Pause,
            Event::Pause,
            Event::Bytes(b"data: "),
            Event::Bytes(b"two\n\n"),
            Event::Pause,
            Event::Pause,
            Event::Bytes(b"data: three\n\n"),
        ];
        let mut body = encoded(coding, Flush::WhenIdle, events);
        let mut out = Vec::new();
        assert!(until_idle(&mut body, &mut out).is_pending());
        assert_eq!(readable(&out, coding), b"data: one\n\n", "{coding:?}");
        let before = out.len();
        // Nothing was written, so nothing is sent.
        assert!(until_idle(&mut body, &mut out).is_pending());
        assert_eq!(out.len(), before);
        assert!(until_idle(&mut body, &mut out).is_pending());
        assert_eq!(
            readable(&out, coding),
            b"data: one\n\ndata: two\n\n",
            "{coding:?}"
        );
        assert_eq!(until_idle(&mut body, &mut out), Poll::Ready(None));
        assert_eq!(
            whole(&out, coding),
            b"data: one\n\ndata: two\n\ndata: three\n\n"
        );
        assert!(body.trailers().is_some());
    }
}

#[test]
fn each_piece_goes_by_itself_when_asked_for() {
    for coding in Coding::ALL {
        let events = || [Event::Bytes(b"one "), Event::Bytes(b"two ")];
        let mut at_once = encoded(coding, Flush::EachPiece, events());
        let Poll::Ready(Some(Ok(Chunk::Bytes(first)))) = poll(&mut at_once, 4096) else {
            panic!("{coding:?} gave nothing")
        };
        assert_eq!(readable(&first, coding), b"one ", "{coding:?}");
        let (mut flushed, mut together) = (first.to_vec(), Vec::new());
        assert!(until_idle(&mut at_once, &mut flushed).is_ready());
        let mut when_idle = encoded(coding, Flush::WhenIdle, events());
        assert!(until_idle(&mut when_idle, &mut together).is_ready());
        assert_eq!(whole(&flushed, coding), whole(&together, coding));
        assert!(flushed.len() > together.len(), "{coding:?}");
    }
}

#[test]
fn nothing_at_all_is_a_whole_answer_too() {
    for coding in Coding::ALL {
        let mut out = Vec::new();
        let mut body = encoded(coding, Flush::WhenIdle, [Event::Pause]);
        assert!(until_idle(&mut body, &mut out).is_pending());
        assert_eq!(until_idle(&mut body, &mut out), Poll::Ready(None));
        assert_eq!(whole(&out, coding), b"", "{coding:?}");
    }
}

#[test]
fn large_answers_shrink_and_come_back() {
    const LINE: &[u8] = b"the kettle is warm and the fire is low, so put the tea on the table\n";
    for coding in Coding::ALL {
        let lines = (0..20_000).map(|_| Event::Bytes(LINE));
        let mut out = Vec::new();
        let mut body = encoded(coding, Flush::WhenIdle, lines);
        assert_eq!(until_idle(&mut body, &mut out), Poll::Ready(None));
        assert!(
            out.len() < 20_000 * LINE.len() / 50,
            "{coding:?} {}",
            out.len()
        );
        assert_eq!(whole(&out, coding), LINE.repeat(20_000), "{coding:?}");
    }
}

#[test]
fn what_came_before_a_break_goes_out_first() {
    for coding in Coding::ALL {
        let mut out = Vec::new();
        let events = [Event::Bytes(b"half of it"), Event::Break];
        let mut body = encoded(coding, Flush::WhenIdle, events);
        let end = until_idle(&mut body, &mut out);
        assert_eq!(end, Poll::Ready(Some(BodyError::ClientLeft)), "{coding:?}");
        assert_eq!(readable(&out, coding), b"half of it", "{coding:?}");
    }
}

#[test]
fn source_is_let_go_with_the_body() {
    struct Noted(Rc<RefCell<bool>>);
    impl Drop for Noted {
        fn drop(&mut self) {
            *self.0.borrow_mut() = true;
        }
    }
    impl BodyStream for Noted {
        fn poll_chunk(
            &mut self,
            _: &mut Context<'_>,
            _: usize,
        ) -> Poll<Option<Result<Chunk, BodyError>>> {
            Poll::Pending
        }
    }
    let is_gone = Rc::new(RefCell::new(false));
    let source = Body::Stream(Box::new(Noted(Rc::clone(&is_gone))));
    let mut body = Encoded::new(source, Coding::Zstd, Flush::WhenIdle).unwrap();
    assert!(poll(&mut body, 1).is_pending());
    drop(body);
    assert!(*is_gone.borrow());
}
