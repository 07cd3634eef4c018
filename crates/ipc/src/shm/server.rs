//! The server's end of one worker's region.
//!
//! Everything the worker writes is copied and checked here, once. What is wrong is a [`Lie`]; after
//! one the end reads nothing more. No call waits, loops over what a worker says, or panics for it.
//!
//! A round of the driver: [`ServerEnd::pop`] until it is empty or its budget is used, hand over
//! and push what there is, then [`ServerEnd::flush`] once. Before its thread sleeps
//! [`ServerEnd::fall_asleep`], after it [`ServerEnd::wake_up`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::EventfdFlags;
use rustix::pipe::PipeFlags;

use super::chunk::{ChunkHold, ServerRegion};
use super::gifts::Gifts;
use super::lie::{Lie, RingFull};
use super::region::{Region, Sizes, WordOffset};
use super::ring::{RingReader, RingWriter};
use super::slot;
use super::wake::{self, ASLEEP, AWAKE, WANTS_ROOM};
use crate::message::{CHUNK, MessageHead, MessageKind, MessageSender};

/// A bell's pipe needs room for a byte.
const BELL_BYTES: usize = 4096;

/// The server's end. Dropping it gives the region up; chunks that are still on their way out keep
/// the memory until they are out.
#[derive(Debug)]
pub struct ServerEnd {
    /// The memory: chunks on their way out hold it, too.
    shared: Arc<ServerRegion>,
    /// Wakes a worker that sleeps in `poll`.
    bell: OwnedFd,
    /// Messages for it, written here.
    to_worker: RingWriter,
    /// Messages of it, of which no byte is believed before it was copied or checked.
    to_server: RingReader,
    /// A place in the memory for each request that it may have at once.
    slots: Slots,
    /// Room for a message that had to be copied.
    payload: Vec<u8>,
    /// What it broke the protocol with: nothing of it is read any more.
    lie: Option<Lie>,
    /// The worker waits for room that reading has made: the next `flush` wakes it.
    owes_room: bool,
    /// The server has said that it sleeps, so that the worker rings.
    is_asleep: bool,
    /// Wakes, bells, copies: for statistics.
    counters: Counters,
}

// A worker's end may move to another thread, and chunks leave from any.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<ServerEnd>();
    is_send::<ChunkHold>();
};

/// What happened at this end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The worker was woken.
    pub wakes_sent: u64,
    /// The worker woke the server.
    pub wakes_received: u64,
    /// There was no room in the ring to the worker, or no free slot.
    pub full: u64,
}

/// A request that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRef {
    index: u16,
    generation: u32,
}

/// A message of the worker.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// Its head, checked. For data in a chunk `len` is the length of the reference.
    pub head: MessageHead,
    /// Its bytes.
    pub payload: WorkerPayload<'a>,
}

/// The payload of a worker's message.
#[derive(Debug)]
pub enum WorkerPayload<'a> {
    /// A copy, valid until the next message is taken.
    Bytes(&'a [u8]),
    /// In a chunk, which stays the server's until this is dropped.
    Chunk(ChunkHold),
}

impl ServerEnd {
    /// Makes a region and its bells. What is for the worker goes to it with hello and is then
    /// closed here.
    ///
    /// # Errors
    ///
    /// What the system says: no memory, no descriptors.
    pub fn create(sizes: Sizes) -> io::Result<(ServerEnd, Gifts)> {
        let (region, fd) = Region::create(sizes)?;
        let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Not an eventfd: both sides would share one open file, and a worker that makes it block
        // could hold the server in a write. Each end of a pipe is a file of its own.
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (bell_to_worker, ring_worker) = rustix::pipe::pipe_with(flags)?;
        // Smaller counts less against the user's limit; without it nothing is lost.
        let _ = rustix::pipe::fcntl_setpipe_size(&ring_worker, BELL_BYTES);
        let ring_bytes = sizes.ring_bytes as u32;
        let gifts = Gifts {
            region: fd,
            bell_to_server: bell.try_clone()?,
            bell_to_worker,
        };
        let end = ServerEnd {
            shared: Arc::new(ServerRegion::new(region, ring_worker)),
            bell,
            to_worker: RingWriter::new(ring_bytes),
            to_server: RingReader::new(ring_bytes),
            slots: Slots::new(sizes.slot_count),
            payload: Vec::new(),
            lie: None,
            owes_room: false,
            is_asleep: false,
            counters: Counters::default(),
        };
        Ok((end, gifts))
    }

