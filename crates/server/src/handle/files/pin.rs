//! Pinned files: loaded at start, never thrown out.

use std::collections::VecDeque;

use rustix::fs::{AtFlags, Dir, FileType};

use crate::cache::entry::write_key;
use crate::handle::files::Files;
use crate::handle::files::find::keep;
use crate::handle::files::load::{Loaded, load};
use crate::handle::files::open::May;
use crate::serve::ServerState;

/// Loads every file below the handler's root. May wait for a disk. The error says what does not
/// fit.
pub fn load_all(files: &Files, shared: &ServerState) -> Result<usize, String> {
    let root = files.root.path().display();
    let mut folders = VecDeque::from([Vec::new()]);
    let mut count = 0;
    while let Some(folder) = folders.pop_front() {
        let names = names(files, &folder)
            .map_err(|error| format!("cache = \"pin\": {root} cannot be read: {error}"))?;
        let own = (folder.clone(), false);
        let below = names.into_iter().map(|(name, is_folder)| {
            (
                [&folder[..], &name[..], if is_folder { b"/" } else { b"" }].concat(),
                is_folder,
            )
        });
        for (path, is_folder) in std::iter::once(own).chain(below) {
            if is_folder {
                folders.push_back(path);
                continue;
            }
            count += usize::from(pin(files, shared, &path)?);
        }
    }
    Ok(count)
}

fn pin(files: &Files, shared: &ServerState, path: &[u8]) -> Result<bool, String> {
    let mut key = Vec::new();
    write_key(files.id, path, &mut key);
    match load(files, &key.into(), path, shared.moment(0), May::Wait) {
        Ok(Loaded::File(entry)) => {
            if keep(files, shared, &entry) {
                return Ok(true);
            }
            let holdings = shared.store.holdings();
            Err(format!(
                "cache = \"pin\": {} ({} bytes) does not fit: cache.bytes is {}, {} are pinned already; \
                 raise cache.bytes or pin less",
                String::from_utf8_lossy(path),
                entry.identity().len,
                holdings.bytes_max,
                holdings.pinned_bytes
            ))
        }
        Ok(_) | Err(_) => Ok(false),
    }
}

fn names(files: &Files, folder: &[u8]) -> std::io::Result<Vec<(Vec<u8>, bool)>> {
    let path = folder.strip_suffix(b"/").unwrap_or(folder);
    let fd = files
        .root
        .dir()
        .open_folder(path, files.settings.symlinks)?;
    let mut names = Vec::new();
    for item in Dir::read_from(&fd)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        if name == b"." || name == b".." || (name[0] == b'.' && !files.settings.dot_files) {
            continue;
        }
        // Links are not walked into: they may lead in a circle.
        let Ok(stat) = rustix::fs::statat(&fd, item.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => names.push((name.to_vec(), true)),
            FileType::RegularFile | FileType::Symlink => names.push((name.to_vec(), false)),
            _ => {}
        }
    }
    Ok(names)
}
