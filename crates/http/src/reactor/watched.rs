//! Descriptors in the thread's epoll set.
//!
//! Edge-triggered: the kernel tells once that something has become possible. What it told is kept
//! until a call says EAGAIN, so a call is tried first and only a vain one waits.
//!
//! Of room to write the kernel is asked to tell only once there was none: a Unix socket tells of it
//! whenever the other side has read, which would wake the thread for every message it sends.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hob_trace::Mutex;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::reactor::files::HeldFile;
use crate::reactor::slab::Slab;
use crate::reactor::{REACTOR, Reactor, ReactorThread};

/// A descriptor whose readiness wakes whoever polls it. Dropping it closes it.
///
/// One task may wait to read and one to write. The open file behind the descriptor should not be
/// shared with another process: it leaves the epoll set when its last descriptor is closed.
pub struct Watched {
    place: IoRegistration,
    fd: OwnedFd,
    is_in_set: Cell<bool>,
    /// The kernel is asked to tell of room to write.
    asks_for_room: Cell<bool>,
    /// It counts among the files of connections.
    counted: Option<HeldFile>,
}

/// The place among the sources; given back when the descriptor goes.
struct IoRegistration {
    /// `None` once the place was left.
    reactor: Option<Reactor>,
    key: u64,
}

/// What is known of the thread's watched descriptors.
#[derive(Default)]
pub(super) struct IoSources(Slab<IoSource>);

/// A thread's epoll set, as other threads may see it.
pub(super) struct WatchedSet {
    epoll: Arc<OwnedFd>,
    /// Places among the thread's sources whose descriptors others have taken or closed.
    left: Mutex<Vec<u64>>,
}

impl WatchedSet {
    pub(super) fn new(epoll: &Arc<OwnedFd>) -> WatchedSet {
        WatchedSet {
            epoll: Arc::clone(epoll),
            left: Mutex::default(),
        }
    }
}

/// A watched descriptor that nobody waits for, which any thread may take over. It stays in the set
/// of the thread that left it, so that this thread has it back for nothing.
pub struct RestingFd {
    /// `None` once it was taken.
    parts: Option<RestingParts>,
}

struct RestingParts {
    fd: OwnedFd,
    key: u64,
    asks_for_room: bool,
    counted: Option<HeldFile>,
    set: Arc<WatchedSet>,
}

impl fmt::Debug for RestingFd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.parts.as_ref().map(|parts| &parts.fd))
    }
}

impl Drop for RestingFd {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            parts.set.left.lock().push(parts.key);
        }
    }
}

struct IoSource {
    is_readable: bool,
    is_writable: bool,
    /// The kernel told of room that was known of.
    is_told_in_vain: bool,
    is_hung_up: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Watched {
    pub(super) fn new(reactor: &Reactor, fd: OwnedFd) -> io::Result<Watched> {
        let watched = Watched::unseen(reactor, fd)?;
        watched.begin()?;
        Ok(watched)
    }

    /// Not in the epoll set yet.
    pub(super) fn unseen(reactor: &Reactor, fd: OwnedFd) -> io::Result<Watched> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        if let Some(home) = &reactor.0.home {
            let left = std::mem::take(&mut *home.set.left.lock());
            let mut sources = reactor.0.sources.borrow_mut();
            left.into_iter().for_each(|key| drop(sources.0.remove(key)));
        }
        // Whatever is possible already is found out by trying.
        let key = reactor.0.sources.borrow_mut().0.insert(IoSource {
            is_readable: true,
            is_writable: true,
            is_told_in_vain: false,
            is_hung_up: false,
            reader: None,
            writer: None,
        });
        let place = IoRegistration {
            reactor: Some(reactor.clone()),
            key,
        };
        Ok(Watched {
            place,
            fd,
            is_in_set: Cell::new(false),
            asks_for_room: Cell::new(false),
            counted: None,
        })
    }

    /// Counts it among the open files that connections have: one to a server elsewhere, which
    /// may stay when its client has left.
    pub fn count(mut self) -> Watched {
        self.counted = self.place.home().map(|home| home.beside.hold());
        self
    }

