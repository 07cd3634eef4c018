//! The region: its layout, making it, and reaching what lies in it.
//!
//! One memfd per worker, sealed before the worker sees it (SHRINK, GROW, SEAL: no access can ever
//! run past its end), mapped by the server and that worker. All numbers little-endian; positions
//! are offsets from its start. With the default sizes:
//!
//! ```text
//!      0  u32 magic "hobm"    4 u32 layout 1      8 u32 bytes of the region   12 u32 slots
//!     16  u32 ring to the worker at              20 u32 ring to the server at
//!     24  u32 bytes of a ring                    28 u32 chunks at
//!     32  u32 count of chunks                    36 u32 bytes of a chunk, 65536
//!     64  u32 tail of the ring to the worker     the server writes
//!    128  u32 head of the ring to the worker     the worker writes
//!    192  u32 tail of the ring to the server     the worker writes
//!    256  u32 head of the ring to the server     the server writes
//!    320  u32 the worker's sleep word            the worker sets it, the server clears it
//!    384  u32 the server's sleep word            the server sets it, the worker clears it
//!   1024  32 x u32 chunk words, every 64 bytes   1 taken: the worker; 0 free: the server, or the
//!                                                worker if it did not send it
//!   4096  64 x u32 slot words, every 64 bytes    see `slot`; where there are more slots, all that
//!                                                follows lies so much further back
//!   8192  ring to the worker, 256 KiB            the server writes between tail and head
//! 270336  ring to the server, 256 KiB            the worker writes between tail and head
//! 532480  32 chunks of 64 KiB                    the worker writes those it took and has not sent
//! ```
//!
//! There are as many slots as requests may be handed over at a time, in steps of 64, 64 at least. A
//! library of the time when there always were 64 takes a region with more for one it cannot read,
//! and uses the socket.
//!
//! The header is written before the worker exists; the server never reads it back. The worker
//! believes its numbers after a check against the size of the memfd.
//!
//! Invariants that reasons of `unsafe` blocks name:
//! - **mapped**: `start..start + bytes` is mapped readable and writable until the `Region` is
//!   dropped, and cannot shrink.
//! - **inside**: an offset and length were checked to lie in the region (words: multiples of 4).
//! - **foreign**: the other process may write at any time. Words are touched as atomics only;
//!   bytes are only copied by raw pointers, and no reference to them is ever made.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::lie::Lie;
use super::word::Bytes;
use crate::limits::{MESSAGE_BYTES_MAX, PAYLOAD_BYTES_MAX, RING_DATA_BYTES_MAX};

const MAGIC: u32 = u32::from_le_bytes(*b"hobm");
const LAYOUT: u32 = 1;

/// Slots come in so many: at least one such step.
pub const SLOT_STEP: usize = 64;
/// How many requests can be handed over at a time, at most.
pub const SLOT_COUNT_MAX: usize = 1088;
/// How many chunks there are at most, and at least: some for clients that take their time, and some
/// to go on with.
pub const CHUNK_COUNT_MAX: usize = 32;
/// See [`CHUNK_COUNT_MAX`].
pub const CHUNK_COUNT_MIN: usize = 4;
/// Bytes of a chunk at most: as much as a message may have.
pub const CHUNK_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;
/// Bytes of a chunk at least: what is less travels in the ring. A chunk has whole pages.
pub const CHUNK_BYTES_MIN: usize = PAGE;

const LINE: usize = 64;
const CHUNK_WORDS_AT: usize = 1024;
const SLOT_WORDS_AT: usize = 4096;
const PAGE: usize = 4096;
const REGION_BYTES_MAX: usize = 64 * 1024 * 1024;

const _: () = assert!(CHUNK_WORDS_AT + CHUNK_COUNT_MAX * LINE <= SLOT_WORDS_AT);
// Rings begin with a page.
const _: () =
    assert!((SLOT_STEP * LINE).is_multiple_of(PAGE) && SLOT_WORDS_AT.is_multiple_of(PAGE));
const _: () = assert!(SLOT_COUNT_MAX.is_multiple_of(SLOT_STEP));
const _: () = assert!(RING_DATA_BYTES_MAX <= CHUNK_BYTES_MIN);

