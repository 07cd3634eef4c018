//! Making a cache entry from a file: look, read what is small, note what stands beside it.

use std::borrow::Cow;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hob_http::date::imf_fixdate;
use rustix::io::{Errno, ReadWriteFlags};

use crate::cache::entry::{CachedFile, CachedFileParts, Key, OpenFile, Representation, Stamp};
use crate::handle::config::{self, CacheMode, Coding};
use crate::handle::files::Files;
use crate::handle::files::open::{FileOpenError, FileOrFolder, May, RootDir};
use crate::handle::files::precompressed::{NeighbourQuery, Neighbours};

/// What a path below a files route is.
pub enum Loaded {
    /// A file that can be served.
    File(Arc<CachedFile>),
    /// A folder asked for without its final slash.
    FolderWithoutSlash,
    /// A folder without an index file.
    Folder,
}

/// When a file is looked at, and what holds then.
#[derive(Clone, Copy, Debug)]
pub struct FileLoadContext {
    /// Loop time, in milliseconds.
    pub now_ms: u64,
    /// How old what is known of a file may get, in milliseconds.
    pub recheck_ms: u64,
    /// Largest content held in memory, in bytes; pinned files are always held.
    pub content_bytes_max: u64,
}

/// How names of files end that line after line is written to. Nothing the kernel tells of a file
/// shows whether it was appended to or overwritten.
const APPENDED_ENDINGS: &[&[u8]] = &[b".log"];

/// Reads of a file that changes meanwhile are tried again so often.
const TRIES: usize = 3;

/// What stands at a path below a files route.
pub enum Resolved<'a> {
    /// The file that answers: its path below the root, open, and its state.
    File(Cow<'a, [u8]>, OwnedFd, Stamp),
    /// A folder asked for without its final slash.
    FolderWithoutSlash,
    /// A folder without an index file.
    Folder,
}

