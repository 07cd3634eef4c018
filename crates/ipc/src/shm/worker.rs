//! A worker's end of its region, as `libhob` uses it.
//!
//! A round: [`WorkerEnd::pop`] until it is empty, push answers, [`WorkerEnd::flush`] once. To
//! sleep: [`WorkerEnd::fall_asleep`], then [`Sleeper::wait`] (or `poll` on the bell), then
//! [`Sleeper::wake_up`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use rustix::thread::futex;

use super::chunk;
use super::gifts::Gifts;
use super::lie::{Lie, RingFull};
use super::region::{Region, WordOffset};
use super::ring::{RingReader, RingWriter};
use super::slot;
use super::wake::{self, ASLEEP, AWAKE, ON_BELL, WANTS_ROOM};
use crate::message::{CHUNK, CHUNK_REFERENCE_BYTES, MessageHead, MessageKind, MessageSender};

/// A worker's end.
#[derive(Debug)]
pub struct WorkerEnd {
    sleeper: Sleeper,
    to_worker: RingReader,
    to_server: RingWriter,
    owes_room: bool,
}

/// What is needed to sleep, without the end itself: another thread may use that meanwhile.
#[derive(Clone, Debug)]
pub struct Sleeper {
    inner: Arc<WorkerRegion>,
}

#[derive(Debug)]
struct WorkerRegion {
    region: Region,
    bell: OwnedFd,
    bell_to_server: OwnedFd,
    wakes_sent: AtomicU64,
    sleeps: AtomicU64,
}

/// How a worker sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// On a word of the region: [`Sleeper::wait`].
    OnWord,
    /// On its bell, in a `poll` of the program's own.
    OnBell,
}

impl WorkerEnd {
    /// Takes the gifts into use.
    ///
    /// # Errors
    ///
    /// What the system says, or that the region is none this library can read. Use the stream then.
    pub fn open(gifts: Gifts) -> io::Result<WorkerEnd> {
        let region = Region::open(gifts.region.as_fd())?;
        let ring_bytes = region.sizes().ring_bytes as u32;
        let inner = WorkerRegion {
            region,
            bell: gifts.bell_to_worker,
            bell_to_server: gifts.bell_to_server,
            wakes_sent: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
        };
        Ok(WorkerEnd {
            sleeper: Sleeper {
                inner: Arc::new(inner),
            },
            to_worker: RingReader::new(ring_bytes),
            to_server: RingWriter::new(ring_bytes),
            owes_room: false,
        })
    }

    /// The next message of the server, if there is one; its payload replaces what is in `payload`.
    /// A request is not started by that.
    ///
    /// # Errors
    ///
    /// [`Lie`]: the server is broken, or the library too old for it.
    pub fn pop(&mut self, payload: &mut Vec<u8>) -> Result<Option<MessageHead>, Lie> {
        let region = &self.sleeper.inner.region;
        let tail = region.word(WordOffset::ToWorkerTail);
        let ring = region.ring_to_worker();
        let popped = self
            .to_worker
            .pop(tail, &ring, MessageSender::Server, payload)?;
        if popped.is_none() || self.to_worker.should_release() {
            self.owes_room |= self
                .to_worker
                .release(region.word(WordOffset::ToWorkerHead));
        }
        match popped {
            Some(head)
                if head.kind == MessageKind::Request
                    && usize::from(head.small) >= region.sizes().slot_count =>
            {
                Err(Lie::Slot(head.small))
            }
            popped => Ok(popped),
        }
    }

    /// Starts the request with that head; false when the server has taken it back.
    #[must_use]
    pub fn start(&self, request: &MessageHead) -> bool {
        let slot = self.sleeper.inner.region.slot(request.small.into());
        slot::start(slot, request.large)
    }

