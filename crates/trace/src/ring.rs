//! The ring: finished requests on their way from one serving thread to the log writer.
//!
//! One producer, one consumer, one process. A push copies the record and its texts into the ring
//! and publishes them with one Release store; it allocates nothing, takes no lock and never waits:
//! a full ring refuses and counts. The memory is touched only where entries have been written, so
//! an unused ring costs address space and nothing else.
//!
//! ```text
//! memory  0                                                  capacity         + ENTRY_BYTES_MAX
//!         |...free...[entry][entry][entry][entry]...free.....|[end of last entry].......|
//!                    ^ tail & mask               ^ head & mask
//! entry   size u32 | lengths 8 x u16 | Record | texts, in the order of `Texts` | pad
//! ```
//!
//! Positions only grow; `position & (capacity - 1)` is the place in memory. An entry starts below
//! `capacity` and may run past it, so it is never split; the one after it starts at 0 of the next
//! lap, see `position_after`. The producer alone writes `head` and the memory between head and
//! tail + capacity; the consumer alone writes `tail` and reads the memory between tail and head.
//!
//! Waking: a consumer that goes to sleep until something comes arms the ring first; a push into an
//! armed ring unparks it. A push that makes the ring more than half full unparks it as well.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, compiler_fence};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use crate::format::ASKED_BYTES_MAX;
use crate::record::{Record, Texts};

/// Bytes of a method that are kept.
pub const METHOD_BYTES_MAX: usize = 32;
/// Bytes of a target that are kept.
pub const TARGET_BYTES_MAX: usize = 2048;
/// Bytes of a host that are kept.
pub const HOST_BYTES_MAX: usize = 256;
/// Bytes of a referer that are kept.
pub const REFERER_BYTES_MAX: usize = 1024;
/// Bytes of a user agent that are kept.
pub const USER_AGENT_BYTES_MAX: usize = 512;
/// Bytes of a user that are kept.
pub const USER_BYTES_MAX: usize = 128;
/// Bytes of a detail that are kept.
pub const DETAIL_BYTES_MAX: usize = 1024;

/// The smallest ring, in bytes; room for several of the largest entries.
pub const RING_BYTES_MIN: usize = 32 * 1024;
/// The largest ring, in bytes.
pub const RING_BYTES_MAX: usize = 1 << 30;

/// A ring of at least that many bytes (rounded up to a power of two, within the limits above).
pub fn ring(bytes: usize) -> (Producer, Consumer) {
    let capacity = bytes
        .clamp(RING_BYTES_MIN, RING_BYTES_MAX)
        .next_power_of_two();
    let words = (capacity + ENTRY_BYTES_MAX) / WORD_BYTES;
    let memory = Box::<[Word]>::new_uninit_slice(words);
    let shared = Arc::new(RecordRing {
        written: ProducerState::default(),
        read: ConsumerState::default(),
        wake: Wake::default(),
        // SAFETY: a `Word` is an `UnsafeCell` of a `MaybeUninit`: any bytes, even none, are valid
        // in it.
        memory: unsafe { memory.assume_init() },
        capacity,
    });
    let producer = Producer {
        memory: shared.memory.as_ptr().cast::<u8>().cast_mut(),
        mask: capacity - 1,
        head: 0,
        tail_seen: 0,
        look_at: capacity / 2,
        shared: Arc::clone(&shared),
    };
    (producer, Consumer { tail: 0, shared })
}

/// The end that finished requests go into; belongs to one serving thread.
#[derive(Debug)]
pub struct Producer {
    /// Start of `shared.memory`, kept here to save a step per push.
    memory: *mut u8,
    mask: usize,
    head: usize,
    /// `tail` as last looked at; the true one is not behind it.
    tail_seen: usize,
    /// The head at which to look whether the ring is half full.
    look_at: usize,
    shared: Arc<RecordRing>,
}

// SAFETY: `memory` points into `shared`, which lives as long as the producer and whose part between
// head and tail is this producer's alone, whichever thread it is on.
unsafe impl Send for Producer {}

