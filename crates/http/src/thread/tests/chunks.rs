//! Every kind of body read as chunks in memory.

use std::task::{Context, Poll, Waker};

use hob_trace::Outcome;

use super::dummy::pattern;
use super::serve;
use crate::body::{Body, BodyError, BodyStream, Chunk};
use crate::limits::HttpLimits;

/// A body whose chunks are seen to be what they should: bytes, and not too many.
pub(super) fn seen(body: Body) -> Body {
    Body::Stream(Box::new(Seen(body.into_stream())))
}

struct Seen(Box<dyn BodyStream>);

impl BodyStream for Seen {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        const MAX: usize = 10_007;
        let chunk = self.0.poll_chunk(cx, MAX);
        if let Poll::Ready(Some(Ok(chunk))) = &chunk {
            assert!(matches!(chunk, Chunk::Bytes(_)), "not in memory");
            assert!(
                !chunk.is_empty() && chunk.len() <= MAX as u64,
                "{}",
                chunk.len()
            );
        }
        chunk
    }

    fn len(&self) -> Option<u64> {
        self.0.len()
    }
}

#[test]
fn every_body_can_be_read_in_chunks() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    for len in [0u64, 1, 10_007, 300_000] {
        for path in ["bytes", "region", "file", "cold-file", "sized-pipe"] {
            let answer = client.ask(&format!("/in-chunks/{path}?{len}"));
            assert!(answer.head.contains(&format!("Content-Length: {len}\r\n")));
            assert!(answer.body == pattern(len), "{path} {len}");
        }
        let answer = client.ask(&format!("/in-chunks/pipe?{len}"));
        assert!(answer.head.contains("chunked"));
        assert!(answer.body == pattern(len), "{len}");
    }
    let answer = client.ask("/in-chunks/regions?10");
    let expected: Vec<u8> = (0..10)
        .flat_map(|at| pattern(if at % 2 == 1 { 50_000 } else { 500 }))
        .collect();
    assert!(answer.body == expected);
}

#[test]
fn a_body_that_breaks_breaks_in_chunks_too() {
    let server = serve(HttpLimits::default());
    for (path, reason) in [
        (
            "shorter-file?20000",
            "the file became shorter while it was sent",
        ),
        (
            "shorter-cold-file?20000",
            "the file became shorter while it was sent",
        ),
        (
            "written-to-file?20000",
            "the file was written to while it was sent",
        ),
        ("unreadable-file?1", "the file could not be read"),
        ("broken", "the script broke"),
    ] {
        let mut client = server.connect();
        client.get(&format!("/in-chunks/{path}"));
        client.rest();
        let finished = server.finished();
        assert_eq!(finished.outcome, Outcome::Broken, "{path}");
        assert_eq!(finished.reason, Some(reason), "{path}");
    }
}

#[test]
fn a_disk_may_be_waited_for_in_chunks() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/in-chunks/stuck-file?1000");
    assert_eq!(server.note(), "fetching");
    assert_eq!(server.connect().ask("/ready").text(), "ready");
    server.gate().open();
    assert!(client.answer().body == pattern(1000));
}

#[test]
fn trailers_come_after_the_chunks() {
    let server = serve(HttpLimits::default());
    let mut client = server.connect();
    client.get("/plain-chunks/trailers");
    let answer = client.answer();
    assert_eq!(answer.text(), "traced");
    assert_eq!(answer.trailers, "Digest: d\n");
}

#[test]
fn chunks_are_no_larger_than_asked_for() {
    let mut stream = Body::Bytes(pattern(10).into()).into_stream();
    assert_eq!(stream.len(), Some(10));
    let mut cx = Context::from_waker(Waker::noop());
    let mut sizes = Vec::new();
    while let Poll::Ready(Some(Ok(chunk))) = stream.poll_chunk(&mut cx, 4) {
        sizes.push(chunk.len());
    }
    assert_eq!(sizes, [4, 4, 2]);
}
