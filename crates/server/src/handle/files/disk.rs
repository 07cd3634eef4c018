//! What stands on the disk for a path of a files route: the file that answers, or what stands in
//! the way.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::cache::entry::Stamp;
use crate::explain::{DiskOutcome, FileFacts, OnDisk};
use crate::handle::config::Symlinks;
use crate::handle::files::Files;
use crate::handle::files::find::has_dot_name;
use crate::handle::files::load::{COMPRESS_BYTES_MAX, Resolved, file_name, resolve, siblings};
use crate::handle::files::open::{FileOpenError, FileOrFolder, May, RootDir};
use crate::handle::files::precompressed::Neighbours;
use crate::route::target::{ENCODED_SLASH, PathDisplay};

/// Looks for `path`, which is normal and below the root, without its first slash.
pub(super) fn look(files: &Files, path: &[u8]) -> OnDisk {
    let settings = &files.settings;
    if !settings.dot_files && has_dot_name(path) {
        let why = "a name in the path begins with a dot, and `dot_files` is not set".to_owned();
        return on_disk(files, path, DiskOutcome::Hidden, why);
    }
    let found = look_once(files, path);
    match (&settings.fallback, found.outcome) {
        (Some(fallback), DiskOutcome::Missing) if fallback.as_bytes() != path => {
            let mut instead = look_once(files, fallback.as_bytes());
            instead.why = match &mut instead.file {
                Some(file) => {
                    file.is_fallback = true;
                    format!("the `fallback`, because {}", found.why)
                }
                None => format!(
                    "{}; the `fallback` does not help: {}",
                    found.why, instead.why
                ),
            };
            instead
        }
        _ => found,
    }
}

fn look_once(files: &Files, path: &[u8]) -> OnDisk {
    let dir = files.root.dir();
    let settings = &files.settings;
    match resolve(settings, &dir, path, May::Wait) {
        Ok(Resolved::File(file, _, stamp)) => {
            let why = if file == path {
                "the path names it".to_owned()
            } else {
                format!("the `index` of {}", shown_folder(path))
            };
            OnDisk {
                file: Some(facts(files, &dir, &file, &stamp)),
                ..on_disk(files, &file, DiskOutcome::File, why)
            }
        }
        Ok(Resolved::FolderWithoutSlash) => {
            let why = "it is a folder and the path has no slash at its end".to_owned();
            on_disk(files, path, DiskOutcome::AddSlash, why)
        }
        Ok(Resolved::Folder) => {
            let index = match &settings.index[..] {
                [] => "the folder has no `index` to look for".to_owned(),
                names => format!("the folder has no {}", names.join(", ")),
            };
            if settings.listing {
                let why = format!("{index}, and `listing` is on");
                on_disk(files, path, DiskOutcome::Listing, why)
            } else {
                let why = format!("{index}, and `listing` is off");
                on_disk(files, path, DiskOutcome::Folder, why)
            }
        }
        Err(FileOpenError::Missing | FileOpenError::WouldWait) => {
            let why = obstacle(&dir, settings.symlinks, path);
            on_disk(files, path, DiskOutcome::Missing, why)
        }
        Err(FileOpenError::Forbidden) => {
            let why = obstacle(&dir, settings.symlinks, path);
            on_disk(files, path, DiskOutcome::Forbidden, why)
        }
        Err(FileOpenError::Failed(error)) => {
            on_disk(files, path, DiskOutcome::Failed, error.to_string())
        }
    }
}

fn on_disk(files: &Files, path: &[u8], outcome: DiskOutcome, why: String) -> OnDisk {
    OnDisk {
        outcome,
        path: full_path(files, path),
        why,
        file: None,
    }
}

fn full_path(files: &Files, path: &[u8]) -> PathBuf {
    if path.is_empty() {
        return files.root.path().to_owned();
    }
    let path = match path.contains(&ENCODED_SLASH) {
        true => Cow::Owned(PathDisplay(path).to_string().into_bytes()),
        false => Cow::Borrowed(path),
    };
    files.root.path().join(OsStr::from_bytes(&path))
}