/// Words at fixed places.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum WordOffset {
    /// Tail of the ring to the worker.
    ToWorkerTail = 64,
    /// Head of the ring to the worker.
    ToWorkerHead = 128,
    /// Tail of the ring to the server.
    ToServerTail = 192,
    /// Head of the ring to the server.
    ToServerHead = 256,
    /// The worker's sleep word.
    WorkerSleep = 320,
    /// The server's sleep word.
    ServerSleep = 384,
}

/// How large a region is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Slots: a multiple of [`SLOT_STEP`], [`SLOT_COUNT_MAX`] at most.
    pub slot_count: usize,
    /// Bytes of each ring: a power of two that holds the longest message.
    pub ring_bytes: usize,
    /// Chunks, [`CHUNK_COUNT_MIN`] to [`CHUNK_COUNT_MAX`].
    pub chunk_count: usize,
    /// Bytes of a chunk: whole pages, [`CHUNK_BYTES_MIN`] to [`CHUNK_BYTES_MAX`].
    pub chunk_bytes: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            slot_count: SLOT_STEP,
            ring_bytes: 256 * 1024,
            chunk_count: CHUNK_COUNT_MAX,
            chunk_bytes: CHUNK_BYTES_MAX,
        }
    }
}

impl Sizes {
    fn check(self) -> Result<Sizes, &'static str> {
        let Sizes {
            slot_count,
            ring_bytes,
            chunk_count,
            chunk_bytes,
        } = self;
        if !(SLOT_STEP..=SLOT_COUNT_MAX).contains(&slot_count)
            || !slot_count.is_multiple_of(SLOT_STEP)
        {
            return Err("so many slots are not possible");
        }
        if !ring_bytes.is_power_of_two()
            || !(MESSAGE_BYTES_MAX..=REGION_BYTES_MAX / 4).contains(&ring_bytes)
        {
            return Err("a ring of that size is not possible");
        }
        if !(CHUNK_COUNT_MIN..=CHUNK_COUNT_MAX).contains(&chunk_count) {
            return Err("so many chunks are not possible");
        }
        if !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_bytes)
            || !chunk_bytes.is_multiple_of(PAGE)
        {
            return Err("chunks of that size are not possible");
        }
        Ok(self)
    }

    /// These sizes with slots for so many requests, or as many as there may be.
    #[must_use]
    pub fn with_slots_for(self, requests: usize) -> Sizes {
        let slot_count = requests.next_multiple_of(SLOT_STEP);
        Sizes {
            slot_count: slot_count.clamp(SLOT_STEP, SLOT_COUNT_MAX),
            ..self
        }
    }

    fn rings_at(self) -> usize {
        SLOT_WORDS_AT + self.slot_count * LINE
    }

    fn chunks_at(self) -> usize {
        self.rings_at() + 2 * self.ring_bytes
    }

    fn region_bytes(self) -> usize {
        self.chunks_at() + self.chunk_count * self.chunk_bytes
    }

    fn header(self) -> [u32; 10] {
        [
            MAGIC,
            LAYOUT,
            self.region_bytes() as u32,
            self.slot_count as u32,
            self.rings_at() as u32,
            (self.rings_at() + self.ring_bytes) as u32,
            self.ring_bytes as u32,
            self.chunks_at() as u32,
            self.chunk_count as u32,
            self.chunk_bytes as u32,
        ]
    }
}

/// The region, mapped.
#[derive(Debug)]
pub struct Region {
    start: *mut u8,
    bytes: usize,
    sizes: Sizes,
}

