//! Bodies of answers, and how a body says it broke.
//!
//! A [`Body`] is empty, bytes, shared memory, a file range, a pipe, a stream, or a tunnel. Fast
//! paths match the variant; everything can be read as bounded chunks: [`Body::into_stream`].

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_trace::Fault;

use crate::head::Fields;

/// The body of an answer.
pub enum Body {
    /// No bytes.
    Empty,
    /// Bytes in our memory, counted by their owner.
    Bytes(Bytes),
    /// Bytes in memory another process can write.
    Region(Box<dyn Region>),
    /// A range of a file; leaves by sendfile in clear text.
    File(FileBody),
    /// What comes out of a pipe, until its end or `len` bytes; leaves by splice in clear text.
    Pipe {
        /// What was read from the pipe already: it goes ahead.
        first: Bytes,
        /// The reading end of a pipe, nothing else: it is made non-blocking, and may be enlarged.
        fd: OwnedFd,
        /// All bytes announced, those in `first` too, when known.
        len: Option<u64>,
        /// Who knows when nothing more will come; without one it is the end of the pipe.
        end: Option<Rc<dyn PipeEnd>>,
    },
    /// Chunks as they come.
    Stream(Box<dyn BodyStream>),
    /// After this head the connection carries raw bytes: these go out, and the request's body
    /// yields what comes in (101 over HTTP/1, 2xx for CONNECT).
    Tunnel(Box<dyn BodyStream>),
}

impl Body {
    /// Size in bytes, when known.
    pub fn len(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::Region(region) => Some(region.raw().1 as u64),
            Body::File(file) => Some(file.len),
            Body::Pipe { len, .. } => *len,
            Body::Stream(stream) => stream.len(),
            Body::Tunnel(_) => None,
        }
    }

    /// True when there are certainly no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Body::Empty => "empty",
            Body::Bytes(_) => "bytes",
            Body::Region(_) => "region",
            Body::File(_) => "file",
            Body::Pipe { .. } => "pipe",
            Body::Stream(_) => "stream",
            Body::Tunnel(_) => "tunnel",
        };
        write!(f, "Body({word}, {:?})", self.len())
    }
}

/// Bytes with an owner in memory that a peer may still write.
///
/// No reference to them is ever made: the pointer goes to the kernel as it is, or the bytes are
/// copied out. The value is dropped when the bytes are out, or when they never will be.
///
/// # Safety
///
/// [`Region::raw`] gives the same answer at every call, and so many bytes can be read there until
/// the value is dropped.
#[expect(
    unsafe_code,
    reason = "reading the memory is sound only if what `raw` says is true"
)]
pub unsafe trait Region {
    /// Where the bytes are and how many.
    fn raw(&self) -> (*const u8, usize);
}

/// A range of a file.
pub struct FileBody {
    /// Where the bytes come from.
    pub source: Rc<dyn FileSource>,
    /// First byte.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
}

/// A file as the serving threads see it: only what is in memory is touched here.
pub trait FileSource {
    /// The file, for sendfile.
    fn fd(&self) -> BorrowedFd<'_>;
    /// How many bytes from `offset` (at most `len`) can be sent without waiting for a disk.
    fn resident(&self, offset: u64, len: u64) -> u64;
    /// What was read so far is of one state of the file, as far as can be known: asked once the
    /// last bytes said to be in memory were read, which may be long after that was said. Like
    /// [`FileSource::resident`] it never waits; `fetch` looks for itself.
    fn is_unchanged(&self) -> bool;
    /// Reads at most `len` bytes from `offset` somewhere else, where waiting is allowed.
    /// Fewer bytes than asked are fine; none means the file has become shorter.
    fn fetch(&self, offset: u64, len: usize) -> FetchFuture;
}

/// A read under way.
pub type FetchFuture = Pin<Box<dyn Future<Output = io::Result<Bytes>>>>;

