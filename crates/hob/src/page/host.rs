//! What a run from a terminal has besides a database: a clock, a visit of one request, and the
//! flat files and registries of a folder.

use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

use hob_page::fault::FunctionFault;
use hob_page::files::{FileFolder, FlatFiles, RegistryFiles, SearchedFolders};
use hob_page::host::{CivilTime, PageClock, PageVisits};
use hob_page::limits::FileLimits;
use hob_server::local_time;

use crate::args::PageRunOptions;

use super::PageIni;

/// Flat files and registries below the folder that was named, or that of the page.
pub(super) fn flat_files(options: &PageRunOptions, ini: &PageIni) -> (FlatFiles, RegistryFiles) {
    let own = options.file.parent().filter(|path| *path != Path::new(""));
    let path = options.files.as_deref().or(own).unwrap_or(Path::new("."));
    let folder = FileFolder {
        path: path.to_path_buf(),
        is_writable: !options.read_only,
        limits: FileLimits::default(),
        is_over: || false,
    };
    let searched = SearchedFolders::of(path, &ini.ini, &ini.folder);
    for refused in &searched.refused {
        let (refused, path) = (refused.display(), path.display());
        eprintln!("hob: FFI_PATH: {refused} is not below {path}");
    }
    let registries = RegistryFiles::new(folder.clone());
    (FlatFiles::new(folder, searched), registries)
}

/// The surroundings of a run.
pub(super) struct Terminal {
    start: Instant,
    /// `@DTW_STATIC` was called, and `@DTW_TERMINATE` was not.
    lasts: Cell<bool>,
}

impl Terminal {
    pub(super) fn new() -> Terminal {
        Terminal {
            start: Instant::now(),
            lasts: Cell::new(false),
        }
    }

    /// Whether the page waits for another request of its visit.
    pub(super) fn lasts(&self) -> bool {
        self.lasts.get()
    }
}

impl PageClock for Terminal {
    fn micros(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn civil(&self) -> CivilTime {
        local_time::civil()
    }
}

impl PageVisits for Terminal {
    fn keep(&self, _: Option<u64>) -> Result<(), FunctionFault> {
        self.lasts.set(true);
        Ok(())
    }

    fn handle(&self) -> Result<String, FunctionFault> {
        Ok("terminal".to_owned())
    }

    fn accept(&self, _: &[u8], _: Option<u64>) -> Result<(), FunctionFault> {
        Ok(())
    }

    fn terminate(&self) -> Result<(), FunctionFault> {
        self.lasts.set(false);
        Ok(())
    }
}
