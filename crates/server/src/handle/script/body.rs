//! The body of a request on its way to a program's standard input.
//!
//! A short one is in the pipe before the program starts. A long one follows as the program reads
//! it. One whose length is not announced is collected first, in memory and then in a file without a
//! name, because the program is to be told the length.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Poll;

use hob_http::{BodyError, Bytes, Request, Watched};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::{Errno, pread};
use rustix::pipe::PipeFlags;

use crate::cache::disk_threads::DiskThreads;
use crate::handle::script::limits::BODY_HELD_BYTES_MAX;

/// A request's body, as far as it is here.
pub(crate) enum ProgramRequestBody {
    /// There is none.
    None,
    /// All of it.
    Held(Bytes),
    /// All of it, in a file.
    Spooled(OwnedFd, u64),
    /// What has come so far; the rest follows.
    Coming(VecDeque<Bytes>, u64),
    /// What has come so far, in a file; the rest follows, and nobody has told how much that is.
    Begun(OwnedFd, u64),
}

/// The writing end of a program's standard input, and what of the body is here for it.
pub(crate) type Feeding = (OwnedFd, VecDeque<Bytes>);

/// Why a body could not be collected.
pub(crate) enum BodyCollectError {
    /// The client's fault.
    Broken(BodyError),
    /// No room to keep it.
    Unkept(io::Error),
}

