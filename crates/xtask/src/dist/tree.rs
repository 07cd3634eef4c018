//! Every file of an installation, at its place below a folder: the package, the tarball and the
//! images are made of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use super::binary::{self, Built, ShippedBinary};
use crate::native;
use crate::run;

/// Files of the repository: where from, where to.
const FILES: &[(&str, &str)] = &[
    ("packaging/conf/hob.toml", "etc/hob/hob.toml"),
    ("packaging/pam/hob", "etc/pam.d/hob"),
    ("packaging/conf/index.html", "usr/share/hob/index.html"),
    (
        "packaging/systemd/hob.service",
        "usr/lib/systemd/system/hob.service",
    ),
    (
        "packaging/systemd/hob.sysusers",
        "usr/lib/sysusers.d/hob.conf",
    ),
    (
        "packaging/systemd/hob.tmpfiles",
        "usr/lib/tmpfiles.d/hob.conf",
    ),
    ("packaging/debian/copyright", "usr/share/doc/hob/copyright"),
    (
        "packaging/grafana/hob.json",
        "usr/share/doc/hob/grafana.json",
    ),
    ("README.md", "usr/share/doc/hob/README.md"),
    ("SECURITY.md", "usr/share/doc/hob/SECURITY.md"),
    ("CHANGELOG.md", "usr/share/doc/hob/changelog"),
];

/// The book, a folder of Markdown.
const BOOK: (&str, &str) = ("docs/src", "usr/share/doc/hob/book");

/// Stages all of them in `folder`, which is made anew.
pub(super) fn stage(
    release: &Release,
    program: &ShippedBinary,
    built: &Built,
    folder: &Path,
) -> Result<PathBuf, String> {
    let named = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(named(folder, error));
        }
        _ => {}
    }
    for (from, to) in FILES {
        copy(&release.root.join(from), &folder.join(to))?;
    }
    copy(
        &program.bill,
        &folder.join("usr/share/doc/hob/sbom.cdx.json"),
    )?;
    copy(&program.path, &folder.join("usr/bin/hob"))?;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.join("usr/bin/hob"), mode).map_err(|error| named(folder, error))?;
    let book = folder.join(BOOK.1);
    run::captured(
        Command::new("cp")
            .arg("-r")
            .arg(release.root.join(BOOK.0))
            .arg(&book),
    )?;
    let parts = folder.join("usr/lib/hob");
    copy(&built.library, &parts.join("libhob.so.1"))?;
    strip(release, &parts.join("libhob.so.1"))?;
    native::lay_sources(release.root, &parts)?;
    native_parts(release, &parts)?;
    manual(
        release,
        &folder.join("usr/bin/hob"),
        &folder.join("usr/share"),
    )?;
    run::captured(release.tool("sh").args(["-c", CLOSE]).arg(folder))?;
    Ok(folder.to_path_buf())
}

/// Manuals and change logs are compressed as Debian wants them; everything may be read by all, and
/// has the same moment of change.
const CLOSE: &str = r#"cd "$0"
gzip -9nf usr/share/man/man1/*.1 usr/share/doc/hob/changelog
chmod -R u=rwX,go=rX .
find . -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +"#;

/// Copies a file as one that all may read, with the folders above it.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder)
        .and_then(|()| fs::copy(from, to))
        .and_then(|_| fs::set_permissions(to, fs::Permissions::from_mode(0o644)))
        .map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

fn strip(release: &Release, path: &Path) -> Result<(), String> {
    let mut objcopy = release.tool(&format!("{}objcopy", release.machine.tools));
    run::captured(objcopy.arg("--strip-unneeded").arg(path)).map(|_| ())
}

/// The native parts for the interpreters of this machine, where it is the one that is built for.
fn native_parts(release: &Release, parts: &Path) -> Result<(), String> {
    if !release.is_for_this_machine() {
        println!(
            "no native parts for Python and Perl: their headers for {} are not here",
            release.machine.name
        );
        return Ok(());
    }
    if !native::parts(release.root, parts)? {
        return Err("a native part does not compile".to_string());
    }
    for suite in release.suites {
        perl_of(release, suite, parts)?;
    }
    let mut findings = Vec::new();
    for language in ["python", "perl"] {
        let Ok(entries) = fs::read_dir(parts.join(language)) else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            strip(release, &entry.path())?;
            findings.extend(binary::linked(&entry.path())?);
        }
    }
    match findings.is_empty() {
        true => Ok(()),
        false => Err(findings.join("\n")),
    }
}

/// Builds the native parts of another Debian's perl, in a system made of that Debian's packages
/// and thrown away. (One module does for every Python.)
fn perl_of(release: &Release, suite: &str, parts: &Path) -> Result<(), String> {
    let mut mmdebstrap = release.tool("mmdebstrap");
    mmdebstrap.args(["--variant=minbase", "--include=gcc,libc6-dev,perl"]);
    let (from, to) = (parts.join("source"), parts.join("perl"));
    for hook in [
        "mkdir \"$1/source\" \"$1/made\"".to_string(),
        format!("sync-in {} /source", from.display()),
        "chroot \"$1\" perl /source/lang/perl/build_native.pl /made".to_string(),
        format!("sync-out /made {}", to.display()),
    ] {
        mmdebstrap.arg(format!("--customize-hook={hook}"));
    }
    run::captured(mmdebstrap.args(["--format=null", suite, "/dev/null"])).map(|_| ())
}

/// Man pages and completions, by the program itself; that of another machine needs qemu-user and
/// its C library.
fn manual(release: &Release, program: &Path, share: &Path) -> Result<(), String> {
    let is_own = release.is_for_this_machine();
    let mut command = match is_own {
        true => Command::new(program),
        false => {
            let mut qemu = Command::new("qemu-aarch64-static");
            qemu.args(["-L", "/usr/aarch64-linux-gnu"]).arg(program);
            qemu
        }
    };
    run::captured(command.arg("manual").arg(share)).map(|_| ())
}
