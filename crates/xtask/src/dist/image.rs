//! OCI images, made without a daemon: a layout is a few JSON files beside its layers, and layers
//! are tar files.
//!
//! ```text
//! hob-VERSION-MACHINE.oci.tar           the C library and hob alone
//! hob-VERSION-MACHINE-scripts.oci.tar   Debian with Python, Perl and PHP, and hob
//!
//! oci-layout
//! index.json              -> manifest
//! blobs/sha256/MANIFEST   -> config and layers
//! blobs/sha256/CONFIG     what is run, as whom, with which signal it ends
//! blobs/sha256/LAYER      what lies below, first; then hob
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::{Release, archive, tree};
use crate::run;

/// The release whose C library and interpreters images have; the native parts are for them.
const SUITE: &str = "bookworm";

/// What the image with interpreters has of Debian.
const PACKAGES: &str = "ca-certificates,perl,php-cgi,python3";

/// The account that everything runs as.
const ACCOUNT: u32 = 10001;

/// What hob needs of a system, as it lies in Debian's: the C library with what it loads by itself,
/// zones, accounts, and whom to trust.
const SMALL: &str = r#"
etc/debian_version etc/group etc/nsswitch.conf etc/os-release etc/passwd
etc/ssl/certs/ca-certificates.crt lib lib64
usr/lib/*-linux-gnu/ld-linux-*.so.* usr/lib/*-linux-gnu/libc.so.6 usr/lib/*-linux-gnu/libgcc_s.so.1
usr/lib/*-linux-gnu/libm.so.6 usr/lib/*-linux-gnu/libnss_*.so.2 usr/lib/*-linux-gnu/libresolv.so.2
usr/lib/ld-linux-* usr/lib64 usr/lib/locale/C.utf8 usr/lib/os-release
usr/share/doc/libc6/copyright usr/share/doc/libgcc-s1/copyright"#;

/// Makes the images; none where Debian's packages cannot be had.
pub(super) fn make(release: &Release, staged: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = release.folder.join("image");
    // Layers of before would be taken along.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let system = folder.join("system.tar");
    if let Err(reason) = debian(release, &system) {
        println!("no images: {reason}");
        return Ok(Vec::new());
    }
    let small = folder.join("small.tar");
    let top = folder.join("small");
    let mut shell = release.tool("sh");
    shell.args(["-c", PICK]).args([&top, &system, &small]);
    run::captured(shell.env("SMALL", SMALL))?;
    let hob = hob(release, staged, &folder)?;
    let made = vec![
        layout(release, &folder, "", &[&small, &hob])?,
        layout(release, &folder, "-scripts", &[&system, &hob])?,
    ];
    if release.is_for_this_machine() {
        for image in &made {
            let mut trial = release.tool(&format!("{}/{TRIAL}", release.root.display()));
            print!("{}", run::captured(trial.arg(image))?);
        }
    }
    Ok(made)
}

/// Runs an image as a container.
const TRIAL: &str = "packaging/check/image";

const PICK: &str = r#"set -e
mkdir "$0"
tar -C "$0" --wildcards -xf "$1" $(printf './%s ' $SMALL) 2>"$0.said" || true
test -e "$0/usr/lib/"*-linux-gnu/libc.so.6
tar -C "$0" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner \
    --mtime="@$SOURCE_DATE_EPOCH" -cf "$2" ."#;

/// Debian with interpreters, as a tar file.
fn debian(release: &Release, made: &Path) -> Result<(), String> {
    let account = format!(
        "echo 'hob:x:{ACCOUNT}:{ACCOUNT}:hob:/var/lib/hob:/usr/sbin/nologin' >> \"$1/etc/passwd\" && \
         echo 'hob:x:{ACCOUNT}:' >> \"$1/etc/group\""
    );
    let mut mmdebstrap = release.tool("mmdebstrap");
    mmdebstrap.args(["--variant=minbase", &format!("--include={PACKAGES}")]);
    mmdebstrap.arg(format!("--architectures={}", release.machine.name));
    mmdebstrap.arg("--dpkgopt=path-exclude=/usr/share/man/*");
    mmdebstrap.arg(format!("--customize-hook={account}"));
    run::captured(mmdebstrap.arg(SUITE).arg(made)).map(|_| ())
}

/// The layer with hob in it.
fn hob(release: &Release, staged: &Path, folder: &Path) -> Result<PathBuf, String> {
    let (top, layer) = (folder.join("hob"), folder.join("hob.tar"));
    for (from, to) in [
        ("packaging/image/hob.toml", "etc/hob/hob.toml"),
        ("packaging/conf/index.html", "srv/www/index.html"),
    ] {
        tree::copy(&release.root.join(from), &top.join(to))?;
    }
    let mut shell = release.tool("sh");
    shell.args(["-c", LAYER]).args([&top, staged, &layer]);
    run::captured(shell.env("ACCOUNT", ACCOUNT.to_string()))?;
    Ok(layer)
}

/// Of the staged tree `$1` what a container needs, then the folders that are the account's.
const LAYER: &str = r#"set -e
mkdir -p "$0/usr/bin" "$0/usr/lib" "$0/usr/share/doc/hob" "$0/etc/hob/conf.d"
cp "$1/usr/bin/hob" "$0/usr/bin/"
cp -r "$1/usr/lib/hob" "$0/usr/lib/"
cp "$1/usr/share/doc/hob/copyright" "$1/usr/share/doc/hob/sbom.cdx.json" "$0/usr/share/doc/hob/"
chmod -R u=rwX,go=rX "$0"
pack() { tar --sort=name --format=gnu --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$@"; }
pack -C "$0" --owner=0 --group=0 -cf "$2" .
mkdir -p "$0.own/run/hob" "$0.own/var/lib/hob" "$0.own/tmp"
chmod 700 "$0.own/run/hob" "$0.own/var/lib/hob"
chmod 1777 "$0.own/tmp"
pack -C "$0.own" --owner="$ACCOUNT" --group="$ACCOUNT" -rf "$2" run/hob var/lib/hob
pack -C "$0.own" --owner=0 --group=0 -rf "$2" tmp"#;

/// Writes an image of these layers.
fn layout(
    release: &Release,
    folder: &Path,
    variant: &str,
    layers: &[&PathBuf],
) -> Result<PathBuf, String> {
    let name = format!("{}{variant}", release.name());
    let top = folder.join(&name);
    let blobs = Blobs {
        release,
        folder: top.join("blobs/sha256"),
    };
    fs::create_dir_all(&blobs.folder).map_err(|error| format!("{}: {error}", top.display()))?;
    let (mut contents, mut described) = (Vec::new(), Vec::new());
    for layer in layers {
        contents.push(format!("\"sha256:{}\"", blobs.sum(layer)?));
        let packed = layer.with_extension("tar.gz");
        let mut shell = release.tool("sh");
        shell.args(["-c", "gzip -9n < \"$0\" > \"$1\""]);
        run::captured(shell.args([layer, &&packed]))?;
        described.push(blobs.add(&packed, "application/vnd.oci.image.layer.v1.tar+gzip")?);
    }
    let config = config(release, &contents.join(","))?;
    let config = blobs.text(&config, "application/vnd.oci.image.config.v1+json")?;
    let manifest = format!(
        "{{\"schemaVersion\":2,\"mediaType\":\"{MANIFEST}\",\"config\":{config},\"layers\":[{}]}}",
        described.join(",")
    );
    let manifest = blobs.text(&manifest, MANIFEST)?;
    let manifest = manifest.trim_end_matches('}');
    let tag = format!("hob:{}{variant}", release.version);
    let index = format!(
        "{{\"schemaVersion\":2,\"manifests\":[{manifest},\"annotations\":\
         {{\"org.opencontainers.image.ref.name\":\"{tag}\"}}}}]}}"
    );
    for (file, text) in [
        ("oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}"),
        ("index.json", &index),
    ] {
        fs::write(top.join(file), text).map_err(|error| format!("{file}: {error}"))?;
    }
    let made = release.folder.join(format!("{name}.oci.tar"));
    let mut shell = release.tool("sh");
    shell.args(["-c", &format!("{} > \"$2\"", archive::TAR)]);
    run::captured(shell.args([&top, Path::new("."), &made]))?;
    Ok(made)
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What is run, and how. SIGTERM drains, as everywhere; the account may write to its own folders.
fn config(release: &Release, layers: &str) -> Result<String, String> {
    let moment = format!("@{}", release.epoch);
    let mut date = release.tool("date");
    let date = run::captured(date.args(["-u", "-d", &moment, "+%Y-%m-%dT%H:%M:%SZ"]))?;
    let (machine, version, date) = (release.machine.name, release.version, date.trim());
    Ok(format!(
        "{{\"created\":\"{date}\",\"architecture\":\"{machine}\",\"os\":\"linux\",\"config\":{{\
         \"User\":\"{ACCOUNT}:{ACCOUNT}\",\"ExposedPorts\":{{\"8080/tcp\":{{}}}},\
         \"Env\":[\"PATH=/usr/local/bin:/usr/bin:/bin\",\"STATE_DIRECTORY=/var/lib/hob\"],\
         \"Entrypoint\":[\"/usr/bin/hob\"],\
         \"Cmd\":[\"serve\",\"--config\",\"/etc/hob/hob.toml\"],\
         \"WorkingDir\":\"/srv/www\",\"StopSignal\":\"SIGTERM\",\"Labels\":{{\
         \"org.opencontainers.image.title\":\"hob\",\
         \"org.opencontainers.image.version\":\"{version}\",\
         \"org.opencontainers.image.licenses\":\"Apache-2.0\"}}}},\
         \"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[{layers}]}}}}"
    ))
}

/// What an image consists of, each under its checksum.
struct Blobs<'a> {
    release: &'a Release<'a>,
    folder: PathBuf,
}

impl Blobs<'_> {
    fn sum(&self, path: &Path) -> Result<String, String> {
        let said = run::captured(self.release.tool("sha256sum").arg(path))?;
        Ok(said.split(' ').next().unwrap_or_default().to_string())
    }

    /// Takes a file in; what manifests say of it.
    fn add(&self, path: &Path, kind: &str) -> Result<String, String> {
        let sum = self.sum(path)?;
        let size = fs::copy(path, self.folder.join(&sum))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(format!(
            "{{\"mediaType\":\"{kind}\",\"digest\":\"sha256:{sum}\",\"size\":{size}}}"
        ))
    }

    fn text(&self, text: &str, kind: &str) -> Result<String, String> {
        let path = self.folder.join("new");
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        let described = self.add(&path, kind)?;
        fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(described)
    }
}
