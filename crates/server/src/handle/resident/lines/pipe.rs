//! Pipes to a program: what they did not take yet, and what the program has not taken out of them.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use hob_http::{Reactor, Watched};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};

/// Memory that is kept for what is written next.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A pipe, and what waits to go into it.
pub(super) struct OutPipe {
    /// `None` once it is closed.
    end: Option<Watched>,
    bytes: Vec<u8>,
    from: usize,
}

/// Standard input of a program, where the bodies of its requests come one after the other.
pub(super) struct BodyPipe {
    out: OutPipe,
    /// The program's end: tells how much it has read, and gives back what it left.
    theirs: OwnedFd,
    /// Bytes of the body under way, and how many of them have left.
    length: u64,
    sent_bytes: u64,
}

/// What a program left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing is in the pipe: all was read, or nothing.
    Nothing,
    /// It had begun to read.
    Part,
    /// It was told that no more comes.
    NoWay,
}

impl OutPipe {
    /// `end` is not in the epoll set yet: mostly there is room for what is written.
    pub(super) fn new(end: Watched) -> OutPipe {
        OutPipe {
            end: Some(end),
            bytes: Vec::new(),
            from: 0,
        }
    }

    /// Where what is to be written is put.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.bytes.len() - self.from
    }

    /// Writes what there is room for, and tells how much that was.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) -> io::Result<usize> {
        let before = self.from;
        while self.from < self.bytes.len() {
            let Some(end) = &self.end else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            match end.poll_write(cx, &self.bytes[self.from..]) {
                Poll::Ready(count) => self.from += count?,
                Poll::Pending => {
                    end.begin()?;
                    return Ok(self.from - before);
                }
            }
        }
        let count = self.from - before;
        self.clear();
        Ok(count)
    }

    fn clear(&mut self) {
        self.from = 0;
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
    }

    /// Bytes in the pipe.
    pub(super) fn unread_bytes(&self) -> u64 {
        let end = self.end.as_ref();
        end.and_then(|end| rustix::io::ioctl_fionread(end.fd()).ok())
            .unwrap_or(0)
    }

    pub(super) fn close(&mut self) {
        self.end = None;
        self.clear();
    }
}

impl BodyPipe {
    /// The pipe, and the end that becomes standard input.
    ///
    /// # Errors
    /// No descriptors.
    pub(super) fn new(reactor: &Reactor) -> io::Result<(BodyPipe, OwnedFd)> {
        let (stdin, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(&stdin, 0)?;
        let pipe = BodyPipe {
            out: OutPipe::new(reactor.watch_later(ours)?),
            theirs,
            length: 0,
            sent_bytes: 0,
        };
        Ok((pipe, stdin))
    }

    /// A request has a body of so many bytes.
    pub(super) fn begin(&mut self, length: u64) {
        self.length = length;
        self.sent_bytes = 0;
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.out.bytes().extend_from_slice(piece);
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.out.waiting_bytes()
    }

    /// Writes what there is room for. A program that closed its standard input has read enough.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        match self.out.flush(cx) {
            Ok(count) => self.sent_bytes += count as u64,
            Err(_) => self.close(),
        }
    }

    /// Some of the body has not left.
    pub(super) fn is_owed(&self) -> bool {
        self.sent_bytes < self.length
    }

    /// The program has read all that has left.
    pub(super) fn is_drunk_up(&self) -> bool {
        self.unread_bytes() == Some(0)
    }

    /// The request is over: the pipe is made empty for the next one.
    pub(super) fn end(&mut self) -> Left {
        let length = std::mem::take(&mut self.length);
        if length == 0 {
            return Left::Nothing;
        }
        self.out.clear();
        if self.out.end.is_none() {
            return Left::NoWay;
        }
        let is_empty = match self.unread_bytes() {
            Some(0) if self.sent_bytes == length => true,
            Some(unread) if unread == self.sent_bytes => self.take_back(unread).is_ok(),
            _ => false,
        };
        match is_empty {
            true => Left::Nothing,
            false => Left::Part,
        }
    }

    /// The program sees an end.
    pub(super) fn close(&mut self) {
        self.out.close();
    }

    fn unread_bytes(&self) -> Option<u64> {
        rustix::io::ioctl_fionread(&self.theirs).ok()
    }

    /// Takes so many bytes out of the pipe. The descriptor is the program's too and stays as it is,
    /// so a plain read could wait; this cannot.
    fn take_back(&self, mut bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let nowhere = rustix::fs::open("/dev/null", flags, Mode::empty())?;
        while bytes > 0 {
            let room = usize::try_from(bytes).unwrap_or(usize::MAX);
            let flags = SpliceFlags::NONBLOCK;
            match rustix::pipe::splice(&self.theirs, None, &nowhere, None, room, flags) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => bytes -= count as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
