//! The dummy: the path of a request chooses what it does; together the paths use every part of the
//! face.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::Finished;
use super::programs::Pipes;
use super::sources::{
    Drops, Echo, FileKind, Pattern, Regions, Script, Step, Waits, counted_region, file, pipe,
};
use crate::body::Body;
use crate::head::Fields;
use crate::reactor::Reactor;
use crate::request::{HalfClose, Request};
use crate::response::{Answered, PreparedHead, Responder, Response};

/// What a test and the dummy share.
pub(super) struct Probe {
    pub(super) gate: Gate,
    notes: Mutex<Sender<String>>,
    /// Bytes that streams have made.
    pub(super) produced: AtomicU64,
    /// Most bytes of a request body that were held unread.
    pub(super) held_max: AtomicUsize,
    /// Regions that are not given back.
    pub(super) regions: AtomicUsize,
    pub(super) pipes: Pipes,
    pub(super) is_started: AtomicBool,
}

impl Probe {
    pub(super) fn new(notes: Sender<String>) -> Probe {
        Probe {
            gate: Gate::default(),
            notes: Mutex::new(notes),
            produced: AtomicU64::new(0),
            held_max: AtomicUsize::new(0),
            regions: AtomicUsize::new(0),
            pipes: Pipes::default(),
            is_started: AtomicBool::new(false),
        }
    }

    pub(super) fn note(&self, text: impl Into<String>) {
        let _ = self.notes.lock().unwrap().send(text.into());
    }
}

/// Closed at first; a test opens it, from its own thread.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<(bool, Vec<Waker>)>,
}

impl Gate {
    pub(super) fn open(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 = true;
        for waker in state.1.drain(..) {
            waker.wake();
        }
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1.push(cx.waker().clone());
        Poll::Pending
    }

    pub(super) async fn passed(probe: &Probe) {
        std::future::poll_fn(|cx| probe.gate.poll(cx)).await;
    }
}

pub(super) struct Dummy {
    probe: Arc<Probe>,
    finished: Sender<Finished>,
}

impl Dummy {
    pub(super) fn new(probe: Arc<Probe>, finished: Sender<Finished>) -> Dummy {
        Dummy { probe, finished }
    }
}

impl Responder for Dummy {
    fn answer(&self, request: &Request) -> Answered {
        let path = String::from_utf8_lossy(request.head().path()).into_owned();
        let probe = Arc::clone(&self.probe);
        answer_now(request, &path)
            .or_else(|| answer_later(request, &path, &probe))
            .or_else(|| body_of(request, &path, probe).map(|body| ready(new(body))))
            .unwrap_or_else(|| ready(Response::text(404, "not here")))
    }

    fn start(&self, _: &Reactor) {
        self.probe.is_started.store(true, Ordering::Relaxed);
    }

    fn finished(&self, request: &Request) {
        let _ = self.finished.send(Finished::of(request));
    }
}

fn answer_now(request: &Request, path: &str) -> Option<Answered> {
    let response = match path {
        "/ready" => text("ready"),
        "/facts" => {
            let facts = request.facts();
            let peer = facts
                .peer
                .map_or("none".to_owned(), |peer| peer.to_string());
            let is_clear = facts.tls.is_none();
            text(&format!("{peer} {} {is_clear}", facts.listener))
        }
        "/len" => text(&format!("{:?}", request.body_len())),
        "/close" => {
            let mut response = text("close");
            response.close = true;
            response
        }
        "/early" => {
            request.interim(103, fields("Link", "</early>"));
            text("early")
        }
        "/limit" if !request.limit_body(number(request)) => Response::text(413, "too large"),
        "/tunnel" => {
            let tunnel = Body::Tunnel(Box::new(Echo(request.clone())));
            Response::new(101, fields("Upgrade", "echo"), tunnel)
        }
        "/half-tunnel" => {
            let steps = vec![Step::Data("after"), Step::HalfClose, Step::Data("before ")];
            let tunnel = Body::Tunnel(Box::new(Script(steps)));
            Response::new(101, fields("Upgrade", "echo"), tunnel)
        }
        "/short" => mismatch(10, "short"),
        "/long" => mismatch(10, "much longer than that"),
        "/long-stream" => {
            let head = PreparedHead::new(200, Fields::new(), 3);
            let stream = Script(vec![Step::Data("more"); 1000]);
            Response::prepared(head.into(), Body::Stream(Box::new(stream)))
        }
        _ => return None,
    };
    Some(ready(response))
}

