//! Flat files below a folder, looked for in folders of FFI_PATH from the first to the last.

use std::path::{Path, PathBuf};

use crate::fault::{FunctionFault, code};
use crate::host::{ContentChange, Files};
use crate::ini::Ini;

use super::folder::{FileFault, FileFolder, NewContent, OldFile};

/// The flat files of a folder.
#[derive(Clone, Debug)]
pub struct FlatFiles {
    folder: FileFolder,
    searched: SearchedFolders,
}

/// Where below the folder files are looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchedFolders {
    /// From the folder on, the first one first. Files are made in the first.
    pub folders: Vec<PathBuf>,
    /// Folders of FFI_PATH that are not below it, and so are left out.
    pub refused: Vec<PathBuf>,
}

impl SearchedFolders {
    /// What FFI_PATH says; the folder itself where it names none that counts. May wait for a disk.
    pub fn of(folder: &Path, ini: &Ini, ini_folder: &Path) -> Self {
        let mut searched = Self {
            folders: Vec::new(),
            refused: Vec::new(),
        };
        let whole = folder.canonicalize();
        for path in ini.paths("FFI_PATH") {
            let path = ini_folder.join(path);
            let found = path.canonicalize();
            let below = match (&whole, &found) {
                (Ok(whole), Ok(found)) => found.strip_prefix(whole).ok(),
                _ => None,
            };
            match below {
                Some(below) => searched.folders.push(below.to_path_buf()),
                None => searched.refused.push(path),
            }
        }
        if searched.folders.is_empty() {
            searched.folders.push(PathBuf::new());
        }
        searched
    }
}

impl FlatFiles {
    /// Files of a folder, looked for in these of its folders.
    pub fn new(folder: FileFolder, searched: SearchedFolders) -> Self {
        Self { folder, searched }
    }

    /// Where a file may be, from the folder on.
    fn places(&self, name: &str) -> Vec<String> {
        let below = Path::new(name).strip_prefix(&self.folder.path);
        if let (true, Ok(below)) = (name.starts_with('/'), below) {
            return vec![below.to_string_lossy().into_owned()];
        }
        // Any other path from the root is one from the folder.
        let name = name.trim_start_matches('/');
        let folders = self.searched.folders.iter();
        let joined = folders.map(|folder| match folder.to_str() {
            Some("") | None => name.to_owned(),
            Some(folder) => format!("{folder}/{name}"),
        });
        joined.collect()
    }

    /// Where it is; where it is not there, where it would be made.
    fn place(&self, name: &str) -> Result<String, FileFault> {
        let mut places = self.places(name);
        for (index, place) in places.iter().enumerate() {
            if self.folder.exists(place)? {
                return Ok(places.swap_remove(index));
            }
        }
        places.into_iter().next().ok_or(FileFault::Missing)
    }

    fn changed(
        &self,
        name: &str,
        change: impl FnOnce(OldFile<'_>) -> Result<NewContent, FileFault>,
    ) -> Result<(), FunctionFault> {
        let place = self.place(name);
        let changed = place.and_then(|place| self.folder.change(&place, change));
        changed.map_err(|fault| told(name, fault))
    }
}

fn told(name: &str, fault: FileFault) -> FunctionFault {
    fault.told(&format!("file {name:?}"), code::NO_FILE)
}

impl Files for FlatFiles {
    fn read(&self, name: &str) -> Result<Vec<u8>, FunctionFault> {
        let place = self.place(name);
        let content = place.and_then(|place| self.folder.read(&place));
        content.map_err(|fault| told(name, fault))
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault> {
        self.changed(name, |_| Ok(NewContent::Content(content.to_vec())))
    }

    fn append(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault> {
        self.changed(name, |old| {
            let mut whole = match old.is_there() {
                true => old.read()?,
                false => Vec::new(),
            };
            if !whole.is_empty() && !whole.ends_with(b"\n") && !content.is_empty() {
                whole.push(b'\n');
            }
            whole.extend_from_slice(content);
            Ok(NewContent::Content(whole))
        })
    }

    fn change(&self, name: &str, change: &mut ContentChange<'_>) -> Result<(), FunctionFault> {
        self.changed(name, |old| {
            let new = change(&old.read()?).map_err(FileFault::Told)?;
            Ok(NewContent::Content(new))
        })
    }

    fn exists(&self, name: &str) -> Result<bool, FunctionFault> {
        for place in self.places(name) {
            match self.folder.exists(&place) {
                Ok(false) => {}
                found => return found.map_err(|fault| told(name, fault)),
            }
        }
        Ok(false)
    }

    fn remove(&self, name: &str) -> Result<(), FunctionFault> {
        self.changed(name, |old| match old.is_there() {
            true => Ok(NewContent::Nothing),
            false => Err(FileFault::Missing),
        })
    }
}