impl ProgramRequestBody {
    /// Size in bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            ProgramRequestBody::None => 0,
            ProgramRequestBody::Held(bytes) => bytes.len() as u64,
            ProgramRequestBody::Spooled(_, len) | ProgramRequestBody::Coming(_, len) => *len,
            ProgramRequestBody::Begun(..) => u64::MAX,
        }
    }

    /// It is in a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, ProgramRequestBody::Spooled(..))
    }

    /// Takes what is there of a body whose length is known, and does not wait for more.
    pub(crate) async fn begin(request: &Request) -> Result<ProgramRequestBody, BodyError> {
        let len = request.body_len().unwrap_or_default();
        if len == 0 {
            return Ok(ProgramRequestBody::None);
        }
        let mut pieces = VecDeque::new();
        let mut held_bytes = 0;
        while held_bytes < BODY_HELD_BYTES_MAX {
            // Never waits: what has not come by now follows later.
            match poll_fn(|cx| Poll::Ready(request.poll_body(cx))).await {
                Poll::Ready(Some(piece)) => {
                    let piece = piece?;
                    held_bytes += piece.len();
                    pieces.push_back(piece);
                }
                Poll::Ready(None) if held_bytes as u64 == len => {
                    return Ok(ProgramRequestBody::Held(joined(pieces)));
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        Ok(ProgramRequestBody::Coming(pieces, len))
    }

    /// Waits for all of a body whose length is known and not above this, so that a slow client
    /// keeps nobody waiting but itself: in memory, or in a file. `None` where it is longer.
    pub(crate) async fn announced(
        request: &Request,
        pool: &DiskThreads,
        bytes_max: u64,
    ) -> Result<Option<ProgramRequestBody>, BodyCollectError> {
        let Some(len) = request.body_len().filter(|len| *len <= bytes_max) else {
            return Ok(None);
        };
        if len > BODY_HELD_BYTES_MAX as u64 {
            let spooled = spool_to_file(request, pool, Vec::new(), u64::MAX).await;
            return spooled.map(Some);
        }
        let mut pieces = VecDeque::new();
        while let Some(piece) = request.next_body().await {
            pieces.push_back(piece.map_err(BodyCollectError::Broken)?);
        }
        Ok(Some(match pieces.is_empty() {
            true => ProgramRequestBody::None,
            false => ProgramRequestBody::Held(joined(pieces)),
        }))
    }

    /// Collects a body whose length is not known.
    pub(crate) async fn collect(
        request: &Request,
        pool: &DiskThreads,
    ) -> Result<ProgramRequestBody, BodyCollectError> {
        ProgramRequestBody::unannounced(request, pool, u64::MAX).await
    }

    /// The same, and no more of it than this and a piece: of a longer one there is the begin.
    pub(crate) async fn unannounced(
        request: &Request,
        pool: &DiskThreads,
        bytes_max: u64,
    ) -> Result<ProgramRequestBody, BodyCollectError> {
        let mut held = Vec::new();
        while let Some(piece) = request.next_body().await {
            held.extend_from_slice(&piece.map_err(BodyCollectError::Broken)?);
            if held.len() as u64 > bytes_max {
                let begin = VecDeque::from([held.into()]);
                return Ok(ProgramRequestBody::Coming(begin, u64::MAX));
            }
            if held.len() > BODY_HELD_BYTES_MAX {
                return spool_to_file(request, pool, held, bytes_max).await;
            }
        }
        match held.is_empty() {
            true => Ok(ProgramRequestBody::None),
            false => Ok(ProgramRequestBody::Held(held.into())),
        }
    }

    /// What becomes the program's standard input, nothing when it is empty, and who fills it if it
    /// is not full already.
    pub(crate) fn into_stdin(self) -> io::Result<(Option<OwnedFd>, Option<Feeding>)> {
        let (mut pieces, is_coming) = match self {
            ProgramRequestBody::None => return Ok((None, None)),
            ProgramRequestBody::Spooled(file, _) => {
                rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
                return Ok((Some(file), None));
            }
            ProgramRequestBody::Coming(pieces, _) => (pieces, true),
            // Programs are told a length.
            ProgramRequestBody::Begun(..) => return Err(io::ErrorKind::InvalidInput.into()),
            ProgramRequestBody::Held(bytes) => (VecDeque::from([bytes]), false),
        };
        let (stdin, feeding) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        if is_coming {
            return Ok((Some(stdin), Some((feeding, pieces))));
        }
        rustix::io::ioctl_fionbio(&feeding, true)?;
        while let Some(piece) = pieces.front_mut() {
            match rustix::io::write(&feeding, piece) {
                Ok(count) if count < piece.len() => drop(piece.split_to(count)),
                Ok(_) => drop(pieces.pop_front()),
                Err(Errno::INTR) => {}
                // A pipe is small where its user has many.
                Err(Errno::AGAIN) => return Ok((Some(stdin), Some((feeding, pieces)))),
                Err(error) => return Err(error.into()),
            }
        }
        Ok((Some(stdin), None))
    }
}

/// Writes a body to standard input as fast as the program reads. A program that closes it has read
/// enough.
pub(crate) async fn feed(request: Request, stdin: Watched, mut pieces: VecDeque<Bytes>) {
    loop {
        let mut piece = match pieces.pop_front() {
            Some(piece) => piece,
            None => match request.next_body().await {
                Some(Ok(piece)) => piece,
                // At the end, and where it breaks off, the program reads an end.
                Some(Err(_)) | None => return,
            },
        };
        while !piece.is_empty() {
            match poll_fn(|cx| stdin.poll_write(cx, &piece)).await {
                Ok(count) => drop(piece.split_to(count)),
                Err(_) => return,
            }
        }
    }
}

fn joined(mut pieces: VecDeque<Bytes>) -> Bytes {
    if pieces.len() == 1 {
        return pieces.pop_front().unwrap_or_default();
    }
    // A copy of at most `BODY_HELD_BYTES_MAX` and one piece, so that it enters the pipe at once.
    pieces.iter().flatten().copied().collect()
}

/// Writes what is held and what follows to a file, all of it or the begin of what is longer.
async fn spool_to_file(
    request: &Request,
    pool: &DiskThreads,
    mut held: Vec<u8>,
    bytes_max: u64,
) -> Result<ProgramRequestBody, BodyCollectError> {
    let mut len = 0;
    let unkept = BodyCollectError::Unkept;
    let file = in_pool(pool, nameless_file).await.map_err(unkept)?;
    let file = Arc::new(file);
    let is_all = loop {
        len += held.len() as u64;
        let target = Arc::clone(&file);
        let written = in_pool(pool, move || write_all(&target, &held)).await;
        written.map_err(unkept)?;
        if len > bytes_max {
            break false;
        }
        held = match request.next_body().await {
            Some(piece) => piece.map_err(BodyCollectError::Broken)?.into(),
            None => break true,
        };
        // Few large writes: what has come meanwhile goes with it.
        while held.len() < BODY_HELD_BYTES_MAX {
            match poll_fn(|cx| Poll::Ready(request.poll_body(cx))).await {
                Poll::Ready(Some(piece)) => {
                    held.extend_from_slice(&piece.map_err(BodyCollectError::Broken)?);
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
    };
    let file = Arc::into_inner(file).ok_or_else(|| io::Error::other("it is still written to"));
    let file = file.map_err(unkept)?;
    Ok(match is_all {
        true => ProgramRequestBody::Spooled(file, len),
        false => ProgramRequestBody::Begun(file, len),
    })
}

/// Has the pool do what may wait for a disk.
pub(crate) async fn in_pool<T: Send + 'static>(
    pool: &DiskThreads,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let full = |_| io::Error::other("limits: the file pool's queue is full");
    let outcome = pool.run(job).map_err(full)?.await;
    outcome.unwrap_or_else(|| Err(io::ErrorKind::Interrupted.into()))
}

/// A file that is gone when it is closed.
pub(crate) fn nameless_file() -> io::Result<OwnedFd> {
    const FOLDERS: [&str; 2] = ["/var/tmp", "/tmp"];
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    for folder in FOLDERS {
        if let Ok(file) = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
            return Ok(file);
        }
    }
    // Neither can be written to, or their file systems always want a name.
    Ok(rustix::fs::memfd_create("body", MemfdFlags::CLOEXEC)?)
}

/// So many bytes of a file from here on.
pub(crate) fn read_whole(file: &OwnedFd, mut at: u64, len: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; len];
    let mut room = &mut bytes[..];
    while !room.is_empty() {
        match pread(file, &mut *room, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                at += count as u64;
                room = &mut room[count..];
            }
        }
    }
    Ok(bytes.into())
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn contents(stdin: Option<OwnedFd>) -> Vec<u8> {
        let mut all = Vec::new();
        std::fs::File::from(stdin.unwrap())
            .read_to_end(&mut all)
            .unwrap();
        all
    }

    #[test]
    fn held_body_is_in_the_pipe_and_its_end_too_and_without_one_there_is_no_pipe() {
        let (stdin, feeding) = ProgramRequestBody::Held(Bytes::from_static(b"body"))
            .into_stdin()
            .unwrap();
        assert!(feeding.is_none());
        assert_eq!(contents(stdin), b"body");
        let (stdin, feeding) = ProgramRequestBody::None.into_stdin().unwrap();
        assert!(feeding.is_none() && stdin.is_none());
    }

    #[test]
    fn what_a_pipe_does_not_take_is_left_to_be_fed() {
        let body = Bytes::from(vec![7; 1 << 20]);
        let (_stdin, feeding) = ProgramRequestBody::Held(body).into_stdin().unwrap();
        let left: usize = feeding.unwrap().1.iter().map(Bytes::len).sum();
        assert!((1..1 << 20).contains(&left));
    }

    #[test]
    fn spooled_body_is_read_from_its_begin() {
        let file = nameless_file().unwrap();
        write_all(&file, b"spooled").unwrap();
        let (stdin, _) = ProgramRequestBody::Spooled(file, 7).into_stdin().unwrap();
        assert_eq!(contents(stdin), b"spooled");
    }
}
