//! libhob as cargo built it for the tests, and C programs linked with it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name that programs look for.
const SONAME: &str = "libhob.so.1";

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Copies the library into a folder, where whoever programs run as can read it.
pub fn copy(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.with_file_name("libhob.so");
    let copied = folder.join(SONAME);
    std::fs::copy(&built, &copied).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    readable(&copied);
    copied
}

/// Compiles one C file, named from the top of the repository or absolutely, into a folder, with the
/// library beside it. The program is called as the file is, without its ending.
pub fn compile(source: &str, folder: &Path) -> PathBuf {
    let library = folder.join(SONAME);
    if !library.exists() {
        copy(folder);
    }
    let source = root().join(source);
    let program = folder.join(source.file_stem().unwrap());
    let status = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg("-I")
        .arg(root().join("crates/libhob/include"))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .arg(&library)
        .args(["-pthread", "-Wl,-rpath,$ORIGIN"])
        .status()
        .unwrap();
    assert!(status.success(), "{} compiles", source.display());
    readable(&program);
    program
}

/// Programs may run as somebody else than the tests, whatever their umask.
pub fn readable(file: &Path) {
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
}
