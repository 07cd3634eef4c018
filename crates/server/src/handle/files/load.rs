//! Making a cache entry from a file: look, read what is small, note what stands beside it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags};

use crate::cache::entry::{Entry, Key, OpenFile, Parts, Representation, Stamp};
use crate::config::{self, CacheMode, Coding};
use crate::handle::files::Files;
use crate::handle::files::open::{Found, May, RootDir, Trouble, stamp_of};
use crate::step::date::format_http_date;

/// What a path below a files route is.
pub enum Loaded {
    /// A file that can be served.
    File(Box<Entry>),
    /// A folder asked for without its final slash.
    FolderWithoutSlash,
    /// A folder without an index file.
    Folder,
}

/// Reads of a file that changes meanwhile are tried again so often.
const TRIES: usize = 3;

/// What stands at a path below a files route.
pub enum Resolved {
    /// The file that answers: its path below the root, open, and its state.
    File(Vec<u8>, OwnedFd, Stamp),
    /// A folder asked for without its final slash.
    FolderWithoutSlash,
    /// A folder without an index file.
    Folder,
}

/// Finds what answers for `path` (normal, without its first slash): the file itself, or a folder's
/// index.
pub fn resolve(
    settings: &config::Files,
    dir: &RootDir,
    path: &[u8],
    may: May,
) -> Result<Resolved, Trouble> {
    let symlinks = settings.symlinks;
    let is_folder_path = path.is_empty() || path.ends_with(b"/");
    if !is_folder_path {
        return match dir.look(path, symlinks, may)? {
            Found::Folder => Ok(Resolved::FolderWithoutSlash),
            Found::File(fd, stamp) => Ok(Resolved::File(path.to_vec(), fd, stamp)),
        };
    }
    let folder = path.strip_suffix(b"/").unwrap_or(path);
    match dir.look(folder, symlinks, may)? {
        Found::File(..) => return Err(Trouble::Missing),
        Found::Folder => {}
    }
    for index in &settings.index {
        let file = [path, index.as_bytes()].concat();
        match dir.look(&file, symlinks, may) {
            Ok(Found::File(fd, stamp)) => return Ok(Resolved::File(file, fd, stamp)),
            Ok(Found::Folder) | Err(Trouble::Missing) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(Resolved::Folder)
}

/// The precompressed files beside a file: their codings, open, and their states. One that cannot be
/// read is passed over.
pub fn siblings(
    settings: &config::Files,
    dir: &RootDir,
    path: &[u8],
    may: May,
) -> Result<Vec<(Coding, OwnedFd, Stamp)>, Trouble> {
    let mut found = Vec::new();
    for &coding in &settings.precompressed {
        let beside = [path, suffix(coding)].concat();
        match dir.look(&beside, settings.symlinks, may) {
            Ok(Found::File(fd, stamp)) => found.push((coding, fd, stamp)),
            Err(Trouble::WouldWait) => return Err(Trouble::WouldWait),
            Ok(Found::Folder) | Err(_) => {}
        }
    }
    Ok(found)
}

/// Looks up `path` (normal, without its first slash) and makes an entry of what is there.
/// `content_bytes_max` is the largest content held in memory.
pub fn load(
    files: &Files,
    key: &Key,
    path: &[u8],
    content_bytes_max: u64,
    now_ms: u64,
    may: May,
) -> Result<Loaded, Trouble> {
    let dir = files.root.dir();
    match resolve(&files.settings, &dir, path, may)? {
        Resolved::FolderWithoutSlash => Ok(Loaded::FolderWithoutSlash),
        Resolved::Folder => Ok(Loaded::Folder),
        Resolved::File(file, fd, stamp) => {
            let loading = Loading {
                files,
                dir: &dir,
                content_bytes_max,
                may,
            };
            let entry = loading.entry(key, &file, (fd, stamp), now_ms)?;
            Ok(Loaded::File(Box::new(entry)))
        }
    }
}

/// The states of the file that answers for `path` and of its precompressed siblings, as
/// [`Entry::stamps`] has them.
pub fn survey(
    files: &Files,
    path: &[u8],
    may: May,
) -> Result<Vec<(Option<Coding>, Stamp)>, Trouble> {
    let dir = files.root.dir();
    let Resolved::File(file, _, stamp) = resolve(&files.settings, &dir, path, may)? else {
        return Err(Trouble::Missing);
    };
    let mut stamps = vec![(None, stamp)];
    for (coding, _, stamp) in siblings(&files.settings, &dir, &file, may)? {
        stamps.push((Some(coding), stamp));
    }
    Ok(stamps)
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
        key: &Key,
        path: &[u8],
        (fd, stamp): (OwnedFd, Stamp),
        now_ms: u64,
    ) -> Result<Entry, Trouble> {
        let settings = &self.files.settings;
        let media = self.files.types.of(file_name(path));
        let (file, stamp) = self.representation(None, fd, stamp, stamp)?;
        let may_compress = stamp.size >= settings.compress_min
            && stamp.size <= COMPRESS_BYTES_MAX
            && !settings.compress.is_empty()
            && media.is_one_of(settings.compress_types.iter().map(String::as_str));
        let mut stamps = vec![(None, stamp)];
        let mut stored = vec![file];
        for (coding, fd, sibling) in siblings(settings, self.dir, path, self.may)? {
            let (one, sibling) = self.representation(Some(coding), fd, sibling, stamp)?;
            stamps.push((Some(coding), sibling));
            stored.push(one);
        }
        let modified_secs = u64::try_from(stamp.modified_ns / 1_000_000_000).unwrap_or(0);
        let parts = Parts {
            key: key.clone(),
            varies: stored.len() > 1 || may_compress,
            stamps,
            media_type: media.to_string(),
            modified_secs,
            modified_text: format_http_date(modified_secs as i64),
            may_compress,
            stored,
            is_pinned: settings.cache == CacheMode::Pin,
        };
        Ok(Entry::new(parts, now_ms))
    }

    /// One representation, its content read when it is small. The content is that of one state of
    /// the file: when it changes while it is read, it is read again. `original` is the state of the
    /// file itself.
    fn representation(
        &self,
        coding: Option<Coding>,
        fd: OwnedFd,
        mut stamp: Stamp,
        original: Stamp,
    ) -> Result<(Representation, Stamp), Trouble> {
        let is_held = stamp.size <= self.content_bytes_max;
        let mut content = None;
        if is_held {
            for _ in 0..TRIES {
                let bytes = read_all(&fd, stamp.size, self.may)?;
                let after =
                    rustix::fs::fstat(&fd).map_err(|error| Trouble::Failed(error.into()))?;
                let after = stamp_of(&after);
                if after == stamp && bytes.len() as u64 == stamp.size {
                    content = Some(Bytes::from(bytes));
                    break;
                }
                stamp = after;
            }
        }
        // A file that never stands still is sent from its descriptor as it is found then.
        let file = if content.is_none() {
            Some(Arc::new(OpenFile::new(fd, self.dir.is_local)))
        } else {
            None
        };
        let tagged = if coding.is_none() { stamp } else { original };
        let one = Representation {
            coding,
            len: stamp.size,
            entity_tag: entity_tag(&tagged, coding),
            content,
            file,
        };
        Ok((one, stamp))
    }
}

/// The last part of a path.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Largest file compressed on the fly, in bytes.
pub const COMPRESS_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The name ending of a precompressed sibling.
fn suffix(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
        Coding::Gzip => b".gz",
    }
}

/// The entity tag of a state of a file: time of change and size, and the coding.
//= rfc9110#8.8.3
pub fn entity_tag(stamp: &Stamp, coding: Option<Coding>) -> String {
    let suffix = match coding {
        None => "",
        Some(Coding::Brotli) => "-br",
        Some(Coding::Zstd) => "-zst",
        Some(Coding::Gzip) => "-gz",
    };
    format!("\"{:x}-{:x}{suffix}\"", stamp.modified_ns, stamp.size)
}

/// Reads a whole file. On a serving thread only what is in memory.
fn read_all(fd: &OwnedFd, size: u64, may: May) -> Result<Vec<u8>, Trouble> {
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
                return Err(Trouble::WouldWait);
            }
            Err(error) => return Err(Trouble::Failed(error.into())),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
