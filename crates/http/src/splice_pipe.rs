//! Pipes by which a thread moves bytes from one socket to another inside the kernel.
//!
//! A pipe is empty whenever it is filled: a fill that gives nothing means an empty source. Pipes
//! are used again. A thread has a limited number of them: the kernel allows one user some
//! thousand, and makes later ones tiny. Who gets none copies.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use bytes::Bytes;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};

use crate::limits::{SPLICE_PIPE_BYTES, SPLICE_PIPES_IDLE_MAX, SPLICE_PIPES_MAX};
use crate::reactor::{FilesBeside, HeldFile};

/// The pipes of a thread.
#[derive(Default)]
pub(crate) struct SplicePipes {
    idle: RefCell<Vec<PipeEnds>>,
    taken_count: Cell<usize>,
    /// Where their descriptors count.
    files: FilesBeside,
}

struct PipeEnds {
    reader: OwnedFd,
    writer: OwnedFd,
    _files: [HeldFile; 2],
}

/// A pipe that one body has for now, with what is in it.
pub struct SplicePipe {
    /// `None` once they are given back.
    ends: Option<PipeEnds>,
    pipes: Rc<SplicePipes>,
    /// Bytes in it.
    held: usize,
}

impl SplicePipes {
    /// None yet; the descriptors of each count there.
    pub(crate) fn new(files: FilesBeside) -> Rc<SplicePipes> {
        Rc::new(SplicePipes {
            files,
            ..SplicePipes::default()
        })
    }

    /// An empty pipe; `None` where as many are in use as may, or the system gives none.
    pub(crate) fn take(pipes: &Rc<SplicePipes>) -> Option<SplicePipe> {
        if pipes.taken_count.get() >= SPLICE_PIPES_MAX {
            return None;
        }
        let idle = pipes.idle.borrow_mut().pop();
        let ends = idle.or_else(|| PipeEnds::new(&pipes.files))?;
        pipes.taken_count.set(pipes.taken_count.get() + 1);
        Some(SplicePipe {
            ends: Some(ends),
            pipes: Rc::clone(pipes),
            held: 0,
        })
    }
}

impl PipeEnds {
    /// `None` where the system has none of a size that is worth it.
    fn new(files: &FilesBeside) -> Option<PipeEnds> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (reader, writer) = rustix::pipe::pipe_with(flags).ok()?;
        let size = rustix::pipe::fcntl_getpipe_size(&reader).ok()?;
        (size >= SPLICE_PIPE_BYTES).then(|| PipeEnds {
            reader,
            writer,
            _files: [files.hold(), files.hold()],
        })
    }
}

impl SplicePipe {
    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.held
    }

    /// All of it was taken.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Moves bytes into a socket, at least one. It is empty then, or the socket may take more.
    ///
    /// # Errors
    /// What the kernel says; a full socket is `EAGAIN`.
    pub fn drain_into(&mut self, socket: impl AsFd) -> Result<usize, Errno> {
        let Some(ends) = &self.ends else {
            return Err(Errno::BADF);
        };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        match rustix::pipe::splice(&ends.reader, None, socket, None, self.held, flags)? {
            0 => Err(Errno::PIPE),
            count => {
                self.took(count);
                Ok(count)
            }
        }
    }

    /// What is in it, copied out.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn read(mut self) -> io::Result<Bytes> {
        let mut bytes = vec![0; self.held];
        let mut room = &mut bytes[..];
        while let (Some(ends), false) = (&self.ends, room.is_empty()) {
            match rustix::io::read(&ends.reader, &mut *room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    room = &mut room[count..];
                    self.held -= count;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes.into())
    }

    /// Moves at most so many bytes of a socket into it, while it is empty. Zero bytes are the end.
    pub(crate) fn fill_from(&mut self, socket: &OwnedFd, max: usize) -> Result<usize, Errno> {
        debug_assert!(self.is_empty(), "what is in the pipe leaves first");
        let Some(ends) = &self.ends else {
            return Err(Errno::BADF);
        };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let count = rustix::pipe::splice(socket, None, &ends.writer, None, max, flags)?;
        self.held = count;
        Ok(count)
    }

    /// The end that is read from.
    pub(crate) fn reader(&self) -> Option<BorrowedFd<'_>> {
        self.ends.as_ref().map(|ends| ends.reader.as_fd())
    }

    /// The end that is written to, while it is empty.
    pub(crate) fn writer(&self) -> Option<BorrowedFd<'_>> {
        debug_assert!(self.is_empty(), "what is in the pipe leaves first");
        self.ends.as_ref().map(|ends| ends.writer.as_fd())
    }

    /// So many bytes were put into it.
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.held += bytes;
    }

    /// So many bytes were taken out of it.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }
}

impl Drop for SplicePipe {
    fn drop(&mut self) {
        let pipes = &self.pipes;
        pipes.taken_count.set(pipes.taken_count.get() - 1);
        let mut idle = pipes.idle.borrow_mut();
        // One that holds bytes nobody will take is closed.
        let ends = self.ends.take().filter(|_| self.held == 0);
        if idle.len() < SPLICE_PIPES_IDLE_MAX {
            idle.extend(ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket_pair() -> (OwnedFd, OwnedFd) {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        (one.into(), other.into())
    }

    #[test]
    fn bytes_go_through_a_pipe_and_it_is_used_again() {
        let pipes = Rc::<SplicePipes>::default();
        let (from, feeder) = socket_pair();
        let (to, reader) = socket_pair();
        let mut pipe = SplicePipes::take(&pipes).unwrap();
        assert_eq!(pipe.fill_from(&from, 10), Err(Errno::AGAIN));
        rustix::io::write(&feeder, b"abcdef").unwrap();
        assert_eq!(pipe.fill_from(&from, 4), Ok(4));
        assert_eq!((pipe.drain_into(&to), pipe.len()), (Ok(4), 0));
        let mut room = [0; 9];
        assert_eq!(rustix::io::read(&reader, &mut room), Ok(4));
        assert_eq!(pipe.fill_from(&from, 4), Ok(2));
        assert_eq!(pipe.read().unwrap(), "ef");
        assert_eq!((pipes.taken_count.get(), pipes.idle.borrow().len()), (0, 1));
        assert_eq!(pipes.files.count(), 2);
        drop(feeder);
        let mut pipe = SplicePipes::take(&pipes).unwrap();
        assert_eq!(pipe.fill_from(&from, 4), Ok(0));
        drop(reader);
        pipe.filled(1);
        drop(pipe);
        assert!(pipes.idle.borrow().is_empty(), "it held what nobody took");
        assert_eq!(pipes.files.count(), 0);
    }

    #[test]
    fn thread_has_a_limited_number_in_use_and_keeps_few() {
        let pipes = Rc::<SplicePipes>::default();
        let mut taken: Vec<_> = (0..SPLICE_PIPES_MAX)
            .map(|_| SplicePipes::take(&pipes).unwrap())
            .collect();
        assert!(SplicePipes::take(&pipes).is_none());
        taken.pop();
        assert!(SplicePipes::take(&pipes).is_some());
        drop(taken);
        assert_eq!(pipes.idle.borrow().len(), SPLICE_PIPES_IDLE_MAX);
    }
}
