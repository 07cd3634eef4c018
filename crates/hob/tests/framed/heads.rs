//! When the first byte of an answer left, where those of others wait before it.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use serde_json::Value;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::harness::{BIG_BYTES, DEADLINE};
use crate::scene::{Client, Scene, Version, on};
use crate::{h2, tls};

/// How much a client reads.
#[derive(Clone, Default)]
struct Gate {
    bytes: Rc<Cell<usize>>,
    waiting: Rc<RefCell<Option<Waker>>>,
}

impl Gate {
    /// From now on so many bytes and no more.
    fn set(&self, bytes: usize) {
        self.bytes.set(bytes);
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A stream that is read through a gate.
struct Gated<S>(Gate, S);

impl<S: AsyncRead + Unpin> AsyncRead for Gated<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let gate = self.0.clone();
        let mut bytes = [0; 8 * 1024];
        let len_max = bytes.len().min(gate.bytes.get()).min(buffer.remaining());
        if len_max == 0 {
            *gate.waiting.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        let mut part = ReadBuf::new(&mut bytes[..len_max]);
        ready!(Pin::new(&mut self.1).poll_read(context, &mut part))?;
        buffer.put_slice(part.filled());
        gate.bytes.set(gate.bytes.get() - part.filled().len());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gated<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.1).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.1).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.1).poll_shutdown(context)
    }
}

/// Answers with heads of 50 kB that wait before the one that is looked at: several times what the
/// sockets' buffers of the test hold.
const PAGES: usize = 10;
/// Larger than what kernels hold: answers wait for the socket, not for the client's windows.
const WINDOW_BYTES: usize = 16 * 1024 * 1024;
/// Times are told in milliseconds and microseconds since.
const ROUNDING_US: u64 = 2000;

fn number(record: &Value, key: &str) -> u64 {
    record[key].as_u64().unwrap()
}

/// When something was, so long after a request's begin.
fn unix_us(record: &Value, after: &str) -> u64 {
    number(record, "started_unix_ms") * 1000 + number(record, after)
}

fn is_late(request: &Value) -> bool {
    request["target"] == "/cgi/twice" && request["status"] == 200
}

/// Takes a little of what waits, and lets time pass; returns how old the last answer is then,
/// whose head waits still.
async fn take_a_little(scene: &Scene, gate: &Gate) -> u64 {
    let bytes_out = |one: &Value| one["bytes_out"].as_u64().unwrap();
    let before = bytes_out(&scene.connection(|_| true).await);
    let until = Instant::now() + DEADLINE;
    while bytes_out(&scene.connection(|_| true).await) == before {
        assert!(Instant::now() < until, "nothing was taken");
        if gate.bytes.get() == 0 {
            gate.set(16 * 1024);
        }
    }
    let since_us = number(&scene.running(is_late).await, "age_us");
    let is_older = move |one: &Value| is_late(one) && number(one, "age_us") > since_us + 300_000;
    number(&scene.running(is_older).await, "age_us")
}

#[test]
fn first_byte_of_an_answer_is_its_own() {
    let keys = "send_buffer = \"16KiB\"\n";
    on(Version::Http2, keys, async |scene: Scene, port: u16| {
        let gate = Gate::default();
        gate.set(usize::MAX);
        let stream = tls::connect(tls::client(b"h2"), port).await.unwrap();
        let socket = SockRef::from(stream.get_ref().0);
        socket.set_recv_buffer_size(32 * 1024).unwrap();
        let connection = h2::connect_over(Gated(gate.clone(), stream), WINDOW_BYTES);
        let mut client = Client::Http2(connection.await.unwrap(), port);
        let mut answers = Vec::new();
        for page in 0..PAGES {
            let path = format!("/cgi/page?{page}");
            answers.push(client.send("GET", &path, true).await);
        }
        let (_upload, mut late) = client.send("GET", "/cgi/twice", true).await;
        let is_waiting = |request: &Value| request["state"] == "program";
        scene.running_count(PAGES + 1, is_waiting).await;
        gate.set(0);
        let (_upload, mut big) = client.send("GET", "/big.bin", true).await;
        let is_stuck = |request: &Value| {
            request["target"] == "/big.bin" && number(request, "age_us") > 300_000
        };
        scene.running(is_stuck).await;
        // What is answered now waits behind it.
        scene.turn_pages(PAGES).await;
        scene.go().await;
        scene.running(is_late).await;
        let held_us = take_a_little(&scene, &gate).await;
        gate.set(usize::MAX);
        for (_upload, answer) in &mut answers {
            assert_eq!(answer.read_all().await, (200, 3));
        }
        assert_eq!(big.read_all().await, (200, BIG_BYTES));
        scene.go().await;
        assert_eq!(late.read_all().await, (200, 6));
        let late = scene.record("/cgi/twice").await;
        let late_us = unix_us(&late, "first_byte_us") + ROUNDING_US;
        assert!(number(&late, "first_byte_us") >= held_us, "{late:#}");
        // All of their heads stood before its own.
        for page in scene.records("path=/cgi/page", PAGES).await {
            assert!(number(&page, "head_bytes_out") > 30_000, "{page:#}");
            assert!(
                late_us >= unix_us(&page, "first_byte_us"),
                "{page:#}\n{late:#}"
            );
        }
    });
}