/// Says how a body that comes out of a pipe ends. It is dropped with the body: when all of it has
/// been taken, and when the client has left.
pub trait PipeEnd {
    /// Asked when there is nothing in the pipe, `at_eof` when nothing will come any more because
    /// every writer has closed it.
    ///
    /// `Ok` ends the body, after what may have come into the pipe meanwhile: whatever a writer is
    /// known to have written before is sent. An error breaks it off. While it is pending, the body
    /// goes on if bytes come, and `cx` is to be woken when the answer changes.
    fn poll_end(&self, cx: &mut Context<'_>, at_eof: bool) -> Poll<Result<(), BodyError>>;

    /// Bytes of the body were taken out of the pipe.
    fn note_progress(&self) {}

    /// All that was announced has been taken, and there is more, which nobody gets.
    fn note_surplus(&self) {}
}

/// Chunks of a body as they come.
pub trait BodyStream {
    /// The next chunk of at most `max` bytes; `None` at the end. Not called again after the end or
    /// an error.
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>>;

    /// Size in bytes, when known; exactly so many must come.
    fn len(&self) -> Option<u64> {
        None
    }

    /// True when it is known that nothing will come.
    fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// True where all of the body behind what it holds in memory can be moved into pipes. Its
    /// length is known then.
    fn may_fill(&self) -> bool {
        false
    }

    /// True where what comes next of a tunnel may be moved into a pipe: much comes, and nothing of
    /// it is in memory.
    fn fills_next(&self) -> bool {
        false
    }

    /// Gives what it holds in memory; what follows is moved into pipes from now on.
    fn begin_filling(&mut self) -> Bytes {
        Bytes::new()
    }

    /// Moves at most `max` bytes into an empty pipe, which does not block; at least one, but of a
    /// tunnel none where what is next comes as a chunk.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        max: usize,
    ) -> Poll<Result<usize, BodyError>> {
        let _ = (cx, pipe, max);
        Poll::Ready(Err(BodyError::Source(Fault::Server, SHORTER)))
    }

    /// Fields that follow the body; asked once, after the end.
    fn trailers(&mut self) -> Option<Fields> {
        None
    }
}

/// One piece of a body.
pub enum Chunk {
    /// Bytes in our memory.
    Bytes(Bytes),
    /// Bytes in shared memory.
    Region(Box<dyn Region>),
    /// A range of a file.
    File(FileBody),
    /// Of a tunnel alone: no more bytes go to the client, which may still send; the end of the
    /// stream is the end of the tunnel.
    HalfClose,
}

impl Chunk {
    /// Size in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Chunk::Bytes(bytes) => bytes.len() as u64,
            Chunk::Region(region) => region.raw().1 as u64,
            Chunk::File(file) => file.len,
            Chunk::HalfClose => 0,
        }
    }

    /// True for a piece without bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reasons why a file's body breaks off.
pub(crate) const SHORTER: &str = "the file became shorter while it was sent";
pub(crate) const UNREADABLE: &str = "the file could not be read";
pub(crate) const WRITTEN_TO: &str = "the file was written to while it was sent";

impl FileBody {
    /// Takes note of bytes that were in memory and were read; of the last, only while all are of
    /// one state of the file.
    pub(crate) fn take_resident(&mut self, count: usize) -> Result<(), &'static str> {
        if self.len == count as u64 && !self.source.is_unchanged() {
            return Err(WRITTEN_TO);
        }
        self.offset += count as u64;
        self.len -= count as u64;
        Ok(())
    }
}

/// Why a body broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The request's framing is wrong (400).
    Malformed(&'static str),
    /// The request's body is larger than allowed (413).
    TooLarge,
    /// The client sent nothing for too long (408).
    TooSlow,
    /// The client left before the end.
    ClientLeft,
    /// The source of an answer's body broke.
    Source(Fault, &'static str),
}

impl BodyError {
    /// The status that tells a client of it, as long as no head has been sent.
    pub fn status(&self) -> u16 {
        match self {
            BodyError::Malformed(_) | BodyError::ClientLeft => 400,
            BodyError::TooLarge => 413,
            BodyError::TooSlow => 408,
            BodyError::Source(Fault::Script | Fault::Upstream, _) => 502,
            BodyError::Source(..) => 500,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Malformed(what) => write!(f, "the request body is malformed: {what}"),
            BodyError::TooLarge => f.write_str("the request body is larger than its limit"),
            BodyError::TooSlow => f.write_str("the client stopped sending its request body"),
            BodyError::ClientLeft => f.write_str("the client left"),
            BodyError::Source(fault, what) => {
                write!(f, "the answer broke ({}): {what}", fault.word())
            }
        }
    }
}

impl std::error::Error for BodyError {}
