//! Accounts of which each account of the machine, or each host, has a file of its own.

use std::path::Path;

use hob_config::AccountFiles;

use super::{AuthSource, FileVersion};

/// An `[[auth]]` whose file a request's path or host decides.
pub struct CapturedAuth {
    /// What `require` calls it.
    pub name: String,
    /// What browsers show.
    pub realm: String,
    pub(crate) files: AccountFiles,
}

/// Where a file of accounts is that is not read by its own path.
pub(crate) trait AccountPlace: Send + Sync {
    /// What it is like now; `None` where it cannot be read. Waits for a disk.
    fn version(&self) -> Option<FileVersion>;

    /// Its text; `path` is for people. Waits for a disk.
    fn read(&self, path: &Path) -> Result<String, String>;

    /// It was not there when it was last looked for.
    fn is_gone(&self) -> bool;
}

impl AuthSource {
    /// Its file was one of many and is not there any more.
    pub fn is_gone(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_gone())
    }
}
