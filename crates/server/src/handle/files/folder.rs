//! Reading a folder's names for its listing. Runs in the file pool.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Stat};

use crate::handle::config::Symlinks;
use crate::handle::files::Files;
use crate::handle::files::listing::{Contents, EntryKind, ListingEntry};

/// Most names of a listing; a larger folder is listed in part.
pub const NAMES_MAX: usize = 20_000;

/// What stands in a folder, in the order of the file system. `path` is below the root and ends with
/// a slash, or is empty. Names that the route does not serve are left out.
pub fn read(files: &Files, path: &[u8]) -> io::Result<Contents> {
    let folder = path.strip_suffix(b"/").unwrap_or(path);
    let fd = files
        .root
        .dir()
        .open_folder(folder, files.settings.symlinks)?;
    let mut contents = Contents::default();
    for item in Dir::read_from(&fd)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        if name == b"." || name == b".." || (name[0] == b'.' && !files.settings.dot_files) {
            continue;
        }
        let Some(stat) = status(files, &fd, path, item.file_name()) else {
            continue;
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => EntryKind::Folder,
            FileType::RegularFile => EntryKind::File,
            _ => continue,
        };
        if contents.entries.len() == NAMES_MAX {
            contents.is_cut = true;
            break;
        }
        contents.entries.push(ListingEntry {
            name: name.to_vec(),
            kind,
            size: stat.st_size.cast_unsigned(),
            modified_unix: stat.st_mtime,
        });
    }
    Ok(contents)
}

/// The state of what a name leads to; `None` when that is nothing, or nothing the route serves:
/// what stands outside of the root must not be seen by its size either.
fn status(files: &Files, fd: &OwnedFd, path: &[u8], name: &CStr) -> Option<Stat> {
    let stat = rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Some(stat);
    }
    if files.settings.symlinks == Symlinks::Refuse {
        return None;
    }
    let path = [path, name.to_bytes()].concat();
    let root = files.root.dir();
    root.status(&path, files.settings.symlinks).ok()
}
