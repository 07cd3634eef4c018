//! A page that compresses well, and its compressed copy: what servers send with
//! `Content-Encoding: gzip`, or make of it themselves.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Bytes of the page.
pub(crate) const DOCUMENT_BYTES: u64 = 64 << 10;
/// The page in each of [`FOLDERS`].
pub(crate) const DOCUMENT: &str = "page.html";
/// The folder below the root, and those in it: with a copy beside the page, for servers that
/// compress themselves, for those that do not.
pub(crate) const COPIES: &str = "copies";
const FOLDERS: [&str; 3] = ["beside", "made", "plain"];

/// Writes the page below the root, three times, and one copy of it, whose length this is.
pub(crate) fn write(root: &Path) -> io::Result<u64> {
    let page = page();
    for folder in FOLDERS {
        let folder = root.join(COPIES).join(folder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(DOCUMENT), &page)?;
    }
    let copy = gzip(page.as_bytes())?;
    let [beside, ..] = FOLDERS;
    let path = root
        .join(COPIES)
        .join(beside)
        .join(format!("{DOCUMENT}.gz"));
    fs::write(path, &copy)?;
    Ok(copy.len() as u64)
}

/// As whoever makes copies beforehand does: as short as it gets.
fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// A table of figures and words, different ones in every line and always the same ones: a fifth of
/// it is what cannot be foreseen, as in pages of people.
fn page() -> String {
    let bytes = DOCUMENT_BYTES as usize;
    let mut page =
        "<!DOCTYPE html>\n<html><head><title>A table</title></head><body><table>\n".to_owned();
    let mut state = 1u32;
    // Numerical Recipes' constants; the upper bits alone are any good.
    let mut draw = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    while page.len() < bytes {
        let words = [(); 4].map(|()| WORDS[draw(WORDS.len() as u32) as usize]);
        let number = draw(10_000);
        // Writing into a string does not go wrong.
        let _ = writeln!(
            page,
            "<tr><td class=\"number\">{number}</td><td class=\"words\">{}</td></tr>",
            words.join(" ")
        );
    }
    page.truncate(bytes);
    page
}

const WORDS: &[&str] = &[
    "answer", "bucket", "candle", "daylight", "engine", "feather", "garden", "harbour", "island",
    "journey", "kettle", "lantern", "meadow", "needle", "orchard", "pebble", "quarter", "river",
    "shadow", "timber", "umbrella", "valley", "window", "yellow",
];

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn copy_is_the_page_and_much_shorter() {
        let root = tempfile::tempdir().unwrap();
        let bytes = write(root.path()).unwrap();
        let at = |name: &str| root.path().join("copies/beside").join(name);
        let page = fs::read(at("page.html")).unwrap();
        let copy = fs::read(at("page.html.gz")).unwrap();
        assert_eq!(page.len() as u64, DOCUMENT_BYTES);
        assert_eq!(copy.len() as u64, bytes);
        let mut unpacked = vec![];
        GzDecoder::new(&copy[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, page);
        // As pages are, and no string of one letter.
        let times = DOCUMENT_BYTES / bytes;
        assert!((3..12).contains(&times), "{times}");
        assert!(!root.path().join("copies/made/page.html.gz").exists());
    }
}