    /// Writes a message for the server; it leaves with the next [`WorkerEnd::flush`].
    ///
    /// # Errors
    ///
    /// [`RingFull`] when there is no room: flush, wait for room, try again.
    pub fn push(&mut self, head: MessageHead, payload: &[&[u8]]) -> Result<(), RingFull> {
        debug_assert!(
            head.kind.side() == MessageSender::Worker,
            "a worker sends what is its own to send"
        );
        let bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        let region = &self.sleeper.inner.region;
        let seen = region.word(WordOffset::ToServerHead);
        if self.to_server.has_room(seen, bytes as u32) != Ok(true) {
            return Err(RingFull);
        }
        self.to_server.push(&region.ring_to_server(), head, payload)
    }

    /// How many bytes a chunk holds.
    pub fn chunk_bytes(&self) -> usize {
        self.sleeper.inner.region.sizes().chunk_bytes
    }

    /// Takes a free chunk to fill, if there is one.
    pub fn take_chunk(&mut self) -> Option<WorkerChunk> {
        let inner = &self.sleeper.inner;
        let index = chunk::take_free(&inner.region)?;
        Some(WorkerChunk {
            inner: inner.clone(),
            index,
            is_sent: false,
        })
    }

    /// Sends the first bytes of a chunk as data of a request.
    ///
    /// # Errors
    ///
    /// [`RingFull`], and the chunk back, when there is no room in the ring.
    pub fn push_chunk(
        &mut self,
        request: u32,
        flags: u8,
        mut taken: WorkerChunk,
        bytes: usize,
    ) -> Result<(), (RingFull, WorkerChunk)> {
        assert!(
            (1..=self.chunk_bytes()).contains(&bytes),
            "a chunk holds so much"
        );
        let mut reference = [0; CHUNK_REFERENCE_BYTES];
        reference[..4].copy_from_slice(&taken.index.to_le_bytes());
        reference[4..].copy_from_slice(&(bytes as u32).to_le_bytes());
        let head = MessageHead::new(MessageKind::Data, request).flags(flags | CHUNK);
        match self.push(head, &[&reference]) {
            Ok(()) => {
                taken.is_sent = true;
                Ok(())
            }
            Err(full) => Err((full, taken)),
        }
    }

    /// Shows the server all that was written and read since the last time, and wakes it if it
    /// sleeps.
    pub fn flush(&mut self) {
        let inner = &self.sleeper.inner;
        self.owes_room |= self
            .to_worker
            .release(inner.region.word(WordOffset::ToWorkerHead));
        let is_new = self
            .to_server
            .publish(inner.region.word(WordOffset::ToServerTail));
        if !is_new && !self.owes_room {
            return;
        }
        self.owes_room = false;
        if wake::must_wake(inner.region.word(WordOffset::ServerSleep), u32::MAX) != AWAKE {
            inner.wakes_sent.fetch_add(1, Ordering::Relaxed);
            // An eventfd that is full is readable.
            let _ = rustix::io::write(&inner.bell_to_server, &1u64.to_ne_bytes());
        }
    }

    /// True when the server has written something that was not taken.
    pub fn has_news(&self) -> bool {
        let tail = self.sleeper.inner.region.word(WordOffset::ToWorkerTail);
        self.to_worker.has_more(tail)
    }

    /// True when such a message would find room now.
    pub fn has_room(&mut self, room: Room) -> bool {
        let region = &self.sleeper.inner.region;
        let seen = region.word(WordOffset::ToServerHead);
        let fits = self.to_server.has_room(seen, room.payload_bytes as u32);
        fits == Ok(true) && (!room.chunk || chunk::free(region).is_some())
    }

    /// Before sleeping: from now on the server wakes this side in that way, and if anybody waits
    /// for room, also when there may be some.
    ///
    /// False when there is news or such room already: do not sleep.
    #[must_use]
    pub fn fall_asleep(&mut self, how: How, rooms: &[Room]) -> bool {
        self.flush();
        let sleeper = self.sleeper.clone();
        sleeper.inner.sleeps.fetch_add(1, Ordering::Relaxed);
        let word = sleeper.inner.region.word(WordOffset::WorkerSleep);
        wake::fall_asleep(word, bits(how, rooms), || {
            self.has_news() || rooms.iter().any(|room| self.has_room(*room))
        })
    }

