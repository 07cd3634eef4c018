//! The native parts of hosts, built once, and whether a server has them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::site::Programs;

/// What hosts run their loops with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// The native parts.
    Native,
    /// Nothing but the interpreter.
    Bare,
}

/// A folder `cgi` and nothing in it, for a server with these parts.
pub(crate) fn programs(parts: Parts) -> Programs {
    let programs = Programs::new();
    if parts == Parts::Native {
        let folder = programs.place.path("lib/hob");
        for language in ["python", "perl"] {
            lay(&built().join(language), &folder.join(language));
        }
        open(&folder, 0o755);
        open(&programs.place.path("lib"), 0o755);
    }
    programs
}

fn lay(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    open(to, 0o755);
    for entry in fs::read_dir(from).unwrap() {
        let file = entry.unwrap();
        let copy = to.join(file.file_name());
        fs::copy(file.path(), &copy).unwrap();
        open(&copy, 0o644);
    }
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("warm-parts");
        for language in ["python", "perl"] {
            fs::create_dir_all(folder.join(language)).unwrap();
        }
        let lang = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lang");
        for (interpreter, builder, made) in [
            ("python3", "python/build_native.py", "python/_warm.abi3.so"),
            ("perl", "perl/build_native.pl", "perl"),
        ] {
            let mut build = Command::new(interpreter);
            build.arg(lang.join(builder)).arg(folder.join(made));
            let output = build.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "the native parts cannot be built here; `make setup-test` installs what they \
                 need: {said}"
            );
        }
        folder
    })
}
