//! Log files from the side of the process that owns their paths: opening, rotating, compressing.
//!
//! ```text
//! access.log                          written to
//! access.log.20261121-211307          rotated at that second, UTC
//! access.log.20261121-211307-2        rotated within the same second
//! access.log.20261120-000000.gz       compressed
//! access.log.20261119-000000.gz.tmp   being compressed, or left by a crash
//! ```
//!
//! The log's folder may belong to someone with fewer rights than this process. So the last part of
//! a path is never followed when it is a symbolic link, and a file with a second name (a hard link)
//! is refused: either could lead to a file that is not a log. Everything below happens relative to
//! the folder as it was opened once.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, fchown, fstat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::calendar::UtcDateTime;

/// Opens a log for appending, creating it with mode 0640. Regular files with one name, character
/// devices and FIFOs that have a reader are accepted; FIFOs and devices are opened non-blocking.
///
/// # Errors
/// The path cannot be opened, is a symbolic link, or leads to something that is no place for a log.
pub fn open(path: &Path) -> io::Result<File> {
    let place = PathInFolder::of(path)?;
    place.open_log()
}

/// Renames the log after the current time and opens a new one in its place. Then deletes the oldest
/// rotated files, so that `keep` are left, compressed or not.
///
/// Gives the new file, and, if `compress` is asked for, the path to give to [`compress()`]: later,
/// when every process that writes the log has the new file and no longer the old one.
///
/// # Errors
/// The log could not be renamed or no new one opened; then it is as it was. Old files that cannot
/// be deleted are only logged.
pub fn rotate(path: &Path, keep: usize, compress: bool) -> io::Result<(File, Option<PathBuf>)> {
    rotate_at(path, keep, compress, SystemTime::now())
}

fn rotate_at(
    path: &Path,
    keep: usize,
    compress: bool,
    now: SystemTime,
) -> io::Result<(File, Option<PathBuf>)> {
    let place = PathInFolder::of(path)?;
    let old = match statat(&place.folder, place.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    // Someone else moved it away: then there is nothing to keep.
    let Some(old) = old else {
        return Ok((place.open_log()?, None));
    };
    if file_type(&old) != FileType::RegularFile {
        return Err(no_log("only regular files can be rotated"));
    }
    let rotated = place.rename_away(now)?;
    let new = place
        .open_log()
        .inspect_err(|_| place.rename_back(&rotated))?;
    // The group that may read logs stays the same; where that is not allowed, the log is still
    // good.
    let _ = fchown(&new, own_uid(&old), own_gid(&old));
    if let Err(error) = place.delete_old(keep) {
        tracing::warn!(log = %path.display(), %error, "old rotated logs could not be deleted");
    }
    let rotated = path.with_file_name(rotated);
    Ok((new, (compress && keep > 0).then_some(rotated)))
}

/// Compresses a rotated file with gzip and removes the original once the compressed one is safely
/// stored. Takes as long as the file is large; gives the compressed file's path.
///
/// # Errors
/// The file cannot be read, or the compressed one not be written; then the original is still there.
pub fn compress(path: &Path) -> io::Result<PathBuf> {
    let place = PathInFolder::of(path)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let source = openat(&place.folder, place.name, flags, Mode::empty())?;
    let stat = fstat(&source)?;
    if file_type(&stat) != FileType::RegularFile {
        return Err(no_log("only regular files can be compressed"));
    }
    let compressed = with_suffix(place.name, COMPRESSED);
    let temporary = with_suffix(&compressed, TEMPORARY);
    ignore_absence(unlinkat(&place.folder, &temporary, AtFlags::empty()))?;
    let written = place.create(&temporary).and_then(|target| {
        copy_compressed(File::from(source), &target)?;
        let _ = fchown(&target, own_uid(&stat), own_gid(&stat));
        target.sync_all()?;
        Ok(renameat(
            &place.folder,
            &temporary,
            &place.folder,
            &compressed,
        )?)
    });
    if let Err(error) = written {
        let _ = unlinkat(&place.folder, &temporary, AtFlags::empty());
        return Err(error);
    }
    rustix::fs::fsync(&place.folder)?;
    unlinkat(&place.folder, place.name, AtFlags::empty())?;
    Ok(path.with_file_name(compressed))
}

/// What a compressed file's name ends in.
const COMPRESSED: &str = ".gz";
/// What the name of a file ends in that is not complete.
const TEMPORARY: &str = ".tmp";
/// Rotations of one log within one second.
const SAME_SECOND_MAX: u32 = 1000;

/// A path, as its opened folder and the name in it.
struct PathInFolder<'a> {
    folder: OwnedFd,
    name: &'a OsStr,
}

impl<'a> PathInFolder<'a> {
    fn of(path: &'a Path) -> io::Result<PathInFolder<'a>> {
        let name = path
            .file_name()
            .ok_or_else(|| no_log("the path has no file name"))?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(PathInFolder {
            folder: rustix::fs::open(folder, flags, Mode::empty())?,
            name,
        })
    }

    fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    fn open_log(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::CLOEXEC
            | OFlags::NOFOLLOW
            | OFlags::NOCTTY
            | OFlags::NONBLOCK;
        let file = openat(self.folder(), self.name, flags, LOG_MODE).map_err(explain_open)?;
        let stat = fstat(&file)?;
        match file_type(&stat) {
            FileType::RegularFile if stat.st_nlink > 1 => Err(no_log(
                "the file has a second name (hard link), so it may not be a log; remove it or choose \
                 another path",
            )),
            FileType::RegularFile | FileType::CharacterDevice | FileType::Fifo => {
                Ok(File::from(file))
            }
            _ => Err(no_log(
                "a log can be a regular file, a FIFO or a character device",
            )),
        }
    }

    fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(File::from(openat(self.folder(), name, flags, LOG_MODE)?))
    }