    /// Takes the descriptor into the thread's epoll set if it is not in it. What has become
    /// possible before wakes at once.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn begin(&self) -> io::Result<()> {
        if let Some(home) = self.place.home()
            && !self.is_in_set.get()
        {
            epoll::add(&*home.set.epoll, &self.fd, self.data(), self.flags())?;
            self.is_in_set.set(true);
        }
        Ok(())
    }

    fn data(&self) -> EventData {
        EventData::new_u64(REACTOR | self.place.key)
    }

    fn flags(&self) -> EventFlags {
        let room = match self.asks_for_room.get() {
            true => EventFlags::OUT,
            false => EventFlags::empty(),
        };
        EventFlags::IN | EventFlags::RDHUP | EventFlags::ET | room
    }

    /// Has the kernel tell of room to write, or not any more. It tells at once if there is some.
    fn ask_for_room(&self, asks: bool) {
        self.asks_for_room.set(asks);
        if let Some(home) = self.place.home()
            && self.is_in_set.get()
            && let Err(error) = epoll::modify(&*home.set.epoll, &self.fd, self.data(), self.flags())
        {
            hob_trace::warn_seldom!(%error, "a descriptor could not be changed in the epoll set");
        }
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Takes the descriptor out of the thread's epoll set.
    pub fn into_fd(self) -> OwnedFd {
        let Watched {
            place,
            fd,
            is_in_set,
            asks_for_room: _,
            counted: _,
        } = self;
        if let Some(home) = place.home()
            && is_in_set.get()
            && let Err(error) = epoll::delete(&*home.set.epoll, &fd)
        {
            tracing::warn!(%error, "a descriptor could not be taken out of the epoll set");
        }
        fd
    }

    /// Leaves it for whoever takes it next. What was to be read of it was read: what comes from now
    /// on is its end, or nobody's. `None` where no thread drives it; it is closed then.
    pub fn rest(self) -> Option<RestingFd> {
        let set = Arc::clone(&self.place.home()?.set);
        self.begin().ok()?;
        self.clear_readable();
        let Watched {
            place,
            fd,
            asks_for_room,
            counted,
            ..
        } = self;
        let parts = Some(RestingParts {
            fd,
            key: place.leave(),
            asks_for_room: asks_for_room.get(),
            counted,
            set,
        });
        Some(RestingFd { parts })
    }

    /// Reads what there is. Zero bytes are the end.
    pub fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        while self.poll_readable(cx).is_ready() {
            match rustix::io::read(&self.fd, &mut *buffer) {
                Err(Errno::AGAIN) => self.clear_readable(),
                Err(Errno::INTR) => {}
                result => return Poll::Ready(result.map_err(io::Error::from)),
            }
        }
        Poll::Pending
    }

    /// Reads into the capacity that a buffer has behind its bytes. Zero bytes are the end.
    pub fn poll_read_behind(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        while self.poll_readable(cx).is_ready() {
            match rustix::io::read(&self.fd, spare_capacity(buffer)) {
                Err(Errno::AGAIN) => self.clear_readable(),
                Err(Errno::INTR) => {}
                result => return Poll::Ready(result.map_err(io::Error::from)),
            }
        }
        Poll::Pending
    }

    /// Writes what there is room for.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        while self.poll_writable(cx).is_ready() {
            match rustix::io::write(&self.fd, bytes) {
                Err(Errno::AGAIN) => self.clear_writable(),
                Err(Errno::INTR) => {}
                result => return Poll::Ready(result.map_err(io::Error::from)),
            }
        }
        Poll::Pending
    }

    /// Ready while reading is worth a try.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.place.poll(|source| match source.is_readable {
            true => None,
            false => Some(keep(&mut source.reader, cx)),
        })
    }

    /// True while reading is worth a try. Nobody is woken when that changes.
    pub fn is_readable(&self) -> bool {
        self.place.with(|source| source.is_readable).unwrap_or(true)
    }

    /// A read gave EAGAIN: the next event is waited for.
    pub fn clear_readable(&self) {
        self.place.with(|source| source.is_readable = false);
    }

    /// It is known from elsewhere that there is something to read.
    pub fn mark_readable(&self) {
        self.place.with(|source| source.is_readable = true);
    }

    /// Ready while writing is worth a try.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.asks_for_room.get() && self.is_told_in_vain() {
            self.ask_for_room(false);
        }
        self.place.poll(|source| match source.is_writable {
            true => None,
            false => Some(keep(&mut source.writer, cx)),
        })
    }

    /// A write gave EAGAIN: the next event is waited for.
    pub fn clear_writable(&self) {
        self.place.with(|source| source.is_writable = false);
        if !self.asks_for_room.get() {
            self.ask_for_room(true);
        }
    }

    fn is_told_in_vain(&self) -> bool {
        let told = |source: &mut IoSource| std::mem::take(&mut source.is_told_in_vain);
        self.place.with(told).unwrap_or(false)
    }

    /// True once the other end is known to be closed or broken (EPOLLHUP, EPOLLERR). What stands in
    /// a pipe can still be read.
    pub fn is_hung_up(&self) -> bool {
        self.place.with(|source| source.is_hung_up).unwrap_or(false)
    }
}

