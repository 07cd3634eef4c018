//! A file that is replaced as a whole.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

/// Puts new content in the place of a file at once: nobody reads a half of it.
/// Owner and mode stay; a new file is for its owner and group alone.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // Where a link leads.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&path).ok();
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let write = || {
        let mode = before
            .as_ref()
            .map_or(0o640, |before| before.mode() & 0o7777);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside)?;
        if let Some(before) = &before {
            file.set_permissions(before.permissions())?;
            // Only root may give it to somebody else.
            let _ = chown(&beside, Some(before.uid()), Some(before.gid()));
        }
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_with_its_mode_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users");
        replace(&path, b"a:1\n").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&path) & 0o137, 0);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o604)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("users", &link).unwrap();
        replace(&link, b"b:2\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "b:2\n");
        assert_eq!(mode(&path), 0o604);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(replace(&dir.path().join("none/users"), b"").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
