//! Reading a folder's names for its listing. Runs in the file pool.

use std::io;

use rustix::fs::{AtFlags, Dir, FileType};

use crate::handle::files::Files;
use crate::handle::files::listing::{Entry, EntryKind};

/// Most names of a listing; a larger folder is listed in part.
pub const NAMES_MAX: usize = 20_000;

/// What stands in a folder, in the order of the file system. `path` is below the root. Names that
/// the route does not serve are left out.
pub fn read(files: &Files, path: &[u8]) -> io::Result<Vec<Entry>> {
    let folder = path.strip_suffix(b"/").unwrap_or(path);
    let fd = files
        .root
        .dir()
        .open_folder(folder, files.settings.symlinks)?;
    let mut entries = Vec::new();
    for item in Dir::read_from(&fd)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        if name == b"." || name == b".." || (name[0] == b'.' && !files.settings.dot_files) {
            continue;
        }
        // A link counts as what it leads to; one that leads nowhere is left out.
        let Ok(stat) = rustix::fs::statat(&fd, item.file_name(), AtFlags::empty()) else {
            continue;
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => EntryKind::Folder,
            FileType::RegularFile => EntryKind::File,
            _ => continue,
        };
        entries.push(Entry {
            name: name.to_vec(),
            kind,
            size: stat.st_size.cast_unsigned(),
            modified_unix: stat.st_mtime,
        });
        if entries.len() == NAMES_MAX {
            break;
        }
    }
    Ok(entries)
}