fn answer_later(request: &Request, path: &str, probe: &Arc<Probe>) -> Option<Answered> {
    let (request, probe) = (request.clone(), Arc::clone(probe));
    Some(match path {
        "/later" => later(async move {
            if has_query(&request, "cancel") {
                request.set_half_close(HalfClose::Cancel);
            }
            probe.note("waiting");
            Gate::passed(&probe).await;
            text("later")
        }),
        "/interim" => later(interim(request, probe)),
        "/stuck" => stuck(&request, probe),
        "/count" | "/limit" => later(count(request, probe)),
        "/slow-count" => later(slow_count(request, probe)),
        "/echo" => later(echo(request)),
        "/held" | "/told" | "/first" | "/cancel" | "/cat" | "/no-pipe" => {
            super::programs::answer(&request, path, probe)
        }
        _ => return None,
    })
}

/// Bodies of every kind; a request's query is a number of bytes.
fn body_of(request: &Request, path: &str, probe: Arc<Probe>) -> Option<Body> {
    let len = number(request);
    if let Some(path) = path.strip_prefix("/in-chunks") {
        return body_of(request, path, probe).map(super::chunks::seen);
    }
    if let Some(path) = path.strip_prefix("/plain-chunks") {
        return body_of(request, path, probe).map(|body| Body::Stream(body.into_stream()));
    }
    Some(match path {
        "/bytes" => Body::Bytes(pattern(len).into()),
        "/region" => Body::Region(counted_region(len, probe)),
        "/regions" => Body::Stream(Box::new(Regions { left: len, probe })),
        "/echo-stream" => Body::Stream(Box::new(Echo(request.clone()))),
        "/stream-and-wait" => Body::Stream(Box::new(Waits(Pattern { left: len, probe }))),
        "/stream" => Body::Stream(Box::new(Pattern { left: len, probe })),
        "/drops" => Body::Stream(Box::new(Drops {
            pattern: Pattern { left: len, probe },
            is_due: true,
        })),
        "/endless" => Body::Stream(Box::new(Pattern {
            left: u64::MAX,
            probe,
        })),
        "/trailers" => Body::Stream(Box::new(Script(vec![
            Step::Trailers(fields("Digest", "d")),
            Step::Data("traced"),
        ]))),
        "/broken" => Body::Stream(Box::new(Script(vec![Step::Break, Step::Data("half")]))),
        "/file" => file(len, len, FileKind::Warm, probe),
        "/cold-file" => file(len, len, FileKind::Cold, probe),
        "/stuck-file" => file(len, len, FileKind::Stuck, probe),
        "/shorter-file" => file(len * 2, len, FileKind::Warm, probe),
        "/shorter-cold-file" => file(len * 2, len, FileKind::Cold, probe),
        "/written-to-file" => file(len, len, FileKind::WrittenTo, probe),
        "/unreadable-file" => file(len, len, FileKind::Unreadable, probe),
        "/endless-file" => file(1 << 40, 1 << 40, FileKind::Warm, probe),
        "/pipe" => pipe(len, None),
        "/sized-pipe" => pipe(len, Some(len)),
        "/short-pipe" => pipe(len, Some(len * 2)),
        "/long-pipe" => pipe(len * 2, Some(len)),
        _ => return None,
    })
}

fn ready(response: Response) -> Answered {
    Answered::Ready(response)
}

fn later(future: impl Future<Output = Response> + 'static) -> Answered {
    Answered::Later(Box::pin(future))
}

