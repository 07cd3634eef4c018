//! The dummy: the path of a request chooses what it does; together the paths use every part of the face.

use std::fs::File;
use std::future::Future;
use std::io;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hob_trace::Fault;
use rustix::pipe::PipeFlags;

use super::Finished;
use crate::body::{Body, BodyError, BodyStream, Chunk, FetchFuture, FileBody, FileSource, Region};
use crate::head::Fields;
use crate::request::{HalfClose, Request};
use crate::response::{Answer, Answered, Prepared, Response};

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
}

impl Probe {
    pub(super) fn new(notes: Sender<String>) -> Probe {
        Probe {
            gate: Gate::default(),
            notes: Mutex::new(notes),
            produced: AtomicU64::new(0),
            held_max: AtomicUsize::new(0),
            regions: AtomicUsize::new(0),
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

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1.push(cx.waker().clone());
        Poll::Pending
    }

    async fn passed(probe: &Probe) {
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

impl Answer for Dummy {
    fn answer(&self, request: &Request) -> Answered {
        let path = String::from_utf8_lossy(request.head().path()).into_owned();
        let probe = Arc::clone(&self.probe);
        match path.as_str() {
            "/ready" => ready(text("ready")),
            "/facts" => {
                let facts = request.facts();
                let peer = facts
                    .peer
                    .map_or("none".to_owned(), |peer| peer.to_string());
                ready(text(&format!(
                    "{peer} {} {}",
                    facts.listener,
                    facts.tls.is_none()
                )))
            }
            "/len" => ready(text(&format!("{:?}", request.body_len()))),
            "/close" => {
                let mut response = text("close");
                response.close = true;
                ready(response)
            }
            "/bytes" => ready(new(Body::Bytes(pattern(number(request)).into()))),
            "/region" => ready(new(Body::Region(counted_region(number(request), probe)))),
            "/regions" => ready(new(Body::Stream(Box::new(Regions {
                left: number(request),
                probe,
            })))),
            "/early" => {
                request.interim(103, fields("Link", "</early>"));
                ready(text("early"))
            }
            "/later" => later(async move {
                probe.note("waiting");
                Gate::passed(&probe).await;
                text("later")
            }),
            "/interim" => later(interim(request.clone(), probe)),
            "/stuck" => stuck(request, probe),
            "/count" => later(count(request.clone(), probe)),
            "/slow-count" => later(slow_count(request.clone(), probe)),
            "/echo" => later(echo(request.clone())),
            "/echo-stream" => ready(new(Body::Stream(Box::new(Echo(request.clone()))))),
            "/limit" => {
                if request.limit_body(number(request)) {
                    later(count(request.clone(), probe))
                } else {
                    ready(Response::text(413, "too large"))
                }
            }
            "/tunnel" => {
                let tunnel = Body::Tunnel(Box::new(Echo(request.clone())));
                ready(Response::new(101, fields("Upgrade", "echo"), tunnel))
            }
            "/stream" | "/endless" => ready(new(Body::Stream(Box::new(Pattern {
                left: if path == "/endless" {
                    u64::MAX
                } else {
                    number(request)
                },
                probe,
            })))),
            "/trailers" => ready(new(Body::Stream(Box::new(Script(vec![
                Step::Trailers(fields("Digest", "d")),
                Step::Data("traced"),
            ]))))),
            "/broken" => ready(new(Body::Stream(Box::new(Script(vec![
                Step::Break,
                Step::Data("half"),
            ]))))),
            "/short" => ready(mismatch(10, "short")),
            "/long" => ready(mismatch(10, "much longer than that")),
            "/long-stream" => {
                let stream = Pattern {
                    left: u64::MAX,
                    probe,
                };
                let head = Prepared::new(200, Fields::new(), 100);
                ready(Response::prepared(
                    head.into(),
                    Body::Stream(Box::new(stream)),
                ))
            }
            _ => self.answer_source(request, &path, probe),
        }
    }

    fn finished(&self, request: &Request) {
        let _ = self.finished.send(Finished::of(request));
    }
}

impl Dummy {
    /// Answers that come out of descriptors.
    fn answer_source(&self, request: &Request, path: &str, probe: Arc<Probe>) -> Answered {
        let len = number(request);
        match path {
            "/file" => file(len, len, FileKind::Warm, probe),
            "/cold-file" => file(len, len, FileKind::Cold, probe),
            "/stuck-file" => file(len, len, FileKind::Stuck, probe),
            "/shorter-file" => file(len * 2, len, FileKind::Warm, probe),
            "/shorter-cold-file" => file(len * 2, len, FileKind::Cold, probe),
            "/unreadable-file" => file(len, len, FileKind::Unreadable, probe),
            "/endless-file" => file(1 << 40, 1 << 40, FileKind::Warm, probe),
            "/pipe" => pipe(len, None),
            "/sized-pipe" => pipe(len, Some(len)),
            "/short-pipe" => pipe(len, Some(len * 2)),
            "/long-pipe" => pipe(len * 2, Some(len)),
            _ => ready(Response::text(404, "not here")),
        }
    }
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
    let head = Prepared::new(200, Fields::new(), announced);
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

/// Never answers. `?cancel`: FIN means that the client has left. `?read`: reads a first piece of body.
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

/// What comes in goes out.
struct Echo(Request);

impl BodyStream for Echo {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        _max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        self.0
            .poll_body(cx)
            .map(|piece| piece.map(|result| result.map(Chunk::Bytes)))
    }
}

/// The pattern, as long as it is taken.
struct Pattern {
    left: u64,
    probe: Arc<Probe>,
}

impl BodyStream for Pattern {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let len = self.left.min(max as u64);
        self.left -= len;
        let from = self.probe.produced.fetch_add(len, Ordering::Relaxed);
        static BLOCK: OnceLock<Bytes> = OnceLock::new();
        let block = BLOCK.get_or_init(|| pattern(512 * 1024).into());
        let start = (from % 251) as usize;
        let bytes = block.slice(start..start + len as usize);
        Poll::Ready(Some(Ok(Chunk::Bytes(bytes))))
    }
}

/// Steps of a stream, the last one first.
struct Script(Vec<Step>);

enum Step {
    Data(&'static str),
    Break,
    Trailers(Fields),
}

impl BodyStream for Script {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        match self.0.pop() {
            Some(Step::Data(text)) => {
                Poll::Ready(Some(Ok(Chunk::Bytes(Bytes::from_static(text.as_bytes())))))
            }
            Some(Step::Break) => Poll::Ready(Some(Err(BodyError::Source(
                Fault::Script,
                "the script broke",
            )))),
            Some(trailers) => {
                self.0.push(trailers);
                Poll::Ready(None)
            }
            None => Poll::Ready(None),
        }
    }

    fn trailers(&mut self) -> Option<Fields> {
        match self.0.pop() {
            Some(Step::Trailers(fields)) => Some(fields),
            _ => None,
        }
    }
}

/// Memory with an owner who counts.
struct Counted {
    bytes: Vec<u8>,
    probe: Arc<Probe>,
}

// SAFETY: the vector is never changed, and freed only by the drop.
#[expect(unsafe_code, reason = "the contract of the trait")]
unsafe impl Region for Counted {
    fn raw(&self) -> (*const u8, usize) {
        (self.bytes.as_ptr(), self.bytes.len())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.probe.regions.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "given back once");
        self.probe.note("region back");
    }
}

fn counted_region(len: u64, probe: Arc<Probe>) -> Box<dyn Region> {
    probe.regions.fetch_add(1, Ordering::Relaxed);
    let bytes = pattern(len);
    Box::new(Counted { bytes, probe })
}

/// A stream of regions, small ones and large ones.
struct Regions {
    left: u64,
    probe: Arc<Probe>,
}

impl BodyStream for Regions {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        let len = if self.left.is_multiple_of(2) {
            50_000
        } else {
            500
        };
        let region = counted_region(len, Arc::clone(&self.probe));
        Poll::Ready(Some(Ok(Chunk::Region(region))))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileKind {
    /// In memory.
    Warm,
    /// On a disk that answers at once.
    Cold,
    /// On a disk that answers when the gate opens.
    Stuck,
    /// On a disk that is broken.
    Unreadable,
}

struct Source {
    file: Rc<File>,
    kind: FileKind,
    probe: Arc<Probe>,
}

impl FileSource for Source {
    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn resident(&self, _: u64, len: u64) -> u64 {
        if self.kind == FileKind::Warm { len } else { 0 }
    }

