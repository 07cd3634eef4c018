//! Registries as files of a folder: `NAME.registry`, each read and replaced as a whole.
//!
//! Text and not SQLite, which opens paths and journals by itself, where the flags that hold names
//! below the folder do not apply. The cost: each change writes the whole file.

use crate::fault::{FunctionFault, code};
use crate::host::{Registries, RegistryChange, RegistryEntry};

use super::folder::{FileFault, FileFolder, NewContent, OldFile};
use super::{parse_entries, print_entries};

/// The registries of a folder.
#[derive(Clone, Debug)]
pub struct RegistryFiles {
    folder: FileFolder,
}

impl RegistryFiles {
    /// Registries in this folder.
    pub fn new(folder: FileFolder) -> Self {
        Self { folder }
    }

    fn parse(&self, content: &[u8]) -> Result<Vec<RegistryEntry>, FileFault> {
        let entries_max = self.folder.limits.entries_max;
        let lines = memchr::memchr_iter(b'\n', content).count();
        if lines > entries_max + 1 {
            return Err(too_many());
        }
        let entries = parse_entries(content, entries_max);
        entries.ok_or(FileFault::Refused("its file is none of a registry"))
    }

    fn changed(
        &self,
        registry: &str,
        change: impl FnOnce(OldFile<'_>) -> Result<NewContent, FileFault>,
    ) -> Result<(), FunctionFault> {
        let changed = self.folder.change(&file(registry), change);
        changed.map_err(|fault| told(registry, fault))
    }
}

fn file(registry: &str) -> String {
    // A path from the root is one from the folder.
    format!("{}.registry", registry.trim_start_matches('/'))
}

fn told(registry: &str, fault: FileFault) -> FunctionFault {
    fault.told(&format!("registry {registry:?}"), code::NO_REGISTRY)
}

fn too_many() -> FileFault {
    let message = "the registry has as many entries as one may";
    FileFault::Told(FunctionFault::new(code::LIMIT, message))
}

impl Registries for RegistryFiles {
    fn create(&self, registry: &str) -> Result<(), FunctionFault> {
        self.changed(registry, |old| match old.is_there() {
            false => Ok(NewContent::Content(print_entries(&[]))),
            true => {
                let message = format!("there is a registry {registry:?} already");
                Err(FileFault::Told(FunctionFault::new(code::EXISTS, message)))
            }
        })
    }

    fn delete(&self, registry: &str) -> Result<(), FunctionFault> {
        self.changed(registry, |old| match old.is_there() {
            true => Ok(NewContent::Nothing),
            false => Err(FileFault::Missing),
        })
    }

    fn entries(&self, registry: &str) -> Result<Vec<RegistryEntry>, FunctionFault> {
        let content = self.folder.read(&file(registry));
        let entries = content.and_then(|content| self.parse(&content));
        entries.map_err(|fault| told(registry, fault))
    }

    fn change(&self, registry: &str, change: &RegistryChange<'_>) -> Result<(), FunctionFault> {
        self.changed(registry, |old| {
            let mut entries = self.parse(&old.read()?)?;
            change.apply(&mut entries).map_err(FileFault::Told)?;
            match entries.len() > self.folder.limits.entries_max {
                true => Err(too_many()),
                false => Ok(NewContent::Content(print_entries(&entries))),
            }
        })
    }
}
