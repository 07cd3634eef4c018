//! The other ends of pipes: held by a test, or by a program.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rustix::pipe::PipeFlags;

use super::dummy::Probe;
use crate::body::{Body, BodyError, PipeEnd};
use crate::head::Fields;
use crate::request::{HalfClose, Request};
use crate::response::{Answered, Response};

/// What tests have in hand of the pipes and their ends.
#[derive(Default)]
pub(super) struct Pipes {
    writers: Mutex<Vec<OwnedFd>>,
    end: Mutex<End>,
}

#[derive(Default)]
struct End {
    answer: Option<Result<(), BodyError>>,
    wakers: Vec<Waker>,
    was_asked_at_eof: bool,
}

impl Pipes {
    /// The other end of the pipe last made.
    pub(super) fn writer(&self) -> File {
        self.writers.lock().unwrap().pop().unwrap().into()
    }

    /// Tells the ends of all bodies.
    pub(super) fn end(&self, answer: Result<(), BodyError>) {
        let mut end = self.end.lock().unwrap();
        end.answer = Some(answer);
        end.wakers.drain(..).for_each(Waker::wake);
    }

    /// Nothing is told any more.
    pub(super) fn forget(&self) {
        *self.end.lock().unwrap() = End::default();
    }
}

/// The end of a pipe's body as a test says it.
struct Told(Arc<Probe>);

impl PipeEnd for Told {
    fn poll_end(&self, cx: &mut Context<'_>, at_eof: bool) -> Poll<Result<(), BodyError>> {
        let mut end = self.0.pipes.end.lock().unwrap();
        if let Some(answer) = end.answer {
            return Poll::Ready(answer);
        }
        if at_eof && !std::mem::replace(&mut end.was_asked_at_eof, true) {
            self.0.note("asked at eof");
        }
        end.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.0.note("end dropped");
    }
}

/// Answers out of pipes whose other end the test holds: `/held`, and `/told` with an end that the
/// test tells; a query is the announced size. `/cat` sends the request's body through a program.
pub(super) fn answer(request: &Request, path: &str, probe: Arc<Probe>) -> Answered {
    if path == "/cat" {
        return Answered::Ready(cat(request));
    }
    if path == "/no-pipe" {
        let file: OwnedFd = File::open("/proc/self/exe").unwrap().into();
        return Answered::Ready(Response::new(200, Fields::new(), body(file, None)));
    }
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    probe.pipes.writers.lock().unwrap().push(writer);
    let query = request.head().query().map(String::from_utf8_lossy);
    let body = Body::Pipe {
        first: match path {
            "/first" => Bytes::from_static(b"first "),
            _ => Bytes::new(),
        },
        fd: reader,
        len: query.and_then(|query| query.parse().ok()),
        end: match path {
            "/held" => None,
            _ => Some(Rc::new(Told(Arc::clone(&probe)))),
        },
    };
    if path == "/cancel" {
        request.set_half_close(HalfClose::Cancel);
    }
    probe.note("pipe");
    Answered::Ready(Response::new(200, Fields::new(), body))
}

/// What the client sends goes into a program, what the program makes of it to the client.
fn cat(request: &Request) -> Response {
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let fd = child.stdout.take().unwrap().into();
    let stdin = child.stdin.take().unwrap().into();
    let reactor = request.reactor().clone();
    let request = request.clone();
    request.clone().reactor().spawn(async move {
        let stdin = reactor.watch(stdin).unwrap();
        while let Some(Ok(mut bytes)) = request.next_body().await {
            while !bytes.is_empty() {
                let write = |cx: &mut Context<'_>| stdin.poll_write(cx, &bytes);
                let count = std::future::poll_fn(write).await.unwrap();
                bytes::Buf::advance(&mut bytes, count);
            }
        }
        drop(stdin);
        // It ends when all it wrote has been taken, by this thread.
        std::thread::spawn(move || child.wait());
    });
    Response::new(200, Fields::new(), body(fd, None))
}

fn body(fd: OwnedFd, end: Option<Rc<dyn PipeEnd>>) -> Body {
    Body::Pipe {
        first: Bytes::new(),
        fd,
        len: None,
        end,
    }
}
