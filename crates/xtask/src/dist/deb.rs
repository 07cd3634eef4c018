//! The package for Debian and Ubuntu. `dpkg-deb` alone makes it: there is nothing to configure and
//! nothing to build that debhelper would know how to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use crate::run;

/// Who is named as keeper of a package when DEBFULLNAME and DEBEMAIL do not say.
const MAINTAINER: (&str, &str) = ("hob maintainers", "hob@hob.example");

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// The version of the package: that of the program, packaged for the first time.
pub(super) fn revision(release: &Release) -> String {
    format!("{}-1", release.version)
}

/// Makes `hob_VERSION_ARCHITECTURE.deb` of a staged tree.
pub(super) fn make(
    release: &Release,
    tree: &Path,
    version: &str,
    compression: [&str; 2],
) -> Result<PathBuf, String> {
    let folder = release.folder.join("deb");
    let named = |error: std::io::Error| format!("{}: {error}", folder.display());
    // What was staged there for another package is in the way.
    let _ = fs::remove_dir_all(&folder);
    run::captured(Command::new("cp").arg("-a").args([tree, &folder]))?;
    let packaging = release.root.join("packaging/debian");
    let maintainer = maintainer();
    changelog(release, &folder, version, &maintainer)?;
    let control = folder.join("DEBIAN");
    fs::create_dir_all(&control).map_err(named)?;
    let page = folder.join("usr/share/hob/index.html");
    let page = run::captured(Command::new("md5sum").arg(page))?;
    for script in SCRIPTS {
        let text = fs::read_to_string(packaging.join(script)).map_err(named)?;
        let text = text.replace("@page@", page.split(' ').next().unwrap_or_default());
        let path = control.join(script);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
            .map_err(named)?;
    }
    let size = run::captured(
        Command::new("du")
            .args(["-sk", "--apparent-size"])
            .arg(&folder),
    )?;
    let text = fs::read_to_string(packaging.join("control.in")).map_err(named)?;
    let text = text
        .replace("@version@", version)
        .replace("@architecture@", release.machine.name)
        .replace("@maintainer@", &maintainer)
        .replace("@size@", size.split('\t').next().unwrap_or_default());
    fs::write(control.join("control"), text).map_err(named)?;
    fs::write(control.join("conffiles"), CONFFILES).map_err(named)?;
    run::captured(release.tool("sh").args(["-c", CLOSE]).arg(&folder))?;
    let made = format!("hob_{version}_{}.deb", release.machine.name);
    let made = release.folder.join(made);
    let mut dpkg = release.tool("dpkg-deb");
    dpkg.args(compression)
        .args(["--root-owner-group", "--build"]);
    run::captured(dpkg.args([&folder, &made]))?;
    Ok(made)
}

/// Files that are the administrator's once they are there.
const CONFFILES: &str = "/etc/hob/hob.toml\n/etc/pam.d/hob\n";

const CLOSE: &str = r#"cd "$0"
find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums
chmod -R u=rwX,go=rX .
find . -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +"#;

fn maintainer() -> String {
    let or = |name, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_string());
    let (name, mail) = (
        or("DEBFULLNAME", MAINTAINER.0),
        or("DEBEMAIL", MAINTAINER.1),
    );
    format!("{name} <{mail}>")
}

/// What Debian's tools read about a package; people read `changelog.gz`.
fn changelog(
    release: &Release,
    folder: &Path,
    version: &str,
    maintainer: &str,
) -> Result<(), String> {
    let moment = format!("@{}", release.epoch);
    let date = run::captured(release.tool("date").args(["-R", "-u", "-d", &moment]))?;
    let text = format!(
        "hob ({version}) unstable; urgency=medium\n\n  \
         * Packaged; changelog.gz says what is new.\n\n -- {maintainer}  {date}"
    );
    let path = folder.join("usr/share/doc/hob/changelog.Debian");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    run::captured(Command::new("gzip").arg("-9nf").arg(path)).map(|_| ())
}
