//! Files that change while they are downloaded: whole as they were, or visibly broken off.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use super::harness::client::begin_download;
use super::harness::{BIG_BYTES, BIG_LINE, Place};

/// What comes of a download of `name`, of which the begin has come, when its file is changed.
fn download(name: &str, change: impl FnOnce(&Path)) -> Vec<u8> {
    let place = Place::new();
    place.fill_big();
    let path = place.path(&format!("site/{name}"));
    std::fs::rename(place.path("site/big.bin"), &path).unwrap();
    let hob = place.serve_config("");
    let (mut connection, headers) = begin_download(hob.port(), &format!("/{name}"));
    let announced = ("content-length".to_owned(), BIG_BYTES.to_string());
    assert!(headers.contains(&announced), "{headers:?}");
    change(&path);
    let mut body = Vec::new();
    // Broken off, the connection ends, perhaps before any of it has come; else all of it comes.
    while body.len() < BIG_BYTES {
        match connection.read_some() {
            Ok(bytes) if !bytes.is_empty() => body.extend_from_slice(&bytes),
            _ => break,
        }
    }
    hob.stop();
    body
}

fn assert_whole(body: &[u8]) {
    assert_eq!(body.len(), BIG_BYTES);
    assert!(body.chunks(16).all(|line| line == BIG_LINE.as_bytes()));
}

fn assert_broken(body: &[u8]) {
    assert!(body.len() < BIG_BYTES, "{} bytes came", body.len());
}

fn new_bytes(len: usize) -> Vec<u8> {
    vec![b'B'; len]
}

#[test]
fn replaced_by_a_rename_is_given_as_it_was() {
    assert_whole(&download("file.bin", |path| {
        let next = path.with_extension("next");
        std::fs::write(&next, new_bytes(BIG_BYTES + 100)).unwrap();
        std::fs::rename(next, path).unwrap();
    }));
}

#[test]
fn overwritten_by_a_longer_one_breaks_off() {
    assert_broken(&download("file.bin", |path| {
        let mut file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all(&new_bytes(BIG_BYTES + 100)).unwrap();
    }));
    assert_broken(&download("file.bin", |path| {
        std::fs::write(path, new_bytes(BIG_BYTES + 100)).unwrap();
    }));
}

#[test]
fn overwritten_by_a_shorter_or_an_equal_one_breaks_off() {
    for len in [BIG_BYTES - 100, BIG_BYTES, 0] {
        assert_broken(&download("file.bin", |path| {
            std::fs::write(path, new_bytes(len)).unwrap();
        }));
    }
}

#[test]
fn appended_to_is_given_as_it_was_if_it_is_a_log_and_breaks_off_if_not() {
    let append = |path: &Path| {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"one more line\n").unwrap();
    };
    assert_whole(&download("access.log", append));
    assert_broken(&download("file.bin", append));
}