fn new(body: Body) -> Response {
    Response::new(200, Fields::new(), body)
}

fn text(text: &str) -> Response {
    new(Body::Bytes(text.to_owned().into()))
}

fn fields(name: &str, value: &str) -> Fields {
    let mut fields = Fields::new();
    assert!(fields.add(name.as_bytes(), value.as_bytes()));
    fields
}

/// The number that is a request's query.
fn number(request: &Request) -> u64 {
    let query = request.head().query().unwrap_or_default();
    let digits = query.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
}

fn has_query(request: &Request, word: &str) -> bool {
    request.head().query() == Some(word.as_bytes())
}

/// Bytes that tell where they stand.
pub(super) fn pattern(len: u64) -> Vec<u8> {
    (0..len).map(pattern_byte).collect()
}

pub(super) fn pattern_byte(at: u64) -> u8 {
    (at % 251) as u8
}

/// An announced size that is not the body's.
fn mismatch(announced: u64, body: &str) -> Response {
    let head = PreparedHead::new(200, Fields::new(), announced);
    Response::prepared(head.into(), Body::Bytes(body.to_owned().into()))
}

async fn interim(request: Request, probe: Arc<Probe>) -> Response {
    request.interim(103, fields("Link", "</a>"));
    Gate::passed(&probe).await;
    request.interim(103, fields("Link", "</b>"));
    text("final")
}

/// Notes its own drop, and whether the client was known to have left.
struct Tell {
    request: Request,
    probe: Arc<Probe>,
}

impl Drop for Tell {
    fn drop(&mut self) {
        self.probe
            .note(format!("dropped, left: {}", self.request.has_left()));
    }
}

/// Never answers. `?cancel`: FIN means that the client has left. `?read`: reads a first piece of
/// body.
fn stuck(request: &Request, probe: Arc<Probe>) -> Answered {
    if has_query(request, "cancel") {
        request.set_half_close(HalfClose::Cancel);
    }
    let reads = has_query(request, "read");
    let tell = Tell {
        request: request.clone(),
        probe,
    };
    later(async move {
        tell.probe.note("waiting");
        if reads {
            let piece = tell.request.next_body().await;
            tell.probe.note(format!("read {}", piece.is_some()));
        }
        std::future::pending().await
    })
}

async fn count(request: Request, probe: Arc<Probe>) -> Response {
    let mut sum = 0;
    while let Some(piece) = request.next_body().await {
        let held = request.exchange.body.borrow().held_bytes;
        probe.held_max.fetch_max(held, Ordering::Relaxed);
        match piece {
            Ok(bytes) => sum += bytes.len(),
            Err(error) => {
                probe.note(error.to_string());
                return Response::text(error.status(), &error.to_string());
            }
        }
    }
    text(&sum.to_string())
}

/// Reads one piece, waits at the gate, reads the rest.
async fn slow_count(request: Request, probe: Arc<Probe>) -> Response {
    let Some(Ok(first)) = request.next_body().await else {
        return text("nothing");
    };
    probe.note("waiting");
    Gate::passed(&probe).await;
    let held = request.exchange.body.borrow().held_bytes;
    probe.held_max.fetch_max(held, Ordering::Relaxed);
    let mut sum = first.len();
    while let Some(Ok(bytes)) = request.next_body().await {
        sum += bytes.len();
    }
    text(&sum.to_string())
}

async fn echo(request: Request) -> Response {
    let mut all = Vec::new();
    while let Some(piece) = request.next_body().await {
        match piece {
            Ok(bytes) => all.extend_from_slice(&bytes),
            Err(error) => return Response::text(error.status(), &error.to_string()),
        }
    }
    for (name, value) in request.trailers() {
        all.extend_from_slice(b"\n");
        all.extend_from_slice(&name);
        all.extend_from_slice(b"=");
        all.extend_from_slice(&value);
    }
    new(Body::Bytes(all.into()))
}
