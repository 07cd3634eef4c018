//! The tarball, and what tells that a file has come whole and from us: checksums and a signature.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Release, tree};
use crate::run;

/// Names the private key (Ed25519, PEM) that checksums are signed with.
const KEY: &str = "HOB_SIGNING_KEY";

/// Makes `hob-VERSION-MACHINE.tar.gz`: the staged tree, with instructions.
pub(super) fn make(release: &Release, staged: &Path) -> Result<PathBuf, String> {
    let name = release.name();
    let top = release.folder.join("tarball");
    let folder = top.join(&name);
    // What was staged there before is in the way.
    let _ = fs::remove_dir_all(&top);
    fs::create_dir_all(&top).map_err(|error| format!("{}: {error}", top.display()))?;
    run::captured(release.tool("cp").arg("-a").args([staged, &folder]))?;
    for (from, to) in [
        ("packaging/tarball/INSTALL.md", "INSTALL.md"),
        ("LICENSE", "LICENSE"),
    ] {
        tree::copy(&release.root.join(from), &folder.join(to))?;
    }
    let made = release.folder.join(format!("{name}.tar.gz"));
    let mut shell = release.tool("sh");
    shell.args(["-c", &format!("{} | gzip -9n > \"$2\"", TAR)]);
    run::captured(shell.args([&top, Path::new(&name), &made]))?;
    Ok(made)
}

/// Packs what is in the folder `$1` of the folder `$0`, the same each time.
pub(super) const TAR: &str = r#"tar -C "$0" --sort=name --format=gnu --owner=0 --group=0 \
--numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1""#;

/// Writes SHA256SUMS, and SHA256SUMS.sig where there is a key.
pub(super) fn sums(release: &Release, made: &[PathBuf]) -> Result<(), String> {
    let names = made.iter().filter_map(|path| path.file_name());
    let mut sha256sum = release.tool("sha256sum");
    let text = run::captured(sha256sum.args(names).current_dir(&release.folder))?;
    let sums = release.folder.join("SHA256SUMS");
    fs::write(&sums, text).map_err(|error| format!("{}: {error}", sums.display()))?;
    let signature = release.folder.join("SHA256SUMS.sig");
    let Some(key) = std::env::var_os(KEY) else {
        // One of other sums would be taken for theirs.
        let _ = fs::remove_file(&signature);
        println!("SHA256SUMS is not signed: {KEY} names no key");
        return Ok(());
    };
    let mut openssl = release.tool("openssl");
    openssl
        .args(["pkeyutl", "-sign", "-rawin", "-inkey"])
        .arg(key);
    openssl.arg("-in").arg(&sums).arg("-out").arg(&signature);
    run::captured(&mut openssl).map(|_| ())
}
