//! Bytes of open files, for answers that leave by sendfile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hob_http::{FileBody, FileSource, Request};
use rustix::io::ReadWriteFlags;

use crate::cache::disk_threads::DiskThreads;
use crate::cache::entry::OpenFile;
use crate::handle::files::resident::resident_bytes;

/// An open file as an answer sees it.
struct DiskFile {
    file: Arc<OpenFile>,
    pool: DiskThreads,
    request: Request,
}

/// The body for a range of an open file.
pub fn file_body(
    file: &Arc<OpenFile>,
    pool: &DiskThreads,
    request: &Request,
    offset: u64,
    len: u64,
) -> FileBody {
    let source = DiskFile {
        file: Arc::clone(file),
        pool: pool.clone(),
        request: request.clone(),
    };
    FileBody {
        source: Rc::new(source),
        offset,
        len,
    }
}

impl FileSource for DiskFile {
    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn resident(&self, offset: u64, len: u64) -> u64 {
        // A file that was written to goes on to `fetch`, which says so.
        if !self.file.is_local || !self.file.keeps_its_bytes() {
            return 0;
        }
        let now_ms = self.request.record().started_us / 1000;
        if self.file.was_resident(now_ms) {
            return len;
        }
        let found = resident_bytes(self.file.as_fd(), offset, len);
        if offset == 0 && found == self.file.stamp.size {
            self.file.set_resident(now_ms);
        }
        found
    }

    fn is_unchanged(&self) -> bool {
        self.file.keeps_its_bytes()
    }

    fn fetch(&self, offset: u64, len: usize) -> hob_http::body::FetchFuture {
        let file = Arc::clone(&self.file);
        let started = Instant::now();
        let job = self.pool.run(move || read_at(&file, offset, len));
        let request = self.request.clone();
        Box::pin(async move {
            let job = job.map_err(|_| io::Error::other("limits: the file pool's queue is full"))?;
            let bytes = job
                .await
                .unwrap_or_else(|| Err(io::ErrorKind::Interrupted.into()));
            request.record_mut().disk_wait_us += started.elapsed().as_micros() as u64;
            bytes
        })
    }
}

/// Largest part that is read and leaves with its head: to have the kernel send so little by itself
/// takes more calls than it saves.
const READ_AT_ONCE_MAX: u64 = 16 * 1024;

/// A small part of an open file, if it is in memory and the file is what it was.
pub fn read_at_once(file: &OpenFile, offset: u64, len: u64) -> Option<Bytes> {
    if len > READ_AT_ONCE_MAX || !file.is_local {
        return None;
    }
    let mut bytes = vec![0; len as usize];
    let mut room = [io::IoSliceMut::new(&mut bytes)];
    let count = rustix::io::preadv2(file, &mut room, offset, ReadWriteFlags::NOWAIT).ok()?;
    (count as u64 == len && file.keeps_its_bytes()).then(|| bytes.into())
}

fn read_at(file: &OpenFile, offset: u64, len: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        match rustix::io::pread(file, &mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(filled);
    // Looked at after the read: what was read before a change is still of one piece.
    if filled == len && !file.keeps_its_bytes() {
        return Err(io::Error::other("it was written to while it was sent"));
    }
    Ok(bytes.into())
}