impl Producer {
    /// Puts a finished request into the ring, each text cut to its limit. False if the ring is
    /// full: then it is lost and counted.
    #[inline]
    pub fn push(&mut self, record: &Record, texts: &Texts<'_>) -> bool {
        let texts = [
            cut(texts.method, METHOD_BYTES_MAX),
            cut(texts.target, TARGET_BYTES_MAX),
            cut(texts.host, HOST_BYTES_MAX),
            cut(texts.referer, REFERER_BYTES_MAX),
            cut(texts.user_agent, USER_AGENT_BYTES_MAX),
            cut(texts.user, USER_BYTES_MAX),
            cut(texts.detail, DETAIL_BYTES_MAX),
            cut(texts.asked, ASKED_BYTES_MAX),
        ];
        let text_bytes: usize = texts.iter().map(|text| text.len()).sum();
        let size = (size_of::<RingEntryHeader>() + text_bytes).next_multiple_of(WORD_BYTES);
        let next = position_after(self.head, size, self.mask);
        if next.wrapping_sub(self.tail_seen) > self.mask + 1 && !self.has_room(next) {
            return false;
        }
        // SAFETY: `next` is at most `capacity` past the tail, so nothing that the consumer may
        // still read lies between head and `next`, nor in the memory past `capacity` if the entry
        // ends there (what was there before ended a lap that is read). size <= ENTRY_BYTES_MAX by
        // the cuts above.
        unsafe { self.write(size, record, &texts) };
        self.shared.written.head.store(next, Release);
        self.head = next;
        if next.wrapping_sub(self.look_at) as isize >= 0 {
            self.look_whether_half_full();
        }
        // The load must not come before the store (see `Consumer::arm` for why this is enough).
        compiler_fence(SeqCst);
        if self.shared.wake.armed.load(Relaxed) {
            self.shared.wake.wake_if_armed();
        }
        true
    }

    /// Requests lost because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.shared.written.dropped.load(Relaxed)
    }

    /// Writes an entry at the head.
    ///
    /// # Safety
    /// `size` bytes from the head on belong to the producer and hold a `RingEntryHeader` and the
    /// texts.
    #[inline]
    unsafe fn write(&mut self, size: usize, record: &Record, texts: &[&[u8]; TEXTS]) {
        debug_assert!(size <= ENTRY_BYTES_MAX);
        // SAFETY: the caller's promise; entries start at multiples of WORD_BYTES, the alignment of
        // Entry.
        unsafe {
            let entry = self
                .memory
                .add(self.head & self.mask)
                .cast::<RingEntryHeader>();
            (&raw mut (*entry).size).write(size as u32);
            (&raw mut (*entry).lengths).write(texts.map(|text| text.len() as u16));
            (&raw mut (*entry).record).write(*record);
            let mut to = entry.add(1).cast::<u8>();
            let [usual @ .., asked] = texts;
            for text in usual {
                copy(text, to);
                to = to.add(text.len());
            }
            // Most logs ask for nothing.
            if !asked.is_empty() {
                copy(asked, to);
            }
        }
    }

    /// Looks at the true tail: whether an entry that ends at `next` fits. Counts a loss if not.
    #[cold]
    fn has_room(&mut self, next: usize) -> bool {
        self.tail_seen = self.shared.read.tail.load(Acquire);
        if next.wrapping_sub(self.tail_seen) <= self.mask + 1 {
            return true;
        }
        let dropped = &self.shared.written.dropped;
        dropped.store(dropped.load(Relaxed) + 1, Relaxed);
        false
    }

    #[cold]
    fn look_whether_half_full(&mut self) {
        let capacity = self.mask + 1;
        self.tail_seen = self.shared.read.tail.load(Acquire);
        if self.head.wrapping_sub(self.tail_seen) < capacity / 2 {
            self.look_at = self.tail_seen.wrapping_add(capacity / 2);
            return;
        }
        self.look_at = self.head.wrapping_add(capacity / 4);
        self.shared.wake.wake();
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.written.finished.store(true, Release);
        self.shared.wake.wake();
    }
}

/// The end that finished requests come out of; belongs to the log writer.
#[derive(Debug)]
pub struct Consumer {
    tail: usize,
    shared: Arc<RecordRing>,
}

impl Consumer {
    /// Entries after which their room is given back, so that a full ring need not wait for the
    /// whole drain.
    const RELEASE_EVERY: usize = 64;

    /// Hands out what was in the ring when called, oldest first, and says how many.
    pub fn drain(&mut self, mut each: impl FnMut(&Record, Texts<'_>)) -> usize {
        let head = self.shared.written.head.load(Acquire);
        let mut count = 0;
        while self.tail != head {
            let size = {
                // SAFETY: between tail and head lie whole entries, published by the store that the
                // load above saw. The references end with this block, before the room is given
                // back.
                let (entry, texts) = unsafe { self.entry_at_tail() };
                each(&entry.record, texts);
                entry.size as usize
            };
            self.tail = position_after(self.tail, size, self.shared.capacity - 1);
            count += 1;
            if count % Self::RELEASE_EVERY == 0 {
                self.shared.read.tail.store(self.tail, Release);
            }
        }
        self.shared.read.tail.store(self.tail, Release);
        count
    }

    /// Requests lost so far because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.shared.written.dropped.load(Relaxed)
    }

    /// The producer is gone and everything it pushed has been drained.
    pub fn is_finished(&self) -> bool {
        self.shared.written.finished.load(Acquire)
            && self.tail == self.shared.written.head.load(Acquire)
    }

    /// Names the thread to unpark. The first call counts.
    pub fn attach(&self, reader: Thread) {
        self.shared.wake.reader.get_or_init(|| reader);
    }

