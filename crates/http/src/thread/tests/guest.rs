//! A guest on the thread: a tokio runtime, whose timers and sockets handlers wait for.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{PidfdFlags, PidfdGetfdFlags};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::dummy::Probe;
use super::{PATIENCE, Running, epoll_lock, serve_with};
use crate::limits::Limits;
use crate::request::Request;
use crate::response::{Answered, Response};
use crate::thread::{Guest, Thread};

thread_local! {
    static TASKS: Rc<LocalSet> = Rc::new(LocalSet::new());
    /// When the runtime's next timer is due; it does not tell by itself.
    static NEXT_TIMER_MS: Cell<Option<u64>> = const { Cell::new(None) };
}

struct Tokio {
    runtime: &'static Runtime,
    epoll: OwnedFd,
}

impl Tokio {
    fn new() -> Tokio {
        let _lock = epoll_lock();
        let before = epoll_numbers();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let own = epoll_numbers().difference(&before).copied().next().unwrap();
        let this = rustix::process::getpid();
        // Its own reactor is what a runtime does not hand out.
        let process = rustix::process::pidfd_open(this, PidfdFlags::empty()).unwrap();
        let epoll = rustix::process::pidfd_getfd(&process, own, PidfdGetfdFlags::empty()).unwrap();
        // Lives as long as the test.
        let runtime: &'static Runtime = Box::leak(Box::new(runtime));
        // Everything on this thread runs inside it, handlers too, to the thread's end.
        std::mem::forget(runtime.enter());
        Tokio { runtime, epoll }
    }
}

/// Numbers of this process's epoll sets.
fn epoll_numbers() -> BTreeSet<i32> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let link = std::fs::read_link(entry.path()).ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            (link.to_str()? == "anon_inode:[eventpoll]").then_some(number)
        })
        .collect()
}

impl Guest for Tokio {
    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn turn(&mut self) {
        let tasks = TASKS.with(Rc::clone);
        self.runtime
            .block_on(tasks.run_until(tokio::task::yield_now()));
    }

    fn next_deadline_ms(&self) -> Option<u64> {
        NEXT_TIMER_MS.get()
    }
}

/// Handlers that wait for what the guest drives.
pub(super) fn answer(request: &Request, path: &str, probe: Arc<Probe>) -> Answered {
    match path {
        "/sleep" => Answered::Later(Box::pin(async {
            let time = Duration::from_millis(30);
            let sleep = tokio::time::sleep_until(tokio::time::Instant::now() + time);
            NEXT_TIMER_MS.set(Some(Thread::<super::Dummy>::clock_us() / 1000 + 31));
            sleep.await;
            NEXT_TIMER_MS.set(None);
            Response::text(200, "slept")
        })),
        "/unix" => {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            std::thread::spawn(move || talk_back(theirs));
            let ours = UnixStream::from_std(ours).unwrap();
            Answered::Later(Box::pin(talk(ours)))
        }
        // A task of its own that learns that the client has left.
        _ => {
            let request = request.clone();
            TASKS.with(|tasks| {
                tasks.spawn_local(async move {
                    probe.note("watching");
                    std::future::poll_fn(|cx| request.poll_left(cx)).await;
                    let body = request.next_body().await;
                    probe.note(format!("left, body: {body:?}"));
                })
            });
            Answered::Later(Box::pin(std::future::pending()))
        }
    }
}

/// Writes a word and reads the answer.
async fn talk(stream: UnixStream) -> Response {
    stream.writable().await.unwrap();
    stream.try_write(b"ping").unwrap();
    let mut word = [0; 16];
    loop {
        stream.readable().await.unwrap();
        match stream.try_read(&mut word) {
            Ok(count) => {
                let text = String::from_utf8_lossy(&word[..count]).into_owned();
                return Response::text(200, &text);
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

fn talk_back(mut stream: std::os::unix::net::UnixStream) {
    use std::io::{Read, Write};
    let mut word = [0; 4];
    stream.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"ping");
    stream.write_all(b"pong").unwrap();
}

fn serve_with_tokio() -> Running {
    serve_with(1, Limits::default(), || Some(Box::new(Tokio::new())))
}

#[test]
fn a_handler_waits_for_a_guest_s_timer() {
    let server = serve_with_tokio();
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.ask("/sleep").text(), "slept\n");
        let finished = server.finished();
        assert!(finished.total_us >= 30_000, "{finished:?}");
        assert!(finished.total_us < PATIENCE.as_micros() as u64 / 2);
    }
}

#[test]
fn a_handler_waits_for_a_guest_s_socket() {
    let server = serve_with_tokio();
    let mut client = server.connect();
    for _ in 0..10 {
        assert_eq!(client.ask("/unix").text(), "pong\n");
        assert_eq!(client.ask("/ready").text(), "ready");
    }
}

#[test]
fn a_task_of_the_guest_is_told_that_the_client_has_left() {
    let server = serve_with_tokio();
    let mut client = server.connect();
    client.post("/task", 10);
    // A turn of the guest starts the task.
    assert_eq!(server.connect().ask("/unix").text(), "pong\n");
    assert_eq!(server.note(), "watching");
    client.reset();
    assert_eq!(server.note(), "left, body: Some(Err(ClientLeft))");
}
