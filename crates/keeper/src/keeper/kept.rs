//! Files in which history, activity, maintenance and bans outlive the server: opened by the keeper
//! like logs, because the server may not reach them, and handed over open.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat};

use super::KeeperFailure;
use super::state::State;
use crate::Config;
use crate::channel::{KEPT_ACTIVITY, KEPT_BANS, KEPT_HISTORY, KEPT_MAINTENANCE};
use hob_config::KeptFile;

/// Opens those that a config names, with their slots. One that is named must open; the usual one of
/// activity may fail, which becomes a warning.
pub(super) fn open_all(
    config: &Config,
    state: &State,
    warnings: &mut Vec<String>,
) -> Result<Vec<(u16, OwnedFd)>, KeeperFailure> {
    let mut open_files = Vec::new();
    let failure = |what: &str, path: &Path, error: io::Error| {
        format!("cannot open the file of {what} {}: {error}", path.display())
    };
    if let Some(path) = &config.history.file {
        let file = open(path).map_err(|error| failure("the history", path, error));
        open_files.push((KEPT_HISTORY, file.map_err(KeeperFailure::System)?));
    }
    let is_usual = config.activity.file == KeptFile::Usual;
    let named = config.state.as_deref();
    if let (Some(_), true, Err(text)) = (config.activity.path(named), is_usual, state) {
        warnings.push(format!("{text}; activity is kept in memory only"));
    } else if let Some(path) = config.activity.path(named) {
        if let (true, Some(folder)) = (is_usual, path.parent()) {
            // Whether that worked shows when the file is opened.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
        match open(&path).map_err(|error| failure("activity", &path, error)) {
            Ok(file) => open_files.push((KEPT_ACTIVITY, file)),
            Err(text) if is_usual => {
                warnings.push(format!("{text}; it is kept in memory only"));
            }
            Err(text) => return Err(KeeperFailure::System(text)),
        }
    }
    // Where there is no folder, maintenance and bans end with the server.
    if let (Ok(_), Some(folder)) = (state, named) {
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        for (slot, name) in [(KEPT_MAINTENANCE, "maintenance"), (KEPT_BANS, "bans")] {
            let path = folder.join(name);
            match open(&path).map_err(|error| failure(name, &path, error)) {
                Ok(file) => open_files.push((slot, file)),
                Err(text) => warnings.push(format!("{text}; what it is for ends with the server")),
            }
        }
    }
    Ok(open_files)
}

/// Opens a file for reading and writing, and makes it with mode 0600. Its folder may belong to
/// somebody with fewer rights: so the last part of the path is not followed when it is a symbolic
/// link, and a file with a second name is refused.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no regular file"));
    }
    if stat.st_nlink != 1 {
        return Err(io::Error::other("it has a second name (a hard link)"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_made_for_its_user_alone_and_anything_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        open(&at("new")).unwrap();
        let mode = at("new").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o177, 0);
        open(&at("new")).unwrap();
        std::os::unix::fs::symlink(at("new"), at("link")).unwrap();
        open(&at("link")).unwrap_err();
        std::fs::hard_link(at("new"), at("second")).unwrap();
        open(&at("new")).unwrap_err();
        open(folder.path()).unwrap_err();
        open(&at("no/such")).unwrap_err();
    }
}