    /// The descriptor that the worker writes when the server sleeps. Watch it edge-triggered and
    /// **never read it**: a worker could make it block, and its count does not matter.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Writes a message for the worker; it leaves with the next [`ServerEnd::flush`].
    ///
    /// # Errors
    ///
    /// [`RingFull`] when there is no room. Flush, and try again when the worker has been heard of.
    pub fn push(&mut self, head: MessageHead, payload: &[&[u8]]) -> Result<(), RingFull> {
        debug_assert!(
            head.kind.side() == MessageSender::Server,
            "the server sends what is its own to send"
        );
        let bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        if !self.has_room(bytes) {
            self.counters.full += 1;
            return Err(RingFull);
        }
        let ring = self.shared.region.ring_to_worker();
        self.to_worker.push(&ring, head, payload)
    }

    /// Hands a request over; it leaves with the next [`ServerEnd::flush`]. Until the worker starts
    /// it, it can be taken back.
    ///
    /// # Errors
    ///
    /// [`RingFull`] when there is no room, or no slot is free.
    pub fn hand(&mut self, request: u32, flags: u8, block: &[u8]) -> Result<SlotRef, RingFull> {
        let Some(slot) = self
            .slots
            .next_free()
            .filter(|_| self.has_room(block.len()))
        else {
            self.counters.full += 1;
            return Err(RingFull);
        };
        let head = MessageHead::new(MessageKind::Request, request)
            .flags(flags)
            .small(slot.index)
            .large(slot.generation);
        let ring = self.shared.region.ring_to_worker();
        self.to_worker.push(&ring, head, &[block])?;
        self.slots.take(slot);
        slot::hand(self.word(slot), slot.generation);
        Ok(slot)
    }

    /// Takes a request back, if the worker has not started it. True: it never will, and the slot
    /// is free. False: it is the worker's, or was released before.
    pub fn take_back(&mut self, slot: SlotRef) -> bool {
        let is_back =
            self.slots.is_current(slot) && slot::take_back(self.word(slot), slot.generation);
        if is_back {
            self.slots.free(slot);
        }
        is_back
    }

    /// True when the worker has started the request (or wrote nonsense there).
    pub fn is_started(&self, slot: SlotRef) -> bool {
        self.slots.is_current(slot) && slot::is_started(self.word(slot), slot.generation)
    }

    /// The request is over: its answer is whole, or nobody waits for it any more. A request that
    /// was not started is taken back with that.
    pub fn release(&mut self, slot: SlotRef) {
        if self.slots.is_current(slot) {
            slot::release(self.word(slot), slot.generation);
            self.slots.free(slot);
        }
    }

    /// Shows the worker all that was written and read since the last time, and wakes it if it
    /// sleeps and has to know.
    pub fn flush(&mut self) {
        let region = &self.shared.region;
        self.owes_room |= self
            .to_server
            .release(region.word(WordOffset::ToServerHead));
        if self
            .to_worker
            .publish(region.word(WordOffset::ToWorkerTail))
        {
            self.shared.wake_worker(u32::MAX);
        } else if self.owes_room {
            self.shared.wake_worker(WANTS_ROOM);
        }
        self.owes_room = false;
    }

