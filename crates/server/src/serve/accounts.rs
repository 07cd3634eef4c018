//! Files of accounts that captures give: opened below a folder that no request has a say in.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_config::AccountFiles;

use crate::handle::config::Symlinks;
use crate::handle::files::open::{FileOpenError, FileOrFolder, May, Root};
use crate::serve::captured::Captured;
use crate::step::auth::captured::{AccountPlace, CapturedAuth};
use crate::step::auth::{AuthSource, FILE_BYTES_MAX, FileVersion, version_of};

/// The accounts of a name, and how many others were closed for them; `None` where there is no
/// file. Waits for a disk.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn open_accounts(
    auth: &CapturedAuth,
    files: &Captured<AuthSource>,
    name: &[u8],
    now_ms: u64,
) -> Result<Option<(Arc<AuthSource>, u64)>, String> {
    let place = BelowFixed {
        fixed: Arc::clone(&files.fixed),
        name: name.into(),
        is_gone: AtomicBool::new(false),
    };
    let _ = files.fixed.refresh(now_ms, 0, May::Wait);
    if matches!(place.open(), Err(FileOpenError::Missing)) {
        files.keep_missing(name, now_ms);
        return Ok(None);
    }
    let path = files.template.whole(name);
    let called = format!("{} ({})", auth.name, path.display());
    let own = AccountFiles {
        htpasswd: path,
        captured: None,
        ..auth.files.clone()
    };
    let source = AuthSource::new(
        (called, auth.realm.clone()),
        own,
        Some(Box::new(place)),
        now_ms,
    )?;
    Ok(Some(files.keep(name, Arc::new(source))))
}

/// A file below a folder that no request has a say in; no link leads to it.
struct BelowFixed {
    fixed: Arc<Root>,
    name: Box<[u8]>,
    /// It was not there when it was last looked for.
    is_gone: AtomicBool,
}

impl BelowFixed {
    fn open(&self) -> Result<File, FileOpenError> {
        let opened = self
            .fixed
            .dir()
            .look(&self.name, Symlinks::Refuse, May::Wait);
        let is_missing = matches!(opened, Err(FileOpenError::Missing));
        self.is_gone.store(is_missing, Ordering::Relaxed);
        match opened? {
            FileOrFolder::File(fd, _) => Ok(fd.into()),
            FileOrFolder::Folder => Err(FileOpenError::Forbidden),
        }
    }
}

impl AccountPlace for BelowFixed {
    fn version(&self) -> Option<FileVersion> {
        let found = self.open().ok()?.metadata().ok()?;
        Some(version_of(&found))
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        let user = rustix::process::geteuid().as_raw();
        let path = path.display();
        let fail = |why: String| {
            format!(
                "{path} cannot be read: {why}; the server runs as user {user}: let that user read it"
            )
        };
        let file = self.open().map_err(|error| match error {
            FileOpenError::Missing => {
                fail("there is no such file, or a link leads there".to_owned())
            }
            FileOpenError::Failed(error) => fail(error.to_string()),
            FileOpenError::Forbidden | FileOpenError::WouldWait => {
                fail("permission denied, or it is no file".to_owned())
            }
        })?;
        let mut text = String::new();
        // It may grow while it is read.
        let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|error| fail(error.to_string()))?;
        match text.len() as u64 > FILE_BYTES_MAX {
            true => Err(format!(
                "{path} is no file of accounts: of more than 16 MiB"
            )),
            false => Ok(text),
        }
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}
