//! Flat files and registries of pages: below folders that the config names. Runs on threads that
//! may wait use them; on a serving thread nobody does.

use std::cell::Cell;
use std::path::Path;

use hob_page::fault::{FunctionFault, code};
use hob_page::files::{FileFolder, FlatFiles, RegistryFiles, SearchedFolders};
use hob_page::host::{Absent, ContentChange, Files, Registries, RegistryChange, RegistryEntry};
use hob_page::ini::Ini;
use hob_page::limits::FileLimits;

use crate::handle::page::config::PagesSettings;
use crate::handle::page::run::current_is_over;

/// The files and registries of a route.
pub(super) struct PageFlatFiles {
    files: Option<FlatFiles>,
    registries: Option<RegistryFiles>,
}

impl PageFlatFiles {
    pub(super) fn new(settings: &PagesSettings, ini: &Ini) -> PageFlatFiles {
        let files = settings.files.as_deref().map(|path| {
            let ini_folder = settings.ini_folder().unwrap_or(Path::new(""));
            let searched = SearchedFolders::of(path, ini, ini_folder);
            for folder in &searched.refused {
                let folder = folder.display();
                tracing::warn!("page: FFI_PATH of the ini file: {folder} is not below `files`");
            }
            FlatFiles::new(folder(path, settings.writes_files), searched)
        });
        if files.is_none() && ini.value("FFI_PATH").is_some() {
            tracing::warn!("page: FFI_PATH of the ini file needs `files`: pages use none without");
        }
        let registries = settings.registries.as_deref();
        PageFlatFiles {
            files,
            registries: registries.map(|path| RegistryFiles::new(folder(path, true))),
        }
    }

    fn files(&self) -> &dyn Files {
        match &self.files {
            Some(files) => files,
            None => &Absent,
        }
    }

    fn registries(&self) -> &dyn Registries {
        match &self.registries {
            Some(registries) => registries,
            None => &Absent,
        }
    }
}

fn folder(path: &Path, is_writable: bool) -> FileFolder {
    FileFolder {
        path: path.to_owned(),
        is_writable,
        limits: FileLimits::default(),
        is_over: || current_is_over().is_some(),
    }
}

/// Tells the log what its reader can do something about.
fn logged<T>(done: Result<T, FunctionFault>) -> Result<T, FunctionFault> {
    done.inspect_err(|fault| {
        if fault.code < 0 || fault.code == code::BUSY {
            hob_trace::warn_seldom!("page: {}", fault.message);
        }
    })
}

impl Files for PageFlatFiles {
    fn read(&self, name: &str) -> Result<Vec<u8>, FunctionFault> {
        logged(self.files().read(name))
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault> {
        logged(self.files().write(name, content))
    }

    fn append(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault> {
        logged(self.files().append(name, content))
    }

    fn change(&self, name: &str, change: &mut ContentChange<'_>) -> Result<(), FunctionFault> {
        logged(self.files().change(name, change))
    }

    fn exists(&self, name: &str) -> Result<bool, FunctionFault> {
        logged(self.files().exists(name))
    }

    fn remove(&self, name: &str) -> Result<(), FunctionFault> {
        logged(self.files().remove(name))
    }
}

impl Registries for PageFlatFiles {
    fn create(&self, registry: &str) -> Result<(), FunctionFault> {
        logged(self.registries().create(registry))
    }

    fn delete(&self, registry: &str) -> Result<(), FunctionFault> {
        logged(self.registries().delete(registry))
    }

    fn entries(&self, registry: &str) -> Result<Vec<RegistryEntry>, FunctionFault> {
        logged(self.registries().entries(registry))
    }

    fn change(&self, registry: &str, change: &RegistryChange<'_>) -> Result<(), FunctionFault> {
        logged(self.registries().change(registry, change))
    }
}

/// Files and registries that nobody may use on a serving thread. Those that there are not at all
/// are told at once.
pub(super) struct UnaskedFiles<'a> {
    pub(super) of: &'a PageFlatFiles,
    /// Somebody asked.
    pub(super) was_asked: Cell<bool>,
}

impl UnaskedFiles<'_> {
    fn file<T>(&self, none: Result<T, FunctionFault>) -> Result<T, FunctionFault> {
        self.asked(self.of.files.is_some(), none)
    }

    fn registry<T>(&self, none: Result<T, FunctionFault>) -> Result<T, FunctionFault> {
        self.asked(self.of.registries.is_some(), none)
    }

    fn asked<T>(&self, is_there: bool, none: Result<T, FunctionFault>) -> Result<T, FunctionFault> {
        if !is_there {
            return none;
        }
        self.was_asked.set(true);
        Err(FunctionFault::new(-1, "it would have to wait"))
    }
}

impl Files for UnaskedFiles<'_> {
    fn read(&self, name: &str) -> Result<Vec<u8>, FunctionFault> {
        self.file(Absent.read(name))
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault> {
        self.file(Absent.write(name, content))
    }

    fn append(&self, name: &str, content: &[u8]) -> Result<(), FunctionFault> {
        self.file(Absent.append(name, content))
    }

    fn change(&self, name: &str, change: &mut ContentChange<'_>) -> Result<(), FunctionFault> {
        self.file(Files::change(&Absent, name, change))
    }

    fn exists(&self, name: &str) -> Result<bool, FunctionFault> {
        self.file(Absent.exists(name))
    }

    fn remove(&self, name: &str) -> Result<(), FunctionFault> {
        self.file(Absent.remove(name))
    }
}

impl Registries for UnaskedFiles<'_> {
    fn create(&self, registry: &str) -> Result<(), FunctionFault> {
        self.registry(Absent.create(registry))
    }

    fn delete(&self, registry: &str) -> Result<(), FunctionFault> {
        self.registry(Absent.delete(registry))
    }

    fn entries(&self, registry: &str) -> Result<Vec<RegistryEntry>, FunctionFault> {
        self.registry(Absent.entries(registry))
    }

    fn change(&self, registry: &str, change: &RegistryChange<'_>) -> Result<(), FunctionFault> {
        self.registry(Registries::change(&Absent, registry, change))
    }
}
