//! A short look for a file below a folder.

use std::path::{Path, PathBuf};

/// Files that are looked at, at most.
const LOOKED_AT_MAX: usize = 4096;

/// The first file below a folder that is wanted, as far as a short look goes. Links are not
/// followed.
pub(super) fn find_file(root: &Path, wanted: &mut dyn FnMut(&Path) -> bool) -> Option<PathBuf> {
    let (mut folders, mut looked_at) = (vec![root.to_path_buf()], 0);
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut entries: Vec<_> = entries.take(LOOKED_AT_MAX - looked_at).collect();
        looked_at += entries.len();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type());
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            match kind {
                _ if is_hidden => {}
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() && wanted(&path) => return Some(path),
                _ => {}
            }
        }
    }
    None
}