// SAFETY: mapped: the memory is the process's, not a thread's; foreign: other threads write no
// differently from the other process.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Makes a region; the descriptor is for the worker.
    ///
    /// # Errors
    ///
    /// What the system says: no memory, no descriptors. Sizes that are not possible are
    /// `InvalidInput`.
    pub fn create(sizes: Sizes) -> io::Result<(Region, OwnedFd)> {
        let sizes = sizes
            .check()
            .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let fd = memfd()?;
        rustix::fs::ftruncate(&fd, sizes.region_bytes() as u64)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&fd, seals)?;
        let region = Region::map(fd.as_fd(), sizes)?;
        for (place, number) in sizes.header().into_iter().enumerate() {
            let order = std::sync::atomic::Ordering::Relaxed;
            region.at(place * 4).store(number.to_le(), order);
        }
        Ok((region, fd))
    }

    /// Maps the region a server gave. A child of this process does not inherit the mapping.
    ///
    /// # Errors
    ///
    /// [`Lie::Header`] inside, when it is not a sealed region that this library can read.
    pub fn open(fd: BorrowedFd<'_>) -> io::Result<Region> {
        let lie = |what| io::Error::new(io::ErrorKind::InvalidData, Lie::Header(what));
        let bytes = rustix::fs::fstat(fd)?.st_size;
        let seals = rustix::fs::fcntl_get_seals(fd)?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(lie("it could shrink"));
        }
        let bytes = usize::try_from(bytes).map_err(|_| lie("it has no size"))?;
        let sizes = Sizes::default();
        if !(PAGE..=REGION_BYTES_MAX).contains(&bytes) {
            return Err(lie("it has another size than a region"));
        }
        let mut region = Region::map_bytes(fd, bytes, sizes)?;
        let number = |place: usize| {
            let order = std::sync::atomic::Ordering::Relaxed;
            u32::from_le(region.at(place * 4).load(order)) as usize
        };
        let sizes = Sizes {
            slot_count: number(3),
            ring_bytes: number(6),
            chunk_count: number(8),
            chunk_bytes: number(9),
        };
        let sizes = sizes.check().map_err(lie)?;
        let header: [u32; 10] = std::array::from_fn(|place| number(place) as u32);
        if header != sizes.header() || sizes.region_bytes() != bytes {
            return Err(lie("its layout is not known"));
        }
        region.sizes = sizes;
        // SAFETY: mapped; this only keeps the range from children of this process.
        unsafe { rustix::mm::madvise(region.start.cast(), bytes, Advice::LinuxDontFork)? };
        Ok(region)
    }

    fn map(fd: BorrowedFd<'_>, sizes: Sizes) -> io::Result<Region> {
        Region::map_bytes(fd, sizes.region_bytes(), sizes)
    }

    fn map_bytes(fd: BorrowedFd<'_>, bytes: usize, sizes: Sizes) -> io::Result<Region> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place the kernel chooses; it touches no memory of ours.
        let start = unsafe {
            let nowhere = std::ptr::null_mut();
            rustix::mm::mmap(nowhere, bytes, protection, MapFlags::SHARED, fd, 0)?
        };
        Ok(Region {
            start: start.cast(),
            bytes,
            sizes,
        })
    }

    /// Its sizes.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// A word at a fixed place.
    pub fn word(&self, place: WordOffset) -> &AtomicU32 {
        self.at(place as usize)
    }

    /// The word of a slot.
    ///
    /// # Panics
    ///
    /// When there is no such slot.
    pub fn slot(&self, index: usize) -> &AtomicU32 {
        assert!(
            index < self.sizes.slot_count,
            "slots are checked where they come in"
        );
        self.at(SLOT_WORDS_AT + index * LINE)
    }

    /// The word of a chunk.
    ///
    /// # Panics
    ///
    /// When there is no such chunk.
    pub fn chunk_word(&self, index: usize) -> &AtomicU32 {
        assert!(index < self.sizes.chunk_count, "chunks are checked");
        self.at(CHUNK_WORDS_AT + index * LINE)
    }

    /// The bytes of a chunk: [`Sizes::chunk_bytes`] of them, foreign.
    ///
    /// # Panics
    ///
    /// When there is no such chunk.
    pub fn chunk(&self, index: usize) -> *mut u8 {
        assert!(index < self.sizes.chunk_count, "chunks are checked");
        // SAFETY: inside, by the assertion.
        unsafe {
            self.start
                .add(self.sizes.chunks_at() + index * self.sizes.chunk_bytes)
        }
    }

    /// Appends a copy of a chunk's first bytes.
    ///
    /// # Panics
    ///
    /// When there is no such chunk, or it is shorter.
    pub fn copy_from_chunk(&self, index: usize, count: usize, out: &mut Vec<u8>) {
        assert!(count <= self.sizes.chunk_bytes, "chunks are checked");
        let from = self.chunk(index);
        out.reserve(count);
        // SAFETY: mapped; inside, by the assertions; foreign: a raw copy of bytes that may change
        // meanwhile, any of which are valid, into memory of ours that has room.
        unsafe {
            std::ptr::copy_nonoverlapping(from, out.as_mut_ptr().add(out.len()), count);
            out.set_len(out.len() + count);
        }
    }

    /// Copies bytes into a chunk, at an offset.
    ///
    /// # Panics
    ///
    /// When there is no such chunk, or they do not fit.
    pub fn copy_into_chunk(&self, index: usize, offset: usize, bytes: &[u8]) {
        let fits = offset.checked_add(bytes.len());
        assert!(
            fits.is_some_and(|end| end <= self.sizes.chunk_bytes),
            "whoever fills a chunk stays inside"
        );
        let place = self.chunk(index);
        // SAFETY: mapped; inside, by the assertions; foreign: a raw copy from memory of ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.add(offset), bytes.len()) }
    }

    /// The ring that the server writes.
    pub fn ring_to_worker(&self) -> RingBytes<'_> {
        RingBytes {
            region: self,
            at: self.sizes.rings_at(),
        }
    }

    /// The ring that the worker writes.
    pub fn ring_to_server(&self) -> RingBytes<'_> {
        RingBytes {
            region: self,
            at: self.sizes.rings_at() + self.sizes.ring_bytes,
        }
    }

    fn at(&self, offset: usize) -> &AtomicU32 {
        assert!(
            offset.is_multiple_of(4) && offset + 4 <= self.bytes,
            "inside"
        );
        // SAFETY: mapped and inside, by the assertion; foreign: it is only ever an atomic.
        unsafe { AtomicU32::from_ptr(self.start.add(offset).cast()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by this value alone; whatever points into it borrows it or holds it.
        let result = unsafe { rustix::mm::munmap(self.start.cast(), self.bytes) };
        debug_assert!(result.is_ok(), "a whole mapping of ours can be unmapped");
    }
}

/// A memfd that can be sealed and never executed, where the kernel knows that.
fn memfd() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create(c"hob-region", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => Ok(rustix::fs::memfd_create(c"hob-region", flags)?),
        result => Ok(result?),
    }
}