fn facts(files: &Files, dir: &RootDir, path: &[u8], stamp: &Stamp) -> FileFacts {
    let settings = &files.settings;
    let media = files.types.of(file_name(path));
    let beside =
        siblings(settings, dir, path, &Neighbours::unknown(0), May::Wait).unwrap_or_default();
    let is_compressed = stamp.size >= settings.compress_min
        && stamp.size <= COMPRESS_BYTES_MAX
        && media.is_one_of(settings.compress_types.iter().map(String::as_str));
    let stored: Vec<_> = beside.iter().map(|(coding, ..)| *coding).collect();
    let made = settings
        .compress
        .iter()
        .filter(|coding| !stored.contains(coding));
    FileFacts {
        bytes: stamp.size,
        media_type: media.to_string(),
        is_fallback: false,
        siblings: beside
            .iter()
            .map(|(coding, _, stamp)| {
                let name = [path, b".", coding.ending().as_bytes()].concat();
                (coding.word(), full_path(files, &name), stamp.size)
            })
            .collect(),
        compressed_on_demand: match is_compressed {
            true => made.map(|coding| coding.word()).collect(),
            false => Vec::new(),
        },
    }
}

/// The first part of a path that stands in the way.
fn obstacle(dir: &RootDir, symlinks: Symlinks, path: &[u8]) -> String {
    let folder = path.strip_suffix(b"/").unwrap_or(path);
    let ends = memchr::memchr_iter(b'/', folder).chain([folder.len()]);
    for end in ends {
        let part = &folder[..end];
        let is_last = end == folder.len();
        match dir.look(part, symlinks, May::Wait) {
            Ok(FileOrFolder::Folder) => {}
            Ok(FileOrFolder::File(..)) if is_last && folder.len() == path.len() => {}
            Ok(FileOrFolder::File(..)) => {
                return format!("{} is a file, and the path goes on", quoted(part));
            }
            Err(_) => return obstacle_at(dir, symlinks, part),
        }
    }
    "it came or went while it was looked for".to_owned()
}

/// Why this part cannot be used; all before it can.
fn obstacle_at(dir: &RootDir, symlinks: Symlinks, part: &[u8]) -> String {
    let name = Path::new(OsStr::from_bytes(part));
    if part.contains(&ENCODED_SLASH) {
        return format!(
            "no name on a disk has a slash in it, as \"{}\" has",
            PathDisplay(part)
        );
    }
    let shown = quoted(part);
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR) => return format!("there is no {shown}"),
        Err(Errno::ACCESS) => return format!("the folder of {shown} may not be entered"),
        Err(error) => return format!("{shown} cannot be looked at: {error}"),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => obstacle_link(dir, symlinks, name, &shown),
        FileType::RegularFile | FileType::Directory => {
            let mode = stat.st_mode & 0o7777;
            let (uid, gid) = (stat.st_uid, stat.st_gid);
            format!("{shown} may not be read (mode {mode:04o}, owner {uid}, group {gid})")
        }
        _ => format!("{shown} is neither a file nor a folder"),
    }
}

fn obstacle_link(dir: &RootDir, symlinks: Symlinks, name: &Path, shown: &str) -> String {
    let target = match rustix::fs::readlinkat(dir, name, Vec::new()) {
        Ok(target) => quoted(target.to_bytes()),
        Err(error) => return format!("{shown} is a symbolic link that cannot be read: {error}"),
    };
    let link = format!("{shown} is a symbolic link to {target}");
    if symlinks == Symlinks::Refuse {
        return format!("{link}, and `symlinks` is \"refuse\"");
    }
    match rustix::fs::openat(dir, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => format!("{link}, where there is nothing"),
        Err(error) => format!("{link}, which cannot be followed: {error}"),
        Ok(_) if symlinks == Symlinks::Inside => {
            format!(
                "{link}, and that leads out of the root or to what may not be read; `symlinks` is \"inside\""
            )
        }
        Ok(_) => format!("{link}, which may not be read"),
    }
}

fn quoted(path: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(path))
}

fn shown_folder(path: &[u8]) -> String {
    match path {
        b"" => "the root".to_owned(),
        path => format!("the folder {}", quoted(path)),
    }
}
