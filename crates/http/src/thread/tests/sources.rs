//! What the dummy's bodies are made of: shared memory, files of every kind, pipes, streams.

use std::fs::File;
use std::io;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_trace::Fault;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::pipe::PipeFlags;

use super::dummy::{Gate, Probe, pattern};
use crate::body::{Body, BodyError, BodyStream, Chunk, FetchFuture, FileBody, FileSource, Region};
use crate::head::Fields;
use crate::request::Request;

/// Memory with an owner who counts.
pub(super) struct Counted {
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

pub(super) fn counted_region(len: u64, probe: Arc<Probe>) -> Box<dyn Region> {
    probe.regions.fetch_add(1, Ordering::Relaxed);
    let bytes = pattern(len);
    Box::new(Counted { bytes, probe })
}

/// A stream of regions, small ones and large ones.
pub(super) struct Regions {
    pub(super) left: u64,
    pub(super) probe: Arc<Probe>,
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
pub(super) enum FileKind {
    /// In memory.
    Warm,
    /// In memory, and written to before the last of it was read.
    WrittenTo,
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
        match self.kind {
            FileKind::Warm | FileKind::WrittenTo => len,
            _ => 0,
        }
    }

    fn is_unchanged(&self) -> bool {
        self.kind != FileKind::WrittenTo
    }

    fn fetch(&self, offset: u64, len: usize) -> FetchFuture {
        let (file, kind) = (Rc::clone(&self.file), self.kind);
        let probe = Arc::clone(&self.probe);
        Box::pin(async move {
            if matches!(kind, FileKind::Unreadable | FileKind::WrittenTo) {
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
pub(super) fn file(announced: u64, len: u64, kind: FileKind, probe: Arc<Probe>) -> Body {
    let file = match kind {
        // Beside this program: of a file without a disk the kernel may read nothing at once.
        FileKind::WrittenTo => rustix::fs::open(
            std::env::current_exe().unwrap().parent().unwrap(),
            OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        ),
        _ => rustix::fs::memfd_create("file", MemfdFlags::CLOEXEC),
    };
    let mut file = File::from(file.unwrap());
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
    Body::File(FileBody {
        source: Rc::new(source),
        offset: 0,
        len: announced,
    })
}

/// A pipe into which another thread writes so many bytes.
pub(super) fn pipe(len: u64, announced: Option<u64>) -> Body {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
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
    Body::Pipe {
        first: Bytes::new(),
        fd,
        len: announced,
        end: None,
    }
}

/// What comes in goes out.
pub(super) struct Echo(pub(super) Request);

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
pub(super) struct Pattern {
    pub(super) left: u64,
    pub(super) probe: Arc<Probe>,
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

/// The pattern ten bytes at a time, each in a turn of its own.
pub(super) struct Drops {
    pub(super) pattern: Pattern,
    pub(super) is_due: bool,
}

impl BodyStream for Drops {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        self.is_due = !self.is_due;
        if self.is_due {
            return self.pattern.poll_chunk(cx, 10);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The pattern, and then nothing until the gate opens.
pub(super) struct Waits(pub(super) Pattern);

impl BodyStream for Waits {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        if self.0.left == 0 && self.0.probe.gate.poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.0.poll_chunk(cx, max)
    }
}

/// Steps of a stream, the last one first.
pub(super) struct Script(pub(super) Vec<Step>);

#[derive(Clone)]
pub(super) enum Step {
    Data(&'static str),
    Break,
    Trailers(Fields),
    HalfClose,
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
            Some(Step::HalfClose) => Poll::Ready(Some(Ok(Chunk::HalfClose))),
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