    /// While another thread sleeps: from now on the server wakes that one when there may be room.
    ///
    /// False when there is such room already.
    #[must_use]
    pub fn want_room(&mut self, room: Room) -> bool {
        let word = self.sleeper.inner.region.word(WordOffset::WorkerSleep);
        word.fetch_or(WANTS_ROOM, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.has_room(room)
    }

    /// What is needed to sleep without holding this.
    pub fn sleeper(&self) -> Sleeper {
        self.sleeper.clone()
    }

    /// Readable when the server woke a worker that sleeps [`How::OnBell`].
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.sleeper.inner.bell.as_fd()
    }

    /// How often this side slept, and how often it woke the server.
    pub fn counters(&self) -> (u64, u64) {
        let inner = &self.sleeper.inner;
        (
            inner.sleeps.load(Ordering::Relaxed),
            inner.wakes_sent.load(Ordering::Relaxed),
        )
    }
}

/// A chunk that the worker has taken to fill; dropped without being sent, it is free again.
#[derive(Debug)]
pub struct WorkerChunk {
    inner: Arc<WorkerRegion>,
    index: u32,
    is_sent: bool,
}

impl WorkerChunk {
    /// The place of its bytes, which nobody else writes until it is sent: as many as
    /// [`WorkerEnd::chunk_bytes`] says.
    pub fn place(&mut self) -> *mut u8 {
        self.inner.region.chunk(self.index as usize)
    }

    /// Copies bytes in, at an offset.
    ///
    /// # Panics
    ///
    /// When they do not fit.
    pub fn fill(&mut self, offset: usize, bytes: &[u8]) {
        let region = &self.inner.region;
        region.copy_into_chunk(self.index as usize, offset, bytes);
    }
}

impl Drop for WorkerChunk {
    fn drop(&mut self) {
        if !self.is_sent {
            chunk::put_back(&self.inner.region, self.index);
        }
    }
}

/// What a worker waits to have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// A message's payload.
    pub payload_bytes: usize,
    /// A chunk besides.
    pub chunk: bool,
}

impl Sleeper {
    /// Waits on the word until the server wakes this side; at most that long. `rooms` as they were
    /// given to [`WorkerEnd::fall_asleep`].
    pub fn wait(&self, rooms: &[Room], at_most: Duration) {
        let word = self.inner.region.word(WordOffset::WorkerSleep);
        let timeout = futex::Timespec::try_from(at_most).ok();
        let asleep = bits(How::OnWord, rooms);
        // Whatever ends the wait, the caller looks again.
        let _ = futex::wait(word, futex::Flags::empty(), asleep, timeout.as_ref());
    }

    /// After sleeping, in whichever way. True when the server woke this side.
    pub fn wake_up(&self) -> bool {
        let word = self.inner.region.word(WordOffset::WorkerSleep);
        let was_woken = word.load(Ordering::Relaxed) & (ASLEEP | ON_BELL) == 0;
        word.store(AWAKE, Ordering::Relaxed);
        was_woken
    }

    /// The bell: see [`WorkerEnd::bell`].
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.inner.bell.as_fd()
    }

    /// Empties the bell.
    pub fn quiet_bell(&self) {
        let mut bytes = [0; 64];
        let _ = rustix::io::read(&self.inner.bell, &mut bytes);
    }
}

fn bits(how: How, rooms: &[Room]) -> u32 {
    let asleep = match how {
        How::OnWord => ASLEEP,
        How::OnBell => ON_BELL,
    };
    if rooms.is_empty() {
        asleep
    } else {
        asleep | WANTS_ROOM
    }
}
