//! A pipe that an answer's body comes out of: what is in it, and when nothing more will come.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_trace::Fault;

use crate::body::{BodyError, PipeEnd};
use crate::reactor::{Reactor, Watched};

/// The reading end of a pipe with what is known of its end.
pub(crate) struct Pipe {
    pub(crate) source: Watched,
    /// Bytes still to come, when known.
    left: Option<u64>,
    end: Option<Rc<dyn PipeEnd>>,
    /// Everything that belongs to the body is in the pipe, and counted in `left`.
    is_complete: bool,
}

pub(crate) const UNREADABLE: BodyError =
    BodyError::Source(Fault::Script, "the pipe could not be read");

impl Drop for Pipe {
    fn drop(&mut self) {
        if let (Some(0), false, Some(end)) = (self.left, self.is_complete, &self.end)
            && rustix::io::ioctl_fionread(self.source.fd()).is_ok_and(|count| count > 0)
        {
            end.note_surplus();
        }
    }
}

impl Pipe {
    /// Watches a pipe of which `left` bytes are to come.
    pub(crate) fn new(
        reactor: &Reactor,
        fd: OwnedFd,
        left: Option<u64>,
        end: Option<Rc<dyn PipeEnd>>,
    ) -> Result<Pipe, BodyError> {
        match reactor.watch(fd) {
            Ok(source) => Ok(Pipe {
                source,
                left,
                end,
                is_complete: false,
            }),
            Err(error) => {
                hob_trace::warn_seldom!(%error, "a pipe could not be watched");
                Err(BodyError::Source(Fault::Server, "the pipe is none"))
            }
        }
    }

    /// How many of `max` bytes may still be taken.
    pub(crate) fn room(&self, max: usize) -> usize {
        self.left.map_or(max, |left| left.min(max as u64) as usize)
    }

    /// So many bytes were taken out of the pipe.
    pub(crate) fn took(&mut self, bytes: usize) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
        }
        if let Some(end) = &self.end {
            end.note_progress();
        }
    }

    /// The next bytes, read into memory, at most `max`; `None` at the end.
    pub(crate) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            let room = self.room(max);
            if room == 0 {
                return Poll::Ready(None);
            }
            let mut bytes = vec![0; room];
            let at_eof = match self.source.poll_read(cx, &mut bytes) {
                Poll::Ready(Ok(0)) => true,
                Poll::Ready(Ok(count)) => {
                    bytes.truncate(count);
                    self.took(count);
                    return Poll::Ready(Some(Ok(bytes.into())));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Some(Err(UNREADABLE))),
                Poll::Pending => false,
            };
            match self.poll_end(cx, at_eof) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Pending => return Poll::Pending,
            }
            if at_eof {
                return Poll::Ready(None);
            }
        }
    }

    /// How many bytes are in the pipe; none at its end.
    pub(crate) fn poll_filled(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, BodyError>> {
        while self.source.poll_readable(cx).is_ready() {
            match rustix::io::ioctl_fionread(self.source.fd()) {
                // All writers are gone, and this is known: nothing has come since.
                Ok(0) if self.source.is_hung_up() => return Poll::Ready(Ok(0)),
                // An event will tell of bytes, and of the end.
                Ok(0) => self.source.clear_readable(),
                Ok(count) => return Poll::Ready(Ok(count as usize)),
                Err(_) => return Poll::Ready(Err(UNREADABLE)),
            }
        }
        Poll::Pending
    }

    /// Asks whether more will come into a pipe that is empty. `Ok` without `at_eof`: what has come
    /// meanwhile is the rest, and counted as such; a writer that goes on finds nobody.
    pub(crate) fn poll_end(
        &mut self,
        cx: &mut Context<'_>,
        at_eof: bool,
    ) -> Poll<Result<(), BodyError>> {
        if self.is_complete {
            self.left = Some(0);
            return Poll::Ready(Ok(()));
        }
        let answer = match &self.end {
            Some(end) => end.poll_end(cx, at_eof),
            None if at_eof => Poll::Ready(Ok(())),
            None => Poll::Pending,
        };
        if !at_eof && answer == Poll::Ready(Ok(())) {
            self.is_complete = true;
            let Ok(rest) = rustix::io::ioctl_fionread(self.source.fd()) else {
                return Poll::Ready(Err(UNREADABLE));
            };
            self.left = Some(self.left.map_or(rest, |left| left.min(rest)));
            self.source.mark_readable();
        }
        answer
    }
}