    /// The next message of the worker, if there is one.
    ///
    /// # Errors
    ///
    /// [`Lie`] when the worker wrote what cannot be; again at every later call.
    pub fn pop(&mut self) -> Result<Option<Incoming<'_>>, Lie> {
        if let Some(lie) = &self.lie {
            return Err(lie.clone());
        }
        match self.pop_message() {
            Ok(None) => Ok(None),
            Ok(Some((head, None))) => Ok(Some(Incoming {
                head,
                payload: WorkerPayload::Bytes(&self.payload),
            })),
            Ok(Some((head, Some(chunk)))) => Ok(Some(Incoming {
                head,
                payload: WorkerPayload::Chunk(chunk),
            })),
            Err(lie) => {
                self.lie = Some(lie.clone());
                Err(lie)
            }
        }
    }

    fn pop_message(&mut self) -> Result<Option<(MessageHead, Option<ChunkHold>)>, Lie> {
        let region = &self.shared.region;
        let tail = region.word(WordOffset::ToServerTail);
        let ring = region.ring_to_server();
        let popped = self
            .to_server
            .pop(tail, &ring, MessageSender::Worker, &mut self.payload)?;
        if popped.is_none() || self.to_server.should_release() {
            self.owes_room |= self
                .to_server
                .release(region.word(WordOffset::ToServerHead));
        }
        let Some(head) = popped else {
            return Ok(None);
        };
        if !head.has(CHUNK) {
            return Ok(Some((head, None)));
        }
        let number = |at: usize| {
            let bytes = self.payload[at..].first_chunk();
            u32::from_le_bytes(*bytes.expect("a checked head: a reference has 8 bytes"))
        };
        let chunk = self.shared.take(number(0), number(4))?;
        Ok(Some((head, Some(chunk))))
    }

    /// True when the worker has written something that was not taken.
    pub fn has_news(&self) -> bool {
        let tail = self.shared.region.word(WordOffset::ToServerTail);
        self.lie.is_none() && self.to_server.has_more(tail)
    }

    /// Before the thread sleeps: the worker will ring the bell from now on. True when something is
    /// there already: do not sleep.
    pub fn fall_asleep(&mut self) -> bool {
        self.flush();
        let word = self.shared.region.word(WordOffset::ServerSleep);
        let tail = self.shared.region.word(WordOffset::ToServerTail);
        let (lie, reader) = (&self.lie, &self.to_server);
        self.is_asleep = wake::fall_asleep(word, ASLEEP, || lie.is_none() && reader.has_more(tail));
        !self.is_asleep
    }

    /// After the thread slept: the bell is quiet from now on.
    pub fn wake_up(&mut self) {
        if !std::mem::take(&mut self.is_asleep) {
            return;
        }
        let word = self.shared.region.word(WordOffset::ServerSleep);
        if word.load(Ordering::Relaxed) == AWAKE {
            self.counters.wakes_received += 1;
        } else {
            word.store(AWAKE, Ordering::Relaxed);
        }
    }

    /// Wakes the worker whether it sleeps or not: to have it notice a socket that has ended.
    pub fn wake_worker(&self) {
        self.shared.wake_worker(u32::MAX);
    }

    /// How many chunks are held.
    pub fn chunks_held(&self) -> u32 {
        self.shared.held_count()
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        Counters {
            wakes_sent: self.shared.wakes_sent.load(Ordering::Relaxed),
            ..self.counters
        }
    }

    /// True when a message with such a payload would find room in the ring to the worker.
    pub fn has_room(&mut self, payload_bytes: usize) -> bool {
        let head = self.shared.region.word(WordOffset::ToWorkerHead);
        match self.to_worker.has_room(head, payload_bytes as u32) {
            Ok(has_room) => has_room,
            // The next `pop` says it.
            Err(lie) => {
                self.lie.get_or_insert(lie);
                false
            }
        }
    }

    fn word(&self, slot: SlotRef) -> &std::sync::atomic::AtomicU32 {
        self.shared.region.slot(slot.index.into())
    }
}

/// Which slots are taken, in the server's own memory.
#[derive(Debug)]
struct Slots {
    /// Those that are free; the last is taken next, so that few are in use.
    free: Vec<u16>,
    all: Vec<SlotState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SlotState {
    is_taken: bool,
    generation: u32,
}

impl Slots {
    fn new(count: usize) -> Slots {
        // Sizes were checked: there are far fewer than 65536.
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        Slots {
            free: (0..count).rev().collect(),
            all: vec![SlotState::default(); usize::from(count)],
        }
    }

    /// A free slot with the generation that its next request has.
    fn next_free(&self) -> Option<SlotRef> {
        let index = *self.free.last()?;
        let generation = self.all[usize::from(index)].generation;
        Some(SlotRef {
            index,
            generation: (generation + 1) & slot::GENERATION_MAX,
        })
    }

    /// Takes what `next_free` gave.
    fn take(&mut self, slot: SlotRef) {
        let taken = self.free.pop();
        debug_assert_eq!(taken, Some(slot.index), "nothing came between");
        self.all[usize::from(slot.index)] = SlotState {
            is_taken: true,
            generation: slot.generation,
        };
    }

    fn is_current(&self, slot: SlotRef) -> bool {
        let now = self.all[usize::from(slot.index)];
        now.is_taken && now.generation == slot.generation
    }

    /// Frees one that is current.
    fn free(&mut self, slot: SlotRef) {
        self.all[usize::from(slot.index)].is_taken = false;
        self.free.push(slot.index);
    }
}