    /// Gives the log a name that bears the time and that no other file has.
    fn rename_away(&self, now: SystemTime) -> io::Result<OsString> {
        let stamp = stamp(now);
        for number in 1..=SAME_SECOND_MAX {
            let suffix = match number {
                1 => format!(".{stamp}"),
                _ => format!(".{stamp}-{number}"),
            };
            let rotated = with_suffix(self.name, &suffix);
            let is_taken = |suffix| self.exists(&with_suffix(&rotated, suffix));
            if is_taken(COMPRESSED) {
                continue;
            }
            match self.rename(self.name, &rotated) {
                Ok(()) => return Ok(rotated),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "the log is rotated too often",
        ))
    }

    /// After a failure: as if nothing had happened. A new log that someone made meanwhile stays.
    fn rename_back(&self, rotated: &OsStr) {
        let _ = self.rename(rotated, self.name);
    }

    /// Renames, never over another file.
    fn rename(&self, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
        let folder = self.folder();
        match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
            // The file system cannot promise it; only we make files of such names.
            Err(Errno::INVAL | Errno::NOSYS) if self.exists(to) => Err(Errno::EXIST),
            Err(Errno::INVAL | Errno::NOSYS) => renameat(folder, from, folder, to),
            result => result,
        }
    }

    fn exists(&self, name: &OsStr) -> bool {
        statat(self.folder(), name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Deletes the oldest rotated files until `keep` are left. The forms of one count as one.
    fn delete_old(&self, keep: usize) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.folder())? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if let Some(age) = age_of_rotated(self.name, name) {
                files.push((age, name.to_owned()));
            }
        }
        let mut ages: Vec<Age> = files.iter().map(|(age, _)| age.clone()).collect();
        ages.sort_unstable();
        ages.dedup();
        let too_many = ages.len().saturating_sub(keep);
        let Some(newest_deleted) = ages[..too_many].last() else {
            return Ok(());
        };
        for (_, name) in files.iter().filter(|(age, _)| age <= newest_deleted) {
            ignore_absence(unlinkat(self.folder(), name, AtFlags::empty()))?;
        }
        Ok(())
    }
}

const LOG_MODE: Mode = Mode::from_raw_mode(0o640);

/// A rotated file's time stamp and number within the second; the smallest is the oldest.
type Age = (Vec<u8>, u32);

/// The age in the name of a rotated file of the log `log`; none if the name is no such.
fn age_of_rotated(log: &OsStr, name: &OsStr) -> Option<Age> {
    let rest = name
        .as_bytes()
        .strip_prefix(log.as_bytes())?
        .strip_prefix(b".")?;
    let (stamp, rest) = rest.split_at_checked("20261121-211307".len())?;
    let is_stamp = stamp.iter().enumerate().all(|(i, byte)| match i {
        8 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let rest = rest.strip_suffix(TEMPORARY.as_bytes()).unwrap_or(rest);
    let rest = rest.strip_suffix(COMPRESSED.as_bytes()).unwrap_or(rest);
    let number = match rest {
        b"" => 1,
        _ => std::str::from_utf8(rest.strip_prefix(b"-")?)
            .ok()?
            .parse()
            .ok()?,
    };
    is_stamp.then(|| (stamp.to_vec(), number))
}

/// The time as it stands in file names.
fn stamp(now: SystemTime) -> String {
    let unix_s = now.duration_since(UNIX_EPOCH).map_or(0, |at| at.as_secs());
    let m = UtcDateTime::from_unix_s(unix_s.cast_signed());
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        m.year, m.month, m.day, m.hour, m.minute, m.second
    )
}

fn copy_compressed(mut source: File, target: &File) -> io::Result<()> {
    const BLOCK_BYTES: usize = 64 * 1024;
    let mut encoder = GzEncoder::new(target, Compression::default());
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        match source.read(&mut block) {
            Ok(0) => break,
            Ok(count) => encoder.write_all(&block[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    encoder.finish()?;
    // It is as old as what is in it.
    if let Ok(modified) = source.metadata().and_then(|metadata| metadata.modified()) {
        let _ = target.set_modified(modified);
    }
    Ok(())
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn own_uid(stat: &Stat) -> Option<rustix::fs::Uid> {
    Some(rustix::fs::Uid::from_raw(stat.st_uid))
}

fn own_gid(stat: &Stat) -> Option<rustix::fs::Gid> {
    Some(rustix::fs::Gid::from_raw(stat.st_gid))
}

fn ignore_absence(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn explain_open(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => {
            no_log("the log's path is a symbolic link, which is not followed; name its target")
        }
        Errno::NXIO => {
            no_log("the log is a FIFO that nobody reads, or a socket; start its reader first")
        }
        error => error.into(),
    }
}

fn no_log(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why.to_owned())
}

#[cfg(test)]
mod tests;
