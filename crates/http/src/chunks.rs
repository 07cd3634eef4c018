//! Any body as bounded chunks in memory, for whoever wants to look at its bytes.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hob_trace::Fault;
use rustix::io::ReadWriteFlags;

use crate::body::{
    Body, BodyError, BodyStream, Chunk, FetchFuture, FileBody, PipeEnd, Region, SHORTER, UNREADABLE,
};
use crate::head::Fields;
use crate::pipe::Pipe;
use crate::raw;
use crate::reactor::Reactor;

impl Body {
    /// The body as chunks that are all [`Chunk::Bytes`], each of at most the size asked for. To be
    /// polled on a server thread: files are read and pipes watched there.
    pub fn into_stream(self) -> Box<dyn BodyStream> {
        let len = self.len();
        let (piece, rest): (Option<UnreadBodyPiece>, Option<Box<dyn BodyStream>>) = match self {
            Body::Empty => (None, None),
            Body::Bytes(bytes) => (Some(UnreadBodyPiece::Bytes(bytes)), None),
            Body::Region(region) => (Some(UnreadBodyPiece::Region(region, 0)), None),
            Body::File(file) => (Some(UnreadBodyPiece::File(file, None)), None),
            Body::Pipe {
                first,
                fd,
                len,
                end,
            } => {
                let left = len.map(|len| len.saturating_sub(first.len() as u64));
                let rest = PipeStream::Unwatched { fd, left, end };
                (Some(UnreadBodyPiece::Bytes(first)), Some(Box::new(rest)))
            }
            Body::Stream(stream) | Body::Tunnel(stream) => (None, Some(stream)),
        };
        Box::new(Chunks { piece, rest, len })
    }
}

/// A piece of body, and what gives the pieces after it.
struct Chunks {
    piece: Option<UnreadBodyPiece>,
    rest: Option<Box<dyn BodyStream>>,
    len: Option<u64>,
}

enum UnreadBodyPiece {
    Bytes(Bytes),
    /// Shared memory, from an offset on.
    Region(Box<dyn Region>, usize),
    /// A file range, and the read under way.
    File(FileBody, Option<FetchFuture>),
}

impl BodyStream for Chunks {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let max = max.max(1);
        loop {
            if let Some(piece) = &mut self.piece {
                match ready!(piece.poll_take(cx, max)) {
                    Ok(bytes) if bytes.is_empty() => self.piece = None,
                    result => return Poll::Ready(Some(result.map(Chunk::Bytes))),
                }
            }
            let Some(rest) = &mut self.rest else {
                return Poll::Ready(None);
            };
            match ready!(rest.poll_chunk(cx, max)) {
                Some(Ok(Chunk::Bytes(bytes))) => self.piece = Some(UnreadBodyPiece::Bytes(bytes)),
                Some(Ok(Chunk::Region(region))) => {
                    self.piece = Some(UnreadBodyPiece::Region(region, 0))
                }
                Some(Ok(Chunk::File(file))) => self.piece = Some(UnreadBodyPiece::File(file, None)),
                end => return Poll::Ready(end),
            }
        }
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn trailers(&mut self) -> Option<Fields> {
        self.rest.as_mut()?.trailers()
    }
}

impl UnreadBodyPiece {
    /// The next bytes of it; none at its end.
    fn poll_take(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Result<Bytes, BodyError>> {
        match self {
            UnreadBodyPiece::Bytes(bytes) => Poll::Ready(Ok(bytes.split_to(bytes.len().min(max)))),
            UnreadBodyPiece::Region(region, from) => {
                let count = (region.raw().1 - *from).min(max);
                let mut bytes = Vec::new();
                raw::copy_region(region.as_ref(), *from, count, &mut bytes);
                *from += count;
                Poll::Ready(Ok(bytes.into()))
            }
            UnreadBodyPiece::File(file, fetch) => poll_file(file, fetch, cx, max),
        }
    }
}

/// Bytes of a file: those in memory at once, others when they have been fetched.
fn poll_file(
    file: &mut FileBody,
    fetch: &mut Option<FetchFuture>,
    cx: &mut Context<'_>,
    max: usize,
) -> Poll<Result<Bytes, BodyError>> {
    let len = file.len.min(max as u64) as usize;
    if len == 0 {
        return Poll::Ready(Ok(Bytes::new()));
    }
    if fetch.is_none() {
        let bytes = read_resident(file, len);
        if !bytes.is_empty() {
            return match file.take_resident(bytes.len()) {
                Ok(()) => Poll::Ready(Ok(bytes)),
                Err(reason) => broken(reason),
            };
        }
    }
    let reading = fetch.get_or_insert_with(|| file.source.fetch(file.offset, len));
    let result = ready!(reading.as_mut().poll(cx));
    *fetch = None;
    let mut bytes = match result {
        Ok(bytes) if bytes.is_empty() => return broken(SHORTER),
        Ok(bytes) => bytes,
        Err(error) => {
            hob_trace::warn_seldom!(%error, "a file could not be read");
            return broken(UNREADABLE);
        }
    };
    // It was asked for when another size was wanted.
    bytes.truncate(len);
    file.offset += bytes.len() as u64;
    file.len -= bytes.len() as u64;
    Poll::Ready(Ok(bytes))
}

fn broken(reason: &'static str) -> Poll<Result<Bytes, BodyError>> {
    Poll::Ready(Err(BodyError::Source(Fault::Server, reason)))
}

/// What can be read of a file without waiting for a disk; nothing when in doubt.
fn read_resident(file: &FileBody, len: usize) -> Bytes {
    let resident = file.source.resident(file.offset, len as u64);
    if resident == 0 {
        return Bytes::new();
    }
    let mut bytes = vec![0; resident.min(len as u64) as usize];
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let flags = ReadWriteFlags::NOWAIT;
    match rustix::io::preadv2(file.source.fd(), &mut slices, file.offset, flags) {
        Ok(count) => {
            bytes.truncate(count);
            bytes.into()
        }
        Err(_) => Bytes::new(),
    }
}

/// What comes out of a pipe, watched from the first look on.
enum PipeStream {
    Unwatched {
        fd: OwnedFd,
        left: Option<u64>,
        end: Option<Rc<dyn PipeEnd>>,
    },
    Watched(Pipe),
    Over,
}

impl BodyStream for PipeStream {
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Chunk, BodyError>>> {
        let mut pipe = match std::mem::replace(self, PipeStream::Over) {
            PipeStream::Watched(pipe) => pipe,
            PipeStream::Unwatched { fd, left, end } => {
                let reactor = Reactor::here().unwrap_or_else(Reactor::offline);
                match Pipe::new(&reactor, fd, left, end) {
                    Ok(pipe) => pipe,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            PipeStream::Over => return Poll::Ready(None),
        };
        let taken = pipe.poll_bytes(cx, max);
        *self = PipeStream::Watched(pipe);
        taken.map(|taken| taken.map(|result| result.map(Chunk::Bytes)))
    }
}
