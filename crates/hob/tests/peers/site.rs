//! The files that all three programs serve, the same in every run.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use flate2::{Compression, GzBuilder};
use tempfile::TempDir;

/// When every file was changed last: Sun, 09 Sep 2001 01:46:40 GMT.
const MODIFIED: Duration = Duration::from_secs(1_000_000_000);
/// What `/plain.txt` holds; the ranges in the table are ranges of it.
pub(crate) const PLAIN: &str = "abcdefghijklmnopqrstuvwxyz\n";
/// What `/probe.txt` holds: no other file has it.
pub(crate) const PROBE: &str = "The connection is still open.\n";
const BIG_BYTES: usize = 4 * 1024 * 1024;

/// A folder with `site/` in it, and room for the programs' own files beside it.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    /// Writes all files.
    pub(crate) fn make() -> Site {
        let folder = TempDir::with_prefix("hob-peers-").unwrap();
        // Programs that drop root's rights must still get in.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let site = Site { folder };
        site.write(
            "index.html",
            b"<!doctype html><title>Peers</title><p>Home\n",
        );
        site.write("plain.txt", PLAIN.as_bytes());
        site.write("probe.txt", PROBE.as_bytes());
        site.write("empty.txt", b"");
        site.write("big.bin", &big());
        site.write(
            "picture.png",
            b"\x89PNG\r\n\x1a\nnot a picture, yet its name says so",
        );
        site.write("data.json", b"{\"kettle\": \"warm\"}\n");
        site.write("noending", b"what am I?\n");
        site.write("style.css", style().as_bytes());
        site.write("style.css.gz", &gzip(style().as_bytes()));
        site.write("archive.tar.gz", &gzip(b"not a tar"));
        site.write(
            "folder/index.html",
            b"<!doctype html><title>Folder</title>\n",
        );
        site.write("folder/below.txt", b"below\n");
        site.write("bare/one.txt", b"one\n");
        site.write("cr\u{e8}me.txt", b"accent\n");
        site.write("\u{304a}\u{8336}.txt", b"tea\n");
        site.write("a b.txt", b"space\n");
        site.write("a+b.txt", b"plus\n");
        site.write("a&b;c=d.txt", b"delimiters\n");
        site.write("%41.txt", b"percent\n");
        site.write("A.txt", b"letter\n");
        site.write(".secret", b"secret\n");
        site.write(".git/config", b"secret\n");
        site.write(
            ".well-known/security.txt",
            b"Contact: mailto:kettle@example.org\n",
        );
        site.write("locked.txt", b"locked\n");
        let locked = site.root().join("locked.txt");
        fs::set_permissions(locked, Permissions::from_mode(0o000)).unwrap();
        symlink("plain.txt", site.root().join("inside.txt")).unwrap();
        site
    }

    /// The folder that is served.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    /// Where a program keeps files of its own.
    pub(crate) fn room(&self, name: &str) -> PathBuf {
        let room = self.folder.path().join(name);
        fs::create_dir_all(&room).unwrap();
        room
    }

    /// Writes one more file.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        let mut file = File::create(path).unwrap();
        file.write_all(bytes).unwrap();
        file.set_modified(UNIX_EPOCH + MODIFIED).unwrap();
    }
}

/// No two places in it look alike.
fn big() -> Vec<u8> {
    let numbers = (0..BIG_BYTES as u32).step_by(4);
    numbers
        .flat_map(|number| number.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect()
}

fn style() -> String {
    let rules = (0..200).map(|number| format!(".kettle-{number} {{ color: #{number:06x}; }}\n"));
    rules.collect()
}

/// Stored, not compressed: the same bytes whatever version of the library made them.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::none());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