/// Finds what answers for `path` (normal, without its first slash): the file itself, or a folder's
/// index.
pub fn resolve<'a>(
    settings: &config::Files,
    dir: &RootDir,
    path: &'a [u8],
    may: May,
) -> Result<Resolved<'a>, FileOpenError> {
    let symlinks = settings.symlinks;
    let is_folder_path = path.is_empty() || path.ends_with(b"/");
    if !is_folder_path {
        return match dir.look(path, symlinks, may)? {
            FileOrFolder::Folder => Ok(Resolved::FolderWithoutSlash),
            FileOrFolder::File(fd, stamp) => Ok(Resolved::File(path.into(), fd, stamp)),
        };
    }
    let folder = path.strip_suffix(b"/").unwrap_or(path);
    match dir.look(folder, symlinks, may)? {
        FileOrFolder::File(..) => return Err(FileOpenError::Missing),
        FileOrFolder::Folder => {}
    }
    for index in &settings.index {
        let file = [path, index.as_bytes()].concat();
        match dir.look(&file, symlinks, may) {
            Ok(FileOrFolder::File(fd, stamp)) => return Ok(Resolved::File(file.into(), fd, stamp)),
            Ok(FileOrFolder::Folder) | Err(FileOpenError::Missing) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(Resolved::Folder)
}

/// The precompressed files beside a file, of those that may be there: their codings, open, and
/// their states. One that cannot be read is passed over.
pub(super) fn siblings(
    settings: &config::Files,
    dir: &RootDir,
    path: &[u8],
    neighbours: &Neighbours,
    may: May,
) -> Result<Vec<(Coding, OwnedFd, Stamp)>, FileOpenError> {
    let mut found = Vec::new();
    let codings = settings.precompressed.iter();
    for &coding in codings.filter(|&&coding| neighbours.may_be(coding)) {
        let beside = [path, suffix(coding)].concat();
        match dir.look(&beside, settings.symlinks, may) {
            Ok(FileOrFolder::File(fd, stamp)) => found.push((coding, fd, stamp)),
            Err(FileOpenError::WouldWait) => return Err(FileOpenError::WouldWait),
            Ok(FileOrFolder::Folder) | Err(_) => {}
        }
    }
    Ok(found)
}

/// What may stand beside a file that was just found.
fn neighbours(
    files: &Files,
    dir: &Arc<RootDir>,
    path: &[u8],
    moment: FileLoadContext,
    may: May,
) -> Result<Neighbours, FileOpenError> {
    let query = NeighbourQuery {
        path,
        symlinks: files.settings.symlinks,
        now_ms: moment.now_ms,
        age_ms: moment.recheck_ms / 2,
        may,
    };
    dir.neighbours(&query, &files.pool)
}

/// Looks up `path` (normal, without its first slash) and makes an entry of what is there, as it is
/// at `moment` or later.
pub fn load(
    files: &Files,
    key: &Key,
    path: &[u8],
    moment: FileLoadContext,
    may: May,
) -> Result<Loaded, FileOpenError> {
    let as_of_ms = files
        .root
        .refresh(moment.now_ms, moment.recheck_ms / 2, may)?;
    let dir = files.root.dir();
    match resolve(&files.settings, &dir, path, may)? {
        Resolved::FolderWithoutSlash => Ok(Loaded::FolderWithoutSlash),
        Resolved::Folder => Ok(Loaded::Folder),
        Resolved::File(file, fd, stamp) => {
            let loading = Loading {
                files,
                dir: &dir,
                content_bytes_max: match files.settings.cache {
                    CacheMode::Pin => u64::MAX,
                    _ => moment.content_bytes_max,
                },
                may,
            };
            let index = file.strip_prefix(path).filter(|name| !name.is_empty());
            let index = index.map(Box::from);
            let neighbours = neighbours(files, &dir, &file, moment, may)?;
            let entry = loading.entry((key, index), &file, (fd, stamp), &neighbours)?;
            entry.set_looked(neighbours.as_of_ms.min(as_of_ms));
            Ok(Loaded::File(Arc::new(entry)))
        }
    }
}

/// The states of the file that answers for `path` and of its precompressed siblings.
pub struct Survey {
    /// The file's, then its siblings' with their codings.
    pub stamps: Vec<(Option<Coding>, Stamp)>,
    /// The moment of which they are known, in milliseconds.
    pub as_of_ms: u64,
}

/// A file of which the kernel tells changes is looked at after so many times `recheck` all the
/// same: of some it does not tell, such as those through memory.
const RECHECKS_SPARED: u64 = 16;

/// The moment until which an entry is known to be as it was looked at, in milliseconds: the kernel
/// would have told. `None` when it must be looked at again. Asks for no file.
pub fn unchanged_until_ms(
    files: &Files,
    entry: &CachedFile,
    path: &[u8],
    moment: FileLoadContext,
) -> Option<u64> {
    let looked_ms = entry.looked_ms();
    // Of what is done through another name it tells nothing either.
    let is_told = entry.stored.iter().all(|one| one.stamp.links == 1);
    if !is_told || moment.now_ms >= looked_ms + RECHECKS_SPARED * moment.recheck_ms {
        return None;
    }
    let age_ms = moment.recheck_ms / 2;
    let (root, may) = (&files.root, May::TouchMemoryOnly);
    let as_of_ms = root.refresh(moment.now_ms, age_ms, may).ok()?;
    let file = match &entry.index {
        None => Cow::from(path),
        Some(index) => [path, index].concat().into(),
    };
    let query = NeighbourQuery {
        path: &file,
        symlinks: files.settings.symlinks,
        now_ms: moment.now_ms,
        age_ms,
        may,
    };
    let codings = entry.stored.iter().map(|one| one.coding);
    let until_ms = root.dir().unchanged_until_ms(&query, codings, looked_ms)?;
    Some(until_ms.min(as_of_ms))
}

/// Looks at what answers for `path`, without reading it.
pub fn survey(
    files: &Files,
    path: &[u8],
    moment: FileLoadContext,
    may: May,
) -> Result<Survey, FileOpenError> {
    let as_of_ms = files
        .root
        .refresh(moment.now_ms, moment.recheck_ms / 2, may)?;
    let dir = files.root.dir();
    let Resolved::File(file, _, stamp) = resolve(&files.settings, &dir, path, may)? else {
        return Err(FileOpenError::Missing);
    };
    let neighbours = neighbours(files, &dir, &file, moment, may)?;
    let mut stamps = vec![(None, stamp)];
    for (coding, _, stamp) in siblings(&files.settings, &dir, &file, &neighbours, may)? {
        stamps.push((Some(coding), stamp));
    }
    let as_of_ms = neighbours.as_of_ms.min(as_of_ms);
    Ok(Survey { stamps, as_of_ms })
}

/// How an entry is made.
struct Loading<'a> {
    files: &'a Files,
    dir: &'a RootDir,
    content_bytes_max: u64,
    may: May,
}

