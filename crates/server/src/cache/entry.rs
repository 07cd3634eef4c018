//! One file as it stood when it was last looked at: its identity, its representations, its texts.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hob_http::PreparedHead;
use rustix::fs::Stat;

use hob_config::Coding;

/// Which file: the files handler that asks, and the normal path below it.
pub type Key = Box<[u8]>;

/// The key of a path asked of a handler.
pub fn write_key(handler: u64, path: &[u8], key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&handler.to_ne_bytes());
    key.extend_from_slice(path);
}

/// The path that a key was made for.
pub fn path_of(key: &[u8]) -> &[u8] {
    key.get(size_of::<u64>()..).unwrap_or_default()
}

/// The handler that a key belongs to.
pub fn handler_of(key: &[u8]) -> Option<u64> {
    let (handler, _) = key.split_first_chunk()?;
    Some(u64::from_ne_bytes(*handler))
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Names that it has.
    pub links: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of content, in nanoseconds since the Unix epoch.
    pub modified_ns: i64,
    /// Time of the last change of anything, likewise.
    pub changed_ns: i64,
}

impl Stamp {
    /// The state of an open file. Attributes are in memory once a local file is open.
    pub fn of(stat: &Stat) -> Stamp {
        // Of the years 1678 to 2261; what is farther away is taken for these.
        let nanos = |secs: i64, nanos: u64| {
            let whole = secs.saturating_mul(1_000_000_000);
            whole.saturating_add(nanos.cast_signed())
        };
        // Of 32 bits on some machines.
        #[allow(clippy::unnecessary_cast)]
        let links = stat.st_nlink as u64;
        Stamp {
            device: stat.st_dev,
            inode: stat.st_ino,
            links,
            size: stat.st_size.cast_unsigned(),
            modified_ns: nanos(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: nanos(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// A file that can be served, with all its representations.
pub struct CachedFile {
    /// Its key in the store.
    pub key: Key,
    /// Of a folder: the name of the file in it that answers.
    pub index: Option<Box<[u8]>>,
    /// `Content-Type`.
    pub media_type: Arc<str>,
    /// Time of the last change in seconds since the Unix epoch.
    pub modified_secs: u64,
    /// `Last-Modified`.
    pub modified_text: [u8; 29],
    /// When it was read, its last change was so long ago that any later one has another stamp. Else
    /// an equal stamp proves nothing.
    pub is_settled: bool,
    /// There are, or can be, representations in other codings.
    pub varies: bool,
    /// It may be compressed on the fly.
    pub may_compress: bool,
    /// The file itself, then its precompressed siblings.
    pub stored: Box<[Representation]>,
    made: [OnceLock<Box<Representation>>; 3],
    is_making: [AtomicBool; 3],
    checked_ms: AtomicU64,
    looked_ms: AtomicU64,
    is_retired: AtomicBool,
    /// How often it was asked for, 0 to 3.
    pub(super) heat: AtomicU8,
    /// How often it was asked for and at hand, as far as threads have told.
    hits: AtomicU64,
    /// Never thrown out to make room.
    pub is_pinned: bool,
    /// Memory counted for it, in bytes.
    pub memory_bytes: AtomicU64,
}

/// One representation of a file.
pub struct Representation {
    /// Its content coding; `None` is the file as it is.
    pub coding: Option<Coding>,
    /// The state of the file that it is, or was made of.
    pub stamp: Stamp,
    /// Size in bytes.
    pub len: u64,
    /// Its entity tag, with quotes.
    pub entity_tag: Box<str>,
    /// The bytes, when they are held in memory.
    pub content: Option<Bytes>,
    /// The open file, when they are not.
    pub file: Option<Arc<OpenFile>>,
    /// The head of whole answers, once there was one.
    pub head: OnceLock<PreparedHead>,
}

/// An open regular file.
pub struct OpenFile {
    fd: OwnedFd,
    /// Its state when it was looked at.
    pub stamp: Stamp,
    /// On a file system whose reads of cached pages never wait.
    pub is_local: bool,
    /// It is only ever appended to, so it may grow while it is sent.
    may_grow: bool,
    /// When all of it was last seen in memory, in milliseconds; 0 is never.
    seen_resident_ms: AtomicU64,
    /// Its bytes, for answers that cannot leave by sendfile.
    copy: OnceLock<Bytes>,
    is_copying: AtomicBool,
}

/// How long a file that was seen in memory is taken to be there still. Pages read this recently are
/// the last that the kernel gives up.
const RESIDENT_MS: u64 = 100;

impl OpenFile {
    /// Takes an open descriptor.
    pub fn new(fd: OwnedFd, stamp: Stamp, is_local: bool) -> OpenFile {
        OpenFile {
            fd,
            stamp,
            is_local,
            may_grow: false,
            seen_resident_ms: AtomicU64::new(0),
            copy: OnceLock::new(),
            is_copying: AtomicBool::new(false),
        }
    }

    /// The same file where it may grow while it is sent: it is only appended to.
    pub fn that_may_grow(self, may_grow: bool) -> OpenFile {
        OpenFile { may_grow, ..self }
    }

    /// Its bytes in our memory, once they were found worth that.
    pub fn copy(&self) -> Option<&Bytes> {
        self.copy.get()
    }

    /// True for the one caller that is to copy it into memory.
    pub fn begin_copying(&self) -> bool {
        !self.is_copying.load(Ordering::Relaxed) && !self.is_copying.swap(true, Ordering::AcqRel)
    }

    /// It was not copied after all: another caller may try.
    pub fn may_be_copied_later(&self) {
        self.is_copying.store(false, Ordering::Release);
    }

    /// All of it is in memory now.
    pub fn set_resident(&self, now_ms: u64) {
        self.seen_resident_ms.store(now_ms, Ordering::Relaxed);
    }

    /// All of it was in memory a moment ago.
    pub fn was_resident(&self, now_ms: u64) -> bool {
        now_ms < self.seen_resident_ms.load(Ordering::Relaxed) + RESIDENT_MS
    }

    /// Its state now.
    pub fn now(&self) -> rustix::io::Result<Stamp> {
        rustix::fs::fstat(&self.fd).map(|stat| Stamp::of(&stat))
    }

    /// True while its first `stamp.size` bytes are still those of that state, as far as can be
    /// known: it was not written to, or it is one that is only appended to and has grown. That a
    /// file has grown says nothing by itself: it may have been overwritten by a longer one. Names
    /// and rights may change.
    pub fn keeps_its_bytes(&self) -> bool {
        self.now().is_ok_and(|now| {
            (self.may_grow && now.size > self.stamp.size)
                || (now.size == self.stamp.size && now.modified_ns == self.stamp.modified_ns)
        })
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Memory of an entry without its key and its contents, in bytes: its texts and prepared heads, its
/// places in maps and queues.
const ENTRY_BYTES: u64 = 1200;

impl CachedFile {
    /// A new entry, looked at now.
    pub fn new(parts: CachedFileParts, now_ms: u64) -> CachedFile {
        let held: u64 = parts.stored.iter().map(held_bytes).sum();
        CachedFile {
            memory_bytes: AtomicU64::new(ENTRY_BYTES + parts.key.len() as u64 + held),
            key: parts.key,
            index: parts.index,
            media_type: parts.media_type,
            modified_secs: parts.modified_secs,
            modified_text: parts.modified_text,
            is_settled: parts.is_settled,
            varies: parts.varies,
            may_compress: parts.may_compress,
            stored: parts.stored,
            made: Default::default(),
            is_making: Default::default(),
            checked_ms: AtomicU64::new(now_ms),
            looked_ms: AtomicU64::new(now_ms),
            is_retired: AtomicBool::new(false),
            heat: AtomicU8::new(0),
            hits: AtomicU64::new(0),
            is_pinned: parts.is_pinned,
        }
    }

    /// The file's path below its handler's root.
    pub fn file_path(&self) -> (&[u8], &[u8]) {
        let folder_or_file = path_of(&self.key);
        (folder_or_file, self.index.as_deref().unwrap_or_default())
    }

    /// True when these are the states of the file and of its precompressed siblings.
    pub fn has_stamps(&self, stamps: &[(Option<Coding>, Stamp)]) -> bool {
        let own = self.stored.iter().map(|one| (one.coding, one.stamp));
        stamps.iter().copied().eq(own)
    }

    /// The file as it is.
    pub fn identity(&self) -> &Representation {
        &self.stored[0]
    }

    /// The representation in this coding if there is one, else the file as it is.
    pub fn representation(&self, coding: Option<Coding>) -> &Representation {
        coding
            .and_then(|coding| self.coded(coding))
            .unwrap_or_else(|| self.identity())
    }

    /// The representation in this coding, if there is one.
    pub fn coded(&self, coding: Coding) -> Option<&Representation> {
        self.stored
            .iter()
            .find(|one| one.coding == Some(coding))
            .or_else(|| self.made[coding as usize].get().map(Box::as_ref))
    }

    /// Keeps a representation made on the fly; returns the memory it takes.
    pub fn keep_made(&self, made: Representation) -> u64 {
        let Some(coding) = made.coding else { return 0 };
        let bytes = held_bytes(&made);
        if self.made[coding as usize].set(Box::new(made)).is_err() {
            return 0;
        }
        self.memory_bytes.fetch_add(bytes, Ordering::Relaxed);
        bytes
    }

    /// Keeps the bytes of one of its open files; returns the memory they take.
    pub fn keep_copy(&self, file: &OpenFile, bytes: Bytes) -> u64 {
        let len = bytes.len() as u64;
        if file.copy.set(bytes).is_err() {
            return 0;
        }
        self.memory_bytes.fetch_add(len, Ordering::Relaxed);
        len
    }

    /// True for the one caller that is to make this coding.
    pub fn begin_making(&self, coding: Coding) -> bool {
        !self.is_making[coding as usize].swap(true, Ordering::AcqRel)
    }

    /// It was not made after all: another caller may try.
    pub fn may_be_made_later(&self, coding: Coding) {
        self.is_making[coding as usize].store(false, Ordering::Release);
    }

    /// Making failed, or gave nothing smaller: it is not tried again.
    pub fn gave_up_making(&self, coding: Coding) {
        self.is_making[coding as usize].store(true, Ordering::Release);
    }

    /// When it was last known to be as it is, in milliseconds.
    pub fn checked_ms(&self) -> u64 {
        self.checked_ms.load(Ordering::Relaxed)
    }

    /// Nobody told of a change until then.
    pub fn set_checked(&self, now_ms: u64) {
        self.checked_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// When it was last looked at, in milliseconds.
    pub fn looked_ms(&self) -> u64 {
        self.looked_ms.load(Ordering::Relaxed)
    }

    /// It was looked at and has not changed.
    pub fn set_looked(&self, now_ms: u64) {
        self.looked_ms.fetch_max(now_ms, Ordering::Relaxed);
        self.set_checked(now_ms);
    }

    /// True when the open files of this entry are what its head says of them. Those whose file
    /// system may have to be asked are believed: their bytes are looked at when they are read.
    pub fn open_files_stand(&self) -> bool {
        self.stored.iter().all(|one| match &one.file {
            Some(file) if file.is_local => file.now().is_ok_and(|now| now == file.stamp),
            _ => true,
        })
    }

    /// Open files it holds.
    pub fn descriptor_count(&self) -> usize {
        self.stored.iter().filter(|one| one.file.is_some()).count()
    }

    /// True once it is no longer in the store: it must not be served.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    /// True once it was asked for again and again.
    pub fn is_hot(&self) -> bool {
        self.heat.load(Ordering::Relaxed) == 3
    }

    /// How often it was asked for lately, up to 3.
    pub fn heat(&self) -> u8 {
        self.heat.load(Ordering::Relaxed)
    }

    /// How often it was asked for and at hand, as far as threads have told.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// A thread tells.
    pub fn add_hits(&self, hits: u64) {
        self.hits.fetch_add(hits, Ordering::Relaxed);
    }

    /// It was asked for.
    pub fn warm_up(&self) {
        let heat = self.heat.load(Ordering::Relaxed);
        if heat < 3 {
            self.heat.store(heat + 1, Ordering::Relaxed);
        }
    }
}

/// An entry that maps find by its key, without a key of their own.
pub struct ByKey(pub Arc<CachedFile>);

impl Borrow<[u8]> for ByKey {
    fn borrow(&self) -> &[u8] {
        &self.0.key
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &ByKey) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

/// What a [`CachedFile`] is made of.
pub struct CachedFileParts {
    /// See [`CachedFile::key`].
    pub key: Key,
    /// See [`CachedFile::index`].
    pub index: Option<Box<[u8]>>,
    /// See [`CachedFile::media_type`].
    pub media_type: Arc<str>,
    /// See [`CachedFile::modified_secs`].
    pub modified_secs: u64,
    /// See [`CachedFile::modified_text`].
    pub modified_text: [u8; 29],
    /// See [`CachedFile::is_settled`].
    pub is_settled: bool,
    /// See [`CachedFile::varies`].
    pub varies: bool,
    /// See [`CachedFile::may_compress`].
    pub may_compress: bool,
    /// See [`CachedFile::stored`]; the file itself first.
    pub stored: Box<[Representation]>,
    /// See [`CachedFile::is_pinned`].
    pub is_pinned: bool,
}

fn held_bytes(one: &Representation) -> u64 {
    one.content
        .as_ref()
        .map_or(0, |content| content.len() as u64)
}
