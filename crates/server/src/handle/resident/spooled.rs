//! A request's body that was collected before its program was asked, read back piece by piece.

use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hob_http::{BodyError, Bytes};
use hob_trace::Fault;

use crate::cache::disk_threads::{DiskJobHandle, DiskThreads};
use crate::handle::resident::limits::BODY_HELD_BYTES_MAX;
use crate::handle::script::body::ProgramRequestBody;

/// All of a body.
pub(super) enum Spooled {
    Held(Bytes),
    File(SpooledFile),
}

/// In a file, which the pool reads: it may wait for a disk.
pub(super) struct SpooledFile {
    file: Arc<OwnedFd>,
    at: u64,
    len: u64,
    pool: DiskThreads,
    reading: Option<DiskJobHandle<rustix::io::Result<Vec<u8>>>>,
}

const UNREADABLE: BodyError = BodyError::Source(
    Fault::Server,
    "the request body could not be read back for the program",
);

impl Spooled {
    /// `None` when it has come already, or there is none.
    pub(super) fn new(body: ProgramRequestBody, pool: DiskThreads) -> Option<Spooled> {
        match body {
            ProgramRequestBody::Held(bytes) => Some(Spooled::Held(bytes)),
            ProgramRequestBody::Spooled(file, len) => Some(Spooled::File(SpooledFile {
                file: Arc::new(file),
                at: 0,
                len,
                pool,
                reading: None,
            })),
            ProgramRequestBody::None
            | ProgramRequestBody::Coming(..)
            | ProgramRequestBody::Begun(..) => None,
        }
    }

    /// The next piece, until there are no more.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self {
            Spooled::Held(bytes) if bytes.is_empty() => Poll::Ready(None),
            Spooled::Held(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Spooled::File(file) => file.poll_next(cx),
        }
    }
}

impl SpooledFile {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if self.at == self.len {
            return Poll::Ready(None);
        }
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => match self.read() {
                Some(reading) => reading,
                None => return Poll::Ready(Some(Err(UNREADABLE))),
            },
        };
        match Pin::new(&mut reading).poll(cx) {
            Poll::Ready(Some(Ok(piece))) if !piece.is_empty() => {
                self.at += piece.len() as u64;
                Poll::Ready(Some(Ok(piece.into())))
            }
            Poll::Ready(_) => Poll::Ready(Some(Err(UNREADABLE))),
            Poll::Pending => {
                self.reading = Some(reading);
                Poll::Pending
            }
        }
    }

    fn read(&self) -> Option<DiskJobHandle<rustix::io::Result<Vec<u8>>>> {
        let (file, at) = (Arc::clone(&self.file), self.at);
        let left = usize::try_from(self.len - at).unwrap_or(usize::MAX);
        let bytes = left.min(BODY_HELD_BYTES_MAX);
        let job = move || {
            let mut piece = vec![0; bytes];
            let count = rustix::io::retry_on_intr(|| rustix::io::pread(&*file, &mut piece, at))?;
            piece.truncate(count);
            Ok(piece)
        };
        self.pool.run(job).ok()
    }
}
