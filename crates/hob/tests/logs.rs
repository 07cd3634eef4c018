//! Access log files over the life of the processes: opened again, rotated, compressed.

#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

use harness::Place;
use harness::client::get;
use rustix::process::Signal;

fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("logs")).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn log_that_reaches_its_size_is_put_aside_compressed_and_not_lost() {
    let place = Place::new();
    place.folder("logs");
    let hob = place.serve_config(
        "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"logs/access.log\"\n\
         rotate_size = \"1KiB\"\n",
    );
    for _ in 0..30 {
        assert_eq!(get(hob.port(), "/hello.txt").unwrap().status, 200);
    }
    hob.wait_for("an access log was compressed");
    // What is written from now on is complete when the server has ended.
    hob.stop();
    let names = names(&place);
    assert_eq!(names[0], "access.log");
    assert!(names.iter().any(|name| name.ends_with(".gz")), "{names:?}");
    let line_count: usize = names.iter().map(|name| lines(&place, name)).sum();
    assert_eq!(line_count, 30, "{names:?}");
}

fn lines(place: &Place, name: &str) -> usize {
    let path = place.path("logs").join(name);
    let output = std::process::Command::new("gzip")
        .arg("-dcf")
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| line.contains("/hello.txt"))
        .count()
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
    let read = |name: &str| std::fs::read_to_string(place.path("logs").join(name)).unwrap();
    assert!(read("moved").contains("?first"));
    assert!(read("access.log").contains("?second") && !read("access.log").contains("?first"));
}
