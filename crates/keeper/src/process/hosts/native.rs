//! The native parts that come with hob: compiled modules for Python and Perl, and the library they
//! call. A worker of a host looks for them in one folder; what it cannot load there, it does
//! without.
//!
//! ```text
//! lib/hob/libhob.so.1
//! lib/hob/python/_native.abi3.so      every Python from 3.9 on
//! lib/hob/python/_warm.abi3.so        its warm hosts
//! lib/hob/perl/NAME.so                one for each perl
//! lib/hob/perl/NAME-warm.so           its warm hosts
//! lib/hob/source                      what `hob native build` builds them of
//! ```
//!
//! The folder is beside the program, or in the folder above it: `/usr/bin/hob` has `/usr/lib/hob`.
//! A worker loads code from it, so it is used only if nobody but root and whoever could change the
//! program itself can change what is in it.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the folder is, seen from the program's own.
const PLACES: [&str; 2] = ["lib/hob", "../lib/hob"];
const ANYBODY_WRITES: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The folder of native parts, if there is one that can be trusted; `trouble` gets what the
/// operator should know.
pub fn folder(trouble: &mut dyn FnMut(String)) -> Option<PathBuf> {
    let program = rustix::fs::readlink("/proc/self/exe", Vec::new()).ok()?;
    let program = PathBuf::from(std::ffi::OsString::from_vec(program.into_bytes()));
    found_by(&program, trouble)
}

/// The folder for a program at that place.
fn found_by(program: &Path, trouble: &mut dyn FnMut(String)) -> Option<PathBuf> {
    let home = program.parent()?;
    let folder = PLACES
        .iter()
        .find_map(|place| fs::canonicalize(home.join(place)).ok())?;
    let owners = owners_of(program, home);
    match distrusted(&folder, &owners) {
        None => Some(folder),
        Some(path) => {
            trouble(format!(
                "the native parts in {} are not used: {} may be changed by others than root and \
                 the owner of hob (chown, or chmod o-w)",
                folder.display(),
                path.display()
            ));
            None
        }
    }
}

/// Who may change the program, and so may change what it uses.
fn owners_of(program: &Path, home: &Path) -> Vec<u32> {
    let owner = |path| fs::metadata(path).map(|found: Metadata| found.uid()).ok();
    [Some(0), owner(program), owner(home)]
        .into_iter()
        .flatten()
        .collect()
}

/// Something there, or on the way to it, that others can change.
fn distrusted(folder: &Path, owners: &[u32]) -> Option<PathBuf> {
    let on_the_way = folder.ancestors().map(Path::to_owned);
    on_the_way
        .chain(all_below(folder))
        .flat_map(|path| {
            // A link is as good as what it leads to, and the way there.
            let real = fs::canonicalize(&path).unwrap_or_default();
            let above = real.parent().map(Path::to_owned);
            [Some(real), above].into_iter().flatten()
        })
        .find(|path| fs::metadata(path).is_ok_and(|found| !is_kept(&found, owners)))
}

/// Everything in a folder and in those in it; links are not followed.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(all_below(&entry.path()));
        }
        all.push(entry.path());
    }
    all
}

fn is_kept(found: &Metadata, owners: &[u32]) -> bool {
    let is_open = found.mode() & ANYBODY_WRITES != 0;
    // In a sticky folder nobody can replace what is not theirs.
    let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
    owners.contains(&found.uid()) && (!is_open || is_sticky)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    /// A program with native parts beside the folder it lies in.
    fn installed() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        let parts = root.join("lib/hob");
        fs::create_dir_all(parts.join("python")).unwrap();
        fs::create_dir_all(parts.join("source/lang/python")).unwrap();
        let builder = parts.join("source/lang/python/build_native.py");
        fs::write(&builder, "").unwrap();
        mode(&builder, 0o644);
        fs::create_dir(root.join("bin")).unwrap();
        fs::write(root.join("bin/hob"), "").unwrap();
        fs::write(parts.join("python/_native.abi3.so"), "").unwrap();
        let source = ["source", "source/lang", "source/lang/python", "python"];
        for folder in source.map(|name| parts.join(name)) {
            mode(&folder, 0o755);
        }
        for name in ["lib", "lib/hob", "bin"] {
            mode(&root.join(name), 0o755);
        }
        mode(&parts.join("python/_native.abi3.so"), 0o644);
        let program = root.join("bin/hob");
        (place, program, parts)
    }

    fn found(program: &Path) -> Option<PathBuf> {
        found_by(program, &mut |_| ())
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn folder_beside_the_programs_folder_is_found() {
        let (_place, program, parts) = installed();
        assert_eq!(found(&program), Some(parts));
    }

    #[test]
    fn without_a_folder_there_are_none() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(found(&place.path().join("hob")), None);
    }

    #[test]
    fn what_anybody_may_write_is_not_used() {
        for name in [
            "",
            "python",
            "python/_native.abi3.so",
            "source/lang/python/build_native.py",
            "..",
        ] {
            let (_place, program, parts) = installed();
            mode(&parts.join(name), 0o777);
            assert_eq!(found(&program), None, "{name}");
        }
    }

    #[test]
    fn link_is_as_good_as_what_it_leads_to() {
        let (place, program, parts) = installed();
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        mode(&elsewhere, 0o755);
        fs::write(elsewhere.join("libhob.so"), "").unwrap();
        symlink(elsewhere.join("libhob.so"), parts.join("libhob.so.1")).unwrap();
        assert_eq!(found(&program), Some(parts));
        mode(&elsewhere, 0o777);
        assert_eq!(found(&program), None);
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_used() {
        let (_place, program, parts) = installed();
        if chown(parts.join("python"), Some(12345), None).is_err() {
            return; // only root can give files away
        }
        assert_eq!(found(&program), None);
    }
}
