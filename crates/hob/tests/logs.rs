//! Access log files over the life of the processes: opened again, rotated, compressed.

#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

use harness::client::{begin_download, get};
use harness::{BIG_BYTES, Hob, Place, text_of};
use rustix::process::Signal;

fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("logs")).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Serves with a log that is put aside at 1 KiB, and asks until it was, for 30 lines at least.
/// Returns how many.
fn serve_until_rotated(place: &Place, keys: &str) -> (Hob, usize) {
    place.folder("logs");
    let hob = place.serve_config(&format!(
        "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"logs/access.log\"\n\
         rotate_size = \"1KiB\"\n{keys}\n"
    ));
    let mut asked = 0;
    // The writer looks at the size now and then; how many lines come meanwhile is not known.
    while asked < 30 || names(place).len() < 2 {
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
        asked += 1;
        assert!(asked < 100_000, "the log is never put aside");
    }
    (hob, asked)
}

#[test]
fn log_that_reaches_its_size_is_put_aside_and_loses_no_line() {
    let place = Place::new();
    let (hob, asked) = serve_until_rotated(&place, "compress = false");
    // The log is complete when the server has ended.
    hob.stop();
    let names = names(&place);
    let texts = names.iter().map(|name| read(&place, name));
    let line_count: usize = texts.map(|text| text.matches("/hello.txt").count()).sum();
    assert_eq!(line_count, asked, "{names:?}");
}

#[test]
fn log_that_was_put_aside_is_compressed_by_a_child() {
    let place = Place::new();
    let (hob, _) = serve_until_rotated(&place, "compress = true");
    hob.wait_for("an access log was compressed");
    hob.stop();
    let names = names(&place);
    // Another one may just be going over.
    let is_alone = |name: &&String| {
        let original = name.strip_suffix(".gz");
        original.is_some_and(|original| !names.iter().any(|name| name == original))
    };
    let compressed = names.iter().find(is_alone);
    let compressed = compressed.unwrap_or_else(|| panic!("{names:?}"));
    let path = place.path("logs").join(compressed);
    let output = std::process::Command::new("gzip")
        .arg("-dc")
        .arg(path)
        .output()
        .unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().lines().count() > 1);
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path("logs").join(name)).unwrap()
}

#[test]
fn log_that_was_moved_away_is_opened_again_on_sighup() {
    let place = Place::new();
    place.folder("logs");
    let hob = place.serve_config(
        "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"logs/access.log\"\n",
    );
    get(hob.port(), "/hello.txt?first").unwrap();
    let log = place.path("logs/access.log");
    std::fs::rename(&log, place.path("logs/moved")).unwrap();
    hob.signal(Signal::HUP);
    hob.wait_for("reloaded, generation 2");
    get(hob.port(), "/hello.txt?second").unwrap();
    hob.stop();
    let (moved, now) = (read(&place, "moved"), read(&place, "access.log"));
    assert!(now.contains("?second") && !moved.contains("?second"));
    // Whether it was written before or after the file changed: once.
    assert_eq!(format!("{moved}{now}").matches("?first").count(), 1);
}

#[test]
fn request_that_lives_through_many_reloads_has_its_line() {
    let place = Place::new();
    place.folder("logs");
    let hob = place.serve_config(
        "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"logs/access.log\"\n",
    );
    let mut downloads: Vec<_> = (0..3)
        .map(|_| begin_download(hob.port(), "/big.bin").0)
        .collect();
    for _ in 0..5 {
        let output = place.run(&["reload"]);
        assert!(output.status.success(), "{}", text_of(&output));
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    }
    for download in &mut downloads {
        assert_eq!(download.skip(BIG_BYTES as u64).unwrap(), BIG_BYTES as u64);
    }
    drop(downloads);
    // One that came when all of them had their end, and another reload after it.
    assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    assert!(place.run(&["reload"]).status.success());
    assert_eq!(place.counter("log_dropped"), 0);
    hob.stop();
    let log = std::fs::read_to_string(place.path("logs/access.log")).unwrap();
    assert_eq!(log.matches("GET /big.bin ").count(), 3, "{log}");
    assert_eq!(log.matches("GET /hello.txt ").count(), 6, "{log}");
}