    fn fetch(&self, offset: u64, len: usize) -> FetchFuture {
        let (file, kind) = (Rc::clone(&self.file), self.kind);
        let probe = Arc::clone(&self.probe);
        Box::pin(async move {
            if kind == FileKind::Unreadable {
                return Err(io::Error::from(rustix::io::Errno::IO));
            }
            if kind == FileKind::Stuck {
                probe.note("fetching");
                Gate::passed(&probe).await;
            }
            let mut bytes = vec![0; len];
            let count = file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
            Ok(Bytes::from(bytes))
        })
    }
}

/// A file of `len` bytes that is said to have `announced`.
fn file(announced: u64, len: u64, kind: FileKind, probe: Arc<Probe>) -> Answered {
    let memory = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let mut file = File::from(memory);
    if len < 1 << 30 {
        file.write_all(&pattern(len)).unwrap();
    } else {
        file.set_len(len).unwrap();
    }
    let source = Source {
        file: Rc::new(file),
        kind,
        probe,
    };
    ready(new(Body::File(FileBody {
        source: Rc::new(source),
        offset: 0,
        len: announced,
    })))
}

/// A pipe into which another thread writes so many bytes.
fn pipe(len: u64, announced: Option<u64>) -> Answered {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    rustix::io::ioctl_fionbio(&reader, true).unwrap();
    std::thread::spawn(move || {
        let mut writer = File::from(writer);
        let block = pattern(251 * 256);
        let mut left = len;
        while left > 0 {
            let here = left.min(block.len() as u64);
            // The reader may be gone before the end.
            if writer.write_all(&block[..here as usize]).is_err() {
                return;
            }
            left -= here;
        }
    });
    let fd: OwnedFd = reader;
    ready(new(Body::Pipe { fd, len: announced }))
}
