//! Where the bytes of an answer's body come from, a frame's worth at a time.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hob_trace::Fault;
use rustix::io::Errno;

use crate::body::{Body, BodyError, BodyStream, Chunk, FileBody, SHORTER, UNREADABLE};
use crate::head::Fields;
use crate::limits::H2_FILL_BYTES;
use crate::raw;

/// A body on its way out.
pub(in crate::thread) enum Source {
    Bytes(Bytes),
    /// A range of a file, of which so many bytes are known to be in memory.
    File(FileBody, u64),
    /// Chunks, the one being sent first; at most so many bytes are asked for at a time.
    Chunks {
        ready: Bytes,
        rest: Box<dyn BodyStream>,
        ask_bytes: usize,
    },
}

/// What a source gave.
pub(in crate::thread) enum Gave {
    /// So many bytes, behind what stood in the output.
    Bytes(usize),
    /// It is a tunnel, and gives no more bytes; its end comes later.
    HalfClose,
    /// It has no more.
    End(Option<Fields>),
}

/// What comes out of a pipe is mostly little: no more room than a frame has.
const PIPE_ASK_BYTES: usize = 16 * 1024;

impl Source {
    pub(in crate::thread) fn of(body: Body) -> Source {
        match body {
            Body::Empty => Source::Bytes(Bytes::new()),
            Body::Bytes(bytes) => Source::Bytes(bytes),
            Body::File(file) => Source::File(file, 0),
            Body::Region(region) => {
                let mut bytes = Vec::new();
                raw::copy_region(region.as_ref(), 0, region.raw().1, &mut bytes);
                Source::Bytes(bytes.into())
            }
            body => Source::Chunks {
                ready: Bytes::new(),
                ask_bytes: match body {
                    Body::Pipe { .. } => PIPE_ASK_BYTES,
                    _ => H2_FILL_BYTES,
                },
                rest: body.into_stream(),
            },
        }
    }

    /// How much it may give at once, of at most so much.
    pub(in crate::thread) fn size_hint(&self, max: usize) -> usize {
        match self {
            Source::Bytes(bytes) => bytes.len().min(max),
            Source::File(file, _) => (file.len.min(max as u64)) as usize,
            Source::Chunks { ready, .. } => ready.len().min(max),
        }
    }

    /// Appends the next bytes, at most `max`, to `out`.
    pub(in crate::thread) fn poll_into(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Gave, BodyError>> {
        loop {
            match self {
                Source::Bytes(bytes) => return Poll::Ready(Ok(take(bytes, max, out))),
                Source::File(file, resident) => {
                    if let Some(result) = read_file(file, resident, max, out) {
                        return Poll::Ready(result);
                    }
                    self.fetch();
                }
                Source::Chunks { ready, .. } if !ready.is_empty() => {
                    return Poll::Ready(Ok(take(ready, max, out)));
                }
                Source::Chunks {
                    ready,
                    rest,
                    ask_bytes,
                } => match ready!(rest.poll_chunk(cx, *ask_bytes)) {
                    Some(Ok(Chunk::Bytes(bytes))) => *ready = bytes,
                    Some(Ok(Chunk::HalfClose)) => return Poll::Ready(Ok(Gave::HalfClose)),
                    Some(Ok(_)) => debug_assert!(false, "chunks of `into_stream` are bytes"),
                    Some(Err(error)) => return Poll::Ready(Err(error)),
                    None => return Poll::Ready(Ok(Gave::End(rest.trailers()))),
                },
            }
        }
    }

    /// The next bytes of the file are on a disk: from here on they are fetched.
    fn fetch(&mut self) {
        let file = match std::mem::replace(self, Source::Bytes(Bytes::new())) {
            Source::File(file, _) => file,
            other => {
                *self = other;
                return;
            }
        };
        *self = Source::Chunks {
            ready: Bytes::new(),
            rest: Body::File(file).into_stream(),
            ask_bytes: H2_FILL_BYTES,
        };
    }
}

fn take(bytes: &mut Bytes, max: usize, out: &mut Vec<u8>) -> Gave {
    if bytes.is_empty() {
        return Gave::End(None);
    }
    let count = bytes.len().min(max);
    out.extend_from_slice(&bytes[..count]);
    bytes::Buf::advance(bytes, count);
    Gave::Bytes(count)
}

/// Reads what is in memory of a file straight behind the output; `None` when a disk must be asked.
fn read_file(
    file: &mut FileBody,
    resident: &mut u64,
    max: usize,
    out: &mut Vec<u8>,
) -> Option<Result<Gave, BodyError>> {
    if file.len == 0 {
        return Some(Ok(Gave::End(None)));
    }
    if *resident == 0 {
        let wanted = file.len.min(H2_FILL_BYTES as u64);
        *resident = file.source.resident(file.offset, wanted).min(wanted);
        if *resident == 0 {
            return None;
        }
    }
    let count = (*resident).min(max as u64) as usize;
    let start = out.len();
    out.resize(start + count, 0);
    let fd = file.source.fd();
    let read = rustix::io::pread(fd, &mut out[start..], file.offset);
    let count = match read {
        Ok(count) => count,
        Err(Errno::INTR) => 0,
        Err(error) => {
            out.truncate(start);
            tracing::warn!(%error, "a file could not be read");
            return Some(Err(BodyError::Source(Fault::Server, UNREADABLE)));
        }
    };
    out.truncate(start + count);
    if read == Ok(0) {
        return Some(Err(BodyError::Source(Fault::Server, SHORTER)));
    }
    file.offset += count as u64;
    file.len -= count as u64;
    *resident -= count as u64;
    if count == 0 {
        // Interrupted: it is asked again.
        return read_file(file, resident, max, out);
    }
    Some(Ok(Gave::Bytes(count)))
}