impl RestingFd {
    /// True when the thread of this reactor left it.
    pub fn is_of(&self, reactor: &Reactor) -> bool {
        let parts = self.parts.as_ref();
        let home = reactor.0.home.as_ref();
        parts.is_some_and(|parts| home.is_some_and(|home| Arc::ptr_eq(&parts.set, &home.set)))
    }

    /// The descriptor.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.parts.as_ref().map(|parts| parts.fd.as_fd())
    }

    /// Takes it over. It is readable where its other end may have closed it, or said something:
    /// what another thread has heard is not known.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn take(mut self, reactor: &Reactor) -> io::Result<Watched> {
        let is_own = self.is_of(reactor);
        let Some(parts) = self.parts.take() else {
            return Err(Errno::BADF.into());
        };
        let RestingParts {
            fd,
            key,
            asks_for_room,
            counted,
            set,
        } = parts;
        if !is_own {
            let removed = epoll::delete(&*set.epoll, &fd);
            set.left.lock().push(key);
            removed?;
            let watched = Watched::new(reactor, fd)?;
            return Ok(Watched { counted, ..watched });
        }
        Ok(Watched {
            place: IoRegistration {
                reactor: Some(reactor.clone()),
                key,
            },
            fd,
            is_in_set: Cell::new(true),
            asks_for_room: Cell::new(asks_for_room),
            counted,
        })
    }
}

impl IoRegistration {
    /// Keeps the place, which is somebody else's to give back.
    fn leave(mut self) -> u64 {
        self.reactor = None;
        self.key
    }

    /// The thread that drives it.
    fn home(&self) -> Option<&ReactorThread> {
        self.reactor.as_ref()?.0.home.as_ref()
    }

    fn with<R>(&self, look: impl FnOnce(&mut IoSource) -> R) -> Option<R> {
        let mut sources = self.reactor.as_ref()?.0.sources.borrow_mut();
        sources.0.get_mut(self.key).map(look)
    }

    /// Ready unless a waker had to be kept.
    fn poll(&self, look: impl FnOnce(&mut IoSource) -> Option<Option<Waker>>) -> Poll<()> {
        match self.with(look) {
            Some(None) => Poll::Ready(()),
            // What the new waker replaced goes here, when nothing is borrowed.
            Some(Some(_)) | None => Poll::Pending,
        }
    }
}

impl Drop for IoRegistration {
    fn drop(&mut self) {
        let Some(reactor) = &self.reactor else { return };
        let source = reactor.0.sources.borrow_mut().0.remove(self.key);
        // Wakers go when nothing is borrowed: they may be the last to hold much.
        drop(source);
    }
}

impl IoSources {
    /// Keeps what the kernel told of a descriptor; returns who waits for it.
    pub(super) fn note(&mut self, key: u64, flags: EventFlags) -> [Option<Waker>; 2] {
        let Some(source) = self.0.get_mut(key) else {
            return [None, None];
        };
        let broken = EventFlags::HUP | EventFlags::ERR;
        let mut wakers = [None, None];
        source.is_hung_up |= flags.intersects(broken);
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | broken) {
            source.is_readable = true;
            wakers[0] = source.reader.take();
        }
        if flags.intersects(EventFlags::OUT | broken) {
            source.is_told_in_vain |= source.is_writable && flags.contains(EventFlags::OUT);
            source.is_writable = true;
            wakers[1] = source.writer.take();
        }
        wakers
    }
}

/// Keeps the waker of whoever polls, and returns the one it replaces. That one may be the last to
/// hold much, so it is to be dropped while nothing is borrowed.
pub(super) fn keep(place: &mut Option<Waker>, cx: &Context<'_>) -> Option<Waker> {
    match place {
        Some(waker) if waker.will_wake(cx.waker()) => None,
        _ => place.replace(cx.waker().clone()),
    }
}
