//! The folder for what is kept over restarts. Whoever can put something into it, or move it away,
//! decides which keys are served and where files of ours are written, so one that others can is not
//! used at all.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The folder; otherwise why none is used, for the operator.
pub(super) type State = Result<PathBuf, String>;

const GROUP_WRITES: u32 = 0o020;
const ANYBODY_WRITES: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The folder that the config names, else the usual one, if it can be trusted.
pub(super) fn choose(named: Option<&Path>, usual: Option<&Path>) -> State {
    let Some(folder) = named.or(usual) else {
        let text = "there is no folder for what is kept over restarts, because none of \
                    STATE_DIRECTORY, XDG_STATE_HOME and HOME is set; `state` names one";
        return Err(text.to_owned());
    };
    match distrusted(folder) {
        None => Ok(folder.to_owned()),
        Some(why) => Err(format!(
            "the folder {} is not used for what is kept over restarts: {why}",
            folder.display()
        )),
    }
}

/// Why the folder, or one on the way to it, is not ours alone to change. It need not be there yet.
fn distrusted(folder: &Path) -> Option<String> {
    let found = folder.ancestors().find_map(|path| {
        let real = fs::canonicalize(path).ok()?;
        Some((real, path == folder))
    });
    let (real, is_there) = found?;
    let own = is_there.then_some(&*real);
    let above = real.ancestors().skip(usize::from(is_there));
    // A service manager's or a container's root may belong to whom it likes.
    let above = above.filter(|path| path.parent().is_some());
    let own = own.and_then(|path| distrusted_one(path, GROUP_WRITES | ANYBODY_WRITES, 0));
    own.or_else(|| {
        let mut above = above.filter_map(|path| distrusted_one(path, ANYBODY_WRITES, STICKY));
        above.next()
    })
}

/// Why others than we and root can change what is in a folder: one of the `open` bits of its mode
/// is set, and none of `safe`.
fn distrusted_one(path: &Path, open: u32, safe: u32) -> Option<String> {
    let facts = fs::metadata(path).ok()?;
    let (path, uid, mode) = (path.display(), facts.uid(), facts.mode());
    if uid != 0 && uid != geteuid().as_raw() {
        return Some(format!(
            "{path} belongs to user {uid}; it must be root's or that of the user who starts hob \
             (chown)"
        ));
    }
    if mode & open != 0 && mode & safe == 0 {
        let mode = mode & 0o7777;
        return Some(format!(
            "others may write to {path} (mode {mode:o}; chmod go-w)"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn folder_that_others_may_write_to_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("a/state");
        let chosen = || choose(Some(&state), None);
        assert_eq!(chosen(), Ok(state.clone()), "it will be made");
        fs::create_dir_all(&state).unwrap();
        mode(&state, 0o755);
        mode(&place.path().join("a"), 0o775);
        assert_eq!(chosen(), Ok(state.clone()));
        for bits in [0o775, 0o757, 0o1777] {
            mode(&state, bits);
            let text = chosen().unwrap_err();
            assert!(text.contains(&format!("mode {bits:o}")), "{text}");
        }
        mode(&state, 0o700);
        let link = place.path().join("link");
        symlink(&state, &link).unwrap();
        assert_eq!(choose(Some(&link), None), Ok(link));
        mode(&place.path().join("a"), 0o777);
        assert!(chosen().is_err(), "who may move it away");
        mode(&place.path().join("a"), 0o1777);
        assert_eq!(chosen(), Ok(state.clone()));
        if chown(&state, Some(12345), None).is_ok() {
            let text = chosen().unwrap_err();
            assert!(text.contains("user 12345"), "{text}");
        }
    }

    #[test]
    fn without_a_folder_the_operator_is_told_how_to_name_one() {
        assert!(choose(None, None).unwrap_err().contains("`state`"));
        let usual = tempfile::tempdir().unwrap();
        assert_eq!(
            choose(None, Some(usual.path())),
            Ok(usual.path().to_owned())
        );
    }
}