impl Loading<'_> {
    fn entry(
        &self,
        (key, index): (&Key, Option<Box<[u8]>>),
        path: &[u8],
        (fd, stamp): (OwnedFd, Stamp),
        neighbours: &Neighbours,
    ) -> Result<CachedFile, FileOpenError> {
        let settings = &self.files.settings;
        let kind = self.files.kind_of(file_name(path));
        let file = self.representation(path, None, fd, stamp)?;
        let stamp = file.stamp;
        let may_compress = stamp.size >= settings.compress_min
            && stamp.size <= COMPRESS_BYTES_MAX
            && kind.is_compressible;
        let mut stored = vec![file];
        for (coding, fd, sibling) in siblings(settings, self.dir, path, neighbours, self.may)? {
            stored.push(self.representation(path, Some(coding), fd, sibling)?);
        }
        let now_ns = unix_ns();
        let is_settled = stored.iter().all(|one| is_settled(&one.stamp, now_ns));
        let modified_secs = u64::try_from(stamp.modified_ns / 1_000_000_000).unwrap_or(0);
        let parts = CachedFileParts {
            key: key.clone(),
            varies: stored.len() > 1 || may_compress,
            index,
            media_type: kind.media_type,
            modified_secs,
            modified_text: imf_fixdate(modified_secs as i64),
            is_settled,
            may_compress,
            stored: stored.into(),
            is_pinned: settings.cache == CacheMode::Pin,
        };
        Ok(CachedFile::new(parts, 0))
    }

    /// One representation, its content read when it is small. The content is that of one state of
    /// the file: when it changes while it is read, it is read again.
    fn representation(
        &self,
        path: &[u8],
        coding: Option<Coding>,
        fd: OwnedFd,
        mut stamp: Stamp,
    ) -> Result<Representation, FileOpenError> {
        let is_held = stamp.size <= self.content_bytes_max;
        let mut content = None;
        if is_held {
            for _ in 0..TRIES {
                if self.may == May::TouchMemoryOnly && stamp.size > READ_AT_ONCE_MAX {
                    return Err(FileOpenError::WouldWait);
                }
                let bytes = read_all(&fd, stamp.size, self.may)?;
                let after =
                    rustix::fs::fstat(&fd).map_err(|error| FileOpenError::Failed(error.into()))?;
                let after = Stamp::of(&after);
                if after == stamp && bytes.len() as u64 == stamp.size {
                    content = Some(Bytes::from(bytes));
                    break;
                }
                stamp = after;
            }
        }
        // A file that never stands still is sent from its descriptor as it is found then.
        let file = if content.is_none() {
            let file = OpenFile::new(fd, stamp, self.dir.is_local);
            let may_grow = APPENDED_ENDINGS.iter().any(|ending| path.ends_with(ending));
            Some(Arc::new(file.that_may_grow(may_grow)))
        } else {
            None
        };
        Ok(Representation {
            coding,
            stamp,
            len: stamp.size,
            entity_tag: entity_tag(&stamp, coding),
            content,
            file,
            head: OnceLock::new(),
        })
    }
}

/// Largest content a serving thread copies out of the kernel's memory by itself, in bytes.
const READ_AT_ONCE_MAX: u64 = 256 * 1024;

/// The last part of a path.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Largest file compressed on the fly, in bytes.
pub const COMPRESS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The name ending of a precompressed sibling.
pub(super) fn suffix(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
        Coding::Gzip => b".gz",
    }
}

/// The entity tag of a state of a file: time of change and size, and the coding. While the file may
/// yet change without its times showing it, the tag is made for this one look at it.
//= rfc9110#8.8.3
fn entity_tag(stamp: &Stamp, coding: Option<Coding>) -> Box<str> {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    let now_ns = unix_ns();
    let mut tag = format!("\"{:x}-{:x}", stamp.modified_ns, stamp.size);
    if !is_settled(stamp, now_ns) {
        let look = LOOKS.fetch_add(1, Ordering::Relaxed);
        tag.push_str(&format!("-{now_ns:x}-{look:x}"));
    }
    tag.push('"');
    coded_tag(&tag, coding)
}

/// The entity tag of a file's representation in a coding, from the file's own.
pub fn coded_tag(tag: &str, coding: Option<Coding>) -> Box<str> {
    let suffix = match coding {
        None => return tag.into(),
        Some(Coding::Brotli) => "-br",
        Some(Coding::Zstd) => "-zst",
        Some(Coding::Gzip) => "-gz",
    };
    format!("{}{suffix}\"", tag.trim_end_matches('"')).into()
}

/// True when whatever changes the file from now on gives it another time of change than the stamp
/// has. The kernel's clock for files stands still for up to ten milliseconds, that of some file
/// systems for up to two seconds.
pub(super) fn is_settled(stamp: &Stamp, now_ns: i64) -> bool {
    const FINE_NS: i64 = 50_000_000;
    const COARSE_NS: i64 = 2_000_000_000;
    let is_coarse = stamp.changed_ns % 1_000_000_000 == 0;
    let tick_ns = if is_coarse { COARSE_NS } else { FINE_NS };
    now_ns.saturating_sub(stamp.changed_ns).saturating_abs() > tick_ns
}

pub(super) fn unix_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as i64)
}

/// Reads a whole file. On a serving thread only what is in memory.
fn read_all(fd: &OwnedFd, size: u64, may: May) -> Result<Vec<u8>, FileOpenError> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut bytes = vec![0; size];
    let mut filled = 0;
    let flags = match may {
        May::TouchMemoryOnly => ReadWriteFlags::NOWAIT,
        May::Wait => ReadWriteFlags::empty(),
    };
    while filled < size {
        let mut room = [io::IoSliceMut::new(&mut bytes[filled..])];
        match rustix::io::preadv2(fd, &mut room, filled as u64, flags) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::OPNOTSUPP) if may == May::TouchMemoryOnly => {
                return Err(FileOpenError::WouldWait);
            }
            Err(error) => return Err(FileOpenError::Failed(error.into())),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