/// The bytes of one ring.
#[derive(Clone, Copy, Debug)]
pub struct RingBytes<'a> {
    region: &'a Region,
    at: usize,
}

impl RingBytes<'_> {
    fn pointer(&self, at: u32, count: usize) -> *mut u8 {
        let inside = (at as usize).checked_add(count);
        assert!(
            inside.is_some_and(|end| end <= self.region.sizes.ring_bytes),
            "a ring asks for its own bytes only"
        );
        // SAFETY: inside, by the assertion: both rings lie in the region.
        unsafe { self.region.start.add(self.at + at as usize) }
    }
}

impl Bytes for RingBytes<'_> {
    fn copy_in(&self, at: u32, bytes: &[u8]) {
        let to = self.pointer(at, bytes.len());
        // SAFETY: mapped, inside; foreign: a raw copy; `bytes` is memory of ours, so they do not
        // overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    fn copy_out(&self, at: u32, count: u32, out: &mut Vec<u8>) {
        let count = count as usize;
        let from = self.pointer(at, count);
        out.reserve(count);
        // SAFETY: mapped, inside; foreign: a raw copy of bytes that may change meanwhile, any of
        // which are valid; the target is memory of ours with room for them.
        unsafe {
            std::ptr::copy_nonoverlapping(from, out.as_mut_ptr().add(out.len()), count);
            out.set_len(out.len() + count);
        }
    }

    fn eight(&self, at: u32) -> [u8; 8] {
        let from = self.pointer(at, 8);
        let mut copy = [0; 8];
        // SAFETY: mapped, inside; foreign: a raw copy into memory of ours.
        unsafe { std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), 8) };
        copy
    }
}