    /// From now on a push unparks the attached thread. Says whether the ring was armed already:
    /// false also when a push has unparked it since.
    ///
    /// A push that loaded the flag just before this call may have its entry become visible just
    /// after it. Therefore who arms must look into the ring once more after a while (a poll
    /// interval, against the nanoseconds a store needs to leave a core) before sleeping without a
    /// timeout. This saves every push a full fence, which would cost as much as the rest of it.
    pub fn arm(&self) -> bool {
        self.shared.wake.armed.swap(true, AcqRel)
    }

    /// Pushes no longer unpark anyone, except when half full.
    pub fn disarm(&self) {
        self.shared.wake.armed.store(false, Relaxed);
    }

    /// The entry at the tail and its texts.
    ///
    /// # Safety
    /// The tail is before the head as loaded with Acquire, and stays while the references live.
    unsafe fn entry_at_tail(&self) -> (&RingEntryHeader, Texts<'_>) {
        let offset = self.tail & (self.shared.capacity - 1);
        let memory = self.shared.memory.as_ptr().cast::<u8>();
        // SAFETY: the caller's promise: a whole entry, written by `Producer::write`, is there, and
        // the producer does not touch it until the tail has passed it.
        unsafe {
            let entry = &*memory.add(offset).cast::<RingEntryHeader>();
            let mut from = memory.add(offset + size_of::<RingEntryHeader>());
            let [
                method,
                target,
                host,
                referer,
                user_agent,
                user,
                detail,
                asked,
            ] = entry.lengths.map(|length| {
                let text = std::slice::from_raw_parts(from, usize::from(length));
                from = from.add(usize::from(length));
                text
            });
            (
                entry,
                Texts {
                    method,
                    target,
                    host,
                    referer,
                    user_agent,
                    user,
                    detail,
                    asked,
                },
            )
        }
    }
}

/// What both ends see. Fields of one writer share a cache line, those of different writers never
/// do.
#[derive(Debug)]
struct RecordRing {
    written: ProducerState,
    read: ConsumerState,
    wake: Wake,
    memory: Box<[Word]>,
    capacity: usize,
}

// SAFETY: `memory` is the only part that is not `Sync` by itself. Which end may touch which part of
// it follows from head and tail (see the top of the file); there is one producer and one consumer.
unsafe impl Sync for RecordRing {}

/// Written by the producer.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ProducerState {
    head: AtomicUsize,
    dropped: AtomicU64,
    finished: AtomicBool,
}

/// Written by the consumer, often.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ConsumerState {
    tail: AtomicUsize,
}

/// Written by either, but only around a sleep; the producer reads it at every push.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Wake {
    armed: AtomicBool,
    reader: OnceLock<Thread>,
}

impl Wake {
    #[cold]
    fn wake_if_armed(&self) {
        if self.armed.swap(false, AcqRel) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        if let Some(reader) = self.reader.get() {
            reader.unpark();
        }
    }
}

const TEXTS: usize = 8;
const WORD_BYTES: usize = size_of::<Word>();
const ENTRY_BYTES_MAX: usize = (size_of::<RingEntryHeader>()
    + METHOD_BYTES_MAX
    + TARGET_BYTES_MAX
    + HOST_BYTES_MAX
    + REFERER_BYTES_MAX
    + USER_AGENT_BYTES_MAX
    + USER_BYTES_MAX
    + DETAIL_BYTES_MAX
    + ASKED_BYTES_MAX)
    .next_multiple_of(WORD_BYTES);

const _: () = assert!(align_of::<RingEntryHeader>() <= align_of::<Word>());
const _: () = assert!(size_of::<RingEntryHeader>().is_multiple_of(WORD_BYTES));
const _: () = assert!(
    ENTRY_BYTES_MAX * 2 <= RING_BYTES_MIN,
    "an entry fits whatever the offset"
);
const _: () = assert!(TARGET_BYTES_MAX <= u16::MAX as usize && RING_BYTES_MIN.is_power_of_two());

type Word = UnsafeCell<MaybeUninit<u64>>;

/// What stands before the texts.
#[repr(C)]
struct RingEntryHeader {
    size: u32,
    lengths: [u16; TEXTS],
    record: Record,
}

/// Where the entry after one of `size` bytes at `position` starts: right behind it, or at the start
/// of the next lap when that would be past the capacity.
#[inline]
fn position_after(position: usize, size: usize, mask: usize) -> usize {
    let offset = position & mask;
    position.wrapping_add(size.min(mask + 1 - offset))
}

#[inline]
fn cut(text: &[u8], bytes_max: usize) -> &[u8] {
    &text[..text.len().min(bytes_max)]
}

/// Copies a text. Most are empty or short.
///
/// # Safety
/// `to` has room for the text.
#[inline]
unsafe fn copy(text: &[u8], to: *mut u8) {
    // SAFETY: the caller's promise; the text is borrowed from elsewhere and cannot overlap the
    // ring.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len()) }
}

#[cfg(test)]
mod tests;
