//! Opening, rotating and compressing in temporary folders.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::Duration;

use flate2::read::GzDecoder;
use tempfile::TempDir;

use super::*;

/// 2026-11-21 21:13:07 and so many seconds more.
fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_295_587 + seconds)
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn refusal<T>(result: io::Result<T>) -> String {
    result.err().expect("this must be refused").to_string()
}

#[test]
fn open_creates_a_private_file_and_appends() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log");
    open(&path).unwrap().write_all(b"one\n").unwrap();
    open(&path).unwrap().write_all(b"two\n").unwrap();
    assert_eq!(read(&path), "one\ntwo\n");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777 & !0o640, 0, "{mode:o}");
}

#[test]
fn open_follows_no_symbolic_link() {
    let folder = TempDir::new().unwrap();
    let (path, victim) = (
        folder.path().join("access.log"),
        folder.path().join("victim"),
    );
    std::fs::write(&victim, "untouched").unwrap();
    symlink(&victim, &path).unwrap();
    assert!(refusal(open(&path)).contains("symbolic link"));
    assert!(refusal(rotate(&path, 5, false)).contains("regular"));
    assert_eq!(
        (read(&victim).as_str(), names(&folder).len()),
        ("untouched", 2)
    );
}

#[test]
fn open_refuses_what_is_no_place_for_a_log() {
    let folder = TempDir::new().unwrap();
    let (path, victim) = (
        folder.path().join("access.log"),
        folder.path().join("victim"),
    );
    std::fs::write(&victim, "").unwrap();
    std::fs::hard_link(&victim, &path).unwrap();
    assert!(refusal(open(&path)).contains("hard link"));
    assert!(open(folder.path()).is_err());
    assert!(open(&folder.path().join("missing/access.log")).is_err());
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.path().join("fifo"),
        FileType::Fifo,
        LOG_MODE,
        0,
    )
    .unwrap();
    assert!(refusal(open(&folder.path().join("fifo"))).contains("nobody reads"));
    assert!(open(Path::new("/dev/full")).is_ok());
}

#[test]
fn rotated_file_bears_the_time_and_the_new_one_is_empty() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log");
    let mut old = open(&path).unwrap();
    old.write_all(b"before\n").unwrap();
    let (mut new, to_compress) = rotate_at(&path, 5, true, at(0)).unwrap();
    // Who has not heard of the rotation yet still writes to the old file.
    old.write_all(b"late\n").unwrap();
    new.write_all(b"after\n").unwrap();
    let rotated = folder.path().join("access.log.20261121-211307");
    assert_eq!(to_compress, Some(rotated.clone()));
    assert_eq!(
        (read(&rotated).as_str(), read(&path).as_str()),
        ("before\nlate\n", "after\n")
    );
}

#[test]
fn rotations_within_one_second_get_names_of_their_own() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log");
    for content in ["1", "2", "3"] {
        std::fs::write(&path, content).unwrap();
        let (_, rotated) = rotate_at(&path, 5, true, at(0)).unwrap();
        if content == "1" {
            compress(&rotated.unwrap()).unwrap();
        }
    }
    let rotated = "access.log.20261121-211307";
    let expected = [
        "access.log".into(),
        format!("{rotated}-2"),
        format!("{rotated}-3"),
    ];
    assert_eq!(
        names(&folder),
        [&expected[..1], &expected[1..], &[format!("{rotated}.gz")]].concat()
    );
    assert_eq!(read(&folder.path().join(&expected[1])), "2");
}

#[test]
fn oldest_rotated_files_beyond_keep_are_deleted_compressed_or_not() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log");
    let others = [
        "access.log.old",
        "access.log.20261121-21130x",
        "error.log.20200101-000000",
    ];
    for name in others {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let left_by_a_crash = folder.path().join("access.log.20261121-211307.gz.tmp");
    std::fs::write(left_by_a_crash, "").unwrap();
    for second in 0..5 {
        std::fs::write(&path, second.to_string()).unwrap();
        let (_, rotated) = rotate_at(&path, 3, true, at(second)).unwrap();
        if second % 2 == 0 {
            compress(&rotated.unwrap()).unwrap();
        }
    }
    let mut expected = vec![
        "access.log".to_owned(),
        "access.log.20261121-211309.gz".to_owned(),
        "access.log.20261121-211310".to_owned(),
        "access.log.20261121-211311.gz".to_owned(),
    ];
    expected.extend(others.map(str::to_owned));
    expected.sort();
    assert_eq!(names(&folder), expected);
}

#[test]
fn keeping_none_deletes_the_rotated_file_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, "x").unwrap();
    let (_, to_compress) = rotate_at(&path, 0, true, at(0)).unwrap();
    assert_eq!(
        (to_compress, names(&folder)),
        (None, vec!["access.log".to_owned()])
    );
}

#[test]
fn log_that_someone_moved_away_is_opened_anew() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log");
    let (_, to_compress) = rotate_at(&path, 5, true, at(0)).unwrap();
    assert_eq!(
        (to_compress, names(&folder)),
        (None, vec!["access.log".to_owned()])
    );
}

#[test]
fn failure_to_rotate_leaves_everything_as_it_was() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, "x").unwrap();
    let rotated = with_suffix("access.log".as_ref(), ".20261121-211307");
    let place = PathInFolder::of(&path).unwrap();
    assert_eq!(place.rename_away(at(0)).unwrap(), rotated);
    place.rename_back(&rotated);
    assert_eq!(
        (names(&folder), read(&path)),
        (vec!["access.log".to_owned()], "x".to_owned())
    );
}

#[test]
fn compressed_file_has_the_same_content_owner_and_time() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log.20261121-211307");
    let content = "a line of a log\n".repeat(20_000);
    std::fs::write(&path, &content).unwrap();
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(at(0))
        .unwrap();
    let before = std::fs::metadata(&path).unwrap();
    let compressed = compress(&path).unwrap();
    assert_eq!(names(&folder), ["access.log.20261121-211307.gz"]);
    let mut unpacked = String::new();
    GzDecoder::new(File::open(&compressed).unwrap())
        .read_to_string(&mut unpacked)
        .unwrap();
    assert!(unpacked == content);
    let after = std::fs::metadata(&compressed).unwrap();
    assert_eq!(after.modified().unwrap(), at(0));
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert!(after.len() < before.len() / 50);
}

#[test]
fn failed_compression_keeps_the_original() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("access.log.20261121-211307");
    std::fs::write(&path, "x").unwrap();
    // In the place of the result stands a folder, over which no file can be renamed.
    std::fs::create_dir(folder.path().join("access.log.20261121-211307.gz")).unwrap();
    assert!(compress(&path).is_err());
    assert_eq!((names(&folder).len(), read(&path).as_str()), (2, "x"));
    symlink(&path, folder.path().join("link")).unwrap();
    assert!(compress(&folder.path().join("link")).is_err());
}
